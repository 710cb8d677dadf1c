"""Small pools for tests, the contents that live tokens must keep, and what tests read of a device.

In a run with `--nosync` tests work on the device that the guard shows, else in CPU memory: `conftest.py` says which.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from nosync_lint.guard import to_host
from reference_allocator import BytePool, KVSpec, PageAllocator, join
from reference_allocator.errors import BindingError
from reference_allocator.specs import Spec

TOTAL = 65536
CHECKED = {"checked": True}
"""As allocators in CPU memory are unless told otherwise, and those on a device are not."""
RAISES = pytest.mark.host("raising before any write is what a checked pool in CPU memory does, and no other")


class Place:
    """Where the tensors of the present test lie."""

    device = torch.device("cpu")


def put(tensor: Tensor) -> Tensor:
    """A tensor of the host, where the pools lie. Its upload waits for nothing."""
    return tensor if Place.device.type == "cpu" else tensor.pin_memory().to(Place.device, non_blocking=True)


def ids(*values: int) -> Tensor:
    return put(torch.tensor(values, dtype=torch.int64))


def twice(*lengths: int) -> tuple[Tensor, Tensor]:
    """Lengths where the pools lie, and in CPU memory, as a scheduler gives them."""
    return ids(*lengths), torch.tensor(lengths, dtype=torch.int64)


def seen(tensor: Tensor) -> Tensor:
    """A tensor as a test may look at it, wherever it lies: what a test reads is no wait of the allocator."""
    return tensor if tensor.device.type == "cpu" else to_host(tensor)


def listed(tensor: Tensor) -> Any:
    return seen(tensor).tolist()


def every(truths: Tensor) -> bool:
    return bool(seen(truths).all())


def equal(one: Tensor, other: Tensor) -> bool:
    return torch.equal(seen(one), seen(other))


def refusals(*cases: Sequence[Any]) -> list[Any]:
    """Cases of misuse: what only a checked pool in CPU memory raises, a `BindingError`, is tried there alone."""
    return [pytest.param(*case, marks=RAISES) if BindingError in case else case for case in cases]


def kv(name: str, kind: str, grow: str, page_size: int, layers: int) -> KVSpec:
    """A pool whose token takes 512 bytes per layer: 2 heads of 64 two-byte numbers, keys and values."""
    return KVSpec(name, kind, grow, page_size, range(layers), 2, 64, 64, torch.bfloat16)  # type: ignore[arg-type]


def pool_of(total: int, specs: list[Spec], **options: Any) -> BytePool:
    """A byte pool where the present test works."""
    return BytePool(total, specs, device=Place.device, **options)


def byte_pool(page_size: int = 4, total: int = TOTAL) -> BytePool:
    """The worked example: a token takes 1024 bytes of `full`, which grows up, and 512 of `swa`, which grows down."""
    return pool_of(total, [kv("full", "full", "up", page_size, 2), kv("swa", "swa", "down", page_size, 1)])


def two_owners(page_size: int = 4, total: int = TOTAL, **options: bool) -> tuple[PageAllocator, PageAllocator]:
    """Two allocators, neighbours in one pool, each the owner of its ids."""
    pool = byte_pool(page_size, total)
    up, down = (PageAllocator(pool, name, **CHECKED | options) for name in ("full", "swa"))
    join(up.band, down.band)
    return up, down
