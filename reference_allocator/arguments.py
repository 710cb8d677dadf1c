"""Shapes, dtypes and counts of arguments: what the host can tell without reading a device value."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TypeGuard

import torch
from torch import Tensor

from reference_allocator.errors import AlignmentError, ArgumentError, OverlapError
from reference_allocator.host_checks import host_values

Segment = tuple[Tensor, int]
"""Token ids of a row, int64 `[n]`, and the position of the first of them in the row."""


def expect_count(pool: str, operation: str, *, least: int | None = None, **counts: object) -> None:
    """Raises `ArgumentError` unless every count or position is an `int`, and no bool, of at least `least`.

    A tensor would be read, and block the host; a float gives tables and sizes that only fail later.
    """
    for name, count in counts.items():
        if type(count) is not int:
            raise ArgumentError(
                pool, operation, "a count or position that is no int", argument=name, given=type(count).__name__
            )
        if least is not None and count < least:
            raise ArgumentError(pool, operation, "a count that cannot be", **{name: count}, least=least)


def expect_tensors(pool: str, operation: str, *given: object) -> None:
    """Raises `ArgumentError` for ids in a list, an array of another library, or a number."""
    for ids in given:
        if not isinstance(ids, Tensor):
            raise ArgumentError(pool, operation, "ids must be a tensor", given=type(ids).__name__)


def has_ids(ids: Tensor | None, pool: str, operation: str) -> TypeGuard[Tensor]:
    """Whether there are ids: not in None and not in an empty tensor. Raises `ArgumentError` for what is no tensor."""
    if ids is None:
        return False
    expect_tensors(pool, operation, ids)
    return ids.numel() > 0


def segments_with_ids(
    pool: str, operation: str, segments: Iterable[tuple[Tensor | None, int]], device: torch.device
) -> list[Segment]:
    """The segments that have ids. Raises `ArgumentError` as `expect_ids`, and for a start that is no int."""
    found = [(tokens, start) for tokens, start in segments if has_ids(tokens, pool, operation)]
    for tokens, start in found:
        expect_ids(pool, operation, tokens, device)
        expect_count(pool, operation, start_pos=start)
    return found


def expect_ids(pool: str, operation: str, ids: Tensor, device: torch.device) -> None:
    """Raises `ArgumentError` unless `ids` is a tensor, int64, of rank 1, and on the device."""
    expect_tensors(pool, operation, ids)
    if ids.dtype != torch.int64 or ids.dim() != 1 or ids.device != device:
        raise ArgumentError(
            pool, operation, "ids must be int64, of rank 1, on the pool's device",
            dtype=ids.dtype, shape=tuple(ids.shape), device=ids.device, wanted_device=device,
        )  # fmt: skip


def expect_translatable(pool: str, operation: str, tokens: Tensor, out: Tensor | None, device: torch.device) -> None:
    """Raises `ArgumentError` unless ids and the tensor for what they become are int64, alike, and on the device."""
    given_out = tokens if out is None else out
    expect_tensors(pool, operation, tokens, given_out)
    for given in (tokens, given_out):
        if given.dtype != torch.int64 or given.device != device or given.shape != tokens.shape:
            raise ArgumentError(
                pool, operation, "ids and out must be int64, of one shape, on the pool's device",
                dtype=given.dtype, shape=tuple(given.shape), ids=tuple(tokens.shape), device=given.device,
            )  # fmt: skip


def expect_aligned(pool: str, operation: str, start_pos: int, page_size: int) -> None:
    """Raises `AlignmentError` unless a segment starts where a page does, `ArgumentError` for what is no int."""
    expect_count(pool, operation, start_pos=start_pos)
    if start_pos < 0 or start_pos % page_size:
        raise AlignmentError(
            pool, operation, "a segment starts inside a page", start_pos=start_pos, page_size=page_size
        )


def expect_disjoint(pool: str, operation: str, segments: list[Segment], page_size: int) -> None:
    """Raises `OverlapError` where two segments of one row touch the same page."""
    spans = sorted((start, start + tokens.numel()) for tokens, start in segments)
    for (start, stop), (next_start, next_stop) in pairwise(spans):
        if (stop - 1) // page_size >= next_start // page_size:
            raise OverlapError(
                pool, operation, "two segments touch one page",
                first=(start, stop), second=(next_start, next_stop), page_size=page_size,
            )  # fmt: skip


def coalesce(segments: list[Segment]) -> list[Segment]:
    """Joins segments of one row that follow each other, so that they share no page. Copies those; never blocks."""
    joined: list[Segment] = []
    for tokens, start in sorted(segments, key=lambda segment: segment[1]):
        if joined and joined[-1][1] + joined[-1][0].numel() == start:
            before, first = joined.pop()
            joined.append((torch.cat((before, tokens)), first))
        else:
            joined.append((tokens, start))
    return joined


def split_row(segments: list[Segment], low: int, high: int) -> tuple[list[Segment], list[Segment]]:
    """The parts of segments of a row outside the positions `[low, high)`, and those inside; none is empty."""
    outside, inside = [], []
    for tokens, start in segments:
        stop = start + tokens.numel()
        first, last = (min(max(cursor, start), stop) for cursor in (low, high))
        outside += [(tokens[: first - start], start), (tokens[last - start :], last)]
        inside += [(tokens[first - start : last - start], first)]
    outside, inside = ([(tokens, start) for tokens, start in part if tokens.numel()] for part in (outside, inside))
    return outside, inside


def pages_for(tokens: int, page_size: int) -> int:
    """Pages that hold so many tokens of a row."""
    return -(-tokens // page_size)


def new_pages(pool: str, operation: str, prefix_cpu: list[int], seq_cpu: list[int], page_size: int) -> int:
    """Pages that requests begin on their way from the first lengths to the second.

    Raises `ArgumentError` for unequal counts and for a request that shrinks.
    """
    if len(prefix_cpu) != len(seq_cpu):
        raise ArgumentError(pool, operation, "lengths of unequal count", prefix=len(prefix_cpu), seq=len(seq_cpu))
    pages = 0
    for before, after in zip(prefix_cpu, seq_cpu, strict=True):
        if not 0 <= before <= after:
            raise ArgumentError(pool, operation, "a request that shrinks", prefix=before, seq=after)
        pages += pages_for(after, page_size) - pages_for(before, page_size)
    return pages


def tail_runs(prefix_cpu: list[int], seq_cpu: list[int], page_size: int, tail: int) -> list[tuple[int, int]]:
    """Which of the new pages of `new_pages`, numbered in request order, hold some of the last `tail` tokens of a row.

    One run per request, from its first such page up to its last.
    """
    runs, minted = [], 0
    for before, after in zip(prefix_cpu, seq_cpu, strict=True):
        had, last = pages_for(before, page_size), pages_for(after, page_size)
        first = min(max(had, max(0, after - tail) // page_size), last)
        runs.append((minted + first - had, minted + last - had))
        minted += last - had
    return [(first, last) for first, last in runs if first < last]


def lengths(pool: str, operation: str, lens_cpu: Tensor) -> list[int]:
    """Lengths from the scheduler's copy in CPU memory. Raises `ArgumentError` for a tensor of a device or of rank 2."""
    if lens_cpu.device.type != "cpu" or lens_cpu.dim() != 1 or lens_cpu.dtype != torch.int64:
        raise ArgumentError(
            pool, operation, "lengths for the host must be int64, of rank 1, in CPU memory",
            dtype=lens_cpu.dtype, shape=tuple(lens_cpu.shape), device=lens_cpu.device,
        )  # fmt: skip
    return host_values(lens_cpu)
