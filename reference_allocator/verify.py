"""The invariants of the tables as code: an empty list is a healthy allocator.

For idle points only. Everything here copies whole tables to the host and blocks it.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from reference_allocator.allocator import PageAllocator
from reference_allocator.band import Band
from reference_allocator.composites import SWAComposite
from reference_allocator.end_band import EndBand
from reference_allocator.error_word import Fault
from reference_allocator.errors import PoisonedError
from reference_allocator.specs import MAX_TOKEN_IDS
from reference_allocator.state import WithState
from reference_allocator.token_allocator import TokenAllocator


def read(tensor: Tensor) -> list[int]:
    """The values of a tensor. Blocks the host until the device has made them."""
    # nosync-lint: ignore[NSL202] verify, check and dump read the device at idle points
    return list(tensor.tolist())


def faults(band: Band) -> Fault:
    """The bits of a band's error word. Blocks the host."""
    word = Fault(0)
    for bit, lowest in enumerate(read(band.error.cells)):
        if lowest <= 0:
            word |= Fault(1 << bit)
    return word


def check_bands(name: str, bands: Sequence[Band]) -> None:
    """Raises `PoisonedError`, with the bits by pool, if any error word is set. Blocks the host."""
    found = {band.name: repr(faults(band)) for band in bands if faults(band)}
    if found:
        raise PoisonedError(name, "check", "the error word is set; only clear() recovers", **found)


def check(allocator: TokenAllocator) -> None:
    """Raises `PoisonedError`, and poisons the allocator, if its error word is set. Blocks the host."""
    try:
        check_bands(allocator.name, allocator.bands)
    except PoisonedError:
        allocator.poisoned = True
        raise


def verify(allocator: TokenAllocator) -> list[str]:
    """Every broken invariant of an allocator, by number. Blocks the host: idle points only."""
    said = [problem for band in allocator.bands for problem in verify_band(band)]
    if isinstance(allocator, PageAllocator):
        said += verify_ids(allocator)
    if isinstance(allocator, SWAComposite):
        said += [*verify_ids(allocator.full), *verify_sides(allocator)]
    if isinstance(allocator, WithState):
        said += verify_ids(allocator.state)
    return said


def dump(allocator: TokenAllocator) -> dict[str, dict[str, object]]:
    """What each pool holds, by name: region, counts, holes, and the physical page of each bound virtual page.

    Blocks the host: idle points only.
    """
    return {
        band.name: {
            "region": (band.lo, band.hi),
            "pages": band.pages,
            "live": band.live,
            "pending": band.pending_count,
            "holes": read(band.holes),
            "bound": {page: held for page, held in enumerate(read(band.v2p)[:-1]) if page and held >= 0},
            "faults": faults(band),
        }
        for band in allocator.bands
    }


def verify_sides(composite: SWAComposite) -> list[str]:
    """I6 and I11 for pools that share ids. Blocks the host."""
    full, swa = (read(band.v2p) for band in (composite.full.band, composite.swa))
    alone = [page for page, held in enumerate(swa) if held > 0 >= full[page]]
    available, counted = composite.available_size(), composite.count_available()
    said = [
        (not alone, f"I6 pages {alone[:8]} are bound in the window and not in full"),
        (available == counted, f"I11 the memo says {available} tokens, the pools {counted}"),
    ]
    return [f"{composite.name}: {problem}" for holds, problem in said if not holds]


def verify_band(band: Band) -> list[str]:
    """I1 to I4, I7 to I11, I15 and the error word for one pool. Blocks the host."""
    vacated = band.pending if isinstance(band, EndBand) else []
    for batch in vacated:
        batch.done.wait()
    v2p, p2v, holes = read(band.v2p), read(band.p2v), read(band.holes)
    first, last = band.lo, band.hi
    bound = {page: held for page, held in enumerate(v2p[:-1]) if page and held >= 0}
    owners = {held: page for held, page in enumerate(p2v[:-1]) if held and page >= 0}
    pending = {page for batch in vacated for page in range(batch.low, batch.low + batch.pages)}
    pending |= {page for held in band.reserved.values() for page in read(held.pages)}
    said = [
        (v2p[0] == 0 and p2v[0] == 0, f"I1 the sink maps to {v2p[0]} and {p2v[0]}"),
        (v2p[-1] == -1 and p2v[-1] == -1, f"I1 the last rows hold {v2p[-1]} and {p2v[-1]}"),
        (
            all(band.ids.first <= page and first <= held < last for page, held in bound.items()),
            f"I2 a binding lies outside ids [{band.ids.first}, {band.ids.stop}) or pages [{first}, {last})",
        ),
        (owners == {held: page for page, held in bound.items()}, "I3 the tables do not mirror each other"),
        (
            band.span == len(owners) + len(holes) + band.pending_count,
            f"I4 span {band.span} is not live {len(owners)} + holes {len(holes)} + pending {band.pending_count}",
        ),
        (
            len(set(holes)) == len(holes)
            and all(first <= hole < last for hole in holes)
            and not (set(holes) | pending) & set(owners)
            and not set(holes) & pending,
            "I4 holes repeat, lie outside the region, or are in use",
        ),
        (0 not in holes, "I7 the sink is a hole"),
        (-1 not in holes, "I8 a tombstone is a hole"),
        (
            band.transparent
            or (band.low_limit <= band.lo * band.page_bytes and band.hi * band.page_bytes <= band.high_limit),
            f"I9 the region [{band.lo}, {band.hi}) crosses the bytes [{band.low_limit}, {band.high_limit})",
        ),
        (band.min_page <= band.lo <= band.hi <= band.pages, f"I9 the region [{band.lo}, {band.hi}) leaves the pool"),
        (band.live == len(owners), f"I10 the host counts {band.live} live pages, the tables {len(owners)}"),
        (band.pages * band.page_size < MAX_TOKEN_IDS, "I15 token ids do not fit in 31 bits"),
        (faults(band) == 0, f"error word {faults(band)!r}"),
    ]
    return [f"{band.name}: {problem}" for holds, problem in said if not holds]


def verify_ids(allocator: PageAllocator) -> list[str]:
    """I5, I7, I8 and I13 for the ids of an owner. Blocks the host."""
    band, free = allocator.band, read(allocator.free_vids)
    bound = {page for page, held in enumerate(read(band.v2p)[:-1]) if page and held >= 0}
    ids = band.ids.stop - band.ids.first
    said = [
        (ids == len(free) + band.live, f"I5 {ids} ids are not {len(free)} free + {band.live} live"),
        (len(set(free)) == len(free), "I5 a free id repeats"),
        (not set(free) & bound, "I5 a free id is bound"),
        (all(band.ids.first <= page < band.ids.stop for page in free), "I7 I8 a free id is the sink or no id"),
    ]
    return [f"{allocator.name}: {problem}" for holds, problem in said if not holds]
