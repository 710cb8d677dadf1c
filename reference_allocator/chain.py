"""Pools in a row over one byte budget: what fits them together, and how they make room for each other.

A demand is a number of pages for each of some pools of one chain. Everything here is host arithmetic; only `relieve`
queues work, and nothing blocks the host.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise

from reference_allocator.band import Band
from reference_allocator.end_band import EndBand
from reference_allocator.errors import SpecError
from reference_allocator.float_band import FloatBand
from reference_allocator.page_tables import Profile
from reference_allocator.records import Ids, Span
from reference_allocator.specs import BytePool
from reference_allocator.streams import SideQueue

Demand = Mapping[Band, int]


def make_band(
    pool: BytePool,
    name: str,
    ids: Ids,
    *,
    eager: bool,
    checked: bool,
    side: SideQueue | None = None,
    profile: Profile = "portable",
) -> Band:
    """The band of one spec; what only end pools know, `eager` and `side`, does not matter to a floating one."""
    if pool.geometry_of(name, "band").grow == "float":
        return FloatBand(pool, name, ids, checked=checked, profile=profile)
    return EndBand(pool, name, ids, eager=eager, checked=checked, side=side, profile=profile)


def join(*bands: Band) -> None:
    """Makes pools neighbours: one that grows up, at most one that floats, one that grows down. Host only.

    Raises `SpecError` for anything else, and for pools of different buffers.
    """
    kinds = {grow: [band for band in bands if _grow(band) == grow] for grow in ("up", "float", "down")}
    counts = [len(kinds[grow]) for grow in ("up", "float", "down")]
    if counts not in ([1, 0, 1], [1, 1, 1]) or len({id(band.pool) for band in bands}) != 1:
        raise SpecError(
            "+".join(band.name for band in bands), "join", "not the two ends of one buffer and what floats there",
            grow={band.name: _grow(band) for band in bands},
        )  # fmt: skip
    row = [*kinds["up"], *kinds["float"], *kinds["down"]]
    for lower, upper in pairwise(row):
        lower.above, upper.below = upper, lower


def _grow(band: Band) -> str:
    return band.pool.geometry[band.name].grow


def members(band: Band) -> list[Band]:
    """The chain that a pool is part of, from the low end to the high one: the pool alone where it was not joined."""
    while band.below is not None:
        band = band.below
    row = [band]
    while row[-1].above is not None:
        row.append(row[-1].above)
    return row


def settle(band: Band) -> None:
    """Credits compactions of the whole chain that are done. Asks events; never blocks."""
    for member in members(band):
        member.settle()


def most(fit: Callable[[int], bool], limit: int) -> int:
    """The largest number up to `limit` that fits; whatever fits, less of it does too."""
    return bisect_left(range(1, limit + 1), True, key=lambda pages: not fit(pages))


def fits(demand: Demand) -> bool:
    """Whether the pools have room for a demand together, as they are."""
    return _room_for({band: Span(band.lo, band.hi) for band in _members(demand)}, _growth(demand))


def fits_after_relief(demand: Demand) -> bool:
    """Whether they would have once `relieve` has done all it can."""
    return _room_after(_spare(demand), demand)


def relieve(demand: Demand) -> None:
    """Makes room for a demand, if there is enough in all: packs spare holes, and moves a floating pool aside.

    End pools pack only what the floating one cannot give, and nothing is packed where all of it would not be enough.
    Waits on the stream for compactions and the forward event; never blocks the host.
    """
    row = _members(demand)
    for band in row:
        band.await_moves()
    if fits(demand) or not fits_after_relief(demand):
        return
    packed = _spare(demand)
    ends = [band for band in row if isinstance(band, EndBand)]
    for band in ends:
        # All the other pools give what they can, so that the last ones give no more than is missing.
        packed[band] -= most(partial(_room_without, packed, band, demand), packed[band])
    for band in ends:
        band.pack(packed[band])
        band.await_moves()
    for floating in row:
        if isinstance(floating, FloatBand):
            for band in ends:
                needed = max(0, demand.get(band, 0) - band.hole_count) * band.page_bytes
                floating.make_room("low" if band.up else "high", needed)


def _members(demand: Demand) -> list[Band]:
    return members(next(iter(demand)))


def _growth(demand: Demand) -> dict[Band, int]:
    """Pages by which regions must grow: holes are drained first."""
    return {band: max(0, pages - band.hole_count) for band, pages in demand.items()}


def _spare(demand: Demand) -> dict[Band, int]:
    """Holes that a demand leaves, of the pools that may move."""
    return {band: max(0, band.hole_count - demand.get(band, 0)) if band.may_move() else 0 for band in _members(demand)}


def _room_after(packed: Mapping[Band, int], demand: Demand) -> bool:
    """Whether a demand fits once so many holes of each pool are packed away and the floating one stands at its best."""
    spans, growth = {}, _growth(demand)
    for band, pages in packed.items():
        spans[band], anywhere = band.relieved(pages)
        growth[band] = growth.get(band, 0) + anywhere
    return _room_for(spans, growth)


def _room_without(packed: Mapping[Band, int], band: Band, demand: Demand, kept: int) -> bool:
    return _room_after({**packed, band: packed[band] - kept}, demand)


def _room_for(spans: dict[Band, Span], growth: Mapping[Band, int]) -> bool:
    """Whether regions can grow by so much, in the order in which composites bind: the ends, then what floats."""
    row = list(spans)
    for band in sorted(growth, key=lambda band: isinstance(band, FloatBand)):
        at = row.index(band)
        ends = [spans[other].hi * other.page_bytes for other in row[:at] if _stands(other, spans)]
        starts = [spans[other].lo * other.page_bytes for other in row[at + 1 :] if _stands(other, spans)]
        low, high = (ends or [band.pool.sink_bytes])[-1], (starts or [band.pool.total_bytes])[0]
        grown = band.growth(growth[band], spans[band], low, high)
        if grown is None:
            return False
        spans[band] = spans[band].widened(grown)
    return True


def _stands(band: Band, spans: Mapping[Band, Span]) -> bool:
    return isinstance(band, EndBand) or spans[band].lo < spans[band].hi
