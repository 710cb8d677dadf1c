"""Sticky error bits on the device: hot paths record what they saw, an idle point reads it."""

from __future__ import annotations

from enum import IntFlag
from typing import Protocol

import torch
from torch import Tensor


class Fault(IntFlag):
    """What a checked pool can find out about its callers."""

    DOUBLE_FREE = 1
    PAGES_APART = 2
    SWA_NOT_BOUND = 4
    SWA_STILL_BOUND = 8
    SINK_HANDED_OUT = 16
    KEPT_STILL_BOUND = 32
    PLAN_OVERFLOW = 64
    UNKNOWN_ID = 128


CELLS = 8


class ErrorWord:
    """One int64 cell per bit: 1 while all is well, else the lowest value that should have been positive.

    `poisoned` is for the host: an idle point found a bit set, here or in a pool of the same allocator.

    Cells are as wide as page ids, so a looked-up id goes in as it is: one launch, no cast and no comparison.
    """

    def __init__(self, device: torch.device) -> None:
        self.poisoned = False
        self.cells = torch.ones(CELLS, dtype=torch.int64, device=device)
        self._first = torch.zeros(1, dtype=torch.int64, device=device)

    def expect_positive(self, fault: Fault, values: Tensor) -> None:
        """Sets `fault` if any of `values` (int64, rank 1) is 0 or less. One launch; never blocks the host."""
        bit = fault.bit_length() - 1
        self.cells[bit : bit + 1].scatter_reduce_(0, self._first.expand(values.numel()), values, "amin")

    def clear(self) -> None:
        """Forgets every fault and the poison. One launch; never blocks the host."""
        self.poisoned = False
        self.cells.fill_(1)


class Reporting(Protocol):
    """The pages of one pool or side, with their error word."""

    name: str
    error: ErrorWord
