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
from collections.abc import Callable
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

        A cycle that turns out to be larger while it is solved goes on with what was added.
        """
        readers: defaultdict[Node, set[Node]] = defaultdict(set)
        changes: Counter[Node] = Counter()
        members = self._stack[place:]
        for node in members:
            self._open[node] = BOTTOM
        pending = members
        lowest = sys.maxsize
        for _ in range(MAX_ROUNDS):
            results = []
            for node in pending:
                value, reads, low = self._run(node)
                lowest = min(lowest, low)
                results.append((node, value))
                for dependency in reads:
                    readers[dependency].add(node)
            touched: set[Node] = set()
            for node, value in results:
                if not alike(value, self._open[node]):
                    changes[node] += 1
                    if changes[node] > MAX_CHANGES:
                        self.frozen.add(node)
                        continue
                    self._open[node] = value
                    touched |= readers[node]
            grown = self._stack[place + len(members) :]
            members = members + grown
            touched.update(grown)
            if lowest < index or not touched:
                break
            pending = [node for node in members if node in touched]
        return lowest


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
