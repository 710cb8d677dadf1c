"""g5: a compaction on a stream of its own while a forward reads and writes the pages that are to move."""

from __future__ import annotations

import random
from typing import NamedTuple

import torch

from benchmarks.allocator.pools import LAYERS, byte_pool, got
from benchmarks.gpu.report import Check, Part
from benchmarks.gpu.streams import Forward, host_micros, synchronize
from reference_allocator import PageAllocator
from reference_allocator.streams import SideStream
from reference_allocator.verify import verify

BUSY = 5.0
"""Milliseconds before the forward reads and writes."""
PAGE_SIZE, PAGES = 16, 1024
ROUNDS = 10
AT_MOST = 2000
"""Microseconds of the host in a compaction: less than half of what the forward takes."""


class Round(NamedTuple):
    """Pages given back, host microseconds, tokens that the forward and the next one read wrongly, broken invariants."""

    pages: int
    micros: float
    wrong_during: int
    wrong_after: int
    broken: list[str]


def compacted(device: str, seed: int, *, waits: bool = True) -> Round:
    """One forward and one compaction of everything. Without `waits` the compaction does not know of the forward."""
    pool = byte_pool(PAGE_SIZE, PAGES + 2, device)
    side = SideStream(pool.device) if device == "cuda" else None
    allocator = PageAllocator(pool, "full", checked=False, side=side)
    keys = pool.kv_layer("full", LAYERS["full"] - 1)[0][:, 0, 0]
    row = got(allocator.alloc(PAGES * PAGE_SIZE)).view(PAGES, PAGE_SIZE)
    order = random.Random(seed).sample(range(PAGES), PAGES)
    gone, kept = (torch.tensor(sorted(part), device=device) for part in (order[: PAGES // 2], order[PAGES // 2 :]))
    allocator.free_segment(row[gone].view(-1), start_pos=0)
    live = row[kept].view(-1)
    before, after = live + 1, -live
    keys[allocator.translate(live)] = before
    forward = Forward(device)
    allocator.band.prewarm()
    synchronize(device)
    physical = allocator.translate(live)
    with forward.running():
        forward.busy(BUSY)
        read = keys[physical]
        keys.index_copy_(0, physical, after)
    allocator.band.fwd_event = forward.event() if waits else None
    micros = host_micros(lambda: allocator.band.pack(allocator.band.hole_count))
    moved = keys[allocator.translate(live)]
    synchronize(device)
    during, later = (int((one != expected).sum()) for one, expected in ((read, before), (moved, after)))
    return Round(gone.numel(), micros, during, later, verify(allocator))


def measure(device: str) -> Part:
    rounds = [compacted(device, seed) for seed in range(ROUNDS)]
    part = Part(
        "g5: a compaction on a side stream under a forward that reads and writes late",
        ("pages given back", "host, µs", "wrong tokens during", "wrong tokens after", "broken invariants"),
        [(one.pages, f"{one.micros:,.0f}", one.wrong_during, one.wrong_after, len(one.broken)) for one in rounds],
    )
    wrong = sum(one.wrong_during + one.wrong_after + len(one.broken) for one in rounds)
    part.checks.append(Check(f"nothing wrong in {ROUNDS} compactions", str(wrong), wrong == 0))
    if device == "cuda":
        least = min(one.micros for one in rounds)
        part.checks.append(Check(f"the host is less than {AT_MOST} µs in one", f"{least:.0f} µs", least < AT_MOST))
        blind = compacted(device, 0, waits=False)
        part.checks.append(
            Check(
                "without the wait, tokens are wrong: the check can fail", str(blind.wrong_after), blind.wrong_after > 0
            )
        )
    return part
