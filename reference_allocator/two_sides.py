"""Tokens with a full side and a window side, whatever memory those have: which sides a free names, and where a row ends
to have both.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

from torch import Tensor

from reference_allocator.arguments import (
    Segment,
    expect_aligned,
    expect_count,
    expect_disjoint,
    expect_ids,
    has_ids,
    segments_with_ids,
    split_row,
    tail_runs,
)
from reference_allocator.error_word import Reporting
from reference_allocator.errors import ArgumentError
from reference_allocator.host_checks import expect_pairable
from reference_allocator.pages import Pages
from reference_allocator.tables import ExtendLens, Growth, Request
from reference_allocator.token_allocator import TokenAllocator

Release = Literal["both", "full", "swa"]
"""Which sides of a page a free gives back."""
GROUP_ORDER: tuple[tuple[Release, bool], ...] = (
    ("swa", True), ("both", True), ("swa", False), ("both", False), ("full", True), ("full", False),
)  # fmt: skip
"""What a group frees, with positions or without, in turn. Window sides go first: what they free may be freed on full by
another call of the group. Tokens without positions go last of those, as they free what is still there."""
SIDES: dict[Release, tuple[str, ...]] = {"both": ("full", "swa"), "full": ("full",), "swa": ("swa",)}


def window_frontier(length: int, window: int, page_size: int) -> int:
    """Position below which a row of `length` tokens needs no window pages: page aligned, 0 while all are needed.

    Host only."""
    kept = -(-max(window, page_size) // page_size) * page_size
    return max(0, length - kept) // page_size * page_size


class TwoSidedAllocator(TokenAllocator):
    """The token API with two sides: `full` for the life of a token, `swa` while it is in the window.

    What a call queues is in the table of costs, by class.
    """

    swa: Reporting

    # What stands behind.

    @abstractmethod
    def admit_each(self, full_pages: int, swa_pages: int) -> bool:
        """Whether both sides have room for these pages, after relief if need be. Never blocks the host."""

    @abstractmethod
    def hand_out_runs(self, request: Request, pages: int, runs: list[tuple[int, int]]) -> Tensor:
        """As `hand_out`, but on the window side only the runs of `[first, last)` of those pages. Never blocks."""

    @abstractmethod
    def translate_loc_from_full_to_swa(self, tokens: Tensor, out: Tensor | None = None) -> Tensor:
        """Physical token ids on the window side. Never blocks."""

    @abstractmethod
    def transfer_window(self, operation: str, kept: Pages, incoming: Pages) -> None:
        """Gives the window side of pages `incoming` to as many `kept`, lane by lane; equal pairs may repeat.

        On a checked CPU pool `BindingError`, and no pair repeats. Never blocks the host.
        """

    @abstractmethod
    def expect_freeable(self, release: Release, operation: str, pages: Pages) -> None:
        """Raises `BindingError` on a checked CPU pool for pages that are not bound as `release` says. Host only."""

    @abstractmethod
    def free_pages(self, release: Release, pages: Pages) -> None:
        """Frees virtual pages, each once, on the sides that `release` names. Never blocks."""

    @abstractmethod
    def free_by_value(self, release: Release, operation: str, tokens: Tensor) -> None:
        """Frees the pages of tokens (int64 `[n]`) as far as they are there to be freed. Blocks the host."""

    # The mapping.

    def pairs_to_map(self, operation: str, full: Tensor, swa: Tensor) -> tuple[Tensor, Tensor] | None:
        """Pages of full and of window tokens (int64 `[n]`) on a checked CPU pool, each pair once; None on any other.

        Raises `ArgumentError` for other ids and unequal lengths, and as `host_checks.expect_pairable`. Host only.
        """
        self.expect_clean(operation)
        expect_ids(self.name, operation, full, self.device)
        expect_ids(self.name, operation, swa, self.device)
        if full.numel() != swa.numel():
            raise ArgumentError(self.name, operation, "unequal lengths", full=full.numel(), swa=swa.numel())
        return expect_pairable(self.name, operation, full, swa, self.page_size) if self.raises else None

    # Handing out.

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
        """`alloc_extend` that binds on the window side only the new pages with some of a row's last `tail_len` tokens.

        The others are out of the window from the start: `free_row` with `dead_lo` at the first new page and
        `swa_frontier` at the first page of the tail. Arguments, errors, launches and blocking as `alloc_extend`, and
        `ArgumentError` for a tail below 1.
        """
        expect_count(self.name, "alloc_extend_swa_tail", tail_len=tail_len)
        if tail_len < 1:
            raise ArgumentError(self.name, "alloc_extend_swa_tail", "no tail", tail_len=tail_len)
        lens = ExtendLens(prefix_lens, seq_lens, last_loc)
        host = self._extension("alloc_extend_swa_tail", lens, prefix_lens_cpu, seq_lens_cpu, total)
        runs = tail_runs(host.before, host.after, self.page_size, tail_len)
        if not self.admit_each(host.pages, sum(last - first for first, last in runs)):
            return None
        return self.hand_out_runs(Growth(lens, total), host.pages, runs) if total else self._no_tokens()

    # Freeing by position.

    def free_segment(self, tokens: Tensor | None, *, start_pos: int) -> None:
        """Frees `row[start_pos : start_pos + n]` (int64 `[n]`) on both sides. Every page is bound on both.

        Waits for the end of an open group. Raises `ArgumentError`, `AlignmentError` for a start inside a page, on a
        checked CPU pool `BindingError`. Current stream; never blocks the host.
        """
        self._free_by_position("both", "free_segment", tokens, start_pos)

    def free_segments(self, segments: list[Segment]) -> None:
        """Frees segments of one row (int64 `[n]` and start each) on both sides, no page in two of them.

        Raises as `free_segment`, and `OverlapError`; nothing is freed then. Otherwise as `free_segment`.
        """
        self.expect_clean("free_segments")
        pages = self.pages_of_segments("free_segments", segments)
        if pages is not None:
            self.expect_freeable("both", "free_segments", pages)
            self.free_pages("both", pages)

    def free_full_segment(self, tokens: Tensor | None, *, start_pos: int) -> None:
        """Frees a segment whose pages have left the window: on full alone. Otherwise as `free_segment`."""
        self._free_by_position("full", "free_full_segment", tokens, start_pos)

    def free_swa_segment(self, tokens: Tensor | None, *, start_pos: int) -> None:
        """Frees a segment on the window side alone; its ids stay valid on full. Otherwise as `free_segment`."""
        self._free_by_position("swa", "free_swa_segment", tokens, start_pos)

    def free_row(self, segments: list[Segment], *, swa_frontier: int, dead_lo: int = 0) -> None:
        """Frees segments of one row (int64 `[n]` and start each) with no window pages in `[dead_lo, swa_frontier)`.

        Those pages are freed on full alone, the others on both sides. Raises as `free_segments`, and `AlignmentError`
        for cursors inside a page; nothing is freed then. Queues at most two frees; never blocks the host.
        """
        self.expect_clean("free_row")
        for cursor in (dead_lo, swa_frontier):
            expect_aligned(self.name, "free_row", cursor, self.page_size)
        segments = segments_with_ids(self.name, "free_row", segments, self.device)
        alive, dead = split_row(segments, dead_lo, max(dead_lo, swa_frontier))
        expect_disjoint(self.name, "free_row", [*alive, *dead], self.page_size)
        parts: list[tuple[Release, list[Segment]]] = [("both", alive), ("full", dead)]
        found = [(release, self.pages_of_segments("free_row", part)) for release, part in parts]
        frees = [(release, pages) for release, pages in found if pages is not None]
        for release, pages in frees:
            self.expect_freeable(release, "free_row", pages)
        for release, pages in frees:
            self.free_pages(release, pages)

    def advance_window(self, row: Tensor, old: int, length: int, window: int) -> int:
        """Frees the window pages that a row of `length` tokens no longer needs; returns the new cursor.

        `row` holds the row's tokens (int64), `old` the last cursor. Raises `ArgumentError` for a row that ends before
        the new cursor and for a window below 1, `AlignmentError` for a cursor inside a page.
        Otherwise as `free_swa_segment`.
        """
        self.expect_clean("advance_window")
        expect_ids(self.name, "advance_window", row, self.device)
        expect_count(self.name, "advance_window", least=0, length=length)
        expect_count(self.name, "advance_window", least=1, window=window)
        expect_aligned(self.name, "advance_window", old, self.page_size)
        new = max(old, window_frontier(length, window, self.page_size))
        if row.numel() < new:
            raise ArgumentError(
                self.name, "advance_window", "the row ends before the new cursor",
                row=row.numel(), old=old, new=new, length=length,
            )  # fmt: skip
        self.free_swa_segment(row[old:new], start_pos=old)
        return new

    def _free_by_position(self, release: Release, operation: str, tokens: Tensor | None, start_pos: int) -> None:
        self.expect_clean(operation)
        if has_ids(tokens, self.name, operation):
            pages = self.segment_pages(operation, tokens, start_pos)
            self.expect_freeable(release, operation, pages)
            self.free_pages(release, pages)

    # Freeing without positions.

    def free(self, tokens: Tensor | None) -> None:
        """Frees the pages of tokens (int64 `[n]`) whose positions are not known, on both sides, in the window or not.

        Waits for the end of an open group. Raises as `free_segment`. Current stream. Blocks the host: which pages are
        still in the window is known to the device alone.
        """
        self._free_by_value("both", "free", tokens)

    def free_swa(self, tokens: Tensor | None) -> None:
        """Frees on the window side what of these tokens (int64 `[n]`) is still bound there. Otherwise as `free`."""
        self._free_by_value("swa", "free_swa", tokens)

    def free_full(self, tokens: Tensor | None) -> None:
        """Frees tokens (int64 `[n]`) whose pages have left the window: on full alone. Otherwise as `free`."""
        self._free_by_value("full", "free_full", tokens)

    def _free_by_value(self, release: Release, operation: str, tokens: Tensor | None) -> None:
        self.expect_clean(operation)
        if has_ids(tokens, self.name, operation):
            expect_ids(self.name, operation, tokens, self.device)
            self.free_by_value(release, operation, tokens)
