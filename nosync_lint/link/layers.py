"""Layers counted from where a stage of a pipeline starts, and calls that ask for layer 0 all the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from nosync_lint.index.records import CallSite, Expr
from nosync_lint.link.calls import Binding, bind
from nosync_lint.link.heat import Roots
from nosync_lint.link.inference import Inference
from nosync_lint.link.names import At
from nosync_lint.link.parts import statements, tested, within
from nosync_lint.link.project import Class, Function, Project
from nosync_lint.models import load


class LiteralLayer(NamedTuple):
    """A call that asks `method` for layer 0, although the instance keeps the layers from `first` on."""

    function: Function
    site: CallSite
    method: Function
    first: str


class Layers:
    """Finds methods that count a layer from the first one of a stage, and calls of them with 0."""

    def __init__(self, project: Project, inference: Inference, roots: Roots) -> None:
        self._project, self._inference, self._roots = project, inference, roots
        words = load("contracts")
        self._patterns: list[str] = words["layers"]["first"]
        self._questions = frozenset(words["classes"]["asks_first"])

    def literal(self) -> Iterator[LiteralLayer]:
        """The calls that ask for layer 0, in project order."""
        counted = self._counted()
        names = {self._project.functions[number].record.name for number, _ in counted}
        for function in self._project.reported if counted else ():
            if self._roots.cold_module(function) is not None:
                continue
            for site in function.record.calls:
                if site.call[1][0] == "attr" and site.call[1][2] in names:
                    found = self._asked(function, site, counted)
                    if found is not None:
                        yield found

    def _asked(self, function: Function, site: CallSite, counted: dict[tuple[int, int], str]) -> LiteralLayer | None:
        tests = list(tested(function.record, site.seq, site.block))
        if any(one[0] == "call" and one[1][-1] in self._questions for one in tests):
            return None
        firsts = {one[2] for one in tests if one[0] == "attr"}
        targets = self._inference.targets(function, site)
        bodies = [one for one in targets if "stub" not in self._project.functions[one.function].record.flags]
        for target in bodies:
            method = self._project.functions[target.function]
            for index in range(len(method.record.parameters)):
                first = counted.get((method.number, index))
                given = bind(method, Binding(function, site, target.bound), index)
                at = At(function, site.seq, site.block)
                if first is not None and first not in firsts and given is not None and self._is_zero(given, at):
                    return LiteralLayer(function, site, method, first)
        return None

    def _is_zero(self, expr: Expr, at: At) -> bool:
        """Whether an argument is the number 0, or a constant of the module by that value."""
        if (
            expr[0] == "name"
            and at.function.parameter(expr[1]) is None
            and expr[1] not in at.function.record.definitions
        ):
            value = self._inference.value(expr, at)
            return value.kind == "int" and value.ref == 0
        return expr[0] == "const" and type(expr[1]) is int and expr[1] == 0

    def _counted(self) -> dict[tuple[int, int], str]:
        """Parameters that are counted from the first layer, with the attribute that holds it: by the method itself, or
        by one of its own that it hands them to."""
        staged = {cls.number: first for cls in self._project.classes if (first := self._first_layer(cls)) is not None}
        methods = [one for one in self._project.functions if one.cls is not None and one.cls.number in staged]
        found: dict[tuple[int, int], str] = {}
        for method in methods:
            assert method.cls is not None
            first = staged[method.cls.number]
            counts = self._counts(method, first)
            for index in range(1, len(method.record.parameters)):
                if ("name", method.record.parameters[index].name) in counts:
                    found[method.number, index] = first
        self._given_first(staged, found)
        while found:
            handed = {
                (method.number, index): first
                for method in methods
                for site in method.record.calls
                for index, first in self._handed(method, site, found)
                if (method.number, index) not in found
            }
            if not handed:
                break
            found |= handed
        return found

    def _given_first(self, staged: dict[int, str], found: dict[tuple[int, int], str]) -> None:
        """Adds the parameters that some call gives the first layer of the very instance that it asks, to all methods of
        that name in the family: these find a layer by its number in the model."""
        reading = self._reading(frozenset(staged.values()))
        for attribute in sorted(reading):
            for caller, site in reading[attribute]:
                func = site.call[1]
                given = [*site.call[2], *(value for _, value in site.call[3])]
                if func[0] != "attr" or ("attr", func[1], attribute) not in given:
                    continue
                for target in self._inference.targets(caller, site):
                    method = self._project.functions[target.function]
                    for index in range(len(method.record.parameters)):
                        passed = bind(method, Binding(caller, site, target.bound), index)
                        if passed == ("attr", func[1], attribute):
                            assert method.cls is not None
                            for one in method.cls.family(method.record.name):
                                if one.number in staged:
                                    relative = one.methods[method.record.name]
                                    found.setdefault((relative.number, index), staged[one.number])

    def _reading(self, attributes: frozenset[str]) -> dict[str, list[tuple[Function, CallSite]]]:
        """The calls that are given an attribute of one of these names, by its name."""
        found = defaultdict[str, list[tuple[Function, CallSite]]](list)
        for function in self._project.functions:
            for site in function.record.calls:
                for value in (*site.call[2], *(value for _, value in site.call[3])):
                    if value[0] == "attr" and value[2] in attributes:
                        found[value[2]].append((function, site))
        return found

    def _handed(self, method: Function, site: CallSite, found: dict[tuple[int, int], str]) -> Iterator[tuple[int, str]]:
        """The parameters that a method hands on, by this call of another method of the same instance, to be counted."""
        func = site.call[1]
        assert method.cls is not None
        if func[0] != "attr" or not method.is_self(func[1]):
            return
        called = method.cls.method(func[2])
        for position in range(len(called.record.parameters)) if called is not None else ():
            assert called is not None
            first = found.get((called.number, position))
            given = bind(called, Binding(method, site, True), position) if first is not None else None
            if first is not None and given is not None and given[0] == "name":
                index = method.parameter(given[1])
                if index is not None and given[1] not in method.record.definitions:
                    yield index, first

    def _first_layer(self, cls: Class) -> str | None:
        """The attribute for the first layer that the constructor of a class is given."""
        for one in cls.mro:
            made = one.methods.get("__init__")
            for write in made.record.attributes if made is not None else ():
                if any(fnmatchcase(write.name, pattern) for pattern in self._patterns) and made is not None:
                    given = {part[1] for part in within(write.value) if part[0] == "name"}
                    if any(parameter.name in given for parameter in made.record.parameters):
                        return write.name
        return None

    @staticmethod
    def _counts(method: Function, first: str) -> set[Expr]:
        """What a method subtracts the first layer from."""
        if len(method.record.parameters) < 2:
            return set()
        layer = ("attr", ("name", method.record.parameters[0].name), first)
        parts = (part for _, expr in statements(method.record) for part in within(expr))
        return {part[2] for part in parts if part[0] == "bin" and part[1] == "-" and part[3] == layer}
