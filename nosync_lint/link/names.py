"""Names inside one function: the definitions that reach a use, what encloses them, and the tests that hold there."""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from nosync_lint.index.records import Definition, Expr
from nosync_lint.link.annotations import Annotations
from nosync_lint.link.dispatch import Dispatch
from nosync_lint.link.flow import holding, left_over, narrowed_by, reaching, tested_place
from nosync_lint.link.operations import Operations
from nosync_lint.link.project import Function, Module, Project
from nosync_lint.link.solver import Node, Solver
from nosync_lint.link.values import UNKNOWN, Origin, Value, vote, with_fills

MAX_DEPTH = 24
"""A chain of local definitions longer than this goes on as a summary of its own."""


FILLED = frozenset({"list", "dict", "set"})
"""Containers that are filled after they are made."""


class At:
    """A place in a function: its record, and the sequence number and block of a statement."""

    __slots__ = ("block", "function", "seq")

    def __init__(self, function: Function, seq: int, block: int) -> None:
        self.function, self.seq, self.block = function, seq, block


class Names(ABC):
    """What names are at a place. `solver` holds the summaries of what lies beyond the function."""

    def __init__(
        self, project: Project, operations: Operations, solver: Solver, elsewhere: Callable[[Function, int], bool]
    ) -> None:
        self._elsewhere = elsewhere
        self.project, self.operations, self.solver = project, operations, solver
        self.annotations = Annotations(project, operations)
        self.dispatch = Dispatch(project)
        self.deferred: dict[tuple[int, int], tuple[Definition, Function]] = {}
        self._memo: dict[tuple[int, int], Value] = {}
        self._named: dict[tuple[int, str, int, int], Value] = {}
        self._arguments_given: Mapping[Node, Value] = {}
        self._draft: dict[tuple[int, int], Value] = {}
        self._depth = 0
        self._narrowing: dict[int, frozenset[Expr]] = {}
        self._reaching: dict[tuple[int, str, int, int], tuple[list[Definition], bool]] = {}

    @abstractmethod
    def evaluate(self, expr: Expr, at: At) -> Value:
        """The value of an expression by what the previous round knew."""

    @contextmanager
    def given(self, arguments: Mapping[Node, Value]) -> Iterator[None]:
        """Names mean what they do in one call: parameters by the summaries they stand for, and what follows from them.
        Nothing of that outlasts it."""
        kept = self._arguments_given, self._memo, self._draft, self._named
        self._arguments_given, self._memo, self._draft, self._named = arguments, {}, {}, {}
        try:
            yield
        finally:
            self._arguments_given, self._memo, self._draft, self._named = kept

    def argument(self, expr: Expr, at: At) -> Value | None:
        """What the call that is looked into gives to a parameter that its function does not assign."""
        if expr[0] != "name" or expr[1] in at.function.record.definitions:
            return None
        return self._arguments_given.get(("param", at.function.number, at.function.parameter(expr[1])))

    def _parameter(self, function: Function, index: int) -> Value:
        node = ("param", function.number, index)
        found = self._arguments_given.get(node)
        return self.solver.read(node) if found is None else found

    def _lookup(self, name: str, at: At) -> Value:
        function = at.function
        record = function.record
        if name in record.definitions and name not in record.globals:
            key = (function.number, name, at.seq, at.block)
            known = self._reaching.get(key)
            if known is None:
                self._reaching[key] = known = self._here(function, *reaching(record, name, at.seq, at.block))
            found, entry = known
            if len(found) == 1 and not entry and found[0].seq < at.seq:
                value = self._define_cached(found[0], function)
                if value.kind in FILLED and function.local_fills(name):
                    return with_fills(value, self.solver.read(("fills", function.number, name)))
                return self.by_name(value, name) if value.kind in ("tensor", "unknown") else value
            voters = [
                self._define_cached(one, function)
                if one.seq < at.seq or (one.seq == at.seq and "~" in name)
                else self._deferred_definition(one, function)
                for one in found
            ]
            if entry:
                index = function.parameter(name)
                if index is not None:
                    voters.append(self._parameter(function, index))
                elif not found and record.form in ("class", "module"):
                    return self._outer(name, function)
            if len(voters) > 1 and ("name", name) in self._asked(function):
                voters = self._not_replaced(name, voters, found, at)
            value = vote(voters) if voters else UNKNOWN
            if value.kind in FILLED and function.local_fills(name):
                return with_fills(value, self.solver.read(("fills", function.number, name)))
            return self.by_name(value, name) if value.kind in ("tensor", "unknown") else value
        index = function.parameter(name)
        if index is not None:
            return self._parameter(function, index)
        return self._outer(name, function)

    def _not_replaced(self, name: str, values: list[Value], found: list[Definition], at: At) -> list[Value]:
        """What a name may be by its definitions, the latest first: where `if not isinstance(x, Tensor): x = ...` left
        an earlier value, it is a tensor."""
        tests: list[tuple[Expr, bool]] = []
        for number, value in enumerate(values):
            values[number] = self._by_tests(("name", name), value, tests, at.function)
            if number < len(found) and found[number].seq < at.seq:
                tests += left_over(at.function.record, found[number], at.block)
        return values

    def _here(self, function: Function, found: list[Definition], entry: bool) -> tuple[list[Definition], bool]:
        """Definitions without those of branches for other platforms, unless there are no others."""
        here = [one for one in found if not self._elsewhere(function, one.block)]
        return (here, entry) if here or entry else (found, entry)

    def _outer(self, name: str, function: Function) -> Value:
        parent = function.parent
        while parent is not None:
            record = parent.record
            if record.form not in ("class", "module"):
                if name in record.definitions:
                    values = [self._define_cached(found, parent) for found in record.definitions[name]]
                    index = parent.parameter(name)
                    if index is not None:
                        values.append(self._parameter(parent, index))
                    return vote(values)
                index = parent.parameter(name)
                if index is not None:
                    return self._parameter(parent, index)
            parent = parent.parent
        found = self._symbol(function.module, name)
        return found if isinstance(found, Value) else self.solver.read(found)

    def _symbol(self, module: Module, name: str) -> Value | Node:
        """What a name stands for outside all functions, or the summary that tells it."""
        value = self.project.symbol(module, name)
        if value is None:
            return Value("extern", ref=f"builtins.{name}") if hasattr(builtins, name) else UNKNOWN
        return ("global", *value.ref) if not value.known and value.ref is not None else value

    def everywhere(self, expr: Expr, function: Function) -> Value | Node:
        """What a name is in all of a function, or the summary that tells it; empty where that depends on the place."""
        name = expr[1]
        owner: Function | None = function
        while owner is not None:
            record = owner.record
            inside = owner is function or record.form not in ("class", "module")
            if inside and name in record.definitions and (owner is not function or name not in record.globals):
                return ()
            index = owner.parameter(name)
            if inside and index is not None:
                return ("param", owner.number, index) if expr not in self._asked(function) else ()
            owner = owner.parent
        return self._symbol(function.module, name) if expr not in self._asked(function) else ()

    def _deferred_definition(self, definition: Definition, function: Function) -> Value:
        """A definition that comes round a loop: a summary of its own, so that recursion only ever goes backwards."""
        key = (function.number, id(definition))
        self.deferred[key] = (definition, function)
        return self.solver.read(("definition", *key))

    def _define_cached(self, definition: Definition, function: Function) -> Value:
        """A definition's value: kept for good once it rests on nothing unsettled, else for this computation."""
        key = (function.number, id(definition))
        value = self._memo.get(key)
        if value is not None:
            return value
        solver = self.solver
        value = self._draft.get(key)
        if value is not None:
            solver.provisional = True
            return value
        if self._depth >= MAX_DEPTH:
            return self._deferred_definition(definition, function)
        self._depth += 1
        outer, solver.provisional = solver.provisional, False
        value = self._define(definition, function)
        if solver.provisional:
            self._draft[key] = value
        else:
            self._memo[key] = value
            solver.provisional = outer
        self._depth -= 1
        return value

    def _define(self, definition: Definition, function: Function) -> Value:
        static = (
            self.project.static(function.module, definition.value)
            if definition.value[0] in ("func", "class", "import")
            else None
        )
        if static is not None:
            if not static.known and static.ref is not None:
                return self.solver.read(("global", *static.ref))
            return static
        value = self.evaluate(definition.value, At(function, definition.seq, definition.block))
        if definition.annotation is not None:
            value = self.settle(self.annotations.declared(definition.annotation, function), value, "")
        return self.explained(value, function, definition.row)

    @staticmethod
    def explained(value: Value, function: Function, row: int) -> Value:
        if value.kind == "tensor" and value.why is None:
            return value._replace(why=Origin(function.module.number, row, ""))
        if value.kind == "batch" and value.items.why is None:
            return value._replace(items=Names.explained(value.items, function, row))
        return value

    def _asked(self, function: Function) -> frozenset[Expr]:
        """The expressions of whose type or place some test of a function says something."""
        asked = self._narrowing.get(function.number)
        if asked is None:
            tests = (block.test for block in function.record.blocks if block.test is not None)
            self._narrowing[function.number] = asked = frozenset(one for test in tests for one in narrowed_by(test))
        return asked

    def narrowed(self, expr: Expr, value: Value, at: At) -> Value:
        """What the tests that hold here say of an expression: `isinstance`, `.is_cuda`, `.device.type == "cpu"`."""
        function = at.function
        asked = self._asked(function)
        if not asked or expr not in asked:
            return value
        return self._by_tests(expr, value, holding(function.record, at.seq, at.block), function)

    def _by_tests(self, expr: Expr, value: Value, tests: Iterable[tuple[Expr, bool]], function: Function) -> Value:
        for test, outcome in tests:
            where = tested_place(test, expr, outcome)
            if where is not None and value.kind in ("tensor", "unknown"):
                return value._replace(kind="tensor", where=where)
            if test[0] != "call" or test[2][:1] != (expr,) or test[1][-1] not in ("isinstance", "is_tensor"):
                continue
            one = test[1][-1] == "isinstance"
            declared = self.annotations.declared(test[2][-1], function) if one else Value("tensor")
            if not outcome:
                parts = test[2][-1][1] if one and test[2][-1][0] == "tuple" else ()
                kinds = {declared.kind, *(self.annotations.declared(part, function).kind for part in parts)}
                value = UNKNOWN if value.kind in kinds - {"object", "unknown"} else value
            elif (declared.known and declared.kind != value.kind) or (
                declared.kind == "object" and declared.ref != value.ref and not value.exact
            ):
                return declared
        return value

    def by_name(self, value: Value, name: str) -> Value:
        """Names like `lens_cpu` say that a value lives on the host: used where nothing else says so."""
        kind = self.operations.convention(name.partition("~")[0])
        if kind is None:
            return value
        if kind == "count":
            return Value("int", trust=1) if value.kind == "unknown" else value
        if kind == "device":
            return Value("device", where="parametrised", trust=1) if value.kind == "unknown" else value
        if kind == "host" and value.kind == "tensor" and value.where in (None, "parametrised"):
            return value._replace(where="host", trust=min(value.trust, 1))
        if value.kind == "unknown" and kind in ("host", "numpy"):
            return Value("numpy" if kind == "numpy" else "tensor", where=None if kind == "numpy" else "host", trust=0)
        return value

    def settle(self, declared: Value, inferred: Value, name: str) -> Value:
        """The declared type filters kinds; a contradicting constructor wins; a name may say it lives on the host."""
        if not declared.known:
            value = inferred
        elif inferred.kind == "batch":
            record = declared.kind in ("dict", "batch") or (declared.kind == "object" and inferred.trust > 0)
            value = inferred if record else declared
            if declared.kind == "tensor":
                value = inferred.items
        elif inferred.kind in ("bottom", "unknown", "none"):
            value = declared
        elif inferred.kind == declared.kind or (
            inferred.kind in ("int", "bool", "number", "float") and declared.kind in ("int", "float")
        ):
            value = inferred
            if declared.kind == "object" and not set(map(type, declared.ref)) <= {str} and inferred.trust < 2:
                value = declared if not inferred.exact else inferred
            if declared.kind == "tensor" and inferred.dtype is None:
                value = value._replace(dtype=declared.dtype)
        elif inferred.trust == 2:
            value = inferred
        else:
            value = declared
        return self.by_name(value, name)
