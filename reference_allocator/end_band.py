"""An end pool: its region grows from one end of the byte buffer, and its frontier retreats by compaction."""

from __future__ import annotations

from reference_allocator.band import Band
from reference_allocator.errors import SpecError
from reference_allocator.page_tables import Profile
from reference_allocator.records import Ids, Pending, Span
from reference_allocator.specs import BytePool
from reference_allocator.streams import SideQueue


class EndBand(Band):
    """One sub-pool that grows `up` from the sink or `down` from the top.

    eager: every free compacts at once instead of leaving holes.
    side: a queue for compaction beside the current stream, or None. Otherwise as `Band`.
    Raises `SpecError` for a floating pool. Queues fills; never blocks the host.
    """

    transparent = False

    def __init__(
        self,
        pool: BytePool,
        name: str,
        ids: Ids,
        *,
        eager: bool,
        checked: bool,
        side: SideQueue | None = None,
        profile: Profile = "portable",
    ) -> None:
        grow = pool.geometry_of(name, "band").grow
        if grow == "float":
            raise SpecError(name, "band", "a floating pool has no end")
        self.up = grow == "up"
        self.eager = eager
        self.side = side
        self.pending: list[Pending] = []
        super().__init__(pool, name, ids, checked=checked, profile=profile)

    def clear(self) -> None:
        """See `Band.clear`. The current stream waits for compactions under way; never blocks the host."""
        for batch in self.pending:
            batch.done.wait()
        self.pending.clear()
        super().clear()

    # Where the region may be: host arithmetic.

    @property
    def drains_descending(self) -> bool:
        """Nearest the pool's own end first. Host only."""
        return not self.up

    def empty_span(self) -> Span:
        """See `Band.empty_span`. Host only."""
        at = self.min_page if self.up else self.pages
        return Span(at, at)

    def growth(self, count: int, span: Span, low: int, high: int) -> tuple[range, ...] | None:
        """See `Band.growth`: at the frontier. Host only."""
        if count == 0:
            return ()
        if self.up:
            return (range(span.hi, span.hi + count),) if count <= self.last_page(high) - span.hi else None
        return (range(span.lo - count, span.lo),) if count <= span.lo - self.first_page(low) else None

    def relieved(self, spare: int) -> tuple[Span, int]:
        """See `Band.relieved`: the frontier retreats. Host only."""
        return (Span(self.lo, self.hi - spare) if self.up else Span(self.lo + spare, self.hi)), 0

    @property
    def gap_bytes(self) -> int:
        """Bytes between the frontier and the next pool. Host only."""
        return self.high_limit - self.hi * self.page_bytes if self.up else self.lo * self.page_bytes - self.low_limit

    @property
    def pending_count(self) -> int:
        """See `Band.pending_count`: vacated pages are pending too. Host only."""
        return super().pending_count + sum(batch.pages for batch in self.pending)

    # Compaction.

    def took_back(self, count: int) -> None:
        """See `Band.took_back`; packs at once if eager. Never blocks."""
        super().took_back(count)
        if self.eager:
            self.pack(min(count, self.hole_count))

    def pack(self, pages: int) -> int:
        """See `Band.pack`: the edge is the frontier, and where it ends does not depend on where the holes are.

        With a side queue the pages are pending until the queue has passed. Never blocks.
        """
        self.expect_packable(pages)
        if pages == 0 or not self.may_move():
            return 0
        self.settle()
        if self.pending and not self._at_frontier(self.pending[0]):
            self.await_moves()
        vacated = sum(batch.pages for batch in self.pending)
        low = self.hi - vacated - pages if self.up else self.lo + vacated
        self.epoch += 1
        self.moves += 1
        if self.side is None:
            self.await_forward()
            self._compact(low, pages, descending=not self.up)
            self._retreat(pages)
            return pages
        holes = self.hole_list.backup()
        done = self.side.run(lambda: self._compact(low, pages, descending=not self.up), self.fwd_event)
        self.pending.append(Pending(low, pages, done, holes))
        return pages

    def _retreat(self, pages: int) -> None:
        if self.up:
            self.hi -= pages
        else:
            self.lo += pages

    def settle(self) -> None:
        """See `Band.settle`: the oldest first. Asks events; never blocks."""
        while self.pending and self.pending[0].done.query():
            self._release(self.pending.pop(0))

    def await_moves(self) -> None:
        """See `Band.await_moves`. Does not block the host."""
        for batch in self.pending:
            batch.done.wait()
        while self.pending:
            self._release(self.pending.pop(0))

    def _at_frontier(self, batch: Pending) -> bool:
        return batch.low + batch.pages == self.hi if self.up else batch.low == self.lo

    def _release(self, batch: Pending) -> None:
        if self.side is not None:
            self.side.hand_over((self.hole_list.backup().storage,))
        if self._at_frontier(batch):
            self._retreat(batch.pages)
            self.epoch += 1
        else:  # The pool has grown past them meanwhile.
            self._add_holes(self.tables.physical[batch.low : batch.low + batch.pages])
