"""The conv-state kernels over torch tensors.

A conv state `cache` is bf16 `[slots, W-1, D]` with free slot and window strides and channel stride 1, so that a view
of a page-major buffer is taken as it is; 2 <= W <= 5. Word-wide kernels (all but the all-reduce ones) want D even and
every address and row stride a multiple of 4 bytes; the all-reduce kernels want D a multiple of 8, at most 8192, and
multiples of 16 bytes. Row tensors (`x`, `hidden`, `y`, `weight`) have a free row stride and inner stride 1; index and
mask tensors are contiguous. Slots that one call writes, track slots included, are pairwise distinct; slot -1 is PAD and
its state is neither read nor written. States never share memory with other operands.

Every function raises `MatchError` before it launches anything, queues one kernel on the current stream of the cache's
device, and does not wait for it; on host memory the result is there on return. Ids outside their tables set bit 128 in
`error_word` (int32 `[8]`), where one is given; their lanes write nothing (in the all-reduce kernels they count as PAD).
The first call compiles (`BuildError`). `via` says how kernels are called: by ctypes, or with `ffi.call` by tvm-ffi.

Convolutions sum `tap * weight` in fp32, oldest tap first; `silu` and `add_x` (in this order) are applied before the one
rounding to bf16. NaN comes out as 0x7fc0.
"""

from __future__ import annotations

import torch

from reference_allocator.abi import Call, LaunchError, MatchError, call
from reference_allocator.build import BuildError

__all__ = [
    "BuildError",
    "LaunchError",
    "MatchError",
    "ar_fused_decode",
    "ar_fused_verify",
    "causal_conv1d",
    "draft_extend_sconv",
    "fused_decode_update",
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
    via: Call = call,
) -> None:
    """The state of each sequence becomes the last W-1 rows of its old state followed by its rows of `x`.

    `x` bf16 `[T, D]`, `cache_indices` int32 `[B]`, `has_state` bool `[B]` (where False the old state counts as zero),
    `query_start` int32 `[B+1]`, B <= 65535. Sequences without rows keep their state. A pure copy. Does not block.
    """
    via(
        "nosync_update_sconv_cache", cache, x, cache, cache_indices, has_state, query_start, error_word
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
    via: Call = call,
) -> None:
    """Each state moves on by `accepted` of its `draft` rows of `hidden`.

    `hidden` bf16 `[B*draft, D]`, `cache_indices` and `accepted` (0..draft) int32 `[B]`, B <= 65535. With `crossed` bool
    `[B]`, `track_step` int32 `[B]` and `track_slot` int64 `[B]` (all or none, else ValueError) the state after
    `track_step` rows is written to `track_slot` where `crossed`. A pure copy. Does not block.
    """
    via(
        "nosync_draft_extend_sconv", cache, hidden, cache, cache_indices, accepted, draft, crossed, track_step,
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
    via: Call = call,
) -> None:
    """`cache[dst[b], w] = hidden[rows[b, w]]` where `mask[b]`.

    `hidden` bf16 `[T, D]`, `rows` int32 `[B, W-1]` with inner stride 1, `mask` bool `[B]`, `dst` int64 `[B]`,
    B <= 65535. A pure copy. Does not block.
    """
    via("nosync_gather_scatter_sconv", cache, hidden, cache, rows, mask, dst, error_word)


def causal_conv1d(
    x: torch.Tensor,
    cache: torch.Tensor,
    slot: torch.Tensor,
    mask: torch.Tensor,
    weight: torch.Tensor,
    cu: torch.Tensor,
    seq: torch.Tensor,
    y: torch.Tensor,
    *,
    silu: bool = True,
    add_x: bool = False,
    decode: bool = False,
    error_word: torch.Tensor | None = None,
    via: Call = call,
) -> None:
    """The convolution of all tokens of a prefill into `y`; taps before a sequence come from its state.

    `x` and `y` bf16 `[T, D]`, T <= 65535; `slot` int64 `[S]`; `mask` bool `[S]` or `[S, 1, 1]` (where False, and not
    `decode`, the state counts as zero); `weight` bf16 `[D, W]`; `cu` int64 `[S+1]`, the first token of each sequence;
    `seq` int32 `[T]`, the sequence of each token. States are only read; `y` shares memory with nothing. Does not block.
    """
    gate = mask[:, 0, 0] if mask.dim() == 3 and mask.shape[1:] == (1, 1) else mask
    via(
        "nosync_causal_conv1d", cache, x, cache, slot, gate, weight, cu, seq, y, silu, add_x, decode, error_word
    )  # fmt: skip


def fused_decode_update(
    x: torch.Tensor,
    cache: torch.Tensor,
    cache_indices: torch.Tensor,
    mask: torch.Tensor,
    weight: torch.Tensor,
    y: torch.Tensor,
    *,
    silu: bool = True,
    add_x: bool = False,
    track_mask: torch.Tensor | None = None,
    track_slot: torch.Tensor | None = None,
    error_word: torch.Tensor | None = None,
    via: Call = call,
) -> None:
    """One decode step: one token a row is convolved into `y`, then its state shifts left and takes the row of `x`.

    `x` and `y` bf16 `[T, D]`, T <= 65535, `y` may be `x`; `cache_indices` int32 `[T]`; `mask` bool `[T]` (where False
    the old state counts as zero); `weight` bf16 `[D, W]`. With `track_mask` bool `[T]` and `track_slot` int64 `[T]`
    (both or none, else ValueError) the new state is written to `track_slot` too. PAD rows write `y`. Does not block.
    """
    via(
        "nosync_fused_decode_update", cache, x, cache, cache_indices, mask, weight, y, silu, add_x, track_mask,
        track_slot, error_word,
    )  # fmt: skip


def ar_fused_decode(
    shards: torch.Tensor,
    cache: torch.Tensor,
    cache_indices: torch.Tensor,
    mask: torch.Tensor,
    weight: torch.Tensor,
    residual: torch.Tensor,
    norm_weight: torch.Tensor,
    residual_out: torch.Tensor,
    hs_out: torch.Tensor,
    *,
    eps: float = 1e-6,
    silu: bool = True,
    add_x: bool = False,
    track_mask: torch.Tensor | None = None,
    track_slot: torch.Tensor | None = None,
    error_word: torch.Tensor | None = None,
    via: Call = call,
) -> None:
    """`fused_decode_update` of the summed `shards`, then the residual and the RMS norm.

    x = bf16(sum over R of `shards` bf16 `[R, T, D]`, in fp32, in order); r = bf16(conv) + `residual` bf16 `[T, D]` in
    fp32; `residual_out` = bf16(r); `hs_out` = bf16(r / sqrt(mean(r * r) + eps) * `norm_weight` bf16 `[D]`).
    `residual_out` may be `residual`. The other operands are those of `fused_decode_update`. Does not block.
    """
    via(
        "nosync_ar_fused_decode", cache, shards, cache, cache_indices, mask, weight, residual, norm_weight,
        residual_out, hs_out, float(eps), silu, add_x, track_mask, track_slot, error_word,
    )  # fmt: skip


def ar_fused_verify(
    shards: torch.Tensor,
    cache: torch.Tensor,
    cache_indices: torch.Tensor,
    mask: torch.Tensor,
    weight: torch.Tensor,
    residual: torch.Tensor,
    norm_weight: torch.Tensor,
    residual_out: torch.Tensor,
    hs_out: torch.Tensor,
    inter_out: torch.Tensor,
    *,
    eps: float = 1e-6,
    silu: bool = True,
    add_x: bool = False,
    error_word: torch.Tensor | None = None,
    via: Call = call,
) -> None:
    """`ar_fused_decode` for q draft tokens a sequence: the state is only read, each token's state goes to `inter_out`.

    `shards` bf16 `[R, B*q, D]` with the tokens of a sequence in order, B*q <= 65535; `cache_indices` int32 and `mask`
    bool `[B]`; `inter_out` bf16 `[at least B, q, W-1, D]` with free strides but the last, `[b, i]` is the state after
    token i; rows of PAD sequences stay as they are. Does not block.
    """
    via(
        "nosync_ar_fused_verify", cache, shards, cache, cache_indices, mask, weight, residual, norm_weight,
        residual_out, hs_out, inter_out, float(eps), silu, add_x, error_word,
    )  # fmt: skip
