"""The matchers of a C++ function, whole: also where they are put together over several statements, or in helpers.

A helper returns a chain that its callers complete, takes a matcher and adds to it, or matches what it is given. Each of
its callers has a matcher of its own then, in terms of what it passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from nosync_lint.index.cuda_matchers import Link, chain_of, is_base, matcher_of
from nosync_lint.index.cuda_records import CudaParameter, Expr, Matcher, Step
from nosync_lint.index.records import row_of
from nosync_lint.link.kernel_sources import KernelSources, Place

DEEPEST_HELPER = 6
MOST_MATCHERS = 64
"""Of functions that it calls, no more matchers than this are taken for those of a function."""


class Part(NamedTuple):
    """A chain, maybe not whole yet: what it starts from, its links, its packed place. `held`: the variable or parameter
    that it goes on from. `helped`: some of it stands in another function. `within`: that function holds all of it."""

    base: Expr
    links: tuple[Link, ...]
    pos: int
    held: str = ""
    helped: bool = False
    within: Place | None = None


class Matching(NamedTuple):
    """What a function does with matchers: those that it holds, the chain that it returns, what it adds to matchers that
    it is given, and the functions and lambdas that help it."""

    whole: tuple[Part, ...] = ()
    returned: Part | None = None
    added: Mapping[str, tuple[Link, ...]] = {}
    helpers: frozenset[str] = frozenset()


class KernelMatchers:
    """Reads the matchers of functions on demand."""

    def __init__(self, sources: KernelSources) -> None:
        self._sources = sources
        self._known: dict[tuple[str, int, str], Matching] = {}
        self._open: list[tuple[str, int, str]] = []

    def matching(self, place: Place) -> Matching:
        """What a function does with matchers; nothing inside a recursion."""
        key = (place.path, place.function.span.row, place.function.name)
        if key not in self._known:
            if key in self._open or len(self._open) >= DEEPEST_HELPER:
                return Matching()
            self._open.append(key)
            self._known[key] = _Reading(self, self._sources, place).run()
            self._open.pop()
        return self._known[key]

    def own(self, place: Place) -> tuple[Matcher, ...]:
        """The matchers that stand in a function, or that it completes, in text order."""
        return tuple(matcher for matcher, within in self._matchers(place) if within is None)

    def called(self, place: Place) -> tuple[tuple[Matcher, Place], ...]:
        """The matchers of the functions that it calls, in terms of what it passes, each with its function."""
        return tuple((matcher, within) for matcher, within in self._matchers(place) if within is not None)

    def _matchers(self, place: Place) -> Iterator[tuple[Matcher, Place | None]]:
        for part in self.matching(place).whole:
            matcher = matcher_of(part.base, part.links, part.pos)
            if matcher is not None and part.helped:
                here = tuple(one._replace(row=row_of(part.pos)) for one in matcher.arguments)
                matcher = matcher._replace(arguments=here)
            if matcher is not None:
                yield matcher, part.within


class _Reading:
    """One function: its matcher variables, and the chains that were whole so far."""

    def __init__(self, matchers: KernelMatchers, sources: KernelSources, place: Place) -> None:
        self._matchers, self._sources, self._place = matchers, sources, place
        self._parameters = _not_tensors(place.function.parameters)
        self._bound: dict[str, Part] = {}
        self._closures: dict[str, int] = {}
        self._running: list[int] = []
        self._returned_by: dict[int, Part | None] = {}
        self._added_in: dict[int, dict[str, tuple[Link, ...]]] = {}
        self._whole: list[Part] = []
        self._returned: Part | None = None
        self._added: dict[str, tuple[Link, ...]] = {}
        self._helpers: set[str] = set()
        self._consumed: set[int] = set()

    def run(self) -> Matching:
        function = self._place.function
        self._walk(function.steps)
        returned = self._returned
        for inner in function.lambdas:
            self._walk(inner.steps)
        self._whole += self._bound.values()
        self._whole = [part for part in self._whole if _demands(part.links)]
        if returned is not None and not _demands(returned.links):
            returned = None
        self._added = {name: links for name, links in self._added.items() if _demands(links)}
        self._whole.sort(key=lambda part: part.pos)
        return Matching(tuple(self._whole), returned, self._added, frozenset(self._helpers))

    def _walk(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            kind, value = step[0], step[3] if step[0] == "let" else step[2] if step[0] == "bind" else step[1]
            if kind == "let" and value[0] == "lambda":
                self._closures[step[1]] = value[1]
                continue
            if kind in ("let", "return"):
                part = self._part(value) if value[0] != "list" else None
                if part is not None and kind == "let":
                    self._bind(step[1], part)
                    continue
                if part is not None and not any(name == "verify" for name, *_ in part.links):
                    self._returned = part
                    self._extend(part)
                    continue
            for call in _outermost(value):
                self._statement(call)

    def _bind(self, name: str, part: Part) -> None:
        if part.held in self._bound and part.base[0] == "call" and part.base[2][:1] and part.base[2][0][0] != "list":
            del self._bound[part.held]  # another name for it
        if name in self._bound:
            self._whole.append(self._bound[name])
        self._bound[name] = part

    def _taken(self, argument: Expr) -> Part | None:
        """The chain that is given to a helper, and is no matcher by itself."""
        if argument[0] == "call":
            self._consumed.add(argument[5])
        return self._part(argument)

    def _statement(self, call: Expr) -> None:
        if call[5] in self._consumed:
            return
        part = self._part(call)
        if part is not None and not self._extend(part):
            self._whole.append(part)
        elif part is None and call[1][0] == "name":
            for argument, links in self._given(call):
                held = self._taken(argument)
                if held is not None:
                    if held.base[0] != "name":
                        self._helpers.add(call[1][1])
                    held = held._replace(links=(*held.links, *links), helped=True)
                    if not self._extend(held):
                        self._whole.append(held)

    def _extend(self, part: Part) -> bool:
        """Keeps a chain that goes on from a variable or a parameter as what that is now."""
        if part.held in self._bound:
            self._bound[part.held] = part
            return True
        if part.held in self._parameters:
            known = self._added.get(part.held, ())
            self._added[part.held] = (*known, *part.links[len(known) if part.links[: len(known)] == known else 0 :])
            return True
        return False

    # -- chains --

    def _part(self, expr: Expr) -> Part | None:
        """The chain that an expression is, or None."""
        if expr[0] == "name":
            return self._held(expr[1])
        chain = chain_of(expr)
        if chain is None:
            return None
        base, links = chain[0], tuple(chain[1])
        pos = expr[5] if expr[0] == "call" else 0
        if base[0] == "call" and base[1][0] == "name" and base[1][1].endswith(("move", "forward")) and base[2]:
            base = base[2][0]
        if base[0] == "name":
            before = self._held(base[1])
        elif is_base(base):
            return Part(base, links, pos)
        elif base[0] == "call" and base[1][0] == "name":
            before = self._of_helper(base)
        else:
            before = self._part(base) if base is not chain[0] else None
        if before is None or (not links and base[0] == "name"):
            return before
        return before._replace(links=(*before.links, *links), pos=before.pos or pos)

    def _held(self, name: str) -> Part | None:
        part = self._bound.get(name)
        if part is not None:
            return part._replace(held=name)
        return Part(("name", name, ()), self._added.get(name, ()), 0, name) if name in self._parameters else None

    def _of_helper(self, call: Expr) -> Part | None:
        """The chain that a function or a lambda gives back, in terms of the arguments of a call."""
        name = call[1][1]
        if name in self._closures:
            found, parameters = self._of_closure(self._closures[name]), self._closure_parameters(name)
        else:
            place = self._callee(call)
            found = self._matchers.matching(place).returned if place is not None else None
            parameters = place.function.parameters if place is not None else ()
        if found is None:
            return None
        self._helpers.add(name)
        given = {one.name: value for one, value in zip(parameters, call[2], strict=False) if one.name}
        links = tuple(_substituted(link, given) for link in found.links)
        if found.base[0] != "name":
            return Part(_substituted(found.base, given), links, call[5], helped=True)
        before = self._taken(given[found.base[1]]) if found.base[1] in given else None
        return before and before._replace(links=(*before.links, *links), pos=before.pos or call[5], helped=True)

    def _closure_parameters(self, name: str) -> tuple[CudaParameter, ...]:
        return self._place.function.lambdas[self._closures[name]].parameters

    def _of_closure(self, number: int) -> Part | None:
        """The chain that a lambda returns. What it does beside is read with the function that holds it."""
        if number in self._running:
            return None
        if number in self._returned_by:
            return self._returned_by[number]
        self._running.append(number)
        inner = self._place.function.lambdas[number]
        outer, self._parameters = self._parameters, _not_tensors(inner.parameters)
        found = [part for step in inner.steps if step[0] == "return" and (part := self._part(step[1])) is not None]
        self._parameters = outer
        self._running.pop()
        self._returned_by[number] = found[-1] if found and _demands(found[-1].links) else None
        return self._returned_by[number]

    def _given(self, call: Expr) -> Iterator[tuple[Expr, tuple[Link, ...]]]:
        """What a helper adds to matchers among the arguments of a call; what it matches itself is whole already."""
        name = call[1][1]
        if name in self._closures:
            parameters, added = self._closure_parameters(name), self._added_by(self._closures[name])
            place, matching = None, Matching(added=added)
        else:
            place = self._callee(call)
            if place is None:
                return
            parameters, matching = place.function.parameters, self._matchers.matching(place)
        given = {one.name: value for one, value in zip(parameters, call[2], strict=False) if one.name}
        for parameter, links in matching.added.items():
            if parameter in given:
                yield given[parameter], tuple(_substituted(link, given) for link in links)
        for part in matching.whole:
            base = _substituted(part.base, given)
            links = tuple(_substituted(link, given) for link in part.links)
            if _mentions((part.base, part.links), given) and len(self._whole) < MOST_MATCHERS:
                self._whole.append(Part(base, links, call[5], "", True, part.within or place))

    def _added_by(self, number: int) -> dict[str, tuple[Link, ...]]:
        """What a lambda adds to the matchers that it is given."""
        if number in self._running:
            return {}
        if number in self._added_in:
            return self._added_in[number]
        self._running.append(number)
        inner = self._place.function.lambdas[number]
        kept = self._parameters, self._added, self._whole
        self._parameters, self._added, self._whole = _not_tensors(inner.parameters), {}, []
        self._walk(inner.steps)
        self._added_in[number] = added = {name: links for name, links in self._added.items() if _demands(links)}
        self._parameters, self._added, self._whole = kept
        self._running.pop()
        return added

    def _callee(self, call: Expr) -> Place | None:
        """The function with a body that a call runs, where only one of its name takes so many arguments."""
        function = self._place.function
        owner = function.owner if "::" not in call[1][1] else ""
        found = self._sources.functions(self._place.path, call[1][1], owner)
        fitting = [
            one for one in found if len(call[2]) <= len(one.function.parameters) and one.function is not function
        ]
        return fitting[0] if len(fitting) == 1 else None


def _not_tensors(parameters: Sequence[CudaParameter]) -> frozenset[str]:
    """The parameters that may be matchers."""
    return frozenset(one.name for one in parameters if one.name and (not one.is_tensor or "Match" in one.type))


def _demands(links: Sequence[Link]) -> bool:
    """Whether the links of a chain are those of a matcher."""
    return any(name in ("verify", "shape") or "stride" in name or "dtype" in name for name, *_ in links)


def _outermost(root: Expr) -> Iterator[Expr]:
    """Calls that are not the receiver of another one; in text order."""
    pending: list[tuple[Expr, bool]] = [(root, False)]
    while pending:
        expr, inside = pending.pop()
        form = expr[0] if expr else ""
        if form == "call" and not inside and expr[1][0] in ("field", "name"):
            yield expr
        receiver = expr[1] if form == "call" or (form == "field" and inside) else None
        pending += [(item, item is receiver) for item in reversed(expr) if isinstance(item, tuple)]


def _substituted(expr: Expr, given: Mapping[str, Expr]) -> Expr:
    """An expression with arguments in place of parameters."""
    if expr[:1] == ("name",) and len(expr) == 3 and expr[1] in given:
        return given[expr[1]]
    return tuple(_substituted(part, given) if isinstance(part, tuple) else part for part in expr)


def _mentions(expr: Expr, names: Mapping[str, Expr]) -> bool:
    if expr[:1] == ("name",) and len(expr) == 3:
        return expr[1] in names
    return any(_mentions(part, names) for part in expr if isinstance(part, tuple))
