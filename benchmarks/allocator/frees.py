"""Time and dispatches of a free by position, in both profiles, beside the naive one, and of `alloc_extend`, on a CPU.

usage: python -m benchmarks.allocator.frees

One thread; CPU time of that thread, the best of 60 runs that take turns, in five processes one after another.
Dispatches are operations that would launch or copy on a device, kernels of our own among them; syncs are those of them,
and of the reads, that would stop the host there. The fused profile needs g++, which runs before anything is timed.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import multiprocessing
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.allocator.pools import byte_pool, got
from benchmarks.document import table
from reference_allocator import PageAllocator
from reference_allocator.naive import NaiveAllocator
from reference_allocator.page_tables import Profile

Dispatches: Any = importlib.import_module("tests.reference_allocator.dispatches").Dispatches
"""Counts what is dispatched; the tests hold the table of costs to it."""

RUNS, ROUNDS = 60, 5
"""Runs of which the best counts, and processes that do all of this one after another."""
SIZES = tuple(itertools.product((1, 16, 64, 256), (1024, 8192, 131072)))
"""Page size, and tokens of the row that is freed."""
PAGES = 32
SAME_PAGES = tuple((page_size, page_size * PAGES) for page_size in (16, 64, 256, 1024))
"""The same, for a row of so many pages whatever a page holds."""
BATCHES = (1, 32, 256)
EXTEND_PAGE, BEFORE, AFTER = 64, 100, 164
"""Page size of the extensions, and tokens of each request before and after."""


class Cost(NamedTuple):
    """Of one call: CPU time in microseconds, dispatched operations, and those that would stop the host."""

    time: float
    dispatches: int
    syncs: int


class Free(NamedTuple):
    """The three frees of one row: `ours` in portable torch and by fused kernels."""

    page_size: int
    tokens: int
    naive: Cost
    ours: Cost
    fused: Cost

    @property
    def faster(self) -> float:
        return self.naive.time / self.ours.time

    @property
    def fused_faster(self) -> float:
        return self.naive.time / self.fused.time


class Extend(NamedTuple):
    """One extension of a batch, in portable torch and by fused kernels."""

    batch: int
    cost: Cost
    fused: Cost


class Round(NamedTuple):
    """What one process measured."""

    frees: list[Free]
    same_pages: list[Free]
    extends: list[Extend]

    @property
    def steady(self) -> float:
        """The dearest free by position over the cheapest, among rows of the same number of pages."""
        times = [one.ours.time for one in self.same_pages]
        return max(times) / min(times)

    @property
    def fused_steady(self) -> float:
        """The same by fused kernels."""
        times = [one.fused.time for one in self.same_pages]
        return max(times) / min(times)


def timed(call: Callable[[], object]) -> float:
    """CPU microseconds of this thread for one call, without garbage collection."""
    gc.disable()
    begun = time.thread_time_ns()
    call()
    taken = time.thread_time_ns() - begun
    gc.enable()
    return taken / 1000


def free(page_size: int, tokens: int) -> Free:
    """Allocates and frees two rows in each allocator, in turns. The second free of two finds its code in the caches.

    The pages of a row are zeroed when it is allocated, which for large pages leaves nothing else there.
    """
    pages = 2 * (tokens // page_size) + 2
    allocators = [
        NaiveAllocator(byte_pool(page_size, pages), "full", checked=False),
        PageAllocator(byte_pool(page_size, pages), "full", checked=False),
        PageAllocator(byte_pool(page_size, pages), "full", checked=False, profile="fused"),
    ]
    best = [float("inf")] * len(allocators)
    for _ in range(RUNS):
        for at, allocator in enumerate(allocators):
            for call in [_free_of(allocator, tokens) for _ in range(2)]:
                best[at] = min(best[at], timed(call))
    costs = []
    for time_taken, allocator in zip(best, allocators, strict=True):
        call = _free_of(allocator, tokens)
        with Dispatches() as seen:
            call()
        costs.append(Cost(time_taken, seen.launches, len(seen.syncs)))
    return Free(page_size, tokens, *costs)


def _free_of(allocator: PageAllocator, tokens: int) -> Callable[[], object]:
    row = got(allocator.alloc(tokens))
    return lambda: allocator.free_segment(row, start_pos=0)


def extend(batch: int) -> Extend:
    """Extends every request of a batch by one page, in either profile."""
    return Extend(batch, _extend_in("portable", batch), _extend_in("fused", batch))


def _extend_in(profile: Profile, batch: int) -> Cost:
    """Extends and takes that back, time after time."""
    allocator = PageAllocator(byte_pool(EXTEND_PAGE, 4 * batch + 2), "full", checked=False, profile=profile)
    none, before, after = (_lengths(batch, length) for length in (0, BEFORE, AFTER))
    rows = got(allocator.alloc_extend(none, none.clone(), before, before.clone(), none - 1, batch * BEFORE))
    last = rows.view(batch, BEFORE)[:, -1].contiguous()
    before_cpu, after_cpu = before.clone(), after.clone()

    def call() -> Tensor:
        return got(allocator.alloc_extend(before, before_cpu, after, after_cpu, last, batch * (AFTER - BEFORE)))

    best = float("inf")
    for _ in range(RUNS):
        state = allocator.backup()
        best = min(best, timed(call))
        allocator.restore(state)
    with Dispatches(before_cpu, after_cpu) as seen:
        call()
    return Cost(best, seen.launches, len(seen.syncs))


def _lengths(batch: int, length: int) -> Tensor:
    return torch.full((batch,), length, dtype=torch.int64)


def measured(_: int = 0) -> Round:
    """Every size and every batch once, in one thread."""
    torch.set_num_threads(1)
    sized, same = ([free(*size) for size in sizes] for sizes in (SIZES, SAME_PAGES))
    return Round(sized, same, [extend(batch) for batch in BATCHES])


def measure() -> list[Round]:
    """Rounds one after another, each in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as processes:
        return list(processes.map(measured, range(ROUNDS)))


def span(values: Iterable[float], digits: int = 0) -> str:
    """The least and the most of some values."""
    texts = [f"{value:,.{digits}f}" for value in sorted(values)]
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}"


def told(rounds: Sequence[Round]) -> str:
    """The tables, with the least and the most of all rounds."""
    extended = [
        (
            same[0].batch,
            *(span(one.cost[at] for one in same) for at in range(3)),
            *(span(one.fused[at] for one in same) for at in range(3)),
        )
        for same in zip(*(one.extends for one in rounds), strict=True)
    ]
    return "\n\n".join(
        [
            _side_by_side([one.frees for one in rounds]),
            f"A row of {PAGES} pages, whatever a page holds:",
            _side_by_side([one.same_pages for one in rounds]),
            f"`alloc_extend` for requests that grow from {BEFORE} to {AFTER} tokens, pages of {EXTEND_PAGE}:",
            table(
                ("requests", "µs", "dispatches", "syncs", "fused, µs", "dispatches, fused", "syncs, fused"), extended
            ),
        ]
    )


def _side_by_side(rounds: Sequence[Sequence[Free]]) -> str:
    head = (
        "page size", "tokens", "naive, µs", "by position, µs", "times faster", "fused, µs", "times faster",
        "dispatches, naive", "syncs, naive", "dispatches, by position", "syncs, by position",
        "dispatches, fused", "syncs, fused",
    )  # fmt: skip
    rows = [
        (
            same[0].page_size, f"{same[0].tokens:,}", span(one.naive.time for one in same),
            span(one.ours.time for one in same), span((one.faster for one in same), 1),
            span(one.fused.time for one in same), span((one.fused_faster for one in same), 1),
            *(span(one.naive[at] for one in same) for at in (1, 2)),
            *(span(one.ours[at] for one in same) for at in (1, 2)),
            *(span(one.fused[at] for one in same) for at in (1, 2)),
        )
        for same in zip(*rounds, strict=True)
    ]  # fmt: skip
    return table(head, rows)


if __name__ == "__main__":
    print(told(measure()))
