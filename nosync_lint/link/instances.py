"""Which instances an expression may be: followed back over assignments, fields, arguments and results to the calls
that make them, with the tests that are passed on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nosync_lint.index.records import AttributeWrite, CallSite, Definition, Expr
from nosync_lint.link.calls import bind
from nosync_lint.link.flow import holding, reaching
from nosync_lint.link.heat import Roots
from nosync_lint.link.inference import Inference
from nosync_lint.link.names import At
from nosync_lint.link.project import Class, Function, Project

MAX_STEPS = 4000
"""A search follows at most this many assignments, arguments and results."""
MAX_WRITERS = 24
"""Assignments from outside are followed where at most this many go by the attribute's name."""

Fact = tuple[str, bool]
"""What is tested, by its last name, and the outcome."""


class Made(NamedTuple):
    """An instance of exactly `cls`, the call that makes it, and the tests passed from there to where it is used."""

    cls: Class
    function: Function
    site: CallSite
    facts: frozenset[Fact]


class Instances:
    """Follows values back to the constructor calls that make them."""

    def __init__(self, project: Project, inference: Inference, roots: Roots) -> None:
        self._project, self._inference, self._roots = project, inference, roots
        self._facts: dict[tuple[int, int, int], frozenset[Fact]] = {}
        self._steps: dict[tuple[int, int, Expr], list[tuple[Expr, At]]] = {}
        self._made: dict[tuple[int, int, Expr], list[Class]] = {}

    def of(self, expr: Expr, at: At) -> tuple[Made, ...]:
        """The instances that an expression may be at a place, in project order; those of other platforms left out."""
        made: dict[tuple[int, int, int, frozenset[Fact]], Made] = {}
        pending: list[tuple[Expr, At, frozenset[Fact]]] = [(expr, at, frozenset())]
        seen: set[tuple[int, int, Expr, frozenset[Fact]]] = set()
        while pending and len(seen) < MAX_STEPS:
            expr, at, facts = pending.pop()
            key = (at.function.number, at.seq, expr, facts)
            if key in seen:
                continue
            seen.add(key)
            step = key[:3]
            if step not in self._steps:
                self._made[step] = self._classes(expr, at) if expr[0] == "call" else []
                self._steps[step] = [one for one in self._before(expr, at) if self._runs_here(one[1])]
            for cls in self._made[step]:
                one = Made(cls, at.function, CallSite(expr, at.seq, at.block, expr[4]), facts)
                made[at.function.number, expr[4], cls.number, facts] = one
            for following, where in self._steps[step]:
                known = facts | self.facts(where)
                if not any((word, not outcome) in known for word, outcome in known):
                    pending.append((following, where, known))
        return tuple(made[key] for key in sorted(made, key=lambda key: (*key[:3], sorted(key[3]))))

    def _runs_here(self, at: At) -> bool:
        return not self._roots.other_platform(at.function, at.block) and not self._roots.elsewhere(at.function)

    def facts(self, at: At) -> frozenset[Fact]:
        """The simple tests that hold at a place."""
        key = (at.function.number, at.seq, at.block)
        if key not in self._facts:
            found = (fact(test, outcome) for test, outcome in holding(at.function.record, at.seq, at.block))
            self._facts[key] = frozenset(one for one in found if one is not None)
        return self._facts[key]

    def _classes(self, call: Expr, at: At) -> list[Class]:
        """The classes of the project that a call makes instances of."""
        callee = self._inference.value(call[1], at)
        if callee.kind != "class":
            return []
        classes = [self._project.classes[ref] for ref in callee.ref if isinstance(ref, int)]
        return [cls for cls in classes if not self._roots.elsewhere(cls.module.functions[cls.record.body])]

    def _before(self, expr: Expr, at: At) -> Iterator[tuple[Expr, At]]:
        """The expressions that a value may come from, one step back."""
        form = expr[0]
        if form == "name":
            yield from self._of_name(expr[1], at)
        elif form == "attr":
            yield from self._of_attribute(expr, at)
        elif form == "call":
            yield from self._of_call(expr, at)
        elif form == "ifexp":
            yield expr[2], at
            yield expr[3], at
        elif form == "bool":
            yield from ((part, at) for part in expr[2])
        elif form == "await":
            yield expr[1], at
        elif form == "item" and expr[1][0] == "tuple" and expr[2] < len(expr[1][1]):
            yield expr[1][1][expr[2]], at
        elif form == "item" and expr[1][0] == "call":
            for value, where in self._of_call(expr[1], at):
                yield ("item", value, expr[2]), where

    def _of_name(self, name: str, at: At) -> Iterator[tuple[Expr, At]]:
        function: Function | None = at.function
        while function is not None and function.record.form != "module":
            record = function.record
            found: list[Definition] = []
            entry = True
            if record.form != "class" and name not in record.globals:
                if function is at.function:
                    found, entry = reaching(record, name, at.seq, at.block)
                else:
                    found = list(record.definitions.get(name, ()))
                yield from self._values(found, function)
                if entry and function.parameter(name) is not None:
                    yield from self._arguments(function, name)
                    return
                if found:
                    return
            function = function.parent
        for one in at.function.module.functions:
            if one.record.form == "module" or name in one.record.globals:
                yield from self._values(one.record.definitions.get(name, ()), one)

    @staticmethod
    def _values(definitions: Sequence[Definition], function: Function) -> Iterator[tuple[Expr, At]]:
        return ((one.value, At(function, one.seq, one.block)) for one in definitions)

    def _arguments(self, function: Function, name: str) -> Iterator[tuple[Expr, At]]:
        index = function.parameter(name)
        assert index is not None
        if index == 0 and function.binds:
            return
        for binding in self._inference.callers(function):
            given = bind(function, binding, index)
            if given is not None:
                yield given, At(binding.caller, binding.site.seq, binding.site.block)

    def _of_call(self, call: Expr, at: At) -> Iterator[tuple[Expr, At]]:
        if call[1][-1] == "cast" and len(call[2]) == 2:
            yield call[2][1], at
            return
        for target in self._inference.targets(at.function, CallSite(call, at.seq, at.block, call[4])):
            function = self._project.functions[target.function]
            if function.record.name != "__init__":
                yield from self._values(function.record.results, function)

    def _of_attribute(self, expr: Expr, at: At) -> Iterator[tuple[Expr, At]]:
        base, name = self._inference.value(expr[1], at), expr[2]
        refs = [ref for ref in base.ref if isinstance(ref, int)] if base.kind == "object" else []
        if base.kind == "unknown":
            family = self._inference.dispatch.family(name)
            refs = [family.number] if family is not None else []
        for ref in refs:
            yield from self._of_member(self._project.classes[ref], name)

    def _of_member(self, cls: Class, name: str) -> Iterator[tuple[Expr, At]]:
        method = cls.method(name)
        if method is not None:
            yield from self._values(method.record.results, method)
            return
        own = self._project.own_writes.get(name, {})
        inside = [one for owner in cls.mro for one in own.get(owner.number, ())]
        if not inside:
            inside = [one for owner in cls.descendants() for one in own.get(owner.number, ())]
        for function, write in [*inside, *self._from_outside(cls, name)]:
            yield write.value, At(function, write.seq, write.block)
        for caller, site, given in self._inference.given_to_field(cls, name):
            yield given, At(caller, site.seq, site.block)

    def _from_outside(self, cls: Class, name: str) -> Iterator[tuple[Function, AttributeWrite]]:
        """`instance.name = value` where the instance is of this class."""
        writes = self._project.writes_by_attribute.get(name, ())
        outside = [(function, write) for function, write in writes if not function.is_self(write.base)]
        for function, write in outside[:MAX_WRITERS]:
            base = self._inference.value(write.base, At(function, write.seq, write.block))
            if base.kind == "object":
                others = (self._project.classes[ref] for ref in base.ref if isinstance(ref, int))
                if any(other in cls.mro or cls in other.mro for other in others):
                    yield function, write


def fact(test: Expr, outcome: bool) -> Fact | None:
    """A test as the last name of what it asks, and the outcome; None where it asks for more than a truth or None."""
    while test[0] == "unary" and test[1] == "not":
        test, outcome = test[2], not outcome
    if test[0] == "cmp" and test[1][0] in ("is", "is not") and test[3][0] == ("const", None):
        test, outcome = test[2], outcome == (test[1][0] == "is not")
    if test[0] == "call":
        test = test[1]
    return (test[-1], outcome) if test[0] in ("name", "attr") and test != ("name", "isinstance") else None
