"""Two pools behind one token API: full attention, which mints the ids, and a sliding window bound to the same ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from reference_allocator import chain, tables
from reference_allocator.allocator import AllocatorState, PageAllocator
from reference_allocator.arguments import expect_ids
from reference_allocator.band import Band
from reference_allocator.chain import Demand
from reference_allocator.errors import GroupError, SpecError, StateError
from reference_allocator.host_checks import expect_in_table
from reference_allocator.page_tables import Profile
from reference_allocator.pages import Pages
from reference_allocator.pooled import PooledAllocator
from reference_allocator.records import BandState, Ids
from reference_allocator.specs import BytePool
from reference_allocator.streams import SideQueue
from reference_allocator.tables import Request
from reference_allocator.two_sides import GROUP_ORDER, SIDES, Release, TwoSidedAllocator


class CompositeState(NamedTuple):
    """What `backup` remembers."""

    full: AllocatorState
    swa: BandState


class SWAComposite(TwoSidedAllocator, PooledAllocator):
    """Token ids with keys and values on two pools: `full` for the life of a token, `swa` while it is in the window.

    pool: a byte pool. full, swa: two of its specs, of one page size; `full` is an end pool and mints the ids of both.
    eager, checked, side, profile: as for `PageAllocator`. beside: bands of others in the same budget.
    Raises `SpecError` for unequal page sizes and where the pools are no chain. Queues fills; never blocks the host.
    """

    swa: Band

    def __init__(
        self,
        pool: BytePool,
        *,
        full: str = "full",
        swa: str = "swa",
        eager: bool = False,
        checked: bool | None = None,
        side: SideQueue | None = None,
        profile: Profile = "portable",
        beside: Sequence[Band] = (),
    ) -> None:
        sizes = {name: pool.geometry_of(name, "composite").page_size for name in (full, swa)}
        if len(set(sizes.values())) > 1:
            raise SpecError(full, "composite", "pools of one id space have one page size", **sizes)
        if pool.geometry[full].grow == "float":
            raise SpecError(full, "composite", "the pool that mints the ids is an end pool")
        self.full = PageAllocator(pool, full, eager=eager, checked=checked, side=side, profile=profile)
        super().__init__(f"{full}+{swa}", sizes[full], pool.device, checked=self.full.checked)
        self.swa = chain.make_band(
            pool, swa, self._followed(), eager=eager, checked=self.checked, side=side, profile=profile
        )
        self.bands = (self.full.band, self.swa)
        chain.join(*self.bands, *beside)

    def _followed(self) -> Ids:
        return self.full.band.ids._replace(owner=False)

    # Capacity.

    @property
    def free_ids(self) -> int:
        """See `PooledAllocator`. Host only."""
        return self.full.free_ids

    def demand(self, pages: int) -> Demand:
        """See `PooledAllocator`. Host only."""
        return {self.full.band: pages, self.swa: pages}

    def admit(self, pages: int) -> bool:
        """See `TokenAllocator`."""
        return self.admit_each(pages, pages)

    def admit_each(self, full_pages: int, swa_pages: int) -> bool:
        """See `TwoSidedAllocator`. Never blocks the host."""
        return self.make_room(full_pages, {self.full.band: full_pages, self.swa: swa_pages})

    def hand_out(self, request: Request, pages: int) -> Tensor:
        """See `TokenAllocator`: the ids that full mints are bound on the window pool too."""
        return self._hand_out(request, pages, None)

    def hand_out_runs(self, request: Request, pages: int, runs: list[tuple[int, int]]) -> Tensor:
        """See `TwoSidedAllocator`."""
        return self._hand_out(request, pages, runs)

    def _hand_out(self, request: Request, pages: int, runs: list[tuple[int, int]] | None) -> Tensor:
        minted = self.full.id_list.head(pages)
        tokens = self.full.hand_out(request, pages)
        if pages:
            if runs is not None:
                minted = Pages(torch.cat([minted.tensor[first:last] for first, last in runs]))
            self.swa.alloc_with_virtual(minted)
        return tokens

    # Freeing.

    def expect_freeable(self, release: Release, operation: str, pages: Pages) -> None:
        """See `TwoSidedAllocator`. Host only."""
        if release != "full":
            self.swa.expect_bound(pages, operation)
        if release != "swa":
            self.full.band.expect_bound(pages, operation)
        if release == "full":
            self._expect_out_of_window(pages, operation)
        if self.raises and self._group is not None:
            self._group.expect_new(self.name, operation, SIDES[release], pages.tensor)

    def free_pages(self, release: Release, pages: Pages) -> None:
        """See `TwoSidedAllocator`. In a group it waits."""
        if self._group is None:
            self._release(release, pages)
            return
        if self.raises:
            self._group.note(SIDES[release], pages.tensor)
        self._group.hold_pages(release, pages.tensor)

    def _expect_out_of_window(self, pages: Pages, operation: str) -> None:
        self.swa.expect_unbound(pages, operation, freed=self._group.freed("swa") if self._group else set())

    def _release(self, release: Release, pages: Pages) -> None:
        if release != "full":
            self.swa.unbind(pages)
        if release != "swa":
            self.full.release_pages(pages)
        if release == "full":
            self.swa.report_bound(pages)

    def free_by_value(self, release: Release, operation: str, tokens: Tensor) -> None:
        """See `TwoSidedAllocator`. In a group it waits, and blocks, at the end."""
        if self._group is None or self.raises:
            pages = Pages(self.distinct_pages(tokens))
            self.full.band.expect_bound(pages, operation)
            if release == "full":
                self._expect_out_of_window(pages, operation)
        if self._group is None:
            self._release_alive(release, pages)
            return
        if self.raises:
            # What the group has freed in the window may be named again, as outside of it.
            self._group.expect_new(self.name, operation, ("full",), pages.tensor)
            self._group.note(SIDES[release], pages.tensor)
        self._group.hold_tokens(release, tokens)

    def _release_alive(self, release: Release, pages: Pages) -> None:
        if release == "full":
            self._release("full", pages)
            return
        self.swa.await_moves()
        # Strictly above 0: -1 is a tombstone, and 0 would be the sink.
        # nosync-lint: ignore[NSL303] without a cursor only the device knows which pages are in the window
        alive = pages.tensor[self.swa.v2p[pages.tensor] > 0]
        self.swa.unbind(Pages(alive))
        if release == "both":
            self.full.release_pages(pages)

    def free_group_end(self) -> None:
        """Releases what the group holds, window sides first. Raises `GroupError` without a group.

        Queues one free per kind of release on the current stream. Blocks the host only for tokens without positions.
        """
        group = self._detach_group()
        for release, by_position in GROUP_ORDER:
            held = (group.pages if by_position else group.tokens).get(release, [])
            if held and by_position:
                self._release(release, Pages(torch.cat(held)))
            elif held:
                self._release_alive(release, Pages(self.distinct_pages(torch.cat(held), repeated=len(held) > 1)))

    # Reading.

    def translate(self, tokens: Tensor, out: Tensor | None = None) -> Tensor:
        """Physical token ids on full: see `Band.translate`. Never blocks."""
        return self.full.translate(tokens, out)

    def translate_loc_from_full_to_swa(self, tokens: Tensor, out: Tensor | None = None) -> Tensor:
        """Physical token ids on the window pool, 0 for those out of it: see `Band.translate`. Never blocks."""
        return self.swa.translate(tokens, out)

    # The mapping, as a pool with a table from full to window tokens would have it.

    def set_full_to_swa_mapping(self, full: Tensor, swa: Tensor) -> None:
        """Binds full tokens to physical window tokens (both int64 `[n]`), page by page, at equal places of their pages.

        For ids that `clear_full_to_swa_mapping` has released, so that every page stays accounted for: no hole is made
        or used. Deferred frees are applied first. Raises `ArgumentError`, on a checked CPU pool `BindingError` for ids
        that are not so. Queues 4 launches on the current stream; never blocks the host, but for deferred frees without
        positions.
        """
        operation = "set_full_to_swa_mapping"
        paired = self.pairs_to_map(operation, full, swa)
        # A free that waits in a group means the page as it is now.
        self.apply_deferred()
        self.swa.await_moves()
        if paired is not None:
            self.full.band.expect_bound(Pages(paired[0]), operation)
            self.swa.expect_unbound(Pages(paired[0]), operation, freed=set())
            self.swa.expect_detached(paired[1], operation)
        self.swa.transfers += 1
        # Tokens of one page write the same value, so that it does not matter which is last.
        pages, physical = (tables.pages_of(tokens, self.page_size) for tokens in (full, swa))
        tables.bind_pairs(self.swa.v2p, self.swa.p2v, pages, physical)

    def clear_full_to_swa_mapping(self, full: Tensor) -> None:
        """Takes the window pages from full tokens (int64 `[n]`) without freeing them. Before `set`, never after it.

        Otherwise as `set_full_to_swa_mapping`.
        """
        self.expect_clean("clear_full_to_swa_mapping")
        expect_ids(self.name, "clear_full_to_swa_mapping", full, self.device)
        if self.raises:
            first = self.swa.ids.first
            expect_in_table(self.name, "clear_full_to_swa_mapping", self.swa.v2p, full, self.page_size, first)
        self.apply_deferred()
        self.swa.await_moves()
        self.swa.transfers += 1
        tables.unbind(self.swa.v2p, self.swa.p2v, tables.pages_of(full, self.page_size))

    def transfer_window(self, operation: str, kept: Pages, incoming: Pages) -> None:
        """See `TwoSidedAllocator`. Raises `BindingError` on a checked CPU pool where `incoming` is not bound on the
        window pool, or `kept` is.

        On a device the error word takes that. Queues 4 launches (29 checked; fused 2) on the current stream; never
        blocks.
        """
        # A free of the node's old window pages may still wait in a group; then it would free the new ones.
        self.apply_deferred()
        # Where one page is in both, it is bound as incoming, and so the node's is not unbound.
        self.swa.expect_bound(incoming, operation)
        if self.raises:
            self.swa.expect_unbound(kept, operation, freed=set())
            self.full.band.expect_bound(kept, operation)
        self.swa.rebind(kept, incoming)

    # Starting over.

    def recycle_all(self) -> None:
        """See `PooledAllocator`. Host only."""
        super().recycle_all()
        self.full.recycle_all()

    def reshape(self) -> None:
        """See `PooledAllocator`. Never blocks."""
        self.full.reshape()
        self.swa.reshape(self._followed())
        super().reshape()

    def backup(self) -> CompositeState:
        """The present state in O(1), for `restore`. Raises `GroupError` in a group. Queues nothing, never blocks."""
        self.expect_clean("backup")
        if self._group is not None:
            raise GroupError(self.name, "backup", "a group is open")
        return CompositeState(self.full.backup(), self.swa.backup())

    def restore(self, state: CompositeState) -> None:
        """Takes back every allocation since `state`. Raises `StateError` after a free or a move, and in a group.

        Queues 6 launches on the current stream; never blocks the host.
        """
        self.expect_clean("restore")
        if self._group is not None:
            raise StateError(self.name, "restore", "a group is open")
        self.full.expect_restorable(state.full)
        self.swa.expect_restorable(state.swa)
        self.swa.restore(state.swa, self.full.minted_since(state.full))
        self.full.restore(state.full)
