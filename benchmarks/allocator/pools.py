"""Byte pools for measuring: entries as small as they get, because tables are measured and not what is cached."""

from __future__ import annotations

import torch
from torch import Tensor

from reference_allocator import BytePool, KVSpec

LAYER_BYTES = 32
"""Of a token: one head, one number each for keys and values, and the padding."""
LAYERS = {"full": 2, "swa": 1}


def byte_pool(page_size: int, pages: int, device: str = "cpu") -> BytePool:
    """A pool with room for so many pages of full attention and as many of the window, the sink included."""
    shape = {"heads": 1, "key_dim": 1, "value_dim": 1, "dtype": torch.int64}
    full = KVSpec("full", "full", "up", page_size, range(LAYERS["full"]), **shape)  # type: ignore[arg-type]
    swa = KVSpec("swa", "swa", "down", page_size, range(LAYERS["swa"]), **shape)  # type: ignore[arg-type]
    return BytePool(pages * page_size * LAYER_BYTES * sum(LAYERS.values()), [full, swa], device=device)


def got(tokens: Tensor | None) -> Tensor:
    """Tokens for which there is room. Raises `RuntimeError` where there was none: a benchmark is wrong then."""
    if tokens is None:
        raise RuntimeError("the pool is too small for what is measured")
    return tokens
