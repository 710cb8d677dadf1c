"""What a call of a kernel costs the host, through ctypes and through tvm-ffi; the state is as small as it gets.

usage: python -m benchmarks.allocator.bindings

One thread; CPU time of that thread, the best of 5 rounds of 500 calls each, in turns. Needs the extra `tvm-ffi`.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import torch

from benchmarks.allocator.conv_operands import ALL, kernels, pool_view
from benchmarks.allocator.frees import timed
from benchmarks.document import table
from reference_allocator import abi, ffi

ROUNDS, CALLS = 5, 500
SLOTS, CHANNELS = 1, 8
WAYS = (abi.call, ffi.call)


class Row(NamedTuple):
    """One kernel: its tensors, and CPU microseconds of a call either way."""

    kernel: str
    tensors: int
    ctypes: float
    tvm_ffi: float


def available() -> bool:
    """Whether tvm-ffi is installed. Imports nothing."""
    return importlib.util.find_spec("tvm_ffi") is not None


def version() -> str:
    """Of tvm-ffi."""
    return importlib.metadata.version("apache-tvm-ffi")


def measure() -> list[Row]:
    """Every kernel. Compiles both libraries first, where they are not in the cache."""
    torch.set_num_threads(1)
    return [_row(name, kernel.run) for name, kernel in kernels(pool_view(SLOTS, CHANNELS, "cpu"), ALL).items()]


def _row(name: str, run: partial[None]) -> Row:
    best = [float("inf")] * len(WAYS)
    for _ in range(ROUNDS):
        for at, way in enumerate(WAYS):
            best[at] = min(best[at], timed(lambda way=way: [run(via=way) for _ in range(CALLS)]) / CALLS)  # type: ignore[misc]
    return Row(name, sum(isinstance(given, torch.Tensor) for given in run.args), *best)


def told(rows: Sequence[Row]) -> str:
    lines = [(row.kernel, row.tensors, f"{row.ctypes:.1f}", f"{row.tvm_ffi:.1f}") for row in rows]
    return table(("kernel", "tensors", "ctypes, µs", "tvm-ffi, µs"), lines)


if __name__ == "__main__":
    print(told(measure()))
