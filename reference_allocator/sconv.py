"""The conv-state kernels over torch tensors.

A conv state `cache` is bf16 `[slots, W-1, D]` with free slot and window strides and channel stride 1, so that a view
of a page-major buffer is taken as it is; 2 <= W <= 5. Word-wide kernels (all but the all-reduce ones) want D even and
every address and row stride a multiple of 4 bytes. Row tensors (`x`, `hidden`, `y`, `weight`) have a free row stride
and inner stride 1; index and mask tensors are contiguous. Slots of one call are pairwise distinct; slot -1 is PAD and
its state is neither read nor written. States never share memory with other operands.

Every function raises `MatchError` before it launches anything, queues one kernel on the current stream of the cache's
device, and does not wait for it; on host memory the result is there on return. Ids outside their tables are left out
and set bit 128 in `error_word` (int32 `[8]`), where one is given. The first call compiles (`BuildError`).
"""

from __future__ import annotations

import torch

from reference_allocator.abi import LaunchError, MatchError, call
from reference_allocator.build import BuildError

__all__ = [
    "BuildError",
    "LaunchError",
    "MatchError",
    "draft_extend_sconv",
    "gather_scatter_sconv",
    "update_sconv_cache",
]


def update_sconv_cache(
    x: torch.Tensor,
    cache: torch.Tensor,
    cache_indices: torch.Tensor,
    has_state: torch.Tensor,
    query_start: torch.Tensor,
    *,
    error_word: torch.Tensor | None = None,
) -> None:
    """The state of each sequence becomes the last W-1 rows of its old state followed by its rows of `x`.

    `x` bf16 `[T, D]`, `cache_indices` int32 `[B]`, `has_state` bool `[B]` (where False the old state counts as zero),
    `query_start` int32 `[B+1]`, B <= 65535. Sequences without rows keep their state. A pure copy. Does not block.
    """
    call(
        "nosync_update_sconv_cache", cache.device, x, cache, cache_indices, has_state, query_start, error_word
    )  # fmt: skip


def draft_extend_sconv(
    hidden: torch.Tensor,
    cache: torch.Tensor,
    cache_indices: torch.Tensor,
    accepted: torch.Tensor,
    draft: int,
    *,
    crossed: torch.Tensor | None = None,
    track_step: torch.Tensor | None = None,
    track_slot: torch.Tensor | None = None,
    error_word: torch.Tensor | None = None,
) -> None:
    """Each state moves on by `accepted` of its `draft` rows of `hidden`.

    `hidden` bf16 `[B*draft, D]`, `cache_indices` and `accepted` (0..draft) int32 `[B]`, B <= 65535. With `crossed` bool
    `[B]`, `track_step` int32 `[B]` and `track_slot` int64 `[B]` (all or none, else ValueError) the state after
    `track_step` rows is written to `track_slot` where `crossed`. A pure copy. Does not block.
    """
    call(
        "nosync_draft_extend_sconv", cache.device, hidden, cache, cache_indices, accepted, draft, crossed, track_step,
        track_slot, error_word,
    )  # fmt: skip


def gather_scatter_sconv(
    hidden: torch.Tensor,
    cache: torch.Tensor,
    rows: torch.Tensor,
    mask: torch.Tensor,
    dst: torch.Tensor,
    *,
    error_word: torch.Tensor | None = None,
) -> None:
    """`cache[dst[b], w] = hidden[rows[b, w]]` where `mask[b]`.

    `hidden` bf16 `[T, D]`, `rows` int32 `[B, W-1]` with inner stride 1, `mask` bool `[B]`, `dst` int64 `[B]`,
    B <= 65535. A pure copy. Does not block.
    """
    call("nosync_gather_scatter_sconv", cache.device, hidden, cache, rows, mask, dst, error_word)
