"""g1: how long the host is in a free that is queued behind a forward of 20 milliseconds."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchmarks.allocator.pools import byte_pool, got
from benchmarks.gpu.report import Check, Part
from benchmarks.gpu.streams import Forward, host_micros, synchronize
from reference_allocator import BytePool, PageAllocator
from reference_allocator.naive import NaiveAllocator

BUSY = 20.0
"""Milliseconds."""
AT_MOST = 100
"""Microseconds."""
PAGE_SIZE, TOKENS = 64, 8192
RUNS, WARM_UP = 20, 3
WAYS: dict[str, Callable[[BytePool], PageAllocator]] = {
    "naive": lambda pool: NaiveAllocator(pool, "full", checked=False),
    "by position": lambda pool: PageAllocator(pool, "full", checked=False),
    "fused": lambda pool: PageAllocator(pool, "full", checked=False, profile="fused"),
}


class Timed(NamedTuple):
    """Microseconds of the host in each free."""

    way: str
    micros: Sequence[float]


def timed(device: str, way: str) -> Timed:
    """Frees of rows of the same length, each behind a forward of its own."""
    forward = Forward(device)
    allocator = WAYS[way](byte_pool(PAGE_SIZE, TOKENS // PAGE_SIZE + 2, device))
    micros = []
    for _ in range(WARM_UP + RUNS):
        row = got(allocator.alloc(TOKENS))
        synchronize(device)
        with forward.running():
            forward.busy(BUSY)
        forward.join()
        micros.append(host_micros(lambda row=row: allocator.free_segment(row, start_pos=0)))  # type: ignore[misc]
        synchronize(device)
    return Timed(way, micros[WARM_UP:])


def measure(device: str) -> Part:
    found = [timed(device, way) for way in WAYS]
    rows = [(one.way, *(f"{pick(one.micros):,.0f}" for pick in (min, statistics.median, max))) for one in found]
    checks = [_naive(one) if one.way == "naive" else _ours(one) for one in found]
    title = f"g1: microseconds of the host in a free of {TOKENS:,} tokens behind a forward of {BUSY:.0f} ms"
    return Part(title, ("free", "least", "median", "most"), list(rows), checks)


def _naive(one: Timed) -> Check:
    least = min(one.micros) / 1000
    return Check(f"the naive free waits at least {BUSY / 2:.0f} ms", f"{least:.1f} ms", least >= BUSY / 2)


def _ours(one: Timed) -> Check:
    middle = statistics.median(one.micros)
    return Check(f"a free {one.way} returns in less than {AT_MOST} µs", f"{middle:.0f} µs", middle < AT_MOST)
