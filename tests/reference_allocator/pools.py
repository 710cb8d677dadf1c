"""Small pools for tests, and the contents that live tokens must keep."""

from __future__ import annotations

import torch
from torch import Tensor

from reference_allocator import BytePool, KVSpec, PageAllocator, join

TOTAL = 65536


def kv(name: str, kind: str, grow: str, page_size: int, layers: int) -> KVSpec:
    """A pool whose token takes 512 bytes per layer: 2 heads of 64 two-byte numbers, keys and values."""
    return KVSpec(name, kind, grow, page_size, range(layers), 2, 64, 64, torch.bfloat16)  # type: ignore[arg-type]


def byte_pool(page_size: int = 4, total: int = TOTAL) -> BytePool:
    """The worked example: a token takes 1024 bytes of `full`, which grows up, and 512 of `swa`, which grows down."""
    return BytePool(total, [kv("full", "full", "up", page_size, 2), kv("swa", "swa", "down", page_size, 1)])


def two_owners(page_size: int = 4, total: int = TOTAL, **options: bool) -> tuple[PageAllocator, PageAllocator]:
    """Two allocators, neighbours in one pool, each the owner of its ids."""
    pool = byte_pool(page_size, total)
    up, down = PageAllocator(pool, "full", **options), PageAllocator(pool, "swa", **options)
    join(up.band, down.band)
    return up, down


def ids(*values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.int64)
