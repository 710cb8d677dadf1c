"""What summaries follow from: the callers of a parameter, the writers of an attribute, the returns of a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from nosync_lint.index.records import CallSite, Definition, Expr, IndexWrite, row_of
from nosync_lint.link.calls import bind
from nosync_lint.link.inference import MAX_CALLERS, MAX_CANDIDATES, Inference
from nosync_lint.link.names import FILLED, At
from nosync_lint.link.project import Class, Function, Project
from nosync_lint.link.values import UNKNOWN, Value
from nosync_lint.link.wording import wording


class Node(NamedTuple):
    """An expression at a place of a function, which can be compared with others."""

    expr: Expr
    function: int
    seq: int
    block: int


class Source(NamedTuple):
    """Something that a value follows from: where it stands, in words, its own value, and what to ask next."""

    function: Function
    row: int
    note: str
    value: Value
    node: Node | None = None


Asked = Iterator[Source | str]
"""Sources, and ends as text."""


class SummarySources:
    """Finds the sources of summaries. `elsewhere` tells blocks for other platforms."""

    def __init__(
        self, project: Project, inference: Inference, elsewhere: Callable[[Function, int], bool] = lambda f, b: False
    ) -> None:
        self._project, self._inference, self._elsewhere = project, inference, elsewhere

    @staticmethod
    def node(expr: Expr, at: At) -> Node:
        return Node(expr, at.function.number, at.seq, at.block)

    def _value(self, expr: Expr, at: At) -> Value:
        return self._inference.value(expr, at)

    def _source(self, function: Function, row: int, note: str, expr: Expr, seq: int, block: int) -> Source:
        at = At(function, seq, block)
        return Source(function, row, note, self._value(expr, at), self.node(expr, at))

    def _of_parameter(self, number: int, index: int) -> Asked:
        function = self._project.functions[number]
        parameter = function.record.parameters[index]
        name, row, owner = parameter.name, row_of(function.record.pos), called(function)
        if index == 0 and function.binds and function.cls is not None:
            value = self._inference.solver.read(("param", number, index))
            yield Source(function, row, f"`{name}` of `{owner}`", value)
            return
        if parameter.form in ("args", "kwargs"):
            stars = "*" if parameter.form == "args" else "**"
            yield f"`{stars}{name}` of `{owner}` gathers arguments, which is not followed"
            return
        declared = self._inference.annotations.declared(parameter.annotation, function)
        if declared.known:
            yield Source(function, row, f"`{owner}` declares `{name}: {wording(parameter.annotation or ())}`", declared)
        given_by_none = True
        bindings = sorted(self._inference.callers(function), key=lambda one: place_of(one.caller, one.site))
        for binding in bindings:
            given = bind(function, binding, index)
            site = binding.site
            if given is not None:
                given_by_none = False
                text = wording(given)
                told = f"`{called(binding.caller)}` passes `{text}`" + ("" if text == name else f" as `{name}`")
                yield self._source(binding.caller, row_of(site.call[4]), told, given, site.seq, site.block)
        if parameter.default is not None and parameter.default != ("const", None):
            at = At(function.parent or function, 0, 0)
            default = f"`{owner}` has the default `{name}={wording(parameter.default)}`"
            yield Source(function, row, default, self._value(parameter.default, at))
        if not bindings:
            yield f"`{name}` is a parameter of `{owner}`: {self.uncalled(function)}"
        elif given_by_none:
            yield f"no call of `{owner}` gives `{name}` by position or name"

    def uncalled(self, function: Function) -> str:
        """Why no call of a function is known."""
        name = function.record.name
        calls = self._project.calls_by_name.get(name, ())
        if function.record.form != "function":
            return "calls of a lambda are not followed"
        if len(calls) > MAX_CANDIDATES:
            return f"{len(calls):,} calls go by the name `{name}`, too many to tie to it"
        if not calls:
            return "nothing in the linked project calls it by name"
        caller, site = min(calls, key=lambda one: place_of(*one))
        first = f"`{wording(site.call[1])}(...)` at {caller.module.file.name}:{row_of(site.call[4])}"
        if len(calls) == 1:
            return f"one call goes by its name and could not be tied to it: {first}"
        return f"{len(calls)} calls go by its name and none could be tied to it, the first being {first}"

    def _of_attribute(self, number: int, name: str) -> Asked:
        cls = self._project.classes[number]
        told = False
        for one in cls.mro:
            method = one.methods.get(name)
            if method is not None:
                yield from self._of_method(method)
                return
            body = one.module.functions[one.record.body]
            for definition in body.record.definitions.get(name, ()):
                told = True
                yield self._definition(name, definition, body)
        for source in chain(self._writes(cls.mro, name), self._fills(cls, name)):
            told = True
            yield source
        for caller, site, given in self._inference.given_to_field(cls, name):
            told = True
            note = f"`{called(caller)}` makes a `{cls.record.name}` with `{name}={wording(given)}`"
            yield self._source(caller, row_of(site.call[4]), note, given, site.seq, site.block)
        if not told:
            below = cls.descendants()
            for one in below:
                if name in one.methods:
                    told = True
                    yield from self._of_method(one.methods[name])
            for source in self._writes(below, name):
                told = True
                yield source
        for source in self._outside(cls, name):
            told = True
            yield source
        if not told:
            base = next(iter(sorted(cls.externs)), "")
            inherited = f"; its base `{base}` is of a library" if base else ""
            family = f"`{cls.record.qualname}`, its bases or its subclasses"
            yield f"no assignment of `.{name}` was found in {family}{inherited}"

    def _of_method(self, method: Function) -> Asked:
        if any(part[-1] in ("property", "cached_property") for part in method.record.decorators):
            yield from self._of_returns(method.number)
        else:
            value = Value("method", ref=(method.number,))
            yield Source(method, row_of(method.record.pos), f"`{called(method)}` is a method", value)

    def _writes(self, classes: Iterable[Class], name: str) -> Iterator[Source]:
        """`self.name = value` in methods of these classes."""
        own = self._project.own_writes.get(name, {})
        found = [one for cls in classes for one in own.get(cls.number, ())]
        here = [(function, write) for function, write in found if not self._elsewhere(function, write.block)]
        for function, write in here or found:
            note = f"`{wording(write.base)}.{name} = {wording(write.value)}`"
            source = self._source(function, write.row, note, write.value, write.seq, write.block)
            declared = self._inference.annotations.declared(write.annotation, function)
            if declared.known and not source.value.known:
                note = f"`{wording(write.base)}.{name}: {wording(write.annotation or ())}`"
                source = source._replace(note=note, value=declared, node=None)
            yield source

    def _fills(self, cls: Class, name: str) -> Iterator[Source]:
        """What is put into the container that an attribute holds."""
        if self._inference.solver.read(("attr", cls.number, name)).kind not in FILLED:
            return
        fills = self._project.fills.get(name, {})
        for one in cls.mro:
            for function, fill in fills.get(one.number, ())[:MAX_CALLERS]:
                note = f"`.{name}` holds `{wording(fill.value)}`"
                yield self._source(function, self._row(function, fill.seq), note, fill.value, fill.seq, fill.block)

    def _outside(self, cls: Class, name: str) -> Iterator[Source]:
        """`obj.name = value` elsewhere, where `obj` is of this class."""
        for function, write in self._project.writes_by_attribute.get(name, ())[:MAX_CALLERS]:
            if function.is_self(write.base):
                continue
            base = self._value(write.base, At(function, write.seq, write.block))
            if base.kind != "object":
                continue
            others = [self._project.classes[ref] for ref in base.ref if isinstance(ref, int)]
            if any(cls in other.mro or other in cls.mro for other in others):
                note = f"`{wording(write.base)}.{name} = {wording(write.value)}`"
                yield self._source(function, write.row, note, write.value, write.seq, write.block)

    def _of_global(self, number: int, name: str) -> Asked:
        module = self._project.modules[number]
        for function in module.functions:
            if function.record.form == "module" or name in function.record.globals:
                for definition in function.record.definitions.get(name, ()):
                    yield self._definition(name, definition, function)

    def _of_functions(self, functions: Iterable[Function]) -> Asked:
        for function in sorted(functions, key=lambda one: one.name):
            yield from self._of_returns(function.number)

    def _of_returns(self, number: int) -> Asked:
        function = self._project.functions[number]
        record = function.record
        declared = self._inference.annotations.declared(record.returns, function)
        if declared.known and record.returns is not None:
            note = f"`{called(function)}` is declared `-> {wording(record.returns)}`"
            yield Source(function, row_of(record.pos), note, declared)
        if "stub" in record.flags:
            yield f"`{called(function)}` has no body here"
            return
        for result in record.results:
            gives = "yields" if "generator" in record.flags else "returns"
            note = f"`{called(function)}` {gives} `{wording(result.value)}`"
            yield self._source(function, result.row, note, result.value, result.seq, result.block)
        if not record.results:
            yield f"`{called(function)}` returns nothing"

    @staticmethod
    def _row(function: Function, seq: int) -> int:
        """The row of a statement, by a call or index write in it."""
        record = function.record
        spots = chain[CallSite | IndexWrite](record.calls, record.writes)
        return next((row_of(one.statement) for one in spots if one.seq == seq), row_of(record.pos))

    def _definition(self, name: str, definition: Definition, function: Function) -> Source:
        source = self._source(
            function,
            definition.row,
            _defines(plain(name), definition),
            definition.value,
            definition.seq,
            definition.block,
        )
        if definition.value[0] in ("func", "class", "import"):
            static = self._project.static(function.module, definition.value)
            return source._replace(value=static or UNKNOWN, node=None)
        declared = self._inference.annotations.declared(definition.annotation, function)
        if declared.known and not source.value.known:
            note = f"`{plain(name)}: {wording(definition.annotation or ())}`"
            return Source(function, definition.row, note, declared)
        return source


def place_of(function: Function, site: CallSite) -> tuple[str, int]:
    """Where a call stands: an order that does not depend on the order of files."""
    return function.module.file.name, site.call[4]


def called(function: Function) -> str:
    """The name of a function for a person who knows the file."""
    return function.record.qualname or function.name


def plain(name: str) -> str:
    return name.partition("~")[0]


def _defines(name: str, definition: Definition) -> str:
    """A definition in words."""
    value = definition.value
    form = value[0]
    if form in _ENTITIES:
        return f"`{name}` is {_ENTITIES[form]}"
    if form == "elem":
        return f"`{name}` is each of `{wording(value[1])}`"
    if form == "item":
        return f"`{name}` is item {value[2]} of `{wording(value[1])}`"
    if form == "rest":
        return f"`{name}` is the rest of `{wording(value[1])}` from item {value[2]}"
    if form == "enter":
        return f"`with {wording(value[1])} as {name}`"
    return f"`{name} = {wording(value)}`"


_ENTITIES = {"func": "a function", "class": "a class", "import": "imported"}
