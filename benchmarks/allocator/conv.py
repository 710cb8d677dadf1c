"""The conv-state kernels of the host build, on the view of a state pool and on a contiguous state, side by side.

usage: python -m benchmarks.allocator.conv

One thread; CPU time of that thread, the best of 15 runs that take turns.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import torch

from benchmarks.allocator.conv_operands import COPIES_AND_CONVOLUTIONS, contiguous, kernels, pool_view
from benchmarks.allocator.frees import timed
from benchmarks.document import table

RUNS = 15
SLOTS = (64, 256)
CHANNELS = (512, 2048, 4096)


class Row(NamedTuple):
    """One kernel: bytes that it must read or write, and CPU microseconds on either state."""

    kernel: str
    slots: int
    channels: int
    bytes: int
    contiguous: float
    strided: float

    @property
    def ratio(self) -> float:
        return self.strided / self.contiguous


def rows(slots: int, channels: int) -> list[Row]:
    """Every kernel on either state, in turns."""
    view = pool_view(slots, channels, "cpu")
    dense, strided = kernels(contiguous(view)), kernels(view)
    found = []
    for name in COPIES_AND_CONVOLUTIONS:
        best = [float("inf")] * 2
        for _ in range(RUNS):
            best = [min(least, timed(each[name].run)) for least, each in zip(best, (dense, strided), strict=True)]
        found.append(Row(name, slots, channels, dense[name].bytes, *best))
    return found


def measure() -> list[Row]:
    """Every size. Compiles the kernels first, where they are not in the cache."""
    torch.set_num_threads(1)
    return [row for sizes in itertools.product(SLOTS, CHANNELS) for row in rows(*sizes)]


def told(found: Sequence[Row]) -> str:
    head = ("kernel", "slots", "channels", "MB", "contiguous, µs", "strided, µs", "strided, GB/s", "times")
    lines = [
        (
            row.kernel, row.slots, f"{row.channels:,}", f"{row.bytes / 1e6:.1f}", f"{row.contiguous:,.0f}",
            f"{row.strided:,.0f}", f"{row.bytes / row.strided / 1e3:.1f}", f"{row.ratio:.2f}",
        )
        for row in sorted(found)
    ]  # fmt: skip
    return table(head, lines)


if __name__ == "__main__":
    print(told(measure()))
