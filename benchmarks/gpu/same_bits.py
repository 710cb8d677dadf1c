"""g6: every kernel of the device build leaves the bits that the host build leaves."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from benchmarks.allocator.conv_operands import Kernel, contiguous, kernels, pool_view
from benchmarks.gpu.report import Check, Part

SIZES = ((7, 64), (33, 520), (5, 4096))
"""Slots and channels; a multiple of 8, as the all-reduce kernels want it."""


def differing(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> int:
    """Elements whose bits differ."""
    return sum(
        int((one.cpu().contiguous().view(torch.int16) != other.cpu().contiguous().view(torch.int16)).sum())
        for one, other in zip(ours, theirs, strict=True)
    )


def compared(device: str, slots: int, channels: int, *, strided: bool) -> dict[str, int]:
    """Elements that differ, by kernel, each run once on either side, one after another on one state."""
    views = [pool_view(slots, channels, where) for where in ("cpu", device)]
    host, other = (kernels(view if strided else contiguous(view)) for view in views)
    found = {}
    for name in host:
        run(host[name], other[name])
        found[name] = differing(host[name].written, other[name].written)
    return found


def run(*pair: Kernel) -> None:
    for kernel in pair:
        kernel.run()


def measure(device: str) -> Part:
    part = Part("g6: elements whose bits differ between the device and the host", ("slots", "channels", "state"))
    names: list[str] = []
    total = 0
    for slots, channels in SIZES:
        for strided in (False, True):
            found = compared(device, slots, channels, strided=strided)
            names, total = list(found), total + sum(found.values())
            part.rows.append((slots, channels, "strided" if strided else "contiguous", *found.values()))
    part.checks.append(Check(f"the same bits from {len(names)} kernels", f"{total} differ", total == 0))
    return Part(part.title, (*part.head, *names), part.rows, part.checks)
