"""Buffers that collect what is freed while a group is open, and functions that put whole tokens into one although they
were told the position by which page representatives are taken."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from nosync_lint.index.records import CallSite, Definition, Expr
from nosync_lint.link.calls import Binding, bind
from nosync_lint.link.flow import holding, reaching
from nosync_lint.link.inference import Inference
from nosync_lint.link.parts import statements, within
from nosync_lint.link.project import Class, Function, Project, called_name

FILLS = frozenset({"append", "extend", "add"})
"""Methods that put what they are given into a buffer."""
_NOT_WHOLE = frozenset({"slice", "tuple", "list", "dict", "comp"})
"""Forms of expressions that take a part of a tensor, or keep something beside it."""
MAX_DEPTH = 12
"""A value is followed back over at most this many definitions."""


class RawTokens(NamedTuple):
    """A call that puts the argument `tokens` uncut into `buffer`. `positioned` is the function that is given
    `position`, `cuts` one that slices by it, `closes` the call that frees the buffer in one go."""

    function: Function
    site: CallSite
    buffer: str
    tokens: str
    positioned: Function
    position: str
    cuts: Function
    closer: Function
    closes: CallSite


class FreeGroups:
    """Finds group buffers and what is put into them."""

    def __init__(self, project: Project, inference: Inference) -> None:
        self._project, self._inference = project, inference

    def raw_tokens(self) -> Iterator[RawTokens]:
        """The calls that put whole tokens into a group buffer, in project order."""
        groups = list(self._groups())
        positions = self._positions({one for function, *_ in groups for one in _family(function)})
        for function, call, buffer, closed in groups:
            told = None if _single(function, call) else self._told(function, positions)
            if told is not None:
                known = _derived(function, told[1]) if told[0] is function else frozenset[str]()
                for tokens in _whole(function, call, known):
                    yield RawTokens(function, call, buffer, tokens, *told, *closed)
                    break

    def _groups(self) -> Iterator[tuple[Function, CallSite, str, tuple[Function, CallSite]]]:
        """The calls that put something into a group buffer, with the call that frees all of it."""
        for function in self._project.reported:
            for call in function.record.calls if function.binds == "self" else ():
                buffer = self._filled(function, call)
                closed = self._closed(function, buffer) if buffer is not None else None
                if buffer is not None and closed is not None:
                    yield function, call, buffer, closed

    def _positions(self, classes: set[Class]) -> dict[tuple[str, str], list[Function]]:
        """Parameters by which a method of these classes slices another one in steps, itself or in a function that it
        hands both to, by the names of method and parameter."""
        cut = {
            (function.number, parameter.name)
            for function in self._project.functions
            if (steps := _steps(function))
            for parameter in function.record.parameters[1 if function.binds else 0 :]
            if _places(function, parameter.name, steps)
        }
        methods = [one for cls in sorted(classes, key=lambda cls: cls.number) for one in cls.methods.values()]
        calls = [(method, call) for method in methods for call in method.record.calls]
        added = cut
        while added:
            names = {self._project.functions[number].record.name for number, _ in cut}
            handing = [(method, call) for method, call in calls if called_name(call.call) in names]
            added = set().union(*(self._handed(method, call, cut) for method, call in handing)) - cut
            cut |= added
        found: dict[tuple[str, str], list[Function]] = defaultdict(list)
        for number, parameter in sorted(cut):
            function = self._project.functions[number]
            if function.cls in classes and function.binds == "self":
                found[function.record.name, parameter].append(function)
        return found

    def _handed(self, function: Function, call: CallSite, cut: set[tuple[int, str]]) -> set[tuple[int, str]]:
        """The parameters of a function that this call hands on as a position."""
        found = set()
        for target in self._inference.targets(function, call):
            callee = self._project.functions[target.function]
            for index, parameter in enumerate(callee.record.parameters):
                if (callee.number, parameter.name) in cut:
                    given = bind(callee, Binding(function, call, target.bound), index)
                    if given is not None and given[0] == "name" and function.parameter(given[1]) is not None:
                        found.add((function.number, given[1]))
        return found

    def _filled(self, function: Function, call: CallSite) -> str | None:
        """The attribute of the instance that a call puts something into."""
        func = call.call[1]
        if func[0] != "attr" or func[2] not in FILLS or len(call.call[2]) != 1 or func[1][0] != "attr":
            return None
        buffer: str = func[1][2]
        return buffer if function.is_self(func[1][1]) else None

    def _closed(self, function: Function, buffer: str) -> tuple[Function, CallSite] | None:
        """The call that gives all of a buffer to a method of the instance, or of a member of it."""
        assert function.cls is not None
        for cls in (*function.cls.mro, *function.cls.descendants()):
            for method in cls.methods.values():
                for call in method.record.calls:
                    func = call.call[1]
                    owner = func[1] if func[0] == "attr" else None
                    owner = owner[1] if owner is not None and owner[0] == "attr" else owner
                    if owner is not None and method.is_self(owner) and _takes(method, call, buffer):
                        return method, call
        return None

    def _told(
        self, function: Function, positions: dict[tuple[str, str], list[Function]]
    ) -> tuple[Function, str, Function] | None:
        """The function that was given a position along with the tokens: this one, or every one that calls it."""
        found = self._positioned(function, positions)
        if found is not None:
            return found
        callers = [binding.caller for binding in self._inference.callers(function)]
        told = [self._positioned(caller, positions) for caller in callers]
        return told[0] if told and all(one is not None for one in told) else None

    @staticmethod
    def _positioned(
        function: Function, positions: dict[tuple[str, str], list[Function]]
    ) -> tuple[Function, str, Function] | None:
        """A method with its parameter that says where the tokens begin, and one of its family that slices by it."""
        if function.cls is None:
            return None
        for parameter in function.record.parameters[1:]:
            for cuts in positions.get((function.record.name, parameter.name), ()):
                if cuts.cls is not None and set(function.cls.mro) & set(cuts.cls.mro):
                    return function, parameter.name, cuts
        return None


def _family(function: Function) -> set[Class]:
    """The class of a method, those it inherits from, and all that inherit from one of them."""
    above = function.cls.mro if function.cls is not None else ()
    return {*above, *(below for cls in above for below in cls.descendants())}


def _steps(function: Function) -> list[Expr]:
    """The reads of a function that slice a parameter in steps which are no constant."""
    return [
        site.value
        for site in function.record.sites
        if site.form == "read"
        and site.value[2][0] == "slice"
        and site.value[2][3][0] not in ("const", "opaque")
        and site.value[1][0] == "name"
        and function.parameter(site.value[1][1]) is not None
    ]


def _places(function: Function, parameter: str, steps: list[Expr]) -> bool:
    """Whether a parameter says where such a slice begins or ends, or is compared with its step by a remainder."""
    derived = _derived(function, parameter)
    if any(_mentions(step[2][1], derived) or _mentions(step[2][2], derived) for step in steps):
        return True
    strides = [step[2][3] for step in steps]
    return any(
        part[:2] == ("bin", "%") and part[3] in strides and _mentions(part[2], derived)
        for _, expr in statements(function.record)
        for part in within(expr)
    )


def _derived(function: Function, parameter: str) -> frozenset[str]:
    """The local names whose values depend on a parameter."""
    found = {parameter}
    while True:
        more = {
            name
            for name, definitions in function.record.definitions.items()
            if name not in found and any(_mentions(one.value, found) for one in definitions)
        }
        if not more:
            return frozenset(found)
        found |= more


def _mentions(expr: Expr, names: frozenset[str] | set[str]) -> bool:
    return any(part[0] == "name" and part[1] in names for part in within(expr))


def _takes(method: Function, call: CallSite, buffer: str) -> bool:
    """Whether a call is given a whole buffer, or what is made of all of it: read here, or into a local name before."""
    held = {
        name
        for name, definitions in method.record.definitions.items()
        for one in definitions
        if _is_member(method, _unpacked(one.value), buffer)
    }
    return any(
        _is_member(method, part, buffer) or (part[0] == "name" and part[1] in held)
        for argument in (*call.call[2], *(value for _, value in call.call[3]))
        for part in within(argument)
    )


def _unpacked(value: Expr) -> Expr:
    """The part of a written-out tuple that a name is bound to."""
    return value[1][1][value[2]] if value[0] == "item" and value[1][0] == "tuple" else value


def _is_member(method: Function, expr: Expr, name: str) -> bool:
    return expr[0] == "attr" and expr[2] == name and method.is_self(expr[1])


def _single(function: Function, call: CallSite) -> bool:
    """Whether a place is only reached where one thing is 1: a page of one token needs no representative."""
    return any(
        test[0] == "cmp"
        and len(test[1]) == 1
        and ("const", 1) in (test[2], *test[3])
        and (test[1][0] == "==") == outcome
        for test, outcome in holding(function.record, call.seq, call.block)
        if test[0] == "cmp" and test[1][0] in ("==", "!=", ">")
    )


def _whole(function: Function, call: CallSite, position: frozenset[str]) -> Iterator[str]:
    """The parameters that are put into a buffer without being cut on the way, and without their position."""
    pending: list[tuple[Expr, int, int, int]] = [(call.call[2][0], call.seq, call.block, 0)]
    while pending:
        expr, seq, block, depth = pending.pop()
        parts = list(within(expr))
        if depth > MAX_DEPTH or _mentions(expr, position) or any(part[0] in _NOT_WHOLE for part in parts):
            continue
        for name in dict.fromkeys(part[1] for part in parts if part[0] == "name"):
            found, entry = reaching(function.record, name, seq, block)
            index = function.parameter(name)
            if entry and index is not None and index > 0:
                yield name
            pending.extend((one.value, one.seq, one.block, depth + 1) for one in _values(found))


def _values(definitions: list[Definition]) -> Iterator[Definition]:
    return (one for one in definitions if one.value[0] not in ("import", "func", "class"))
