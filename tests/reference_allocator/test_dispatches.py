"""The guard itself: it sees what stops the host, and lets pass what does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.reference_allocator.dispatches import Dispatches
from tests.reference_allocator.pools import ids

pytestmark = pytest.mark.host("counts what torch dispatches in CPU memory")

STOPS: dict[str, Callable[[Tensor, Tensor], object]] = {
    "scalar through an index": lambda table, index: table.__setitem__(index, -1),
    "scalar to one row": lambda table, index: table.__setitem__(0, 0),
    "tensor scalar through an index": lambda table, index: table.__setitem__(index, torch.tensor(-1)),
    "tolist": lambda table, index: table.tolist(),
    "printed": lambda table, index: f"{table!r}",
    "logged": lambda table, index: str(table),
    "item": lambda table, index: table[0].item(),
    "int": lambda table, index: int(table.sum()),
    "truth": lambda table, index: bool((table > 0).all()),
    "unique": lambda table, index: torch.unique(table),
    "method unique": lambda table, index: table.unique(),
    "unique_consecutive": lambda table, index: torch.unique_consecutive(table),
    "nonzero": lambda table, index: table.nonzero(),
    "one-argument where": lambda table, index: torch.where(table > 0),
    "mask read": lambda table, index: table[table > 0],
    "masked_select": lambda table, index: torch.masked_select(table, table > 0),
    "equal": lambda table, index: torch.equal(table, table + 1),
    "upload": lambda table, index: torch.tensor([1, 2]),
    "repeat_interleave": lambda table, index: torch.repeat_interleave(index),
    "bincount": lambda table, index: torch.bincount(index),
}

PASSES: dict[str, Callable[[Tensor, Tensor], object]] = {
    "index_fill_": lambda table, index: table.index_fill_(0, index, -1),
    "slice fill": lambda table, index: table[:1].fill_(0),
    "slice store": lambda table, index: table.__setitem__(slice(1, 3), -1),
    "tensor through an index": lambda table, index: table.__setitem__(index, index),
    "gather": lambda table, index: table[index],
    "sort": lambda table, index: table.sort(),
    "three-argument where": lambda table, index: torch.where(table > 0, table, 0),
    "cumsum and searchsorted": lambda table, index: torch.searchsorted(table.cumsum(0), index, right=True),
    "metadata": lambda table, index: (table.numel(), table.shape, len(table)),
}


@pytest.mark.parametrize("name", STOPS)
def test_the_guard_sees_what_stops_the_host(name: str) -> None:
    with Dispatches() as seen:
        STOPS[name](torch.arange(8), ids(1, 2))
    assert seen.syncs


@pytest.mark.parametrize("name", PASSES)
def test_the_guard_lets_pass_what_does_not(name: str) -> None:
    table, index = torch.arange(8), ids(1, 2)
    with Dispatches() as seen:
        PASSES[name](table, index)
    assert seen.syncs == []


def test_lengths_of_the_scheduler_may_be_read() -> None:
    lens, other = ids(3), ids(4)
    with Dispatches(lens) as seen:
        lens.tolist()
    assert seen.syncs == []
    with Dispatches(lens) as seen:
        other.tolist()
    assert seen.syncs == ["tolist"]


def test_views_are_not_counted() -> None:
    table = torch.arange(8)
    with Dispatches() as seen:
        table[::2].unsqueeze(0).expand(3, 4)
    assert seen.count == 0
