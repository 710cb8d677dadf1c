"""Functions of C++ as the waits are looked for: what one does in text order, and the guards around it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nosync_lint.index.cuda_records import CudaFunction, CudaGuard, CudaParameter, Expr, Step
from nosync_lint.index.records import rows_of, unpack

UnitKey = tuple[str, int, int, str, int]
DEEPEST_LAMBDA = 8


class Unit(NamedTuple):
    """A function, or one of its lambdas, and the file that holds it."""

    path: str
    function: CudaFunction
    closure: int = -1

    @property
    def key(self) -> UnitKey:
        return (self.path, self.function.span.row, self.function.span.column, self.function.name, self.closure)

    @property
    def parameters(self) -> tuple[CudaParameter, ...]:
        return self.function.parameters if self.closure < 0 else self.function.lambdas[self.closure].parameters

    @property
    def name(self) -> str:
        if self.closure >= 0:
            return "a lambda"
        return f"{self.function.owner}::{self.function.name}" if self.function.owner else self.function.name


class Definition(NamedTuple):
    """A name bound to a value, at its place in the order of the text."""

    seq: int
    row: int
    type: str
    value: Expr


class Called(NamedTuple):
    """A call at its place in the order of the text. `pos` is that of the macro which holds it, where one does."""

    seq: int
    call: Expr
    pos: int


class Body:
    """What one unit does, in text order: definitions, calls, and the guards around rows."""

    def __init__(self, unit: Unit, guards: Iterable[CudaGuard]) -> None:
        self.unit = unit
        self.definitions: dict[str, list[Definition]] = {}
        self.calls: list[Called] = []
        self.results: list[tuple[int, int, Expr]] = []
        self.types = {parameter.name: parameter.type for parameter in unit.parameters}
        self._seq = 0
        self._running: set[int] = set()
        self._macro = 0
        first, last = unit.function.span.row, unit.function.span.end_row
        self.guards = [one for one in guards if rows_of(one.pos)[0] <= last and rows_of(one.pos)[1] >= first]
        steps = unit.function.steps if unit.closure < 0 else unit.function.lambdas[unit.closure].steps
        self._walk(steps)

    def _walk(self, steps: Iterable[Step]) -> None:
        for step in steps:
            kind = step[0]
            if kind == "let":
                self._visit(step[3])
                self.types.setdefault(step[1], step[2])
                self._define(step[1], step[4], step[2], step[3])
            elif kind == "bind":
                self._visit(step[2])
                for name in step[1]:
                    self._define(name, step[3], "", step[2])
            else:
                self._visit(step[1])
                if kind == "return" and not self._running:
                    self.results.append((self._next(), step[2], step[1]))

    def _visit(self, expr: Expr) -> None:
        """Calls inside out, in text order."""
        pending: list[tuple[Expr, bool]] = [(expr, False)]
        while pending:
            one, done = pending.pop()
            form = one[0] if one else ""
            if done and form == "call":
                self.calls.append(Called(self._next(), one, self._macro or one[5]))
            elif done and form == "assign" and one[2][0] == "name" and one[1] == "=":
                self._define(one[2][1], one[4], "", one[3])
            elif form == "lambda":
                self._enter(one[1])
            elif form == "call" and one[1][0] == "lambda":
                self._expand(one)
            elif not done:
                if form in ("call", "assign"):
                    pending.append((one, True))
                pending += [(item, False) for item in reversed(one) if isinstance(item, tuple)]

    def _enter(self, closure: int) -> None:
        """The body of a lambda, as if it ran where it stands."""
        if closure in self._running or len(self._running) >= DEEPEST_LAMBDA:
            return
        self._running.add(closure)
        self._walk(self.unit.function.lambdas[closure].steps)
        self._running.discard(closure)

    def _expand(self, call: Expr) -> None:
        """A call of a macro of the file, whose body stands elsewhere."""
        for argument in call[2]:
            self._visit(argument)
        outer, self._macro = self._macro, self._macro or call[5]
        before = len(self.calls)
        self._enter(call[1][1])
        self._macro = outer
        first, last = rows_of(call[5])
        inside = all(first <= one.call[3] <= last for one in self.calls[before:])
        if inside:  # a lambda that is called where it stands
            self.calls[before:] = [one._replace(pos=outer or one.call[5]) for one in self.calls[before:]]

    def _next(self) -> int:
        self._seq += 1
        return self._seq

    def _define(self, name: str, row: int, spelled: str, value: Expr) -> None:
        self.definitions.setdefault(name, []).append(Definition(self._next(), row, spelled, value))

    def around(self, pos: int) -> Iterator[CudaGuard]:
        """The guards that cover a packed place."""
        row, column, _, _ = unpack(pos)
        for guard in self.guards:
            first, start, last, end = unpack(guard.pos)
            if (first, start) <= (row, column) < (last, end):
                yield guard

    def around_row(self, row: int) -> list[CudaGuard]:
        """The guards that cover a row."""
        return [guard for guard in self.guards if rows_of(guard.pos)[0] <= row <= rows_of(guard.pos)[1]]
