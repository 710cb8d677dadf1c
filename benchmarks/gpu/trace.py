"""g2: random calls while torch raises an error wherever a call would make the host wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from benchmarks.allocator.churn import Case, Churn, Watch
from benchmarks.gpu.report import Check, Part
from reference_allocator.verify import verify

CALLS, VERIFIED_EVERY = 2000, 500
CASES = [Case(page_size, pools, eager) for page_size in (1, 16) for pools in (1, 2, 3) for eager in (False, True)]


@contextmanager
def raising(*host: Tensor) -> Iterator[Callable[[], int]]:
    """A `Watch` on CUDA: torch raises `RuntimeError` where the host would wait. Process-wide while it is open."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield lambda: 0
    finally:
        torch.cuda.set_sync_debug_mode("default")


def traced(device: str, case: Case, watch: Watch, calls: int) -> tuple[int, list[str]]:
    """Calls made, and broken invariants by then. Raises where `watch` does."""
    churn = Churn(case, watch, device)
    broken: list[str] = []
    while churn.calls < calls:
        churn.run(min(calls, churn.calls + VERIFIED_EVERY))
        broken += verify(churn.allocator)
    return churn.calls, broken


def measure(device: str) -> Part:
    part = Part(
        "g2: random calls under sync debug mode `error`; the tables are verified between them",
        ("page size", "pools", "compaction", "calls", "broken invariants"),
    )
    made, broken = 0, list[str]()
    for case in CASES:
        calls, problems = traced(device, case, raising, CALLS)
        part.rows.append((case.page_size, case.pools, "eager" if case.eager else "lazy", calls, len(problems)))
        made, broken = made + calls, broken + problems
    aim = f"no wait and no broken invariant in {made:,} calls"
    part.checks.append(Check(aim, broken[0] if broken else "none", not broken))
    return part
