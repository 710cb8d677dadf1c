"""Two pools behind one token API: full attention, which mints the ids, and a sliding window bound to the same ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from reference_allocator import chain, tables
from reference_allocator.allocator import AllocatorState, PageAllocator
from reference_allocator.arguments import Segment, expect_aligned, expect_ids, tail_runs
from reference_allocator.band import Band
from reference_allocator.chain import Demand
from reference_allocator.errors import ArgumentError, GroupError, SpecError, StateError
from reference_allocator.records import BandState, Ids
from reference_allocator.specs import BytePool
from reference_allocator.streams import SideQueue
from reference_allocator.token_allocator import TokenAllocator

Release = Literal["both", "full", "swa"]
"""Which sides of a page a free gives back."""
RELEASES: tuple[Release, ...] = ("swa", "both", "full")


def window_frontier(length: int, window: int, page_size: int) -> int:
    """Position below which a row of `length` tokens needs no window pages: page aligned, 0 while all are needed.

    Host only."""
    kept = -(-max(window, page_size) // page_size) * page_size
    return max(0, length - kept) // page_size * page_size


class CompositeState(NamedTuple):
    """What `backup` remembers."""

    full: AllocatorState
    swa: BandState


class SWAComposite(TokenAllocator):
    """Token ids with keys and values on two pools: `full` for the life of a token, `swa` while it is in the window.

    pool: a byte pool. full, swa: two of its specs, of one page size; `full` is an end pool and mints the ids of both.
    eager, checked, side: as for `PageAllocator`. beside: bands of others in the same budget.
    Raises `SpecError` for unequal page sizes and where the pools are no chain. Queues fills; never blocks the host.
    """

    def __init__(
        self,
        pool: BytePool,
        *,
        full: str = "full",
        swa: str = "swa",
        eager: bool = False,
        checked: bool | None = None,
        side: SideQueue | None = None,
        beside: Sequence[Band] = (),
    ) -> None:
        sizes = {name: pool.geometry[name].page_size for name in (full, swa)}
        if len(set(sizes.values())) > 1:
            raise SpecError(full, "composite", "pools of one id space have one page size", **sizes)
        if pool.geometry[full].grow == "float":
            raise SpecError(full, "composite", "the pool that mints the ids is an end pool")
        self.full = PageAllocator(pool, full, eager=eager, checked=checked, side=side)
        super().__init__(f"{full}+{swa}", sizes[full], pool.device, checked=self.full.checked)
        self.pool = pool
        self.swa = chain.make_band(pool, swa, self._followed(), eager=eager, checked=self.checked, side=side)
        self.bands = (self.full.band, self.swa)
        chain.join(*self.bands, *beside)
        self._available: tuple[tuple[int, ...], int] = ((), 0)

    def _followed(self) -> Ids:
        return self.full.band.ids._replace(owner=False)

    # Capacity.

    def demand(self, full_pages: int, swa_pages: int) -> Demand:
        """So many pages of each pool. Host only."""
        return {self.full.band: full_pages, self.swa: swa_pages}

    def fits(self, full_pages: int, swa_pages: int) -> bool:
        """Whether both pools have room for these pages together, as they are. Host only, never blocks."""
        return full_pages <= self.full.free_vids.numel() and chain.fits(self.demand(full_pages, swa_pages))

    def memo_key(self) -> tuple[int, ...]:
        """Changes whenever a capacity may have changed. Host only."""
        return (*(band.epoch for band in chain.members(self.swa)), self.full.free_vids.numel())

    def available_size(self) -> int:
        """Tokens that `alloc` can hand out now, on both sides. Host only, memoised, never blocks."""
        chain.settle(self.swa)
        if self._available[0] != self.memo_key():
            self._available = (self.memo_key(), self.count_available())
        return self._available[1]

    def count_available(self) -> int:
        """`available_size` without its memo. Host only, never blocks."""
        return self._most(chain.fits)

    def schedulable_size(self) -> int:
        """Tokens that `alloc` can hand out after relief: what admission and eviction go by. Host only, never blocks."""
        chain.settle(self.swa)
        return self._most(chain.fits_after_relief)

    def _most(self, fit: Callable[[Demand], bool]) -> int:
        """Tokens of the largest equal demand that fits."""
        return chain.most(lambda pages: fit(self.demand(pages, pages)), self.full.free_vids.numel()) * self.page_size

    def admit(self, pages: int) -> bool:
        """See `TokenAllocator`."""
        return self.admit_each(pages, pages)

    def admit_each(self, full_pages: int, swa_pages: int) -> bool:
        """Whether both pools have room for these pages, after relief: deferred frees, then see `chain.relieve`.

        Waits on the stream for compactions; never blocks the host.
        """
        chain.settle(self.swa)
        if self.fits(full_pages, swa_pages):
            return True
        self.apply_deferred()
        if full_pages <= self.full.free_vids.numel():
            chain.relieve(self.demand(full_pages, swa_pages))
        return self.fits(full_pages, swa_pages)

    def upcoming(self, pages: int) -> Tensor:
        """See `TokenAllocator`."""
        return self.full.upcoming(pages)

    def mint(self, pages: int) -> None:
        """See `TokenAllocator`: the ids that full mints are bound on the window pool too."""
        minted = self.full.upcoming(pages)
        self.full.mint(pages)
        self.swa.alloc_with_virtual(minted)

    def alloc_extend_swa_tail(
        self,
        prefix_lens: Tensor,
        prefix_lens_cpu: Tensor,
        seq_lens: Tensor,
        seq_lens_cpu: Tensor,
        last_loc: Tensor,
        total: int,
        *,
        tail_len: int,
    ) -> Tensor | None:
        """`alloc_extend` that binds on the window pool only the new pages with some of a row's last `tail_len` tokens.

        The others are out of the window from the start: `free_row` with `dead_lo` at the first new page and
        `swa_frontier` at the first page of the tail. Arguments, errors, launches and blocking as `alloc_extend`, and
        `ArgumentError` for a tail below 1.
        """
        if tail_len < 1:
            raise ArgumentError(self.name, "alloc_extend_swa_tail", "no tail", tail_len=tail_len)
        lens = tables.ExtendLens(prefix_lens, seq_lens, last_loc)
        host = self._extension("alloc_extend_swa_tail", lens, prefix_lens_cpu, seq_lens_cpu, total)
        runs = tail_runs(host.before, host.after, self.page_size, tail_len)
        if not self.admit_each(host.pages, sum(last - first for first, last in runs)):
            return None
        tokens = self._extended(lens, host.pages, total)
        if host.pages:
            minted = self.full.upcoming(host.pages)
            self.full.mint(host.pages)
            self.swa.alloc_with_virtual(torch.cat([minted[first:last] for first, last in runs]))
        return tokens

    # Freeing by position.

    def free_segment(self, tokens: Tensor | None, *, start_pos: int) -> None:
        """Frees `row[start_pos : start_pos + n]` (int64 `[n]`) on both pools. Every page is bound on both.

        Waits for the end of an open group. Raises as `PageAllocator.free_segment`. Queues 10 launches (18 checked) on
        the current stream; never blocks the host.
        """
        self._free_by_position("both", "free_segment", tokens, start_pos)

    def free_segments(self, segments: list[Segment]) -> None:
        """Frees segments of one row on both pools: see `PageAllocator.free_segments`. Never blocks."""
        self.expect_clean("free_segments")
        pages = self.full.pages_of_segments("free_segments", segments)
        if pages is not None:
            self._free_pages("both", "free_segments", pages)

    def free_full_segment(self, tokens: Tensor | None, *, start_pos: int) -> None:
        """Frees a segment whose pages have left the window: on full alone. Otherwise as `free_segment`.

        Queues 6 launches (13 checked).
        """
        self._free_by_position("full", "free_full_segment", tokens, start_pos)

    def free_swa_segment(self, tokens: Tensor | None, *, start_pos: int) -> None:
        """Frees a segment on the window pool alone; its ids stay valid on full. Otherwise as `free_segment`.

        Queues 5 launches (9 checked).
        """
        self._free_by_position("swa", "free_swa_segment", tokens, start_pos)

    def free_row(self, segments: list[Segment], *, swa_frontier: int, dead_lo: int = 0) -> None:
        """Frees segments of one row (int64 `[n]` and start each) with no window pages in `[dead_lo, swa_frontier)`.

        Those go by `free_full_segment`, the others by `free_segment`. Raises as they do, and `AlignmentError` for
        cursors inside a page. Queues the launches of each; never blocks the host.
        """
        for cursor in (dead_lo, swa_frontier):
            expect_aligned(self.name, "free_row", cursor, self.page_size)
        for tokens, start in segments:
            stop = start + tokens.numel()
            low, high = (min(max(cursor, start), stop) for cursor in (dead_lo, swa_frontier))
            high = max(low, high)
            self.free_segment(tokens[: low - start], start_pos=start)
            self.free_full_segment(tokens[low - start : high - start], start_pos=low)
            self.free_segment(tokens[high - start :], start_pos=high)

    def advance_window(self, row: Tensor, old: int, length: int, window: int) -> int:
        """Frees the window pages that a row of `length` tokens no longer needs; returns the new cursor.

        `row` holds the row's tokens (int64), `old` the last cursor. Otherwise as `free_swa_segment`.
        """
        new = max(old, window_frontier(length, window, self.page_size))
        self.free_swa_segment(row[old:new], start_pos=old)
        return new

    def _free_by_position(self, release: Release, operation: str, tokens: Tensor | None, start_pos: int) -> None:
        self.expect_clean(operation)
        if tokens is None or tokens.numel() == 0:
            return
        self._free_pages(release, operation, self.full.segment_pages(operation, tokens, start_pos))

    def _free_pages(self, release: Release, operation: str, pages: Tensor) -> None:
        self._expect_sides(release, operation, pages)
        if self._group is None:
            self._release(release, pages)
        else:
            # With a page size of 1 these are the caller's tokens, and the caller may overwrite them.
            self._group.hold_pages(release, pages.clone() if self.page_size == 1 else pages)

    def _expect_sides(self, release: Release, operation: str, pages: Tensor) -> None:
        if release != "full":
            self.swa.expect_bound(pages, operation)
        if release != "swa":
            self.full.band.expect_bound(pages, operation)
        if release == "full":
            self._expect_out_of_window(pages, operation)
        if self.raises and self._group is not None:
            sides = ("full", "swa") if release == "both" else (release,)
            self._group.expect_new(self.name, operation, sides, pages)

    def _expect_out_of_window(self, pages: Tensor, operation: str) -> None:
        self.swa.expect_unbound(pages, operation, freed=self._group.freed("swa") if self._group else set())

    def _release(self, release: Release, pages: Tensor) -> None:
        if release != "full":
            self.swa.unbind(pages)
        if release != "swa":
            self.full.release_pages(pages)
        if release == "full":
            self.swa.report_bound(pages)

    # Freeing without positions.

    def free(self, tokens: Tensor | None) -> None:
        """Frees the pages of tokens (int64 `[n]`) whose positions are not known, on both pools, in the window or not.

        Waits for the end of an open group. Raises as `PageAllocator.free`. Current stream. Blocks the host: which pages
        are still in the window is known to the device alone.
        """
        self._free_by_value("both", "free", tokens)

    def free_swa(self, tokens: Tensor | None) -> None:
        """Frees on the window pool what of these tokens (int64 `[n]`) is still bound there. Otherwise as `free`."""
        self._free_by_value("swa", "free_swa", tokens)

    def free_full(self, tokens: Tensor | None) -> None:
        """Frees tokens (int64 `[n]`) whose pages have left the window: on full alone. Otherwise as `free`."""
        self._free_by_value("full", "free_full", tokens)

    def _free_by_value(self, release: Release, operation: str, tokens: Tensor | None) -> None:
        self.expect_clean(operation)
        if tokens is None or tokens.numel() == 0:
            return
        expect_ids(self.name, operation, tokens, self.device)
        if self._group is None or self.raises:
            pages = self.full.distinct_pages(tokens)
            self.full.band.expect_bound(pages, operation)
            if release == "full":
                self._expect_out_of_window(pages, operation)
        if self._group is None:
            self._release_alive(release, pages)
            return
        if self.raises and release != "swa":
            self._group.expect_new(self.name, operation, ("full",), pages)
        self._group.hold_tokens(release, tokens)

    def _release_alive(self, release: Release, pages: Tensor) -> None:
        if release == "full":
            self._release("full", pages)
            return
        self.swa.await_moves()
        # Strictly above 0: -1 is a tombstone, and 0 would be the sink.
        # nosync-lint: ignore[NSL303] without a cursor only the device knows which pages are in the window
        alive = pages[self.swa.v2p[pages] > 0]
        self.swa.unbind(alive)
        if release == "both":
            self.full.release_pages(pages)

    def free_group_end(self) -> None:
        """Releases what the group holds, window sides first. Raises `GroupError` without a group.

        Queues one free per kind of release on the current stream. Blocks the host only for tokens without positions.
        """
        group = self._detach_group()
        # Window sides go first: what they free may be freed on full by another call of the same group.
        for release in RELEASES:
            if release in group.pages:
                self._release(release, torch.cat(group.pages[release]))
            if release in group.tokens:
                self._release_alive(release, self.full.distinct_pages(torch.cat(group.tokens[release])))

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
        or used. Raises `ArgumentError`. Queues 4 launches on the current stream; never blocks the host.
        """
        expect_ids(self.name, "set_full_to_swa_mapping", full, self.device)
        expect_ids(self.name, "set_full_to_swa_mapping", swa, self.device)
        if full.numel() != swa.numel():
            raise ArgumentError(
                self.name, "set_full_to_swa_mapping", "unequal lengths", full=full.numel(), swa=swa.numel()
            )
        # Tokens of one page write the same value, so that it does not matter which is last.
        self.swa.await_moves()
        pages, physical = (tables.pages_of(tokens, self.page_size) for tokens in (full, swa))
        tables.bind_pairs(self.swa.v2p, self.swa.p2v, pages, physical)

    def clear_full_to_swa_mapping(self, full: Tensor) -> None:
        """Takes the window pages from full tokens (int64 `[n]`) without freeing them. Before `set`, never after it.

        Raises `ArgumentError`. Queues 4 launches on the current stream; never blocks the host.
        """
        expect_ids(self.name, "clear_full_to_swa_mapping", full, self.device)
        self.swa.await_moves()
        tables.unbind(self.swa.v2p, self.swa.p2v, tables.pages_of(full, self.page_size))

    # Starting over.

    def recycle_all(self) -> None:
        """See `TokenAllocator`. Host only."""
        super().recycle_all()
        self.full.recycle_all()

    def reshape(self) -> None:
        """See `TokenAllocator`. Never blocks."""
        self.full.reshape()
        self.swa.reshape(self._followed())
        super().reshape()

    def backup(self) -> CompositeState:
        """The present state in O(1), for `restore`. Raises `GroupError` in a group. Queues nothing, never blocks."""
        if self._group is not None:
            raise GroupError(self.name, "backup", "a group is open")
        return CompositeState(self.full.backup(), self.swa.backup())

    def restore(self, state: CompositeState) -> None:
        """Takes back every allocation since `state`. Raises `StateError` after a free or a move, and in a group.

        Queues 6 launches on the current stream; never blocks the host.
        """
        if self._group is not None:
            raise StateError(self.name, "restore", "a group is open")
        self.full.expect_restorable(state.full)
        self.swa.expect_restorable(state.swa)
        self.swa.restore(state.swa, self.full.minted_since(state.full))
        self.full.restore(state.full)
