"""The allocator of one pool that mints its own virtual ids."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from reference_allocator import chain
from reference_allocator.arguments import Segment, expect_count, expect_ids, has_ids
from reference_allocator.chain import Demand
from reference_allocator.errors import BudgetError, CapacityError, GroupError, SpecError, StateError
from reference_allocator.page_tables import Profile
from reference_allocator.pages import ListState, Pages
from reference_allocator.pooled import PooledAllocator
from reference_allocator.records import BandState, Ids
from reference_allocator.specs import MAX_TOKEN_IDS, BytePool
from reference_allocator.streams import SideQueue
from reference_allocator.tables import Request


class AllocatorState(NamedTuple):
    """What `backup` remembers."""

    id_list: ListState
    band: BandState


class PageAllocator(PooledAllocator):
    """Token ids over one pool, the owner of its ids.

    pool, name: the byte pool, and which of its specs to allocate from.
    virtual_pages: pages of the id space, the sink included; the pool's own page count unless given.
    eager: compact at every free. checked: report misuse; by default on a CPU, where it raises before any write.
    side: a queue for compaction, or None for the current stream. profile: `portable` torch, or `fused` kernels, which
    take fewer launches.
    Raises `BudgetError` for an id space without a page, `SpecError` at 2^31 ids, for names and profiles that there are
    not, and where another allocator has the pool. Queues fills; never blocks the host.
    """

    def __init__(
        self,
        pool: BytePool,
        name: str,
        *,
        virtual_pages: int | None = None,
        eager: bool = False,
        checked: bool | None = None,
        side: SideQueue | None = None,
        profile: Profile = "portable",
    ) -> None:
        checked = pool.device.type == "cpu" if checked is None else checked
        geometry = pool.geometry_of(name, "allocator")
        super().__init__(name, geometry.page_size, pool.device, checked=checked)
        self._virtual_pages = virtual_pages
        ids = self._ids(pool)
        self.band = chain.make_band(pool, name, ids, eager=eager, checked=checked, side=side, profile=profile)
        self.bands = (self.band,)
        self._all_vids = torch.arange(ids.stop, device=pool.device)
        self.id_list = self.band.tables.page_list(ids.stop)
        self.id_list.reset(self._all_vids[ids.first : ids.stop])

    @property
    def free_vids(self) -> Tensor:
        """The virtual pages that are free to be minted, the next one first: int64 `[k]`. Never blocks."""
        return self.id_list.values

    def _ids(self, pool: BytePool) -> Ids:
        geometry = pool.geometry[self.name]
        count = geometry.pages if self._virtual_pages is None else self._virtual_pages
        expect_count(self.name, "ids", virtual_pages=count)
        if count * geometry.page_size >= MAX_TOKEN_IDS:
            raise SpecError(
                self.name, "ids", "token ids do not fit in 31 bits", pages=count, page_size=geometry.page_size
            )
        if count <= geometry.min_page:
            raise BudgetError(self.name, "ids", "no id beside the sink", pages=count, min_page=geometry.min_page)
        return Ids(geometry.min_page, count, owner=True)

    # Capacity.

    @property
    def free_ids(self) -> int:
        """See `PooledAllocator`. Host only."""
        return self.id_list.count

    def demand(self, pages: int) -> Demand:
        """See `PooledAllocator`. Host only."""
        return {self.band: pages}

    def admit(self, pages: int) -> bool:
        """See `TokenAllocator`."""
        return self.make_room(pages, self.demand(pages))

    def hand_out(self, request: Request, pages: int) -> Tensor:
        """See `TokenAllocator`. Raises `CapacityError`, with nothing changed, for pages that were not admitted."""
        if pages == 0:
            return self.band.hand_out(request, self.id_list.head(0), None)
        taken = self.band.take(pages) if pages <= self.free_ids else None
        if taken is None:
            raise CapacityError(
                self.name, "hand_out", "pages that were not admitted",
                pages=pages, holes=self.band.hole_count, span=self.band.span, free_ids=self.free_ids,
            )  # fmt: skip
        return self.band.hand_out(request, self.id_list.take(pages), taken)

    # Freeing.

    def free(self, tokens: Tensor | None) -> None:
        """Frees the pages of tokens (int64 `[n]`, each page whole) whose positions are not known.

        Waits for the end of an open group. Raises `ArgumentError`, on a checked CPU pool `BindingError`. Current
        stream. Blocks the host where a page is several tokens: the number of pages must come from the device.
        """
        self.expect_clean("free")
        if not has_ids(tokens, self.name, "free"):
            return
        expect_ids(self.name, "free", tokens, self.device)
        if self._group is None:
            pages = Pages(self.distinct_pages(tokens))
            self.band.expect_bound(pages, "free")
            self.release_pages(pages)
            return
        if self.raises:
            pages = Pages(self.distinct_pages(tokens))
            self.band.expect_bound(pages, "free")
            self._group.expect_new(self.name, "free", (self.name,), pages.tensor)
            self._group.note((self.name,), pages.tensor)
        self._group.hold_tokens(self.name, tokens)

    def free_segment(self, tokens: Tensor | None, *, start_pos: int) -> None:
        """Frees the pages of `row[start_pos : start_pos + n]` (int64 `[n]`), the last one whole.

        Waits for the end of an open group. Raises `ArgumentError`, `AlignmentError` for a start inside a page, on a
        checked CPU pool `BindingError`. Queues 6 launches (11 checked; fused 1) on the current stream; never blocks the
        host.
        """
        self.expect_clean("free_segment")
        if not has_ids(tokens, self.name, "free_segment"):
            return
        self._free_pages("free_segment", self.segment_pages("free_segment", tokens, start_pos))

    def _free_pages(self, operation: str, pages: Pages) -> None:
        self.band.expect_bound(pages, operation)
        if self._group is None:
            self.release_pages(pages)
            return
        if self.raises:
            self._group.expect_new(self.name, operation, (self.name,), pages.tensor)
            self._group.note((self.name,), pages.tensor)
        self._group.hold_pages(self.name, pages.tensor)

    def free_segments(self, segments: list[Segment]) -> None:
        """Frees segments of one row: pairs of tokens (int64 `[n]`) and start, no page in two of them.

        Raises as `free_segment`, and `OverlapError`; nothing is freed then. `coalesce` joins segments that share a
        page. Queues one launch per segment and 6 (11 checked) on the current stream; never blocks the host.
        """
        self.expect_clean("free_segments")
        pages = self.pages_of_segments("free_segments", segments)
        if pages is not None:
            self._free_pages("free_segments", pages)

    def release_pages(self, pages: Pages) -> None:
        """Frees bound virtual pages and recycles their ids. 5 launches (10 checked; fused 1); never blocks."""
        self.band.unbind(pages, self.id_list)

    def free_group_end(self) -> None:
        """Releases what the group holds, as one free per kind. Raises `GroupError` without a group.

        Blocks the host only if the group holds tokens without positions and a page is several tokens.
        """
        group = self._detach_group()
        for tokens in group.tokens.values():
            self.free(torch.cat(tokens))
        for pages in group.pages.values():
            self.release_pages(Pages(torch.cat(pages)))

    # Reading.

    def translate(self, tokens: Tensor, out: Tensor | None = None) -> Tensor:
        """Physical token ids: see `Band.translate`. Never blocks."""
        return self.band.translate(tokens, out)

    # Starting over.

    def recycle_all(self) -> None:
        """See `PooledAllocator`. Host only."""
        super().recycle_all()
        self.id_list.reset(self._all_vids[self.band.ids.first : self.band.ids.stop])

    def reshape(self) -> None:
        """See `PooledAllocator`. Never blocks."""
        self.band.reshape(self._ids(self.band.pool))
        super().reshape()

    def backup(self) -> AllocatorState:
        """The present state in O(1), for `restore`. Raises `GroupError` in a group. Queues nothing, never blocks."""
        self.expect_clean("backup")
        if self._group is not None:
            raise GroupError(self.name, "backup", "a group is open")
        return AllocatorState(self.id_list.backup(), self.band.backup())

    def restore(self, state: AllocatorState) -> None:
        """Takes back every allocation since `state`. Raises `StateError` after a free or a move, and in a group.

        Queues 3 launches (fused 1) on the current stream; never blocks the host.
        """
        self.expect_clean("restore")
        self.expect_restorable(state)
        self.band.restore(state.band, self.minted_since(state))
        self.id_list.restore(state.id_list)

    def expect_restorable(self, state: AllocatorState) -> None:
        """Raises `StateError` if `restore` would not be exact. Host only."""
        if self._group is not None:
            raise StateError(self.name, "restore", "a group is open")
        self.band.expect_restorable(state.band)

    def minted_since(self, state: AllocatorState) -> Pages:
        """Virtual pages minted since a backup: the head of its list. No launch, never blocks."""
        return self.id_list.taken_since(state.id_list)
