"""g7: random calls by fused kernels on the device leave the tables, lists and ids of portable torch on the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor

from benchmarks.allocator.churn import Case, Churn
from benchmarks.gpu.report import Check, Part
from benchmarks.gpu.trace import raising
from reference_allocator import PageAllocator
from reference_allocator.verify import verify

CALLS = 400
CASES = [Case(page_size, pools, eager) for page_size in (1, 16) for pools in (1, 2, 3) for eager in (False, True)]


@contextmanager
def unwatched(*_: Tensor) -> Iterator[Callable[[], int]]:
    """A `Watch` that sees nothing: the host does not wait for itself."""
    yield lambda: 0


def state(churn: Churn) -> list[list[int]]:
    """Tables, holes and free ids of every pool, and the tokens of every request."""
    allocator = churn.allocator
    owner = allocator if isinstance(allocator, PageAllocator) else allocator.full
    tensors = [tensor for band in allocator.bands for tensor in (band.v2p, band.p2v, band.holes)]
    return [tensor.tolist() for tensor in (*tensors, owner.free_vids, *(one.tokens for one in churn.requests))]


def differing(device: str, case: Case, calls: int) -> tuple[int, list[str]]:
    """Lists that differ after so many calls, and invariants that are broken. Raises where the device makes wait."""
    host = Churn(case, unwatched)
    other = Churn(case, raising if device == "cuda" else unwatched, device, profile="fused")
    for churn in (host, other):
        churn.run(calls)
    pairs = zip(state(host), state(other), strict=True)
    return sum(one != another for one, another in pairs), verify(other.allocator)


def measure(device: str) -> Part:
    part = Part(
        "g7: lists that differ between fused kernels on the device and portable torch on the host",
        ("page size", "pools", "compaction", "calls", "differ", "broken invariants"),
    )
    total = 0
    for case in CASES:
        found, broken = differing(device, case, CALLS)
        part.rows.append((case.page_size, case.pools, "eager" if case.eager else "lazy", CALLS, found, len(broken)))
        total += found + len(broken)
    part.checks.append(
        Check(f"the same tables after {CALLS} calls in {len(CASES)} cases", f"{total} differ", total == 0)
    )
    return part
