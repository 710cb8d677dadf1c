"""What the guard costs, beside plain CPU in one run: per operation, per training step, and to enter and leave.

usage: python -m benchmarks.guard_overhead

One thread. Each number is the best of several rounds in which the plain and the simulated call take turns.
"""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from nosync_lint.guard import guard

ROUNDS, CALLS = 7, 300
STEP_ROUNDS = 5


def operations(device: str) -> dict[str, Callable[[], Any]]:
    """Small calls on one device, by name."""
    x, y = torch.rand(8, 8, device=device), torch.rand(8, 8, device=device)
    index = torch.arange(4, device=device)
    return {
        "add": lambda: x + y,
        "add a number": lambda: x + 1.0,
        "mul_": lambda: x.mul_(1.0),
        "matmul": lambda: x @ y,
        "cat": lambda: torch.cat((x, y)),
        "sum": lambda: x.sum(),
        "where": lambda: torch.where(x > 2, x, y),
        "view": lambda: x[1:],
        "index": lambda: x[index],
        "index_fill_": lambda: x.index_fill_(0, index, 1.0),
        "zeros": lambda: torch.zeros(8, 8, device=device),
        "softmax": lambda: x.softmax(-1),
    }


def training_step(device: str) -> Callable[[], None]:
    """One step of a two-layer transformer of width 128."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dropout=0.0)
    net = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to(device)
    optimizer = torch.optim.AdamW(net.parameters())
    data = torch.rand(8, 32, 128).to(device)

    def step() -> None:
        optimizer.zero_grad()
        net(data).square().mean().backward()
        optimizer.step()

    return step


def best(call: Callable[[], Any], calls: int) -> float:
    """Seconds of one call."""
    return timeit.timeit(call, number=calls) / calls


def main() -> None:
    torch.set_num_threads(1)
    plain = operations("cpu")
    with guard():
        simulated = operations("cuda")
    times = {name: [float("inf")] * 2 for name in plain}
    for _ in range(ROUNDS):
        for name, pair in times.items():
            pair[0] = min(pair[0], best(plain[name], CALLS))
            with guard():
                pair[1] = min(pair[1], best(simulated[name], CALLS))
    for name, (without, with_guard) in times.items():
        print(f"{name:14} {without * 1e6:7.1f} us {with_guard * 1e6:7.1f} us {with_guard / without:5.1f}x")
    median = statistics.median(with_guard / without for without, with_guard in times.values())
    print(f"median of {len(times)} operations: {median:.1f}x")

    steps = [float("inf")] * 2
    with guard(h2d="allow"):
        on_host, on_device = training_step("cpu"), training_step("cuda")
        for _ in range(STEP_ROUNDS):
            steps[1] = min(steps[1], best(on_device, 3))
    for _ in range(STEP_ROUNDS):
        steps[0] = min(steps[0], best(on_host, 3))
    print(f"training step: {steps[0] * 1e3:.1f} ms {steps[1] * 1e3:.1f} ms {steps[1] / steps[0]:.1f}x")

    def enter_and_leave() -> None:
        with guard():
            pass

    print(f"enter and leave: {min(best(enter_and_leave, 50) for _ in range(ROUNDS)) * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
