"""A floating pool: its region lies between the frontiers of the end pools and can grow, shrink and move either way."""

from __future__ import annotations

from typing import Literal

from reference_allocator.arguments import expect_count
from reference_allocator.band import Band
from reference_allocator.errors import SpecError
from reference_allocator.page_tables import Profile
from reference_allocator.records import Ids, Span
from reference_allocator.specs import BytePool

Side = Literal["low", "high"]


class FloatBand(Band):
    """One sub-pool with an end of its own on neither side. Its holes are used where they are, so no free compacts.

    Without pages it is nowhere, and its neighbours see each other. Moves run on the current stream.
    Arguments as `Band`. Raises `SpecError` for an end pool. Queues fills; never blocks the host.
    """

    drains_descending = False

    def __init__(self, pool: BytePool, name: str, ids: Ids, *, checked: bool, profile: Profile = "portable") -> None:
        grow = pool.geometry[name].grow
        if grow != "float":
            raise SpecError(name, "band", "an end pool does not float", grow=grow)
        super().__init__(pool, name, ids, checked=checked, profile=profile)

    # Where the region may be: host arithmetic. Bands are measured on the pool's own grid of pages: raw bytes would
    # count a page too many wherever the neighbour's frontier lies between two of them.

    @property
    def transparent(self) -> bool:
        """See `Band.transparent`. Host only."""
        return self.lo == self.hi

    def empty_span(self) -> Span:
        """See `Band.empty_span`. Host only."""
        return Span(self.min_page, self.min_page)

    def growth(self, count: int, span: Span, low: int, high: int) -> tuple[range, ...] | None:
        """See `Band.growth`: from nowhere in the middle, else on the roomier side first. Host only."""
        if count == 0:
            return ()
        first, last = self.first_page(low), self.last_page(high)
        if span.lo == span.hi:
            start = first + (last - first - count) // 2
            return (range(start, start + count),) if count <= last - first else None
        below, above = max(0, span.lo - first), max(0, last - span.hi)
        if count > below + above:
            return None
        up = min(count, above) if above >= below else count - min(count, below)
        grown = range(span.lo - (count - up), span.lo), range(span.hi, span.hi + up)
        return tuple(pages for pages in grown if pages)

    def relieved(self, spare: int) -> tuple[Span, int]:
        """See `Band.relieved`: all its pages can stand anywhere, if any may move. Host only."""
        if not self.may_move():
            return Span(self.lo, self.hi), 0
        return self.empty_span(), self.span - spare

    def gap(self, side: Side) -> int:
        """Bytes between the region and the next pool on one side. Host only."""
        return (
            self.lo * self.page_bytes - self.low_limit if side == "low" else self.high_limit - self.hi * self.page_bytes
        )

    def _have_more_holes(self) -> None:
        super()._have_more_holes()
        if self.live == 0 and self.pending_count == 0:
            self.hole_list.reset(self._no_pages)
            self.lo, self.hi = self.empty_span()

    # Moving.

    def pack(self, pages: int, side: Side = "high") -> int:
        """See `Band.pack`: the edge is the one on `side`. Never blocks."""
        self.expect_packable(pages)
        if pages == 0 or not self.may_move():
            return 0
        self.await_forward()
        self.epoch += 1
        self.moves += 1
        if side == "high":
            self._compact(self.hi - pages, pages, descending=False)
            self.hi -= pages
        else:
            self._compact(self.lo, pages, descending=True)
            self.lo += pages
        return pages

    def make_room(self, side: Side, min_bytes: int) -> int:
        """Opens at least `min_bytes` between the region and the next pool on one side; returns what is open there.

        Packs holes away first; then the solid region moves by as many pages as are still missing. Nothing changes
        where that cannot be enough, or a gate forbids moves. Raises `ArgumentError` for bytes that are no int. Waits,
        on the stream, for the forward event; queues about 40 launches; never blocks the host.
        """
        expect_count(self.name, "make_room", min_bytes=min_bytes)
        if self.transparent:
            return self.high_limit - self.low_limit
        if self.gap(side) >= min_bytes or not self.may_move() or self._most_room(side) < min_bytes:
            return self.gap(side)
        missing = -(-(min_bytes - self.gap(side)) // self.page_bytes)
        self.pack(min(missing, self.hole_count), side)
        missing = -(-max(0, min_bytes - self.gap(side)) // self.page_bytes)
        if missing:
            self._shift(side, missing)
        return self.gap(side)

    def _most_room(self, side: Side) -> int:
        """Bytes on one side if the live pages stood as far away from it as they can."""
        if side == "low":
            return (self.last_page(self.high_limit) - self.live) * self.page_bytes - self.low_limit
        return self.high_limit - (self.first_page(self.low_limit) + self.live) * self.page_bytes

    def _shift(self, side: Side, by: int) -> None:
        """Moves a region without holes away from one side. Sources and targets are disjoint ranges."""
        count = min(by, self.span)
        step = by if side == "low" else -by
        moved = Span(self.lo + step, self.hi + step)
        source, target = (self.lo, moved.hi - count) if side == "low" else (self.hi - count, moved.lo)
        self.await_forward()
        self.tables.shift(source, target, count)
        self.lo, self.hi = moved
        self.epoch += 1
        self.moves += 1

    def settle(self) -> None:
        """See `Band.settle`: there are none. Host only."""

    def await_moves(self) -> None:
        """See `Band.await_moves`: there are none. Host only."""
