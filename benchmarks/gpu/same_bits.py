"""g6: every kernel of the device build leaves the bits that the host build leaves."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from benchmarks.allocator.bindings import available
from benchmarks.allocator.conv_operands import contiguous, kernels, pool_view
from benchmarks.gpu.report import Check, Part
from reference_allocator import abi, ffi
from reference_allocator.abi import Call

SIZES = ((7, 64), (33, 520), (5, 4096))
"""Slots and channels; a multiple of 8, as the all-reduce kernels want it."""


def differing(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> int:
    """Elements whose bits differ."""
    return sum(
        int((one.cpu().contiguous().view(torch.int16) != other.cpu().contiguous().view(torch.int16)).sum())
        for one, other in zip(ours, theirs, strict=True)
    )


def compared(device: str, slots: int, channels: int, way: Call, *, strided: bool) -> dict[str, int]:
    """Elements that differ, by kernel, each run once on either side, one after another on one state."""
    views = [pool_view(slots, channels, where) for where in ("cpu", device)]
    host, other = (kernels(view if strided else contiguous(view)) for view in views)
    found = {}
    for name in host:
        host[name].run()
        other[name].run(via=way)
        found[name] = differing(host[name].written, other[name].written)
    return found


def measure(device: str) -> Part:
    part = Part(
        "g6: elements whose bits differ between the device and the host", ("slots", "channels", "state", "called by")
    )
    names: list[str] = []
    total = 0
    ways = {"ctypes": abi.call, **({"tvm-ffi": ffi.call} if available() else {})}
    for (slots, channels), strided, way in itertools.product(SIZES, (False, True), ways):
        found = compared(device, slots, channels, ways[way], strided=strided)
        names, total = list(found), total + sum(found.values())
        part.rows.append((slots, channels, "strided" if strided else "contiguous", way, *found.values()))
    part.checks.append(Check(f"the same bits from {len(names)} kernels", f"{total} differ", total == 0))
    return Part(part.title, (*part.head, *names), part.rows, part.checks)
