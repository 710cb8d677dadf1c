"""How token ids are handed out, whatever stands behind them: one pool, or several bound to the same virtual pages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from reference_allocator import tables
from reference_allocator.arguments import (
    Segment,
    expect_aligned,
    expect_count,
    expect_disjoint,
    expect_ids,
    lengths,
    new_pages,
    segments_with_ids,
)
from reference_allocator.error_word import ErrorWord
from reference_allocator.errors import AlignmentError, ArgumentError, BindingError, GroupError, PoisonedError
from reference_allocator.free_group import FreeGroup
from reference_allocator.host_checks import expect_offsets, host_values
from reference_allocator.pages import Pages
from reference_allocator.tables import ExtendLens, Growth, Request, Step, WholePages


class Extension(NamedTuple):
    """Lengths of requests before and after, in tokens, and the pages that they begin on the way."""

    before: list[int]
    after: list[int]
    pages: int


class TokenAllocator(ABC):
    """The token API. Ids are virtual, int64, of rank 1, on the pool's device; lengths and counts are in tokens.

    All work is queued on the current stream, and nothing here blocks the host.
    """

    def __init__(self, name: str, page_size: int, device: torch.device, *, checked: bool) -> None:
        self.name = name
        self.page_size = page_size
        self.device = device
        self.checked = checked
        self.raises = checked and device.type == "cpu"
        self._group: FreeGroup | None = None

    # What stands behind.

    @property
    @abstractmethod
    def error_words(self) -> tuple[ErrorWord, ...]:
        """Those of every pool of this allocator. Host only."""

    @abstractmethod
    def admit(self, pages: int) -> bool:
        """Whether so many pages can be minted, after relief if need be. Host decisions only, never blocks."""

    @abstractmethod
    def hand_out(self, request: Request, pages: int) -> Tensor:
        """The tokens of a request: int64, in storage of their own. Never blocks.

        The next `pages` virtual pages are minted for it, on every side. The caller has admitted them.
        """

    @abstractmethod
    def free(self, tokens: Tensor | None) -> None:
        """Frees the pages of tokens whose positions are not known. Blocks the host where a page is several tokens."""

    @abstractmethod
    def free_segment(self, tokens: Tensor | None, *, start_pos: int) -> None:
        """Frees the pages of `row[start_pos : start_pos + n]`. Never blocks."""

    @abstractmethod
    def free_group_end(self) -> None:
        """Releases what the group holds. Never blocks, unless it holds tokens without positions."""

    # Handing out.

    def alloc(self, count: int) -> Tensor | None:
        """Ids of `count` new tokens, a multiple of the page size: int64 `[count]`, page by page, in storage of its own.

        None, and nothing changed, where there is no room; an empty tensor for a count of 0 or less. Raises
        `ArgumentError` for what is no int, `AlignmentError`. Queues 3 to 8 launches per pool on the current stream;
        never blocks the host.
        """
        self.expect_clean("alloc")
        expect_count(self.name, "alloc", count=count)
        if count <= 0:
            return self._no_tokens()
        if count % self.page_size:
            raise AlignmentError(
                self.name, "alloc", "tokens are handed out by the page", count=count, page_size=self.page_size
            )
        pages = count // self.page_size
        if not self.admit(pages):
            return None
        return self.hand_out(WholePages(), pages)

    def alloc_extend(
        self,
        prefix_lens: Tensor,
        prefix_lens_cpu: Tensor,
        seq_lens: Tensor,
        seq_lens_cpu: Tensor,
        last_loc: Tensor,
        total: int,
    ) -> Tensor | None:
        """Ids of the tokens at positions `[prefix, seq)` of every request, one after another: int64 `[total]`.

        Lengths are int64 `[bs]`, on the device and once more in CPU memory; `last_loc` is the id of the token before
        each prefix's end, -1 for an empty one. None, and nothing changed, where there is no room. Raises
        `ArgumentError`, and on a checked CPU pool `BindingError` for a last token at the wrong place of its page.
        Queues about 35 launches on the current stream; never blocks the host.
        """
        lens = ExtendLens(prefix_lens, seq_lens, last_loc)
        host = self._extension("alloc_extend", lens, prefix_lens_cpu, seq_lens_cpu, total)
        if not self.admit(host.pages):
            return None
        return self.hand_out(Growth(lens, total), host.pages) if total else self._no_tokens()

    def _extension(
        self, operation: str, lens: ExtendLens, prefix_lens_cpu: Tensor, seq_lens_cpu: Tensor, total: int
    ) -> Extension:
        """What the host knows of an extension, once nothing is wrong with it."""
        self.expect_clean(operation)
        expect_count(self.name, operation, total=total)
        self._expect_batch(operation, *lens)
        before = lengths(self.name, operation, prefix_lens_cpu)
        after = lengths(self.name, operation, seq_lens_cpu)
        pages = new_pages(self.name, operation, before, after, self.page_size)
        if total != sum(after) - sum(before) or lens.seq.numel() != len(after):
            raise ArgumentError(
                self.name, operation, "counts disagree",
                total=total, lengths=sum(after) - sum(before), requests=lens.seq.numel(), requests_cpu=len(after),
            )  # fmt: skip
        self._expect_copies(operation, (lens.prefix, before), (lens.seq, after))
        self._expect_last(operation, lens.last_loc, before)
        return Extension(before, after, pages)

    def _expect_copies(self, operation: str, *pairs: tuple[Tensor, list[int]]) -> None:
        """Raises `ArgumentError` on a checked CPU pool where lengths for the device and for the host differ."""
        for given, host in pairs if self.raises else ():
            if host_values(given) != host:
                raise ArgumentError(
                    self.name, operation, "lengths for the device and for the host differ",
                    device=host_values(given)[:8], host=host[:8],
                )  # fmt: skip

    def _no_tokens(self) -> Tensor:
        return torch.empty(0, dtype=torch.int64, device=self.device)

    def alloc_decode(self, seq_lens: Tensor, seq_lens_cpu: Tensor, last_loc: Tensor) -> Tensor | None:
        """Id of the `seq`-th token of every request: int64 `[bs]`. Arguments, errors and blocking as `alloc_extend`.

        Queues 1 launch where no request starts a page, else about 12.
        """
        self.expect_clean("alloc_decode")
        self._expect_batch("alloc_decode", seq_lens, seq_lens, last_loc)
        after = lengths(self.name, "alloc_decode", seq_lens_cpu)
        before = [length - 1 for length in after]
        pages = new_pages(self.name, "alloc_decode", before, after, self.page_size)
        if seq_lens.numel() != len(after):
            raise ArgumentError(
                self.name, "alloc_decode", "counts disagree", requests=seq_lens.numel(), requests_cpu=len(after)
            )
        if not after:
            return self._no_tokens()
        self._expect_copies("alloc_decode", (seq_lens, after))
        self._expect_last("alloc_decode", last_loc, before)
        if not self.admit(pages):
            return None
        return self.hand_out(Step(seq_lens, last_loc), pages)

    # Groups.

    def free_group_begin(self) -> None:
        """Lets frees wait until `free_group_end`. Raises `GroupError` if a group is open. Host only."""
        self.expect_clean("free_group_begin")
        if self._group is not None:
            raise GroupError(self.name, "free_group_begin", "a group is open already")
        self._group = FreeGroup(self.page_size)

    def apply_deferred(self) -> None:
        """Releases what an open group holds and keeps the group open; nothing without one. As `free_group_end`."""
        if self._group is not None:
            self.expect_clean("apply_deferred")
            self.free_group_end()
            self.free_group_begin()

    @property
    def group_is_open(self) -> bool:
        """Whether frees are being deferred. Host only."""
        return self._group is not None

    def _detach_group(self) -> FreeGroup:
        """The open group, closed before anything of it is released: a free on the way is then no part of it."""
        self.expect_clean("free_group_end")
        group = self._group
        if group is None:
            raise GroupError(self.name, "free_group_end", "no group is open")
        self._group = None
        return group

    # Which pages tokens are of.

    def page_reps(self, tokens: Tensor, start_pos: int) -> Tensor:
        """One token per page of a segment: see `tables.page_reps`. Never blocks."""
        return tables.page_reps(tokens, start_pos, self.page_size)

    def segment_pages(self, operation: str, tokens: Tensor, start_pos: int) -> Pages:
        """Virtual pages of a segment, which stay the caller's tokens until somebody asks for the pages. Never blocks.

        Raises `ArgumentError`, `AlignmentError`, on a checked CPU pool `BindingError` for ids that start no page.
        """
        expect_ids(self.name, operation, tokens, self.device)
        expect_aligned(self.name, operation, start_pos, self.page_size)
        if self.raises:
            expect_offsets(self.name, operation, tokens[:: self.page_size], self.page_size)
        return Pages(tokens, self.page_size)

    def distinct_pages(self, tokens: Tensor, *, repeated: bool = False) -> Tensor:
        """Virtual pages of tokens, each once: int64 `[k]`. Blocks the host.

        But where a page is one token, and none is `repeated`: those are the tokens themselves, and nothing blocks.
        """
        if self.page_size == 1 and not repeated:
            return tokens
        pages_of_all = tables.pages_of(tokens, self.page_size)
        # nosync-lint: ignore[NSL301] without positions only the device knows how many pages these are
        pages: Tensor = torch.unique(pages_of_all)
        return pages

    def pages_of_segments(self, operation: str, segments: list[Segment]) -> Pages | None:
        """Virtual pages of segments of one row, or None where all are empty or None.

        Raises as `segment_pages`, and `OverlapError`. One launch per segment and one more if there are several; never
        blocks the host.
        """
        segments = segments_with_ids(self.name, operation, segments, self.device)
        for _, start in segments:
            expect_aligned(self.name, operation, start, self.page_size)
        expect_disjoint(self.name, operation, segments, self.page_size)
        pages = [self.segment_pages(operation, tokens, start) for tokens, start in segments]
        if len(pages) > 1:
            return Pages(torch.cat([one.tensor for one in pages]))
        return pages[0] if pages else None

    # Preconditions.

    @property
    def poisoned(self) -> bool:
        """Whether `check` has found an error word set, of this allocator or of one that shares a pool. Host only."""
        return any(word.poisoned for word in self.error_words)

    def expect_clean(self, operation: str) -> None:
        """Raises `PoisonedError` while one of the pools is poisoned: see `verify.check`. Host only."""
        if self.poisoned:
            raise PoisonedError(self.name, operation, "the error word is set; only clear() recovers")

    def _expect_batch(self, operation: str, *batch: Tensor) -> None:
        for tensor in batch:
            expect_ids(self.name, operation, tensor, self.device)
        if len({tensor.numel() for tensor in batch}) > 1:
            raise ArgumentError(
                self.name, operation, "tensors of unequal length", lengths=[tensor.numel() for tensor in batch]
            )

    def _expect_last(self, operation: str, last_loc: Tensor, before: list[int]) -> None:
        if not self.raises:
            return
        for token, length in zip(host_values(last_loc), before, strict=True):
            if (token + 1) % self.page_size != length % self.page_size:
                raise BindingError(
                    self.name, operation, "a last token at the wrong place of its page",
                    last_loc=token, prefix=length, page_size=self.page_size,
                )  # fmt: skip
