"""The invariants of the tables as code: an empty list is a healthy allocator.

For idle points only. Everything here copies whole tables to the host and blocks it.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from reference_allocator import chain
from reference_allocator.allocator import PageAllocator
from reference_allocator.band import Band
from reference_allocator.composites import SWAComposite
from reference_allocator.end_band import EndBand
from reference_allocator.error_word import Fault, Reporting
from reference_allocator.errors import PoisonedError
from reference_allocator.pooled import PooledAllocator
from reference_allocator.specs import MAX_TOKEN_IDS
from reference_allocator.state import WithState
from reference_allocator.static import FixedPages, StaticSWAComposite

Allocator = PooledAllocator | StaticSWAComposite


def read(tensor: Tensor) -> list[int]:
    """The values of a tensor. Blocks the host until the device has made them."""
    # nosync-lint: ignore[NSL202] verify, check and dump read the device at idle points
    return list(tensor.tolist())


def faults(band: Reporting) -> Fault:
    """The bits of a band's error word. Blocks the host."""
    word = Fault(0)
    for bit, lowest in enumerate(read(band.error.cells)):
        if lowest <= 0:
            word |= Fault(1 << bit)
    return word


def check_bands(name: str, bands: Sequence[Reporting]) -> None:
    """Raises `PoisonedError`, with the bits by pool, if any error word is set. Blocks the host."""
    found = {band.name: repr(faults(band)) for band in bands if faults(band)}
    if found:
        raise PoisonedError(name, "check", "the error word is set; only clear() recovers", **found)


def check(allocator: Allocator) -> None:
    """Raises `PoisonedError` if an error word of the allocator is set, and poisons all its pools. Blocks the host.

    Until `clear`, whatever has one of these pools hands out, frees and changes nothing: the allocator, its parts, and
    for a part, the allocator it is of. A part that was not asked about stays as it is.
    """
    try:
        check_bands(allocator.name, allocator.sides if isinstance(allocator, StaticSWAComposite) else allocator.bands)
    except PoisonedError:
        for word in allocator.error_words:
            word.poisoned = True
        raise


def verify(allocator: Allocator) -> list[str]:
    """Every broken invariant of an allocator, by number. Blocks the host: idle points only."""
    if isinstance(allocator, StaticSWAComposite):
        sides = (line for side in allocator.sides for line in verify_fixed(allocator, side))
        return [*sides, *verify_mapping(allocator)]
    said = [*verify_memos(allocator), *(problem for band in allocator.bands for problem in verify_band(band))]
    if isinstance(allocator, PageAllocator):
        said += verify_ids(allocator)
    if isinstance(allocator, SWAComposite):
        said += [*verify_ids(allocator.full), *verify_sides(allocator)]
    if isinstance(allocator, WithState):
        said += verify_ids(allocator.state)
    return said


def dump(allocator: PooledAllocator) -> dict[str, dict[str, object]]:
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


def verify_memos(allocator: PooledAllocator) -> list[str]:
    """I11. Host only."""
    views = {
        "available": (allocator.available_size(), allocator.count(chain.fits)),
        "schedulable": (allocator.schedulable_size(), allocator.count(chain.fits_after_relief)),
    }
    return [
        f"{allocator.name}: I11 the memo says {memo} {view} tokens, the pools {counted}"
        for view, (memo, counted) in views.items()
        if memo != counted
    ]


def verify_sides(composite: SWAComposite) -> list[str]:
    """I6 for pools that share ids. Blocks the host."""
    full, swa = (read(band.v2p) for band in (composite.full.band, composite.swa))
    alone = [page for page, held in enumerate(swa) if held > 0 >= full[page]]
    return [f"{composite.name}: I6 pages {alone[:8]} are bound in the window and not in full"] if alone else []


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


def verify_fixed(static: StaticSWAComposite, side: FixedPages) -> list[str]:
    """I5, I7, I8, I10 and the error word for the pages of a fixed side. Blocks the host."""
    free = read(side.free)
    waiting = [page for pages in static.deferred.get(side.name, []) for page in read(pages)]
    said = [
        (side.pages == len(free) + side.live, f"I5 {side.pages} pages are not {len(free)} free + {side.live} live"),
        (len(set(free + waiting)) == len(free + waiting), "I5 a free page repeats"),
        (all(1 <= page <= side.pages for page in free + waiting), "I7 I8 a free page is the sink or no page"),
        (faults(side) == 0, f"error word {faults(side)!r}"),
    ]
    return [f"{side.name}: {problem}" for holds, problem in said if not holds]


def verify_mapping(static: StaticSWAComposite) -> list[str]:
    """I1 to I3, I6, I10 and I14 for a table of window tokens: it names whole pages that are live, each once.

    Blocks the host.
    """
    size, table, minted = static.page_size, *(read(table) for table in static.dump())
    rows = [table[at : at + size] for at in range(0, len(table) - 1, size)]
    mapped = {page: row[0] // size for page, row in enumerate(rows) if any(row)}
    gone = {side.name: set(read(side.free)) for side in static.sides}
    for name, waiting in static.deferred.items():
        gone[name].update(page for pages in waiting for page in read(pages))
    window_live = static.swa.pages - len(gone["swa"])
    kept = set(range(1, static.full.pages + 1)) - gone["full"]
    out = {page for page, mark in enumerate(minted) if mark > 0}
    said = [
        (not any(rows[0]) and table[-1] == -1, f"I1 the sink maps to {rows[0]}, the last entry is {table[-1]}"),
        (
            all(1 <= held <= static.swa.pages for held in mapped.values()) and not set(mapped.values()) & gone["swa"],
            "I2 a page maps to a window page that is free, the sink, or none",
        ),
        (len(set(mapped.values())) == len(mapped), "I3 two pages map to one window page"),
        (not set(mapped) & gone["full"], f"I6 pages {sorted(set(mapped) & gone['full'])[:8]} are free and mapped"),
        (window_live == len(mapped), f"I10 {window_live} window pages are live, and {len(mapped)} mapped"),
        (
            all(rows[page] == [held * size + at for at in range(size)] for page, held in mapped.items()),
            "I14 tokens of a page do not map to one window page in order",
        ),
        (not static.checked or out == kept, "I10 the list of free pages and the record of minted ones differ"),
    ]
    return [f"{static.name}: {problem}" for holds, problem in said if not holds]
