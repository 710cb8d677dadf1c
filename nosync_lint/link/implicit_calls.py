"""Calls that do not look like calls: properties, and the special methods that Python runs for its syntax."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nosync_lint.index.records import CallSite, Expr
from nosync_lint.link.inference import Inference
from nosync_lint.link.names import At
from nosync_lint.link.parts import placed, within
from nosync_lint.link.project import Function, Project
from nosync_lint.link.values import UNKNOWN, Value
from nosync_lint.models import load

_OPERATORS = {
    "+": "__add__", "-": "__sub__", "*": "__mul__", "/": "__truediv__", "//": "__floordiv__", "%": "__mod__",
    "**": "__pow__", "@": "__matmul__", "&": "__and__", "|": "__or__", "^": "__xor__", "<<": "__lshift__",
    ">>": "__rshift__",
}  # fmt: skip
_COMPARISONS = {"==": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
_UNARY = {"-": ("__neg__",), "~": ("__invert__",), "+": ("__pos__",), "not": ("__bool__", "__len__")}
_ASKED = frozenset({"name", "attr", "call", "sub"})
"""The forms of expressions that may be an instance."""


class ImplicitCalls:
    """The methods that a function runs without a call of their name, where the class of the receiver is known."""

    def __init__(self, project: Project, inference: Inference) -> None:
        self._inference = inference
        self._properties = frozenset(f.record.name for f in project.functions if f.is_property and _does_more(f))
        self._special = frozenset(name for name in project.methods_by_name if name[:2] == "__" == name[-2:])
        self._of_builtins: dict[str, list[str]] = load("values")["special_methods"]
        self._called = bool({"__call__", "forward"} & set(project.methods_by_name))

    def of(self, function: Function, often: Callable[[int], bool]) -> Iterator[tuple[CallSite, Function]]:
        """The implicit calls in the blocks that run often."""
        record = function.record
        for expr, seq, block, pos in placed(record):
            if not often(block):
                continue
            at = At(function, seq, block)
            for part in within(expr, calls=False):
                for method in self._run(part, at):
                    yield CallSite(("call", part, (), (), pos), seq, block, pos), method
        for write in record.writes:
            if often(write.block):
                at = At(function, write.seq, write.block)
                for method in self._methods(write.base, ("__setitem__",), at):
                    part = ("sub", write.base, write.subscript, write.pos)
                    yield CallSite(("call", part, (), (), write.pos), write.seq, write.block, write.pos), method
        for site in record.sites:
            if site.form == "test" and often(site.block):
                for method in self._methods(site.value, ("__bool__", "__len__"), At(function, site.seq, site.block)):
                    yield CallSite(("call", site.value, (), (), site.pos), site.seq, site.block, site.pos), method
        yield from self._managers(function, often)

    def _managers(self, function: Function, often: Callable[[int], bool]) -> Iterator[tuple[CallSite, Function]]:
        """What `with` runs of the managers that are made there; `enter` of the definitions knows the others."""
        if self._special.isdisjoint(("__enter__", "__exit__", "__aenter__", "__aexit__")):
            return
        record = function.record
        tests = [block.test for block in record.blocks if block.form == "with" and block.test is not None]
        made = {one[4] for test in tests for one in test[1] if one[0] == "call"}
        for site in record.calls if made else ():
            if site.call[4] in made and often(site.block):
                for method in self._entered(site.call, At(function, site.seq, site.block)):
                    yield site, method

    def _run(self, part: Expr, at: At) -> Iterator[Function]:
        form = part[0]
        if form == "attr":
            if part[2] in self._properties:
                yield from self._inference.properties(part, at)
        elif form == "call":
            yield from self._builtin(part, at)
        elif form == "elem":
            yield from self._iterated(part[1], at)
        elif form == "enter":
            yield from self._entered(part[1], at) if part[1][0] != "call" else ()
        elif form == "sub":
            if not any(write.pos == part[3] for write in at.function.record.writes):
                yield from self._methods(part[1], ("__getitem__",), at)
        elif form == "bin":
            name = _OPERATORS.get(part[1], "")
            yield from self._methods(part[2], (name,), at)
            yield from self._methods(part[3], (f"__r{name[2:]}",), at)
        elif form == "aug":
            name = _OPERATORS.get(part[1], "")
            yield from self._methods(part[2], (f"__i{name[2:]}", name), at)
        elif form == "unary":
            yield from self._methods(part[2], _UNARY.get(part[1], ()), at)
        elif form == "cmp":
            if part[1][0] in ("in", "not in"):
                yield from self._methods(part[3][0], ("__contains__", "__iter__"), at)
            else:
                yield from self._methods(part[2], (_COMPARISONS.get(part[1][0], ""),), at)

    def _builtin(self, call: Expr, at: At) -> Iterator[Function]:
        """What a call of a builtin runs of its first argument, or a call of a local name of the instance itself."""
        func, record = call[1], at.function.record
        if func[0] != "name":
            return
        local = func[1] in record.definitions or at.function.parameter(func[1]) is not None
        if local and self._called:
            value = self._instance(func, at)
            yield from self._inference.dispatch.instances_run(value) if value.kind == "object" else ()
        elif not local and call[2] and func[1] in self._of_builtins:
            names = tuple(self._of_builtins[func[1]])
            if "__iter__" in names:
                yield from self._iterated(call[2][0], at)
            else:
                yield from self._methods(call[2][0], names, at)

    def _entered(self, manager: Expr, at: At) -> Iterator[Function]:
        for names in (("__enter__", "__aenter__"), ("__exit__", "__aexit__")):
            yield from self._methods(manager, names, at)

    def _iterated(self, iterable: Expr, at: At) -> Iterator[Function]:
        """What a loop runs: the method that gives an iterator, and the steps of what it gives."""
        inference = self._inference
        for method in self._methods(iterable, ("__iter__", "__aiter__", "__getitem__"), at):
            yield method
            given = inference.solver.read(("ret", method.number)) if method.record.name != "__getitem__" else UNKNOWN
            if given.kind == "object":
                yield from inference.dispatch.callees(given, "__next__") or inference.dispatch.callees(
                    given, "__anext__"
                )

    def _methods(self, expr: Expr, names: tuple[str, ...], at: At) -> tuple[Function, ...]:
        """The first of these methods that an instance has."""
        if expr[0] not in _ASKED or self._special.isdisjoint(names):
            return ()
        value = self._instance(expr, at)
        if value.kind != "object":
            return ()
        dispatch = self._inference.dispatch
        return next((found for name in names if (found := dispatch.callees(value, name))), ())

    def _instance(self, expr: Expr, at: At) -> Value:
        value = self._inference.value(expr, at)
        return value if value.trust else UNKNOWN


def _does_more(function: Function) -> bool:
    """Whether a property does more than hand out what is there: only then does it matter that it runs."""
    record = function.record
    return bool(record.calls or record.writes or any(site.form != "test" for site in record.sites))
