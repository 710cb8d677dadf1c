"""A full compaction planned on the device and one planned on the host, side by side, on a CPU.

usage: python -m benchmarks.allocator.packs

One thread; CPU time of that thread, the best of 30 runs that take turns. Dispatches and syncs as in `frees`.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from benchmarks.allocator.frees import Cost, Dispatches, timed
from benchmarks.allocator.pools import byte_pool, got
from benchmarks.document import table
from reference_allocator import PageAllocator
from reference_allocator.end_band import EndBand
from reference_allocator.naive import pack_host_planned

RUNS = 30
PAGE_SIZE = 16
"""Tokens; a page is one kilobyte here, so that the plan is seen and not only the copy."""
PAGES = (512, 8192)
FREED = (10, 50, 90)
"""Pages that are allocated, and how many of a hundred are freed again, at random, before everything is packed."""


class Pack(NamedTuple):
    """The two compactions of one state."""

    pages: int
    freed: int
    naive: Cost
    ours: Cost


class Fragmented:
    """An allocator whose pages are freed at random, the same ones every time."""

    def __init__(self, pages: int, freed: int, device: str = "cpu") -> None:
        self.allocator = PageAllocator(byte_pool(PAGE_SIZE, pages + 2, device), "full", checked=False)
        if not isinstance(self.allocator.band, EndBand):
            raise TypeError("only pools at an end are packed either way")
        self.band = self.allocator.band
        self.tokens = pages * PAGE_SIZE
        chosen = random.Random(pages + freed).sample(range(pages), pages * freed // 100)
        self.holes = torch.tensor(chosen, device=device)

    def fragment(self) -> None:
        """Everything is allocated anew, and the same pages are freed."""
        self.allocator.clear()
        row = got(self.allocator.alloc(self.tokens))
        self.allocator.free_segment(row.view(-1, PAGE_SIZE)[self.holes].view(-1), start_pos=0)

    def naive(self) -> Callable[[], int]:
        self.fragment()
        return lambda: pack_host_planned(self.band, self.holes.numel())

    def ours(self) -> Callable[[], int]:
        self.fragment()
        return lambda: self.band.pack(self.holes.numel())


def pack(pages: int, freed: int) -> Pack:
    """Packs the same state either way, in turns."""
    state = Fragmented(pages, freed)
    ways = (state.naive, state.ours)
    best = [float("inf")] * len(ways)
    for _ in range(RUNS):
        best = [min(least, timed(way())) for least, way in zip(best, ways, strict=True)]
    costs = []
    for least, way in zip(best, ways, strict=True):
        call = way()
        with Dispatches() as seen:
            call()
        costs.append(Cost(least, seen.count, len(seen.syncs)))
    return Pack(pages, freed, *costs)


def measure() -> list[Pack]:
    """Every size at every fragmentation, in one thread."""
    torch.set_num_threads(1)
    return list(itertools.starmap(pack, itertools.product(PAGES, FREED)))


def told(packs: Sequence[Pack]) -> str:
    head = (
        "pages", "freed", "on the host, µs", "on the device, µs", "dispatches, host", "syncs, host",
        "dispatches, device", "syncs, device",
    )  # fmt: skip
    rows = [
        (
            f"{one.pages:,}", f"{one.freed} %", f"{one.naive.time:,.0f}", f"{one.ours.time:,.0f}",
            *one.naive[1:], *one.ours[1:],
        )
        for one in packs
    ]  # fmt: skip
    return table(head, rows)


if __name__ == "__main__":
    print(told(measure()))
