"""Contracts between a base class and its subclasses: a method that drops an argument on the way to a
de-duplication, and the classes that inherit it although a sibling shows how the argument avoids that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from nosync_lint.finding import Hop
from nosync_lint.index.records import CallSite, Expr, row_of
from nosync_lint.link.calls import Binding, Target, bind
from nosync_lint.link.heat import HeatMap
from nosync_lint.link.inference import Inference
from nosync_lint.link.project import Class, Function, Project
from nosync_lint.link.syncs import Syncs

MAX_REACH = 400
"""A search for a sink visits at most this many functions."""


class Contract(NamedTuple):
    """A configured contract: every concrete subclass of `base` overrides `method` and reads `argument`."""

    base: str
    method: str
    argument: str


class Leak(NamedTuple):
    """A path from a method to a sink: the calls along it and the sink itself."""

    calls: tuple[tuple[Function, CallSite], ...]
    function: Function
    sink: CallSite


class LostOverride(NamedTuple):
    """A class that inherits `method`, which drops `parameter`. `leak` is the path to the sink, `sibling` the
    override that uses the argument, `caller` a call that passes it; None where the contract is only configured, and
    `caller` where nobody in the project calls it."""

    cls: Class
    method: Function
    parameter: str
    sibling: Function | None
    caller: tuple[Function, CallSite] | None
    leak: Leak | None


class DroppedPosition(NamedTuple):
    """The call inside `method` through which `parameter` is lost, and the sinks it leads to by class."""

    method: Function
    call: CallSite
    parameter: str
    sibling: Function
    leaks: tuple[Leak, ...]


class Contracts:
    """Finds lost overrides and dropped positions over a linked program."""

    def __init__(self, project: Project, inference: Inference, heat: HeatMap, syncs: Syncs) -> None:
        self._project, self._inference, self._heat, self._syncs = project, inference, heat, syncs
        self._sinks: dict[int, tuple[CallSite, ...]] = {}

    def lost_overrides(self, configured: tuple[Contract, ...]) -> Iterator[LostOverride]:
        """Every class that lost an override, in project order, where it or the method that runs on it is reported."""
        found: dict[tuple[int, int], LostOverride] = {}
        for method, parameter, siblings, caller in self._droppers():
            for cls in self._inheritors(method):
                if not (method.module.file.reported or cls.module.file.reported):
                    continue
                leak = self._leak(method, cls)
                if leak is None:
                    continue
                sibling = next((one for one in siblings if not self._reaches(one, leak)), None)
                if sibling is not None:
                    found[cls.number, method.number] = LostOverride(cls, method, parameter, sibling, caller, leak)
        for contract in configured:
            for lost in self._configured(contract):
                found.setdefault((lost.cls.number, lost.method.number), lost)
        for key in sorted(found):
            yield found[key]

    def dropped_positions(self, lost: tuple[LostOverride, ...]) -> Iterator[DroppedPosition]:
        """The calls in base methods through which the lost overrides reach their sinks."""
        grouped: dict[tuple[int, int], list[LostOverride]] = {}
        for one in lost:
            if one.leak is not None and one.sibling is not None and one.leak.calls:
                grouped.setdefault((one.method.number, one.leak.calls[0][1].call[4]), []).append(one)
        for key in sorted(grouped):
            group = grouped[key]
            first = group[0]
            assert first.leak is not None
            assert first.sibling is not None
            leaks = tuple({one.leak.sink.call[4]: one.leak for one in group if one.leak is not None}.values())
            yield DroppedPosition(first.method, first.leak.calls[0][1], first.parameter, first.sibling, leaks)

    def _droppers(self) -> Iterator[tuple[Function, str, list[Function], tuple[Function, CallSite] | None]]:
        """Methods that never read a parameter which another class of the family reads, and which callers pass."""
        for function in self._project.functions:
            record = function.record
            cls = function.cls
            if cls is None or record.form != "function" or "stub" in record.flags or not record.calls:
                continue
            if not any(one.module.file.reported for one in (cls, *cls.descendants())):
                continue
            family = _family(cls, record.name)
            if len(family) < 2:
                continue
            for index, parameter in enumerate(record.parameters):
                if (
                    parameter.name in record.reads
                    or parameter.form in ("args", "kwargs")
                    or (index == 0 and function.binds)
                ):
                    continue
                siblings = [
                    override
                    for one in family
                    if one is not cls
                    and (override := one.methods[record.name])
                    and any(p.name == parameter.name for p in override.record.parameters)
                    and parameter.name in override.record.reads
                ]
                if not siblings:
                    continue
                caller = self._passes(function, index)
                if caller is not None or parameter.default is None:  # who calls it must pass what has no default
                    yield function, parameter.name, siblings, caller

    def _passes(self, function: Function, index: int) -> tuple[Function, CallSite] | None:
        """The call that passes the parameter: a hot one before others, then in project order."""
        passing = []
        name = function.record.parameters[index].name
        for caller, site in self._project.calls_by_name.get(function.record.name, ()):
            keyword = any(word == name for word, _ in site.call[3])
            if keyword or bind(function, Binding(caller, site, True), index) is not None:
                rank = caller.number not in self._heat.hot
                passing.append((rank, caller.number, site.call[4], caller, site))
        return min(passing)[3:] if passing else None

    def _inheritors(self, method: Function) -> list[Class]:
        """Concrete classes on whose instances `method` is what runs."""
        assert method.cls is not None
        family = [method.cls, *method.cls.descendants()]
        return [cls for cls in family if cls.method(method.record.name) is method and not cls.is_abstract()]

    def _configured(self, contract: Contract) -> Iterator[LostOverride]:
        for base in self._project.classes:
            if not (base.name == contract.base or base.name.endswith("." + contract.base)):
                continue
            for cls in base.descendants():
                method = cls.method(contract.method)
                if method is None or cls.is_abstract() or contract.argument in method.record.reads:
                    continue
                yield LostOverride(cls, method, contract.argument, None, None, self._leak(method, cls))

    def _reaches(self, method: Function, leak: Leak) -> bool:
        """Whether a sibling ends in the same sink."""
        assert method.cls is not None
        own = self._leak(method, method.cls, leak.sink)
        return own is not None

    def _leak(self, method: Function, cls: Class, wanted: CallSite | None = None) -> Leak | None:
        """The shortest path from a method that runs on an instance of exactly `cls` to a sink."""
        queue: list[tuple[Function, Class | None, tuple[tuple[Function, CallSite], ...]]] = [(method, cls, ())]
        seen = {(method.number, cls.number)}
        while queue and len(seen) < MAX_REACH:
            function, receiver, path = queue.pop(0)
            for sink in self._sinks_of(function):
                if wanted is None or sink is wanted:
                    return Leak(path, function, sink)
            if len(path) > 10:
                continue
            for site in function.record.calls:
                if self._heat.roots.rare_block(function, site.block) is not None:
                    continue
                for target, on in self._next(function, receiver, site):
                    key = (target.number, on.number if on is not None else -1)
                    if key not in seen and not self._heat.roots.elsewhere(target):
                        seen.add(key)
                        queue.append((target, on, (*path, (function, site))))
        return None

    def _sinks_of(self, function: Function) -> tuple[CallSite, ...]:
        """The de-duplications in a function that a known position makes unnecessary: at least likely, no debugging."""
        known = self._sinks.get(function.number)
        if known is None:
            known = self._sinks[function.number] = tuple(
                sync.site
                for sync in self._syncs.sinks(function)
                if sync.site is not None
                and sync.verdict.trust
                and self._heat.roots.rare_block(function, sync.block) is None
            )
        return known

    def _next(self, function: Function, receiver: Class | None, site: CallSite) -> list[tuple[Function, Class | None]]:
        func: Expr = site.call[1]
        if receiver is not None and func[0] == "attr":
            parameters = function.record.parameters
            if function.binds == "self" and parameters and func[1] == ("name", parameters[0].name):
                own = receiver.method(func[2])
                if own is not None:
                    return [(own, receiver)]
            if func[1][:2] == ("call", ("name", "super")) and function.cls in receiver.mro:
                for cls in receiver.mro[receiver.mro.index(function.cls) + 1 :]:
                    if func[2] in cls.methods:
                        return [(cls.methods[func[2]], receiver)]
                return []
        targets = self._inference.targets(function, site)
        return [(self._project.functions[target.function], self._class_of(target)) for target in targets]

    def _class_of(self, target: Target) -> Class | None:
        return self._project.classes[target.receiver] if target.receiver is not None else None


def _family(cls: Class, name: str) -> list[Class]:
    """The classes that write a method which goes back to one declaration, those below a class before all others."""
    below = [one for one in cls.descendants() if name in one.methods]
    above = [one for one in cls.mro if name in one.methods]
    return list(dict.fromkeys([*below, cls, *above, *cls.family(name)]))


def hops_of(leak: Leak, name: Callable[[Function], str]) -> tuple[Hop, ...]:
    """The story of a leak, ending in the sink."""
    hops = [
        Hop(name(function), row_of(site.call[4]), f"`{function.record.qualname}` calls `{site.call[1][-1]}`")
        for function, site in leak.calls
    ]
    return (
        *hops,
        Hop(
            name(leak.function), row_of(leak.sink.call[4]), f"`{leak.function.record.qualname}` reads a count back here"
        ),
    )
