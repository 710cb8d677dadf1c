"""The conv-state kernels with operands of one batch, on the view of a state pool or on a contiguous copy of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from reference_allocator import BytePool, KVSpec, StatePart, StateSpec, sconv

HISTORY = 3
"""Rows of a state: W - 1."""
LAYERS = 4
"""Of the state pool; the second of them is used, so that its slots are four times as far apart as in a copy."""
LAYER = 1
FRESH, DRAFT, ACCEPTED, PREFILL = 2, 4, 2, 4
"""Rows of a sequence in the update, in a draft, of those accepted, and in the convolution of a prefill."""
SHARDS = 2
COPIES_AND_CONVOLUTIONS = ("K1", "K2", "K3", "K4", "K5")
ALL = (*COPIES_AND_CONVOLUTIONS, "K6", "K6 verify")


@dataclass(frozen=True)
class Kernel:
    """A kernel that only needs to be called: bytes that it must read or write, and what it writes."""

    name: str
    run: partial[None]
    bytes: int
    written: tuple[Tensor, ...]


def pool_view(slots: int, channels: int, device: str) -> Tensor:
    """A layer of the conv state of a pool, bf16 `[slots, HISTORY, channels]`, filled at random on the host."""
    state = StateSpec("state", "up", range(LAYERS), (StatePart((HISTORY, channels), torch.bfloat16),), ())
    tokens = KVSpec("tokens", "full", "down", 1, range(1), 1, 8, 8, torch.bfloat16)
    pool = BytePool((slots + 1) * state.entry_bytes, [state, tokens], device=device)
    view = pool.conv_state("state", 0)[LAYER, :slots]
    return view.copy_(_random(slots, HISTORY, channels))


def contiguous(view: Tensor) -> Tensor:
    return view.clone(memory_format=torch.contiguous_format)


def kernels(cache: Tensor, names: Sequence[str] = ALL) -> dict[str, Kernel]:
    """Some of them on one state, with a sequence for each slot, in no order. Operands are the same at every call."""
    operands = Operands(cache)
    make = dict(zip(ALL, (operands.update, operands.conv, operands.draft, operands.decode, operands.gather,
                          operands.ar_decode, operands.verify), strict=True))  # fmt: skip
    return {name: make[name]() for name in names}


def _random(*shape: int) -> Tensor:
    seed = torch.Generator().manual_seed(sum(shape))
    return torch.empty(shape, dtype=torch.bfloat16).normal_(generator=seed)


class Operands:
    """Operands on the device of `cache`."""

    def __init__(self, cache: Tensor) -> None:
        self.cache = cache
        self.slots, self.history, self.channels = cache.shape
        order = torch.randperm(self.slots, generator=torch.Generator().manual_seed(self.slots))
        self.indices = self.here(order.int())
        self.slot = self.here(order)
        self.mask = self.here(torch.ones(self.slots, dtype=torch.bool))
        self.weight = self.here(_random(self.channels, self.history + 1))

    def here(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.cache.device)

    def rows(self, count: int) -> Tensor:
        return self.here(_random(count, self.channels))

    def bytes(self, rows: int, *, weight: bool = False) -> int:
        """Of so many rows, and of the weight."""
        return 2 * self.channels * (rows + (self.history + 1 if weight else 0))

    def blank(self, count: int) -> Tensor:
        return torch.zeros(count, self.channels, dtype=torch.bfloat16, device=self.cache.device)

    def update(self) -> Kernel:
        x, starts = self.rows(FRESH * self.slots), self.here(torch.arange(self.slots + 1, dtype=torch.int32) * FRESH)
        run = partial(sconv.update_sconv_cache, x, self.cache, self.indices, self.mask, starts)
        return Kernel("K1", run, self.bytes(self.slots * 2 * self.history), (self.cache,))

    def conv(self) -> Kernel:
        tokens = PREFILL * self.slots
        x, y = self.rows(tokens), self.blank(tokens)
        cu = self.here(torch.arange(self.slots + 1) * PREFILL)
        seq = self.here(torch.arange(tokens, dtype=torch.int32) // PREFILL)
        run = partial(sconv.causal_conv1d, x, self.cache, self.slot, self.mask, self.weight, cu, seq, y)
        return Kernel("K2", run, self.bytes(2 * tokens + self.history * self.slots, weight=True), (y,))

    def draft(self) -> Kernel:
        hidden = self.rows(DRAFT * self.slots)
        accepted = torch.full_like(self.indices, ACCEPTED)
        run = partial(sconv.draft_extend_sconv, hidden, self.cache, self.indices, accepted, DRAFT)
        return Kernel("K3", run, self.bytes(self.slots * 2 * self.history), (self.cache,))

    def decode(self) -> Kernel:
        x, y = self.rows(self.slots), self.blank(self.slots)
        run = partial(sconv.fused_decode_update, x, self.cache, self.indices, self.mask, self.weight, y)
        return Kernel("K4", run, self.bytes(self.slots * (2 + 2 * self.history), weight=True), (self.cache, y))

    def gather(self) -> Kernel:
        hidden = self.rows(DRAFT * self.slots)
        rows = self.here(torch.arange(self.slots * self.history, dtype=torch.int32).view(self.slots, self.history))
        run = partial(sconv.gather_scatter_sconv, hidden, self.cache, rows, self.mask, self.slot)
        return Kernel("K5", run, self.bytes(self.slots * 2 * self.history), (self.cache,))

    def ar_decode(self) -> Kernel:
        shards = self.rows(SHARDS * self.slots).view(SHARDS, self.slots, self.channels)
        residual, norm, out, hs = self.rows(self.slots), self.rows(1), self.blank(self.slots), self.blank(self.slots)
        run = partial(
            sconv.ar_fused_decode, shards, self.cache, self.indices, self.mask, self.weight, residual, norm[0], out, hs
        )
        rows = self.slots * (SHARDS + 3 + 2 * self.history) + 1
        return Kernel("K6", run, self.bytes(rows, weight=True), (self.cache, out, hs))

    def verify(self) -> Kernel:
        tokens = DRAFT * self.slots
        shards = self.rows(SHARDS * tokens).view(SHARDS, tokens, self.channels)
        residual, norm, out, hs = self.rows(tokens), self.rows(1), self.blank(tokens), self.blank(tokens)
        inter = self.blank(tokens * self.history).view(self.slots, DRAFT, self.history, self.channels)
        run = partial(
            sconv.ar_fused_verify, shards, self.cache, self.indices, self.mask, self.weight, residual, norm[0], out, hs,
            inter,
        )  # fmt: skip
        rows = tokens * (SHARDS + 3 + self.history) + self.history * self.slots + 1
        return Kernel("K6 verify", run, self.bytes(rows, weight=True), (out, hs, inter))
