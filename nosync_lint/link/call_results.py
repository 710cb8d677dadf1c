"""What one call of a short function gives, where its own arguments tell more than all its callers together do.

Summaries join the callers of a function. `to_device(mask)` and `to_device(order)` would both give what either may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from nosync_lint.index.records import CallSite, Definition, Expr
from nosync_lint.link.batches import tensor_of
from nosync_lint.link.calls import Binding, bind
from nosync_lint.link.flow import holding
from nosync_lint.link.names import At
from nosync_lint.link.project import Function
from nosync_lint.link.solver import Node
from nosync_lint.link.values import HOST, Value, vote

if TYPE_CHECKING:
    from nosync_lint.link.evaluation import Evaluation

MAX_RESULTS = 4
MAX_DEFINITIONS = 8
"""A function with more results or local names than these is taken by its summary."""
MAX_NESTED = 3
"""Calls in the results of calls are looked into so deep."""
_TOLD = frozenset({"tensor", "device", "none", "bool", "str", "int", "float", "list", "tuple", "dict"})
"""The kinds of arguments that say what a call gives."""


class CallResults:
    """The results of calls by their own arguments."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        self._short: dict[int, bool] = {}
        self._inside: list[int] = []
        self._cut = False  # whether something was not looked into, for where the question began
        self._known: dict[tuple[int, tuple[tuple[Node, Value], ...]], Value] = {}

    def of(self, function: Function, call: Expr, at: At, bound: bool) -> Value | None:
        """What a call of `function` gives, or None where its summary says as much. `bound`: the receiver fills the
        first parameter."""
        if not self._is_short(function):
            return None
        if function.number in self._inside or len(self._inside) >= MAX_NESTED:
            self._cut = True
            return None
        given, differs = self._given(function, Binding(at.function, CallSite(call, at.seq, at.block, 0), bound), at)
        if not differs:
            return None
        key = (function.number, tuple(given.items()))
        value = self._known.get(key)
        if value is not None:
            return value
        solver = self._evaluation.solver
        outer, solver.provisional = solver.provisional, False
        cut, self._cut = self._cut, False
        self._inside.append(function.number)
        try:
            with self._evaluation.given(given):
                value = self._result(function)
        finally:
            self._inside.pop()
        lasts = not (solver.provisional or (self._cut and self._inside))
        solver.provisional |= outer
        self._cut = bool(self._inside) and (self._cut or cut)
        if lasts and value is not None:
            self._known[key] = value
        return value

    @staticmethod
    def placed(value: Value, arguments: Callable[[], tuple[list[Value], dict[str, Value]]]) -> Value:
        """What a call gives by its summary. Where that lives as an argument does, this call's arguments say where: what
        is made of host tensors alone stays on the host, unless they name a device."""
        told = tensor_of(value)
        if not told.accelerated or told.why is None or not told.why.argument:
            return value
        args, kwargs = arguments()
        given = [one for one in (*args, *kwargs.values()) if one.kind in ("tensor", "unknown", "device")]
        if not given or not all(one.where in HOST for one in given):
            return value
        host = told._replace(where="host", why=None)
        return host if told is value else value._replace(items=host)

    def _is_short(self, function: Function) -> bool:
        short = self._short.get(function.number)
        if short is None:
            record = function.record
            short = self._short[function.number] = (
                record.form == "function"
                and 0 < len(record.results) <= MAX_RESULTS
                and len(record.definitions) <= MAX_DEFINITIONS
                and not record.flags & {"async", "generator", "stub", "abstract"}
                and all(block.form != "loop" for block in record.blocks)
            )
        return short

    def _given(self, function: Function, binding: Binding, at: At) -> tuple[dict[Node, Value], bool]:
        """The parameters that the arguments of a call tell, and whether they tell more than the callers together."""
        evaluation, given, differs = self._evaluation, {}, False
        for index, parameter in enumerate(function.record.parameters):
            if parameter.form in ("args", "kwargs") or (binding.bound and index == 0):
                continue
            expr = bind(function, binding, index)
            if expr is not None:
                value = evaluation.evaluate(expr, at)
            elif parameter.default is not None and parameter.default[0] == "const":
                value = evaluation.evaluate(parameter.default, at)
            else:
                continue
            if value.kind not in _TOLD:
                continue
            node = ("param", function.number, index)
            joined = evaluation.solver.read(node)
            if value.kind == "tensor" == joined.kind:
                value = value._replace(
                    where=value.where or joined.where,
                    rank=joined.rank if value.rank is None else value.rank,
                    dtype=value.dtype or joined.dtype,
                    why=value.why or joined.why,
                )
            given[node] = value
            differs |= value[:5] != joined[:5]
        return given, differs

    def _result(self, function: Function) -> Value | None:
        evaluation, record = self._evaluation, function.record
        found = [one for one in record.results if not self._excluded(one, function)]
        if not found:
            return None
        value = vote([evaluation.evaluate(one.value, At(function, one.seq, one.block)) for one in found])
        if not value.known:
            return None
        return evaluation.settle(evaluation.annotations.declared(record.returns, function), value, record.name)

    def _excluded(self, result: Definition, function: Function) -> bool:
        """Whether the arguments say that a result is not reached."""
        return any(
            self._outcome(test, At(function, result.seq, result.block)) not in (None, outcome)
            for test, outcome in self._tests(result, function)
        )

    @staticmethod
    def _tests(result: Definition, function: Function) -> Iterator[tuple[Expr, bool]]:
        yield from holding(function.record, result.seq, result.block)

    def _outcome(self, test: Expr, at: At) -> bool | None:
        """The outcome of a test of a parameter, where its argument tells it: `flag`, `x is None`, `isinstance`."""
        evaluation = self._evaluation
        if test[0] == "name":
            value = evaluation.argument(test, at)
            return value.ref if value is not None and value.kind == "bool" and isinstance(value.ref, bool) else None
        if test[0] == "cmp" and test[1] in (("is",), ("is not",)) and test[3] == (("const", None),):
            value = evaluation.argument(test[2], at)
            return None if value is None else (value.kind == "none") == (test[1] == ("is",))
        if test[0] == "call" and test[1][-1] == "isinstance" and len(test[2]) == 2:
            value = evaluation.argument(test[2][0], at)
            declared = evaluation.annotations.declared(test[2][1], at.function)
            if value is None or "tensor" not in (value.kind, declared.kind) or test[2][1][0] == "tuple":
                return None
            return value.kind == declared.kind if declared.kind not in ("unknown", "object") else None
        return None
