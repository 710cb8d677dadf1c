"""One sub-pool: page tables, and physical pages of one region of the byte buffer, with holes where pages were freed.

Counts are host integers, contents are device tables, and no decision reads a device value.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from reference_allocator import tables
from reference_allocator.arguments import expect_count, expect_ids, expect_translatable
from reference_allocator.error_word import ErrorWord, Fault
from reference_allocator.errors import ArgumentError, CapacityError, SpecError, StateError
from reference_allocator.fused import FusedTables
from reference_allocator.host_checks import expect_bound, expect_in_none, expect_unbound, host_values
from reference_allocator.page_tables import PageTables, PoolFacts, Profile, TorchTables, physical_pages
from reference_allocator.pages import PageList, Pages
from reference_allocator.records import NOTHING_TAKEN, BandState, Ids, Moment, Reservation, Span, Taken
from reference_allocator.specs import BytePool, KVSpec
from reference_allocator.streams import StreamEvent
from reference_allocator.tables import Request

PROFILES: dict[Profile, type[PageTables]] = {"portable": TorchTables, "fused": FusedTables}


NUMBERS = itertools.count(1)
"""Of backups, over all pools: a state is never taken for that of another pool."""


class Band(ABC):
    """The physical pages `[lo, hi)` of one sub-pool: live, holes, or pending.

    pool, name: the byte pool, and which of its specs this is.
    ids: the virtual pages; the owner's count, which is not this pool's own where another pool mints them.
    checked: frees and bindings report misuse in the error word, or raise before any write on a CPU.
    profile: how tables and lists are worked on. Raises `SpecError` for names and profiles that there are not, and where
    another band has the pool. Queues fills; never blocks the host.
    """

    below: Band | None = None
    above: Band | None = None

    def __init__(self, pool: BytePool, name: str, ids: Ids, *, checked: bool, profile: Profile = "portable") -> None:
        geometry = pool.geometry_of(name, "band")
        if profile not in PROFILES:
            raise SpecError(name, "band", "no such profile", profile=profile, profiles=sorted(PROFILES))
        pool.expect_unclaimed(name)
        self.pool = pool
        self.name = name
        self.checked = checked
        self.raises = checked and pool.device.type == "cpu"
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
        self.tables = PROFILES[profile](
            PoolFacts(
                pool.envelopes(name), self.page_size, self.error if checked else None,
                Fault.DOUBLE_FREE if ids.owner else Fault.SWA_NOT_BOUND, self._zeroes,
            )
        )  # fmt: skip
        self._v2p = torch.empty(ids.stop + 1, dtype=torch.int64, device=self.device)
        self._p2v = torch.empty(geometry.pages + 1, dtype=torch.int64, device=self.device)
        self.hole_list = self.tables.page_list(geometry.pages)
        self._no_pages = self.tables.physical[:0]
        self.reserved: dict[int, Reservation] = {}
        self._past: list[Moment] = []
        self.reshape(ids)
        pool.claim(name, self)

    def reshape(self, ids: Ids) -> None:
        """Takes the pool's present geometry and clears. Tables keep their storage. Queues fills; never blocks."""
        geometry = self.pool.geometry[self.name]
        self.ids = ids
        self.pages = geometry.pages
        self.min_page = geometry.min_page
        self.v2p = self._v2p[: ids.stop + 1]
        self.p2v = self._p2v[: self.pages + 1]
        self.tables.attach(self.v2p, self.p2v)
        self.clear()

    def clear(self) -> None:
        """Unbinds everything and forgets errors, pending pages and the forward event. Queues 5 fills; never blocks."""
        self.reserved.clear()
        tables.reset(self.v2p)
        tables.reset(self.p2v)
        self.error.clear()
        self.hole_list.reset(self._no_pages)
        self.lo, self.hi = self.empty_span()
        self.live = 0
        self.frees += 1  # of everything: no earlier backup can be restored
        self.fwd_event = None
        self._descending: bool | None = None
        self.epoch += 1

    # Where the region may be: host arithmetic.

    @property
    @abstractmethod
    def transparent(self) -> bool:
        """Whether neighbours look through this pool, because it is nowhere. Host only."""

    @property
    @abstractmethod
    def drains_descending(self) -> bool:
        """Whether the highest hole is handed out first. Host only."""

    @abstractmethod
    def empty_span(self) -> Span:
        """The region of a pool without pages. Host only."""

    @abstractmethod
    def growth(self, count: int, span: Span, low: int, high: int) -> tuple[range, ...] | None:
        """The pages by which a region could grow by `count`, between the bytes `low` and `high`; None if it cannot.

        Host only."""

    @abstractmethod
    def relieved(self, spare: int) -> tuple[Span, int]:
        """The region after so many holes were packed away, and pages that could stand anywhere. Host only."""

    @property
    def low_limit(self) -> int:
        """Byte where the nearest pool below ends that is not transparent, or the sink. Host only."""
        other = self.below
        while other is not None and other.transparent:
            other = other.below
        return self.pool.sink_bytes if other is None else other.hi * other.page_bytes

    @property
    def high_limit(self) -> int:
        """Byte where the nearest pool above begins that is not transparent, or the end of the budget. Host only."""
        other = self.above
        while other is not None and other.transparent:
            other = other.above
        return self.pool.total_bytes if other is None else other.lo * other.page_bytes

    def first_page(self, low: int) -> int:
        """The first page that lies above a byte and past the sink. Host only."""
        return max(-(-low // self.page_bytes), self.min_page)

    def last_page(self, high: int) -> int:
        """One past the last page that ends below a byte. Host only."""
        return min(high // self.page_bytes, self.pages)

    @property
    def span(self) -> int:
        """Pages of the region: live, holes and pending. Host only."""
        return self.hi - self.lo

    @property
    def hole_count(self) -> int:
        """Pages that can be handed out without new bytes. Host only."""
        return self.hole_list.count

    @property
    def holes(self) -> Tensor:
        """The free pages inside the region, in the order in which they are handed out: int64 `[k]`. Never blocks."""
        return self.hole_list.values

    @property
    def pending_count(self) -> int:
        """Pages that are neither live nor reusable yet. Host only."""
        return sum(held.pages.numel() for held in self.reserved.values())

    @property
    def pages_not_live(self) -> int:
        """Pages without a live token, of all that the pool could ever have. Bytes lent to the neighbour are no leak.

        Host only.
        """
        return self.pages - self.min_page - self.live

    def may_move(self) -> bool:
        """Whether every gate lets pages be relocated, and no transfer knows any by its place. Host only."""
        return not self.reserved and all(gate() for gate in self.gates.values())

    # Taking, binding, freeing.

    def take(self, count: int) -> Taken | None:
        """Reserves physical pages: holes first, nearest the pool's own end, the rest where the region can grow.

        None, and nothing changed, where there are too few. Sorts the holes if part of a changed list is taken; never
        blocks the host.
        """
        drained = min(count, self.hole_count)
        grown = self.growth(count - drained, Span(self.lo, self.hi), self.low_limit, self.high_limit)
        if grown is None:
            return None
        self.lo, self.hi = Span(self.lo, self.hi).widened(grown)
        self.epoch += 1
        return Taken(self._drain(drained) if drained else None, grown)

    def _drain(self, count: int) -> Pages:
        self.await_moves()
        if count < self.hole_count:
            self._sort_holes(descending=self.drains_descending)
        return self.hole_list.take(count)

    def _sort_holes(self, *, descending: bool) -> None:
        if self._descending is not descending:
            self.hole_list.sort(descending=descending)
            self._descending = descending

    def alloc_with_virtual(self, pages: Pages) -> None:
        """Binds virtual pages, none bound here, to physical pages of this pool.

        Raises `CapacityError` where there is no room: the caller's gate must have caught it. Queues 2 to 6 launches on
        the current stream, and on a full-attention pool a fill of the pages behind the forward; never blocks the host.
        """
        if self.raises:
            expect_unbound(self.name, "alloc_with_virtual", self.v2p, pages.tensor, self.ids.first, set())
        taken = self.take(pages.count)
        if taken is None:
            raise CapacityError(
                self.name, "alloc_with_virtual", "no room for promised pages",
                pages=pages.count, holes=self.hole_count, span=(self.lo, self.hi),
                low_limit=self.low_limit, high_limit=self.high_limit,
            )  # fmt: skip
        self.bind(pages, taken)

    def bind(self, pages: Pages, taken: Taken) -> None:
        """Binds virtual pages to as many taken ones. Launches and blocking as `alloc_with_virtual`."""
        self._before_binding(pages.count)
        self.tables.bind(pages, taken)

    def hand_out(self, request: Request, ids: Pages, taken: Taken | None) -> Tensor:
        """The tokens of a request (int64, in storage of their own) that mints `ids`, bound to as many taken pages.

        None where no page begins. Launches as `PageTables.hand_out`, on the current stream; never blocks the host.
        """
        if taken is None:
            return self.tables.hand_out(request, ids, NOTHING_TAKEN)
        self._before_binding(ids.count)
        return self.tables.hand_out(request, ids, taken)

    def _before_binding(self, pages: int) -> None:
        self.await_moves()
        self.live += pages
        if self._zeroes:
            self.await_forward()

    # Pages for contents that come from elsewhere.

    def reserve(self, count: int) -> Reservation | None:
        """Takes physical pages for a transfer that is about to be queued, or None, and nothing changed, without room.

        Nothing in the pool moves until the reservation is bound or given up. Raises `ArgumentError` for what is no
        count. At most 3 launches on the current stream; never blocks the host.
        """
        expect_count(self.name, "reserve", least=0, count=count)
        self.settle()
        taken = self.take(count)
        if taken is None:
            return None
        self.transfers += 1
        held = Reservation(self.transfers, physical_pages(taken, self.tables.physical).clone())
        self.reserved[held.number] = held
        self.epoch += 1
        return held

    def bind_reserved(self, held: Reservation, pages: Tensor) -> None:
        """Binds virtual pages (int64 `[k]`, none bound here) to what was reserved; their contents stay.

        Raises `StateError` for a reservation that is over, `ArgumentError` for another number of pages, dtype or
        device. Queues 2 launches on the current stream; never blocks the host.
        """
        self._expect_held(held, "bind_reserved")
        expect_ids(self.name, "bind_reserved", pages, self.device)
        if pages.numel() != held.pages.numel():
            raise ArgumentError(
                self.name, "bind_reserved", "unequal lengths", pages=pages.numel(), reserved=held.pages.numel()
            )
        self.expect_unbound(Pages(pages), "bind_reserved", freed=set())
        self.await_moves()
        del self.reserved[held.number]
        self.transfers += 1
        self.tables.bind_to(Pages(pages), held.pages)
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
        self.hole_list.append(physical)
        self._have_more_holes()

    def _have_more_holes(self) -> None:
        self._descending = None
        self.epoch += 1

    def expect_bound(self, pages: Pages, operation: str) -> None:
        """Raises `BindingError` on a checked CPU pool unless each of `pages` is bound once.

        Nothing at all elsewhere: there the free itself reports to the error word. Never blocks on a device.
        """
        if self.raises:
            expect_bound(self.name, operation, self.v2p, pages.tensor, self.ids.first)

    def expect_unbound(self, pages: Pages, operation: str, *, freed: set[int]) -> None:
        """Raises `BindingError` on a checked CPU pool if one of `pages` is bound and not in `freed`.

        Nothing at all elsewhere. Never blocks on a device.
        """
        if self.raises:
            expect_unbound(self.name, operation, self.v2p, pages.tensor, self.ids.first, freed)

    def expect_detached(self, physical: Tensor, operation: str) -> None:
        """Raises `BindingError` on a checked CPU pool unless physical pages lie in the region, in nobody's hands.

        That is, neither bound nor holes nor pending, which is what an unbinding without a free leaves. Nothing at all
        elsewhere. Never blocks on a device.
        """
        if self.raises:
            owners = host_values(self.p2v[:-1])
            taken = {
                "outside the region": set(range(self.lo)) | set(range(self.hi, self.pages)),
                "bound": {page for page, owner in enumerate(owners) if owner >= 0},
                "free": set(host_values(self.holes)),
                "reserved": {page for held in self.reserved.values() for page in host_values(held.pages)},
            }
            expect_in_none(self.name, operation, physical, self.pages, taken)

    def report_bound(self, pages: Pages) -> None:
        """Tells the error word if one of `pages` is bound. Launches as `PageTables.report_bound`; never blocks."""
        if self.checked:
            self.await_moves()
            self.tables.report_bound(pages)

    def rebind(self, kept: Pages, incoming: Pages) -> None:
        """Gives the physical pages of `incoming` to `kept`, lane by lane, and unbinds `incoming`.

        In a checked pool lanes whose `incoming` is not bound, or whose `kept` is, report to the error word and change
        nothing. Queues 4 launches (29 checked; fused 2) on the current stream; never blocks the host.
        """
        self.await_moves()
        self.transfers += 1
        self.tables.rebind(kept, incoming)

    def unbind(self, pages: Pages, ids: PageList | None = None) -> None:
        """Frees bound pages: both tables get tombstones, the physical pages become holes, and `ids` takes the pages.

        In a checked pool those that were not bound go as 0 to both lists. Queues 4 launches (9 checked; fused 1) on
        the current stream, one more for `ids`, and a compaction if eager; never blocks the host.
        """
        self.await_moves()
        self.tables.unbind(pages, self.hole_list, ids)
        self.took_back(pages.count)

    def took_back(self, count: int) -> None:
        """Notes that so many pages have become holes. Host only."""
        self.live -= count
        self.frees += 1
        self._have_more_holes()

    def translate(self, tokens: Tensor, out: Tensor | None = None) -> Tensor:
        """Physical token ids of virtual ones (both int64, same shape); negative, unbound and foreign ids give 0.

        `out` may be `tokens`. Raises `ArgumentError` for other dtypes, shapes and devices. Queues 6 launches on the
        current stream (3 where a page is one token); never blocks the host.
        """
        expect_translatable(self.name, "translate", tokens, out, self.device)
        self.await_moves()
        return self.tables.translate(tokens, out)

    # Moving.

    @abstractmethod
    def pack(self, pages: int) -> int:
        """Gives `pages` back at an edge by moving what lives there into holes; returns how many it gave.

        0 where a gate forbids moves. Raises `ArgumentError` for a negative count and for more than there are holes.
        Waits, on the stream, for the forward event; queues about 25 launches; never blocks the host.
        """

    def expect_packable(self, pages: int) -> None:
        """Raises `ArgumentError` for what is no count, and for more than there are holes. Host only."""
        expect_count(self.name, "pack", pages=pages)
        if not 0 <= pages <= self.hole_count:
            raise ArgumentError(self.name, "pack", "not that many holes", pages=pages, holes=self.hole_count)

    def _compact(self, low: int, count: int, *, descending: bool) -> None:
        """Empties the pages from `low` at one edge of the region into the holes that are best in that order."""
        self._sort_holes(descending=descending)
        self.tables.pack(self.hole_list, low, count, most=min(count, self.live), descending=descending)

    def copy(self, source: Tensor, target: Tensor) -> None:
        """Copies what physical pages hold to others (both int64 `[k]`, no page in both).

        Two launches per megabyte (fused 1) on the current stream; never blocks the host.
        """
        self.tables.copy(source, target)

    def zero(self, physical: Tensor) -> None:
        """Zeroes physical pages (int64 `[k]`) behind the forward event. One launch; never blocks the host."""
        self.await_forward()
        self.tables.zero(physical)

    def prewarm(self) -> None:
        """Runs the plan and the copy of a compaction once, on the sink alone. Queues what `pack` does; never blocks.

        For before memory is sized: the first compaction then compiles and allocates nothing new.
        """
        sink = self.tables.page_list(1)
        sink.reset(self.tables.physical[:1])
        self.tables.pack(sink, self.pages, 1, most=1, descending=False)

    def await_forward(self) -> None:
        """The current stream waits for the forward in flight. Does not block the host."""
        if self.fwd_event is not None:
            self.fwd_event.wait()

    @abstractmethod
    def settle(self) -> None:
        """Credits compactions beside the current stream that are done. Asks events; never blocks."""

    @abstractmethod
    def await_moves(self) -> None:
        """The current stream waits for compactions beside it, and their pages are credited. Does not block the host."""

    # Taking back.

    def backup(self) -> BandState:
        """The present state in O(1), for `restore`. Credits what is done; queues nothing, never blocks."""
        self.await_moves()
        counts = (self.moves, self.frees, self.transfers)
        if self._past and self._past[-1].counts != counts:
            self._past.clear()  # none of those can be restored any more
        if not self._past or self._past[-1].epoch != self.epoch:
            self._past.append(Moment(next(NUMBERS), self.epoch, counts))
        return BandState(self._past[-1].number, self.lo, self.hi, self.hole_list.backup(), self.live, *counts)

    def expect_restorable(self, state: BandState) -> None:
        """Raises `StateError` if pages were freed, moved or reserved since `state`, or if it is not in the past.

        A state is that of one pool, and one that was taken after another is gone with everything else once that other
        one is restored. Host only.
        """
        if (state.moves, state.frees, state.transfers) != (self.moves, self.frees, self.transfers):
            raise StateError(
                self.name, "restore", "pages were freed, moved or reserved since the backup",
                frees=self.frees - state.frees, moves=self.moves - state.moves,
                transfers=self.transfers - state.transfers,
            )  # fmt: skip
        if state.number not in [moment.number for moment in self._past]:
            raise StateError(self.name, "restore", "not a state of this pool's past", number=state.number)

    def restore(self, state: BandState, pages: Pages) -> None:
        """Unbinds `pages`, which are all those bound since `state`, and takes its lists back.

        Queues 3 launches (fused 1) on the current stream; never blocks the host.
        """
        self.tables.forget(pages)
        self.hole_list.restore(state.holes)
        self.lo, self.hi, self.live = state.lo, state.hi, state.live
        self._descending = None
        self.epoch += 1
        while self._past[-1].number != state.number:
            self._past.pop()
        self._past[-1] = self._past[-1]._replace(epoch=self.epoch)
