"""Solves summaries to a fixed point in rounds that read only the previous round.

A round's result does not depend on the order in which its nodes are computed, so neither do the findings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from nosync_lint.link.values import BOTTOM, UNKNOWN, Value

Node = tuple[Any, ...]
MAX_CHANGES = 8
"""A summary that changes more often than this is frozen at its last value, with little trust."""
MAX_ROUNDS = 400


class Solver:
    """Values of summary nodes. `compute` evaluates one node and may call `read` for others."""

    def __init__(self, compute: Callable[[Node], Value], on_round: Callable[[], None]) -> None:
        self._compute, self._on_round = compute, on_round
        self._values: dict[Node, Value] = {}
        self._readers: defaultdict[Node, set[Node]] = defaultdict(set)
        self._changes: defaultdict[Node, int] = defaultdict(int)
        self._fresh: set[Node] = set()
        self.reads: set[Node] = set()
        self.frozen = 0

    def read(self, node: Node) -> Value:
        """The previous round's value. The reader is computed again when it changes."""
        self.reads.add(node)
        value = self._values.get(node)
        if value is None:
            self._values[node] = value = BOTTOM
            self._fresh.add(node)
        return value

    def solve(self, demanded: Iterable[Node] = ()) -> None:
        """Compute the demanded nodes, everything they read, and what depends on what changed."""
        for node in demanded:
            self.read(node)
        pending, self._fresh = self._fresh, set()
        for _ in range(MAX_ROUNDS):
            if not pending:
                return
            self._on_round()
            results: dict[Node, Value] = {}
            for node in pending:
                self.reads = set()
                results[node] = self._compute(node)
                for dependency in self.reads:
                    self._readers[dependency].add(node)
            pending = set()
            for node, value in results.items():
                if value != self._values[node] and self._accept(node, value):
                    pending |= self._readers[node]
            pending |= self._fresh
            self._fresh = set()

    def has_fresh(self) -> bool:
        """Whether something was read that has not been computed yet."""
        return bool(self._fresh)

    def _accept(self, node: Node, value: Value) -> bool:
        self._changes[node] += 1
        if self._changes[node] > MAX_CHANGES:
            self.frozen += self._changes[node] == MAX_CHANGES + 1
            return False
        self._values[node] = value
        return True

    def settled(self, node: Node) -> Value:
        """The solved value; what nothing is known of is unknown."""
        value = self._values.get(node, UNKNOWN)
        return UNKNOWN if value.kind == "bottom" else value
