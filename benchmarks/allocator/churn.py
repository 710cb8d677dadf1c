"""Ten thousand random calls per case; after each, the invariants of the tables, and what would have stopped the host.

usage: python -m benchmarks.allocator.churn [CALLS]

Requests come, grow, decode, lose their window, are recovered and go, in free groups and out of them, on a pool so small
that it runs full again and again; with three pools they take state slots too. Compared as well, after every step: what
live tokens and slots hold, with what was written. On the device of the stub runtime, where memory holds nothing, the
same calls are made, and only waits are counted.
"""

from __future__ import annotations

import importlib
import itertools
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from benchmarks.allocator.contents import Contents, Request
from benchmarks.allocator.pools import byte_pool
from benchmarks.document import table
from reference_allocator import PageAllocator, SWAComposite, SWAMambaComposite
from reference_allocator.float_band import FloatBand
from reference_allocator.page_tables import Profile
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
    """`pools`: 1 for full attention alone, 2 with a sliding window, 3 with state slots as well."""

    page_size: int
    pools: int
    eager: bool


class Row(NamedTuple):
    """What came of a case: calls, those without room, waits, broken invariants, the first of them, CPU seconds."""

    case: Case
    calls: int
    refused: int
    waits: int
    broken: int
    first: str
    seconds: float


class Watch(Protocol):
    """Counts what would stop the host, or does. `host` are tensors in CPU memory that may be read."""

    def __call__(self, *host: Tensor) -> AbstractContextManager[Callable[[], int]]:
        """Around one call; what it gives tells the count once the call is over."""


@contextmanager
def dispatched(*host: Tensor) -> Iterator[Callable[[], int]]:
    """A `Watch` on a CPU: what reaches the dispatcher and would stop the host on a device.

    Counted as the tests of the table of costs count it; on the stub runtime, `on_cuda` watches otherwise."""
    tests: Any = importlib.import_module("tests.reference_allocator.dispatches")
    with tests.Dispatches(*host) as seen:
        yield lambda: len(seen.syncs)


class Churn:
    """One case while it runs. On a device other than the CPU nothing is compared, as that would wait for it."""

    def __init__(
        self, case: Case, watch: Watch = dispatched, device: str = "cpu", profile: Profile = "portable"
    ) -> None:
        self.chance = random.Random(repr(case))
        self.size = case.page_size
        self.watch = watch
        self.device = device
        pool = byte_pool(case.page_size, PAGES, device, pools=max(2, case.pools))
        self.allocator: PageAllocator | SWAComposite
        if case.pools == 1:
            self.allocator = PageAllocator(pool, "full", eager=case.eager, checked=False, profile=profile)
        else:
            kind = SWAComposite if case.pools == 2 else SWAMambaComposite
            self.allocator = kind(pool, eager=case.eager, checked=False, profile=profile)
        self.contents = Contents(pool, self.allocator)
        self.requests: list[Request] = []
        self.slots: list[tuple[Tensor, Tensor]] = []
        self.calls = self.refused = self.waits = self.broken = 0
        self.first = ""
        acts: dict[Callable[[], None], int] = {
            self.alloc: 3, self.admit: 9, self.extend: 4, self.decode: 6, self.finish: 6, self.cut: 2,
            self.group: 2, self.pack: 2, self.ratchet: 4, self.recover: 2, self.take_slots: 4, self.give_slots: 3,
            self.checkpoint: 1,
        }  # fmt: skip
        self.acts = list(itertools.chain.from_iterable([act] * weight for act, weight in acts.items()))

    def run(self, calls: int) -> None:
        while self.calls < calls:
            act = self.chance.choice(self.acts)
            act()
            if self.device == "cpu":
                slots, marks = zip(*self.slots, strict=True) if self.slots else ((), ())
                self.note(act.__name__, self.contents.broken(self.requests) + self.contents.broken_state(slots, marks))

    def call(self, use: Callable[..., Result], *args: object, **named: object) -> Result:
        """One counted call, how often it waits, and what it broke."""
        with self.watch(*(arg for arg in args if isinstance(arg, Tensor))) as waits:
            result = use(*args, **named)
        self.calls += 1
        self.refused += result is None and use.__name__.startswith("alloc")
        if found := waits():
            self.waits += found
            self.first = self.first or f"{use.__name__}, call {self.calls}: {found} waits"
        if self.device == "cpu":
            self.note(use.__name__, verify(self.allocator))
        return result

    def note(self, after: str, broken: Sequence[str]) -> None:
        if broken and not self.first:
            self.first = f"{after}, call {self.calls}: {broken[0]}"
        self.broken += len(broken)

    def ids(self, values: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Numbers on the device, and in CPU memory."""
        host = torch.tensor(values, dtype=torch.int64)
        return host.clone().to(self.device), host

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
        before, before_cpu = self.ids([request.tokens.numel() for request in requests])
        after, after_cpu = self.ids([request.tokens.numel() + more for request, more in zip(requests, by, strict=True)])
        none = self.ids([-1])[0]
        last = torch.cat([request.tokens[-1:] if request.tokens.numel() else none for request in requests])
        new = self.call(self.allocator.alloc_extend, before, before_cpu, after, after_cpu, last, sum(by))
        if new is None:
            return False
        self.append(requests, torch.split(new, list(by)))
        return True

    def decode(self) -> None:
        if not self.requests:
            return
        lens, lens_cpu = self.ids([request.tokens.numel() + 1 for request in self.requests])
        last = torch.cat([request.tokens[-1:] for request in self.requests])
        new = self.call(self.allocator.alloc_decode, lens, lens_cpu, last)
        if new is not None:
            self.append(self.requests, torch.split(new, 1))

    def append(self, requests: Sequence[Request], new: Sequence[Tensor]) -> None:
        for request, tokens in zip(requests, new, strict=True):
            marks = self.contents.new(tokens.numel())
            if self.device == "cpu":
                self.contents.write(tokens, marks)
            request.append(tokens, marks)

    # Slots.

    def take_slots(self) -> None:
        if not isinstance(self.allocator, SWAMambaComposite):
            return
        slots = self.call(self.allocator.alloc_state, self.chance.randint(1, 3))
        if slots is None:
            return
        self.call(self.allocator.state.reset, slots)
        marks = self.contents.new(slots.numel())
        if self.device == "cpu":
            self.contents.write_state(slots, marks)
        self.slots += zip(torch.split(slots, 1), torch.split(marks, 1), strict=True)

    def give_slots(self) -> None:
        if self.slots and isinstance(self.allocator, SWAMambaComposite):
            slot, _ = self.slots.pop(self.chance.randrange(len(self.slots)))
            self.call(self.allocator.free_state, slot)

    def checkpoint(self) -> None:
        if len(self.slots) > 1 and isinstance(self.allocator, SWAMambaComposite):
            (source, mark), (target, _) = self.slots[:2]
            self.call(self.allocator.state.copy, src=source, dst=target)
            self.slots[1] = target, mark

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
        band = self.chance.choice(self.allocator.bands)
        if isinstance(band, FloatBand) and self.chance.random() < 0.5:
            self.call(band.make_room, self.chance.choice(("low", "high")), self.chance.randrange(band.pool.total_bytes))
        else:
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
        if self.device == "cpu":
            self.contents.write(incoming.tokens, node.marks[: node.cursor])
        kept = node.tokens[: node.cursor]
        self.call(recover_locked_full, self.allocator, kept, incoming.tokens, start_pos=0)
        node.cursor = 0


def churned(case: Case, calls: int) -> Row:
    """Runs a case to its end, in one thread."""
    torch.set_num_threads(1)
    return result(case, Churn(case), calls)


def result(case: Case, churn: Churn, calls: int) -> Row:
    """Runs a case to its end."""
    begun = time.process_time()
    churn.run(calls)
    taken = time.process_time() - begun
    return Row(case, churn.calls, churn.refused, churn.waits, churn.broken, churn.first, taken)


CASES = tuple(Case(*one) for one in itertools.product(PAGE_SIZES, (1, 2, 3), (False, True)))


def measure(calls: int = CALLS) -> list[Row]:
    """Every case, in as many processes as there are processors."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), mp_context=context) as processes:
        return list(processes.map(churned, CASES, itertools.repeat(calls)))


def told(rows: Sequence[Row]) -> str:
    """A table, and the first thing that went wrong in each case."""
    head = ("page size", "pools", "compaction", "calls", "without room", "syncs", "broken invariants", "CPU seconds")
    lines = [
        (size, pools, "eager" if eager else "lazy", f"{calls:,}", f"{refused:,}", waits, broken, f"{seconds:.0f}")
        for (size, pools, eager), calls, refused, waits, broken, _, seconds in rows
    ]
    return "\n\n".join([table(head, lines), *(f"- {row.case}: {row.first}" for row in rows if row.first)])


if __name__ == "__main__":
    print(told(measure(*map(int, sys.argv[1:2]))))
