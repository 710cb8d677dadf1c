"""Ten thousand random calls per case, and the invariants of the tables after each.

usage: python -m benchmarks.allocator.churn [CALLS]

Requests come, grow, decode, lose their window, are recovered and go, in free groups and out of them, on a pool so small
that it runs full again and again. Compared as well, after every step: what live tokens hold, with what was written.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from benchmarks.allocator.contents import Contents, Request
from benchmarks.allocator.pools import byte_pool
from benchmarks.document import table
from reference_allocator import PageAllocator, SWAComposite
from reference_allocator.band import Band
from reference_allocator.recovery import recover_locked_full
from reference_allocator.verify import verify

CALLS = 10_000
PAGE_SIZES = (1, 16, 64, 256)
PAGES = 128
LONGEST = 8
"""Pages of the longest request that is admitted."""
WINDOW = 2
"""Pages that stay in the window."""
Result = TypeVar("Result")


class Case(NamedTuple):
    """`pools`: 1 for full attention alone, 2 with a sliding window."""

    page_size: int
    pools: int
    eager: bool


class Row(NamedTuple):
    """What came of a case: calls made, those without room, broken invariants, the first of them, CPU seconds."""

    case: Case
    calls: int
    refused: int
    broken: int
    first: str
    seconds: float


class Churn:
    """One case while it runs."""

    def __init__(self, case: Case) -> None:
        self.chance = random.Random(repr(case))
        self.size = case.page_size
        pool = byte_pool(case.page_size, PAGES)
        self.allocator: PageAllocator | SWAComposite
        self.bands: tuple[Band, ...]
        if case.pools == 1:
            self.allocator = PageAllocator(pool, "full", eager=case.eager, checked=False)
            self.bands = (self.allocator.band,)
        else:
            self.allocator = SWAComposite(pool, eager=case.eager, checked=False)
            self.bands = self.allocator.bands
        self.contents = Contents(pool, self.allocator)
        self.requests: list[Request] = []
        self.calls = self.refused = self.broken = 0
        self.first = ""
        acts: dict[Callable[[], None], int] = {
            self.alloc: 3, self.admit: 9, self.extend: 4, self.decode: 6, self.finish: 6, self.cut: 2,
            self.group: 2, self.pack: 2, self.ratchet: 4, self.recover: 2,
        }  # fmt: skip
        self.acts = list(itertools.chain.from_iterable([act] * weight for act, weight in acts.items()))

    def run(self, calls: int) -> None:
        while self.calls < calls:
            act = self.chance.choice(self.acts)
            act()
            self.note(act.__name__, self.contents.broken(self.requests))

    def call(self, use: Callable[..., Result], *args: object, **named: object) -> Result:
        """One counted call, and what it broke."""
        result = use(*args, **named)
        self.calls += 1
        self.refused += result is None and use.__name__.startswith("alloc")
        self.note(use.__name__, verify(self.allocator))
        return result

    def note(self, after: str, broken: Sequence[str]) -> None:
        if broken and not self.first:
            self.first = f"{after}, call {self.calls}: {broken[0]}"
        self.broken += len(broken)

    def any_request(self) -> Request | None:
        return self.chance.choice(self.requests) if self.requests else None

    # Coming and growing.

    def alloc(self) -> None:
        tokens = self.call(self.allocator.alloc, self.chance.randint(1, LONGEST) * self.size)
        if tokens is not None:
            self.requests.append(Request())
            self.append(self.requests[-1:], [tokens])

    def admit(self) -> None:
        request = Request()
        if self.grow([request], [self.chance.randint(1, LONGEST * self.size)]):
            self.requests.append(request)

    def extend(self) -> None:
        grown = self.chance.sample(self.requests, min(3, len(self.requests)))
        by = [self.chance.randint(1, 2 * self.size) for _ in grown]
        if grown:
            self.grow(grown, by)

    def grow(self, requests: Sequence[Request], by: Sequence[int]) -> bool:
        before = torch.tensor([request.tokens.numel() for request in requests])
        after = before + torch.tensor(by)
        ends = [request.tokens[-1:] if request.tokens.numel() else torch.tensor([-1]) for request in requests]
        host = before.clone(), after.clone()
        new = self.call(self.allocator.alloc_extend, before, host[0], after, host[1], torch.cat(ends), sum(by))
        if new is None:
            return False
        self.append(requests, torch.split(new, list(by)))
        return True

    def decode(self) -> None:
        if not self.requests:
            return
        lens = torch.tensor([request.tokens.numel() + 1 for request in self.requests])
        last = torch.cat([request.tokens[-1:] for request in self.requests])
        new = self.call(self.allocator.alloc_decode, lens, lens.clone(), last)
        if new is not None:
            self.append(self.requests, torch.split(new, 1))

    def append(self, requests: Sequence[Request], new: Sequence[Tensor]) -> None:
        for request, tokens in zip(requests, new, strict=True):
            marks = self.contents.new(tokens.numel())
            self.contents.write(tokens, marks)
            request.append(tokens, marks)

    # Going.

    def finish(self) -> None:
        if self.requests:
            self.free(self.requests.pop(self.chance.randrange(len(self.requests))), 0)

    def cut(self) -> None:
        """Frees the end of a request, as after rejected drafts."""
        request = self.any_request()
        if request is None or request.tokens.numel() <= self.size:
            return
        at = self.chance.randrange(1, -(-request.tokens.numel() // self.size)) * self.size
        self.free(request, at)
        request.cut(at)

    def free(self, request: Request, start: int) -> None:
        """Frees from a position on: in one segment, or in two that meet at some page."""
        pages = -(-(request.tokens.numel() - start) // self.size)
        middle = start + self.chance.randint(0, pages - 1) * self.size
        segments = [(request.tokens[start:middle], start), (request.tokens[middle:], middle)]
        if isinstance(self.allocator, SWAComposite):
            self.call(self.allocator.free_row, segments, swa_frontier=request.cursor)
        elif middle == start:
            self.call(self.allocator.free_segment, request.tokens[start:], start_pos=start)
        else:
            self.call(self.allocator.free_segments, segments)

    def group(self) -> None:
        open_or_close = ("free_group_begin", "free_group_end")[self.allocator.group_is_open]
        self.call(getattr(self.allocator, open_or_close))

    # What moves and what the window does.

    def pack(self) -> None:
        band = self.chance.choice(self.bands)
        self.call(band.pack, self.chance.randint(0, band.hole_count))

    def ratchet(self) -> None:
        request = self.any_request()
        if request is not None and isinstance(self.allocator, SWAComposite):
            tokens = request.tokens
            window = WINDOW * self.size
            request.cursor = self.call(
                self.allocator.advance_window, tokens, request.cursor, tokens.numel(), window=window
            )

    def recover(self) -> None:
        """A request whose window has gone on takes the window pages of a new one with the same marks."""
        node = next((request for request in self.requests if request.cursor), None)
        incoming = Request()
        if node is None or not isinstance(self.allocator, SWAComposite) or not self.grow([incoming], [node.cursor]):
            return
        self.contents.write(incoming.tokens, node.marks[: node.cursor])
        kept = node.tokens[: node.cursor]
        self.call(recover_locked_full, self.allocator, kept, incoming.tokens, start_pos=0)
        node.cursor = 0


def churned(case: Case, calls: int) -> Row:
    """Runs a case to its end, in one thread."""
    torch.set_num_threads(1)
    begun = time.process_time()
    churn = Churn(case)
    churn.run(calls)
    return Row(case, churn.calls, churn.refused, churn.broken, churn.first, time.process_time() - begun)


def measure(calls: int = CALLS) -> list[Row]:
    """Every case, in as many processes as there are processors."""
    cases = [Case(*one) for one in itertools.product(PAGE_SIZES, (1, 2), (False, True))]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), mp_context=context) as processes:
        return list(processes.map(churned, cases, itertools.repeat(calls)))


def told(rows: Sequence[Row]) -> str:
    """A table, and the first invariant that each case broke."""
    head = ("page size", "pools", "compaction", "calls", "without room", "broken invariants", "CPU seconds")
    lines = [
        (size, pools, "eager" if eager else "lazy", f"{calls:,}", f"{refused:,}", broken, f"{seconds:.0f}")
        for (size, pools, eager), calls, refused, broken, _, seconds in rows
    ]
    return "\n\n".join([table(head, lines), *(f"- {row.case}: {row.first}" for row in rows if row.first)])


if __name__ == "__main__":
    print(told(measure(*map(int, sys.argv[1:2]))))
