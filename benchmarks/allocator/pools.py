"""Byte pools for measuring: entries as small as they get, because tables are measured and not what is cached."""

from __future__ import annotations

import torch
from torch import Tensor

from reference_allocator import BytePool, KVSpec, StatePart, StateSpec
from reference_allocator.specs import Spec

LAYER_BYTES = 32
"""Of a token: one head, one number each for keys and values, and the padding."""
LAYERS = {"full": 2, "swa": 1}
SLOTS = 24
"""State slots, each as large as a page of full attention, that three pools have bytes for besides their tokens."""


def byte_pool(page_size: int, pages: int, device: str = "cpu", *, pools: int = 2) -> BytePool:
    """A pool with room for so many pages of full attention and as many of the window, the sink included.

    pools: 2 for the two at the ends, 3 for state slots and full attention there and a window that floats.
    """
    shape = {"heads": 1, "key_dim": 1, "value_dim": 1, "dtype": torch.int64}
    ends = ("up", "down") if pools == 2 else ("down", "float")
    specs: list[Spec] = [
        KVSpec(name, name, grow, page_size, range(LAYERS[name]), **shape)  # type: ignore[arg-type]
        for name, grow in zip(("full", "swa"), ends, strict=True)
    ]
    total = pages * page_size * LAYER_BYTES * sum(LAYERS.values())
    if pools == 3:
        part = StatePart((page_size * LAYERS["full"] * LAYER_BYTES // 8,), torch.int64)
        state = StateSpec("state", "up", range(1), conv=(), temporal=(part,))
        specs.append(state)
        total += SLOTS * state.entry_bytes
    return BytePool(total, specs, device=device)


def got(tokens: Tensor | None) -> Tensor:
    """Tokens for which there is room. Raises `RuntimeError` where there was none: a benchmark is wrong then."""
    if tokens is None:
        raise RuntimeError("the pool is too small for what is measured")
    return tokens
