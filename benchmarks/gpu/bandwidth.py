"""g4: the conv-state kernels on the view of a state pool and on a contiguous state: bytes per second."""

from __future__ import annotations

from benchmarks.allocator.conv_operands import COPIES_AND_CONVOLUTIONS, contiguous, kernels, pool_view
from benchmarks.gpu.report import Check, Part
from benchmarks.gpu.streams import Forward, device_micros

SIZES = ((1024, 2048), (8192, 4096))
"""Slots and channels; of the last, which no cache holds, the ratios are checked."""
WITHIN = 1.05
ROUNDS, RUNS = 5, 20


def micros(device: str, slots: int, channels: int) -> dict[str, tuple[int, float, float]]:
    """By kernel: bytes, and microseconds of one call on a contiguous state and on a view; best of the rounds."""
    view, forward = pool_view(slots, channels, device), Forward(device)
    states = [kernels(state, COPIES_AND_CONVOLUTIONS) for state in (contiguous(view), view)]
    best = {name: [float("inf")] * 2 for name in COPIES_AND_CONVOLUTIONS}
    for _ in range(ROUNDS):
        for name, least in best.items():
            for at, each in enumerate(states):
                least[at] = min(least[at], device_micros(device, each[name].run, forward, RUNS))
    return {name: (states[0][name].bytes, *least) for name, least in best.items()}  # type: ignore[misc]


def measure(device: str) -> Part:
    part = Part(
        "g4: kernels on contiguous and on strided states",
        ("kernel", "slots", "channels", "MB", "contiguous, GB/s", "strided, GB/s", "times slower"),
    )
    for slots, channels in SIZES:
        found = micros(device, slots, channels)
        part.rows.extend(
            (name, slots, channels, f"{size / 1e6:.0f}", f"{size / dense / 1e3:,.0f}", f"{size / strided / 1e3:,.0f}",
             f"{strided / dense:.3f}")
            for name, (size, dense, strided) in found.items()
        )  # fmt: skip
    worst = max(strided / dense for _, dense, strided in found.values())
    aim = f"strided within {WITHIN - 1:.0%} of contiguous, {slots:,} slots of {channels:,} channels"
    part.checks.append(Check(aim, f"{worst:.3f} times at most", worst <= WITHIN))
    return part
