"""Solves summaries that depend on each other: each once where there is no cycle, cycles in rounds from the bottom.

A summary is computed when it is first read, after everything it reads. Summaries that depend on each other are
found on the way (Tarjan's strongly connected components) and solved together: they start at bottom, and each
round reads only the round before. So a value depends on what is below it and not on who asked first, in which
order, or from how many questions.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from nosync_lint.link.values import BOTTOM, Value, alike

Node = tuple[Any, ...]
T = TypeVar("T")

MAX_CHANGES = 8
"""A summary in a cycle that changes more often than this keeps its last value."""
MAX_ROUNDS = 200
STACK = 512 << 20
"""Bytes of stack for the thread that solves: chains of summaries are thousands of calls deep."""


class Solver:
    """Values of summary nodes. `compute` evaluates one node and calls `read` for the nodes it depends on."""

    def __init__(self, compute: Callable[[Node], Value]) -> None:
        self._compute = compute
        self._settled: dict[Node, Value] = {}
        self._open: dict[Node, Value] = {}
        self._index: dict[Node, int] = {}
        self._stack: list[Node] = []
        self._counter = 0
        self._low = sys.maxsize  # the lowest open node that the node being computed has reached
        self._reads: set[Node] = set()
        self.provisional = False  # whether something unsettled was read since this was last cleared
        self.frozen: set[Node] = set()

    def __len__(self) -> int:
        return len(self._settled)

    def read(self, node: Node) -> Value:
        """The value of a node: the settled one, or what the previous round of its cycle knew."""
        value = self._settled.get(node)
        if value is not None:
            return value
        if node not in self._open:
            self._solve(node)
            value = self._settled.get(node)
            if value is not None:
                return value
        self.provisional = True
        self._reads.add(node)
        self._low = min(self._low, self._index[node])
        return self._open[node]

    def _run(self, node: Node) -> tuple[Value, set[Node], int]:
        """One computation of a node: its value, the open nodes it read, and the lowest of them."""
        kept = self._low, self._reads, self.provisional
        self._low, self._reads = sys.maxsize, set()
        value = self._compute(node)
        found = value, self._reads, self._low
        self._low, self._reads, self.provisional = kept
        return found

    def _solve(self, node: Node) -> None:
        place = len(self._stack)
        self._counter += 1
        index = self._index[node] = self._counter
        self._stack.append(node)
        self._open[node] = BOTTOM
        value, _, low = self._run(node)
        self._open[node] = value
        if low > index and len(self._stack) == place + 1:
            self._settle(place)
            return
        if low >= index:
            low = self._iterate(place, index)
            if low >= index:
                self._settle(place)
                return
        self._low = min(self._low, low)  # part of a cycle that began above

    def _settle(self, place: int) -> None:
        for node in self._stack[place:]:
            self._settled[node] = self._open.pop(node)
            del self._index[node]
        del self._stack[place:]

    def _iterate(self, place: int, index: int) -> int:
        """Solve the cycle that stands on the stack from `place`. Returns the lowest node it reached, which is below
        `index` where it turns out to be part of a larger cycle.

        What is read depends on values, so that a cycle may grow on the way. Who joins late is taken through the rounds
        that it missed, and the round that met it is done again: so the outcome is the same wherever it was entered.
        """
        cycle = _Cycle(self._stack[place:])
        self._forget(cycle.members)
        pending = cycle.members
        while pending and len(cycle.steps) < MAX_ROUNDS:
            values, lowest = self._round(pending, cycle)
            while lowest >= index and len(self._stack) > place + len(cycle.members):
                joined, low = self._catch_up(cycle, place, index)
                pending = [*pending, *joined]
                again, lowest = self._round(cycle.reading(joined, pending, joined), cycle)
                lowest = min(low, lowest)
                values |= again
            if lowest < index:
                return lowest
            cycle.steps.append(self._take(values, cycle))
            pending = cycle.reading(cycle.steps[-1], cycle.members)
        return sys.maxsize

    def _round(self, nodes: list[Node], cycle: _Cycle) -> tuple[dict[Node, Value], int]:
        """What some nodes of a cycle are by what the round before knew, and the lowest node that they reached."""
        values: dict[Node, Value] = {}
        lowest = sys.maxsize
        for node in nodes:
            values[node], reads, low = self._run(node)
            lowest = min(lowest, low)
            for dependency in reads:
                cycle.readers[dependency].add(node)
        return values, lowest

    def _take(self, values: dict[Node, Value], cycle: _Cycle) -> dict[Node, Value]:
        """Let the outcome of a round be known. Returns what changed."""
        step: dict[Node, Value] = {}
        for node, value in values.items():
            if not alike(value, self._open[node]):
                cycle.changes[node] += 1
                if cycle.changes[node] > MAX_CHANGES:
                    self.frozen.add(node)
                else:
                    step[node] = value
        self._open.update(step)
        return step

    def _catch_up(self, cycle: _Cycle, place: int, index: int) -> tuple[list[Node], int]:
        """Take what joins a cycle through the rounds so far, which did not read it. Returns what joined, and the lowest
        node that it reached."""
        lowest = sys.maxsize
        joining: list[Node] = []
        while lowest >= index and len(self._stack) > place + len(cycle.members) + len(joining):
            joining = self._stack[place + len(cycle.members) :]
            self._forget([*cycle.members, *joining])
            cycle.forget_changes(joining)
            pending, steps = joining, list[dict[Node, Value]]()
            for step in cycle.steps:
                values, low = self._round(pending, cycle)
                lowest = min(lowest, low)
                steps.append(step | self._take(values, cycle))
                self._open.update(step)
                pending = cycle.reading(steps[-1], joining)
        cycle.steps = steps
        cycle.members = [*cycle.members, *joining]
        return joining, lowest

    def _forget(self, nodes: list[Node]) -> None:
        self._open.update(dict.fromkeys(nodes, BOTTOM))
        self.frozen.difference_update(nodes)


class _Cycle:
    """A cycle that is being solved: its nodes, who reads whom, how often each changed, and what changed by round."""

    def __init__(self, members: list[Node]) -> None:
        self.members = members
        self.readers: defaultdict[Node, set[Node]] = defaultdict(set)
        self.changes: Counter[Node] = Counter()
        self.steps: list[dict[Node, Value]] = []

    def forget_changes(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            del self.changes[node]

    def reading(self, changed: Iterable[Node], nodes: list[Node], more: Iterable[Node] = ()) -> list[Node]:
        """Those of some nodes that have read something that changed, and some more of them."""
        readers = set(more).union(*(self.readers[node] for node in changed))
        return [node for node in nodes if node in readers]


def with_room(function: Callable[[], T]) -> T:
    """Run a function where recursion may go deep: in a thread with a large stack and no small recursion limit."""
    outcome: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(function())
        except BaseException as error:  # handed on to the caller below
            failure.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size(STACK)
    sys.setrecursionlimit(1_000_000)
    try:
        thread = threading.Thread(target=work, name="nosync-lint")
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    if failure:
        raise failure[0]
    return outcome[0]
