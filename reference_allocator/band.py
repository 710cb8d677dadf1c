"""An end pool: physical pages between one end of the byte buffer and a frontier, with holes where pages were freed.

Counts are host integers, contents are device tables, and no decision reads a device value. The list of holes is an
immutable value: every change replaces it, so a slice that was handed out stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from reference_allocator import tables
from reference_allocator.error_word import ErrorWord, Fault
from reference_allocator.errors import ArgumentError, CapacityError, SpecError, StateError
from reference_allocator.host_checks import expect_bound, expect_unbound
from reference_allocator.records import BandState, Ids, Pending, Reservation, Taken
from reference_allocator.specs import BytePool, KVSpec
from reference_allocator.streams import SideQueue, StreamEvent

SCRATCH_BYTES = 1 << 20
"""Memory that moves go through, or one page where a page is larger: a bound, whatever the number of pages moved."""


class EndBand:
    """One sub-pool that grows `up` from the sink or `down` from the top.

    pool, name: the byte pool, and which of its specs this is.
    ids: the virtual pages; the owner's count, which is not this pool's own where another pool mints them.
    eager: every free compacts at once instead of leaving holes.
    checked: frees and bindings report misuse in the error word, or raise before any write on a CPU.
    side: a queue for compaction beside the current stream, or None.
    Raises `SpecError` for a floating pool. Queues fills; never blocks the host.
    """

    neighbour: EndBand | None = None

    def __init__(
        self, pool: BytePool, name: str, ids: Ids, *, eager: bool, checked: bool, side: SideQueue | None = None
    ) -> None:
        geometry = pool.geometry[name]
        if geometry.grow == "float":
            raise SpecError(name, "band", "a floating pool has no end")
        self.pool = pool
        self.name = name
        self.up = geometry.grow == "up"
        self.eager = eager
        self.checked = checked
        self.raises = checked and pool.device.type == "cpu"
        self.side = side
        self.device = pool.device
        self.page_size = geometry.page_size
        self.page_bytes = geometry.page_bytes
        self.error = ErrorWord(self.device)
        self.gates: dict[str, Callable[[], bool]] = {}
        self.fwd_event: StreamEvent | None = None
        self.epoch = 0
        self.moves = 0
        self.frees = 0
        self.transfers = 0
        spec = pool.specs[name]
        self._zeroes = isinstance(spec, KVSpec) and spec.kind == "full"
        self._envelopes = pool.envelopes(name)
        rows = max(1, SCRATCH_BYTES // self.page_bytes)
        self._scratch = self._envelopes.new_empty((min(rows, geometry.pages), self._envelopes.shape[1]))
        self._v2p = torch.empty(ids.stop + 1, dtype=torch.int64, device=self.device)
        self._p2v = torch.empty(geometry.pages + 1, dtype=torch.int64, device=self.device)
        self._physical = torch.arange(geometry.pages, device=self.device)
        self._no_pages = self._physical[:0]
        self.pending: list[Pending] = []
        self.reserved: dict[int, Reservation] = {}
        self.reshape(ids)

    def reshape(self, ids: Ids) -> None:
        """Takes the pool's present geometry and clears. Tables keep their storage. Queues fills; never blocks."""
        geometry = self.pool.geometry[self.name]
        self.ids = ids
        self.pages = geometry.pages
        self.min_page = geometry.min_page
        self.v2p = self._v2p[: ids.stop + 1]
        self.p2v = self._p2v[: self.pages + 1]
        self.clear()

    def clear(self) -> None:
        """Unbinds everything and forgets errors, pending pages and the forward event. Queues 5 fills; never blocks."""
        for batch in self.pending:
            batch.done.wait()
        self.pending.clear()
        self.reserved.clear()
        tables.reset(self.v2p)
        tables.reset(self.p2v)
        self.error.clear()
        self.holes = self._no_pages
        self.wm = self.min_page if self.up else self.pages - 1
        self.live = 0
        self.fwd_event = None
        self._holes_sorted = True
        self.epoch += 1

    # Capacity: host arithmetic.

    @property
    def span(self) -> int:
        """Pages between the pool's end and its frontier: live, holes and pending. Host only."""
        return self.wm - self.min_page if self.up else self.pages - 1 - self.wm

    @property
    def frontier(self) -> int:
        """Byte at which the pool's region ends. Host only."""
        return (self.wm if self.up else self.wm + 1) * self.page_bytes

    @property
    def gap_bytes(self) -> int:
        """Bytes between this frontier and the neighbour's. Host only."""
        if self.neighbour is None:
            return self.pool.total_bytes - self.frontier if self.up else self.frontier - self.pool.sink_bytes
        return self.neighbour.frontier - self.frontier if self.up else self.frontier - self.neighbour.frontier

    @property
    def hole_count(self) -> int:
        """Pages that can be handed out without new bytes. Host only."""
        return self.holes.numel()

    @property
    def pending_count(self) -> int:
        """Pages that are neither live nor reusable yet. Host only."""
        return sum(batch.pages for batch in self.pending) + sum(held.pages.numel() for held in self.reserved.values())

    @property
    def pages_not_live(self) -> int:
        """Pages without a live token, of all that the pool could ever have. Bytes lent to the neighbour are no leak.

        Host only.
        """
        return self.pages - self.min_page - self.live

    @property
    def index_room(self) -> int:
        """Pages by which the frontier could move if the gap had no end. Host only."""
        return self.pages - self.min_page - self.span

    def room(self, gap_bytes: int | None = None) -> int:
        """Pages by which the frontier can move, in the present gap or in one of so many bytes. Host only."""
        gap = self.gap_bytes if gap_bytes is None else gap_bytes
        return min(gap // self.page_bytes, self.index_room)

    def available_pages(self) -> int:
        """Pages that can be taken now. Host only, never blocks: done compactions are credited, others are not."""
        self.settle()
        return self.room() + self.hole_count

    def schedulable_pages(self) -> int:
        """Pages that could be taken if the neighbour gave up its holes. Host only, never blocks."""
        self.settle()
        return self.room(self.gap_bytes + self._neighbour_holes_bytes()) + self.hole_count

    def _neighbour_holes_bytes(self) -> int:
        other = self.neighbour
        return other.hole_count * other.page_bytes if other is not None and other.may_move() else 0

    def may_move(self) -> bool:
        """Whether every gate lets pages be relocated, and no transfer knows any by its place. Host only."""
        return not self.reserved and all(gate() for gate in self.gates.values())

    # Taking, binding, freeing.

    def take(self, count: int) -> Taken | None:
        """Reserves physical pages: holes first, nearest the pool's own end, the rest at the frontier.

        None, and nothing changed, where there are too few. Sorts the holes if part of a changed list is taken; never
        blocks the host.
        """
        drained = min(count, self.hole_count)
        grown = count - drained
        if grown > self.room():
            return None
        if self.up:
            start = self.wm
            self.wm += grown
        else:
            self.wm -= grown
            start = self.wm + 1
        self.epoch += 1
        return Taken(self._drain(drained) if drained else None, start, grown)

    def _drain(self, count: int) -> Tensor:
        self.await_moves()
        if count < self.hole_count:
            self._sort_holes()
        drained = self.holes[:count]
        self.holes = self.holes[count:]
        return drained

    def _sort_holes(self) -> None:
        if not self._holes_sorted:
            self.holes = torch.sort(self.holes, descending=not self.up).values
            self._holes_sorted = True

    def alloc_with_virtual(self, pages: Tensor) -> None:
        """Binds virtual pages (int64 `[k]`, none bound here) to physical pages of this pool.

        Raises `CapacityError` where there is no room: the caller's gate must have caught it. Queues 2 to 6 launches on
        the current stream, and on a full-attention pool a fill of the pages behind the forward; never blocks the host.
        """
        if self.raises:
            expect_unbound(self.name, "alloc_with_virtual", self.v2p, pages, self.ids.first, set())
        taken = self.take(pages.numel())
        if taken is None:
            raise CapacityError(
                self.name, "alloc_with_virtual", "no room for promised pages",
                pages=pages.numel(), holes=self.hole_count, room=self.room(), gap_bytes=self.gap_bytes,
            )  # fmt: skip
        self.bind(pages, taken)

    def bind(self, pages: Tensor, taken: Taken) -> None:
        """Binds virtual pages (int64 `[k]`) to as many taken ones. Launches and blocking as `alloc_with_virtual`."""
        self.await_moves()
        if self.checked:
            self.error.expect_positive(Fault.SINK_HANDED_OUT, pages)
        self.live += pages.numel()
        if self._zeroes:
            self.await_forward()
        if taken.drained is None:
            tables.bind_range(self.v2p, self.p2v, pages, self._physical, taken.start)
            if self._zeroes:
                self._envelopes[taken.start : taken.start + taken.grown].zero_()
            return
        physical = self._pages_of(taken, taken.drained)
        tables.bind_pairs(self.v2p, self.p2v, pages, physical)
        if self._zeroes:
            self._envelopes.index_fill_(0, physical, 0)

    def _pages_of(self, taken: Taken, drained: Tensor) -> Tensor:
        grown = self._physical[taken.start : taken.start + taken.grown]
        return torch.cat((drained, grown)) if taken.grown else drained

    # Pages for contents that come from elsewhere.

    def reserve(self, count: int) -> Reservation | None:
        """Takes physical pages for a transfer that is about to be queued, or None, and nothing changed, without room.

        Nothing in the pool moves until the reservation is bound or given up. At most 3 launches on the current stream;
        never blocks the host.
        """
        self.settle()
        taken = self.take(count)
        if taken is None:
            return None
        self.transfers += 1
        pages = self._pages_of(taken, self._no_pages if taken.drained is None else taken.drained)
        held = Reservation(self.transfers, pages.clone())
        self.reserved[held.number] = held
        self.epoch += 1
        return held

    def bind_reserved(self, held: Reservation, pages: Tensor) -> None:
        """Binds virtual pages (int64 `[k]`, none bound here) to what was reserved; their contents stay.

        Raises `StateError` for a reservation that is over, `ArgumentError` for another number of pages. Queues 2
        launches on the current stream; never blocks the host.
        """
        self._expect_held(held, "bind_reserved")
        if pages.numel() != held.pages.numel():
            raise ArgumentError(
                self.name, "bind_reserved", "unequal lengths", pages=pages.numel(), reserved=held.pages.numel()
            )
        self.expect_unbound(pages, "bind_reserved", freed=set())
        self.await_moves()
        del self.reserved[held.number]
        self.transfers += 1
        tables.bind_pairs(self.v2p, self.p2v, pages, held.pages)
        self.live += pages.numel()
        self.epoch += 1

    def give_up(self, held: Reservation) -> None:
        """Makes holes of what was reserved. Raises `StateError` for a reservation that is over.

        One launch on the current stream; never blocks the host.
        """
        self._expect_held(held, "give_up")
        self.await_moves()
        del self.reserved[held.number]
        self.transfers += 1
        self._add_holes(held.pages)

    def _expect_held(self, held: Reservation, operation: str) -> None:
        if held.number not in self.reserved:
            raise StateError(self.name, operation, "the reservation is over", number=held.number)

    def _add_holes(self, physical: Tensor) -> None:
        self.holes = torch.cat((self.holes, physical))
        self._holes_sorted = False
        self.epoch += 1

    def expect_bound(self, pages: Tensor, operation: str) -> None:
        """Raises `BindingError` on a checked CPU pool unless each of `pages` (int64 `[k]`) is bound once.

        Nothing at all elsewhere: there the free itself reports to the error word. Never blocks on a device.
        """
        if self.raises:
            expect_bound(self.name, operation, self.v2p, pages, self.ids.first)

    def expect_unbound(self, pages: Tensor, operation: str, *, freed: set[int]) -> None:
        """Raises `BindingError` on a checked CPU pool if one of `pages` (int64 `[k]`) is bound and not in `freed`.

        Nothing at all elsewhere. Never blocks on a device.
        """
        if self.raises:
            expect_unbound(self.name, operation, self.v2p, pages, self.ids.first, freed)

    def report_bound(self, pages: Tensor) -> None:
        """Tells the error word if one of `pages` (int64 `[k]`) is bound. 3 launches if checked or 0; never blocks."""
        if self.checked:
            self.await_moves()
            self.error.expect_positive(Fault.SWA_STILL_BOUND, 1 - self.v2p[pages])

    def rebind(self, kept: Tensor, incoming: Tensor) -> None:
        """Gives the physical pages of `incoming` to `kept` (both int64 `[k]`), lane by lane, and unbinds `incoming`.

        In a checked pool lanes whose `incoming` is not bound, or whose `kept` is, report to the error word and change
        nothing. Queues 4 launches (21 checked) on the current stream; never blocks the host.
        """
        self.await_moves()
        held = self.v2p[incoming]
        if self.checked:
            before = self.v2p[kept]
            self.error.expect_positive(Fault.SWA_NOT_BOUND, held)
            self.error.expect_positive(Fault.KEPT_STILL_BOUND, 1 - before)
            tables.rebind_where((held > 0) & (before <= 0), self.v2p, self.p2v, kept, incoming, held)
        else:
            tables.rebind(self.v2p, self.p2v, kept, incoming, held)

    def unbind(self, pages: Tensor) -> Tensor:
        """Frees bound pages (int64 `[k]`): both tables get tombstones, the physical pages become holes.

        Returns the pages that may be minted again: the same, or in a checked pool 0 for those that were not bound.
        Queues 4 launches (8 checked) on the current stream, and a compaction if eager; never blocks the host.
        """
        self.await_moves()
        held = tables.unbind(self.v2p, self.p2v, pages)
        if self.checked:
            self.error.expect_positive(Fault.DOUBLE_FREE if self.ids.owner else Fault.SWA_NOT_BOUND, held)
            pages = pages * (held > 0)
            held = held.clamp_min(0)
        self.take_back(held)
        return pages

    def take_back(self, physical: Tensor) -> None:
        """Makes holes of physical pages (int64 `[k]`) that the tables have let go of. One launch; never blocks."""
        self._add_holes(physical)
        self.live -= physical.numel()
        self.frees += 1
        if self.eager:
            self.pack(min(physical.numel(), self.hole_count))

    def translate(self, tokens: Tensor, out: Tensor | None = None) -> Tensor:
        """Physical token ids of virtual ones (both int64, same shape); negative, unbound and foreign ids give 0.

        `out` may be `tokens`. Raises `ArgumentError` for other dtypes, shapes and devices. Queues 6 launches on the
        current stream (3 where a page is one token); never blocks the host.
        """
        for given in (tokens, tokens if out is None else out):
            if given.dtype != torch.int64 or given.device != self.device or given.shape != tokens.shape:
                raise ArgumentError(
                    self.name, "translate", "ids and out must be int64, of one shape, on the pool's device",
                    dtype=given.dtype, shape=tuple(given.shape), ids=tuple(tokens.shape), device=given.device,
                )  # fmt: skip
        self.await_moves()
        return tables.translate(self.v2p, tokens, self.page_size, out)

    # Compaction.

    def pack(self, pages: int) -> int:
        """Gives `pages` back at the frontier by moving what lives there into holes; returns how many it gave.

        0 where a gate forbids moves. The new frontier does not depend on where the holes are, so nothing is read.
        Raises `ArgumentError` for a negative count and for more than there are holes. Waits, on the stream, for the
        forward event; queues about 25 launches; never blocks the host. With a side queue the pages are pending until
        the queue has passed.
        """
        if not 0 <= pages <= self.hole_count:
            raise ArgumentError(self.name, "pack", "not that many holes", pages=pages, holes=self.hole_count)
        if pages == 0 or not self.may_move():
            return 0
        self.settle()
        if self.pending and not self._at_frontier(self.pending[0]):
            self.await_moves()
        vacated = sum(batch.pages for batch in self.pending)
        low = self.wm - vacated - pages if self.up else self.wm + vacated + 1
        self.epoch += 1
        self.moves += 1
        if self.side is None:
            self.await_forward()
            self._move(low, pages)
            self.wm += -pages if self.up else pages
            return pages
        holes = self.holes
        done = self.side.run(lambda: self._move(low, pages), self.fwd_event)
        self.pending.append(Pending(low, pages, done, holes))
        return pages

    def _move(self, low: int, count: int) -> None:
        self._sort_holes()
        moves, self.holes = tables.plan_pack(self.p2v, self.holes, self._physical[low : low + count], low)
        if self.checked:
            outside = low - moves.target if self.up else moves.target - (low + count - 1)
            self.error.expect_positive(Fault.PLAN_OVERFLOW, torch.where(moves.ok, outside, 1))
        tables.move_pages(self._envelopes, moves, self._scratch)
        tables.commit_pack(self.v2p, self.p2v, moves)

    def prewarm(self) -> None:
        """Runs the plan and the copy of a compaction once, on the sink alone. Queues about 25 launches; never blocks.

        For before memory is sized: the first compaction then compiles and allocates nothing new.
        """
        moves, _ = tables.plan_pack(self.p2v, self._physical[:1], self._physical[self.pages - 1 :], self.pages)
        tables.move_pages(self._envelopes, moves, self._scratch)
        tables.commit_pack(self.v2p, self.p2v, moves)

    def await_forward(self) -> None:
        """The current stream waits for the forward in flight. Does not block the host."""
        if self.fwd_event is not None:
            self.fwd_event.wait()

    def settle(self) -> None:
        """Credits compactions whose queue has passed, oldest first. Asks events; never blocks."""
        while self.pending and self.pending[0].done.query():
            self._release(self.pending.pop(0))

    def await_moves(self) -> None:
        """The current stream waits for all compactions, and their pages are credited. Does not block the host."""
        for batch in self.pending:
            batch.done.wait()
        while self.pending:
            self._release(self.pending.pop(0))

    def _at_frontier(self, batch: Pending) -> bool:
        return batch.low + batch.pages == self.wm if self.up else batch.low == self.wm + 1

    def _release(self, batch: Pending) -> None:
        if self.side is not None:
            self.side.hand_over((self.holes,))
        if self._at_frontier(batch):
            self.wm += -batch.pages if self.up else batch.pages
        else:  # The pool has grown past them meanwhile.
            self._add_holes(self._physical[batch.low : batch.low + batch.pages])
        self.epoch += 1

    # Taking back.

    def backup(self) -> BandState:
        """The present state in O(1), for `restore`. Credits what is done; queues nothing, never blocks."""
        self.await_moves()
        return BandState(self.wm, self.holes, self.live, self.moves, self.frees, self.transfers)

    def expect_restorable(self, state: BandState) -> None:
        """Raises `StateError` if pages were freed, moved or reserved since `state`. Host only."""
        if (state.moves, state.frees, state.transfers) != (self.moves, self.frees, self.transfers):
            raise StateError(
                self.name, "restore", "pages were freed, moved or reserved since the backup",
                frees=self.frees - state.frees, moves=self.moves - state.moves,
                transfers=self.transfers - state.transfers,
            )  # fmt: skip

    def restore(self, state: BandState, pages: Tensor) -> None:
        """Unbinds `pages` (int64 `[k]`), which are all those bound since `state`, and takes its lists back.

        Queues 3 launches on the current stream; never blocks the host.
        """
        tables.unbind(self.v2p, self.p2v, pages)
        self.wm, self.holes, self.live = state.wm, state.holes, state.live
        self._holes_sorted = False
        self.epoch += 1


def join_ends(first: EndBand, second: EndBand) -> None:
    """Makes two end pools neighbours. Raises `SpecError` unless one grows up and the other down. Host only."""
    if first.up == second.up:
        raise SpecError(first.name, "join_ends", "both pools grow the same way", other=second.name)
    first.neighbour, second.neighbour = second, first
