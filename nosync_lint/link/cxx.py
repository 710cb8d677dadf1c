"""Host waits in C++ extensions: the lines that wait, and the Python calls that run them, with heat and chain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from nosync_lint.finding import Heat, Hop
from nosync_lint.index.cuda_records import Expr as CudaExpr
from nosync_lint.index.records import CallSite, Expr, row_of
from nosync_lint.link.configured import Patterns, ends
from nosync_lint.link.cxx_bodies import Unit
from nosync_lint.link.cxx_exports import Extensions
from nosync_lint.link.cxx_models import CxxModels
from nosync_lint.link.cxx_values import CxxValues, Places
from nosync_lint.link.cxx_waits import CxxWaits, Wait
from nosync_lint.link.heat import HeatMap
from nosync_lint.link.inference import Inference
from nosync_lint.link.kernel_sources import KernelSources
from nosync_lint.link.names import At
from nosync_lint.link.project import Function, Project
from nosync_lint.link.values import HOST, element
from nosync_lint.link.wording import wording

_HEATS = list(Heat)


class CxxCall(NamedTuple):
    """A Python call that runs C++ functions. `waits` are those it is believed to run into, the most certain first."""

    function: Function
    site: CallSite
    units: tuple[Unit, ...]
    waits: tuple[Wait, ...]

    @property
    def trust(self) -> int:
        return self.waits[0].trust

    @property
    def pos(self) -> int:
        return int(self.site.call[4])

    @property
    def seq(self) -> int:
        return self.site.seq

    @property
    def block(self) -> int:
        return self.site.block


class CxxLine(NamedTuple):
    """A line of C++ that waits, with the heat of the hottest way to it, its root and its chain."""

    wait: Wait
    trust: int
    heat: Heat
    root: str | None
    chain: tuple[Hop, ...]


class Cxx:
    """The C++ side of a program. Facts are computed when first asked for."""

    def __init__(
        self,
        project: Project,
        inference: Inference,
        heat: Callable[[], HeatMap],
        sources: KernelSources,
        hot: Sequence[str],
    ) -> None:
        self._project, self._inference, self._heat, self._hot = project, inference, heat, hot
        self._models = CxxModels()
        self._values = CxxValues(sources, self._models)

    @cached_property
    def _extensions(self) -> Extensions:
        return Extensions(self._project, self._inference, self._values, self._models)

    @cached_property
    def _waits(self) -> CxxWaits:
        return CxxWaits(self._values, self._models, self._extensions.lambdas)

    @cached_property
    def calls(self) -> tuple[CxxCall, ...]:
        """The Python calls that wait in C++, in project order."""
        return tuple(call for call in self._all_calls if call.waits)

    @cached_property
    def _all_calls(self) -> tuple[CxxCall, ...]:
        return tuple(self._calls())

    def python_calls(self) -> Iterator[tuple[Function, CallSite, tuple[Unit, ...]]]:
        """The Python calls of C++ functions, whether they wait or not."""
        return ((call.function, call.site, call.units) for call in self._all_calls)

    def demands_dense(self, unit: Unit, position: int) -> CudaExpr | None:
        """The check by which a function refuses a tensor with gaps as one of its arguments."""
        return self._values.demands_dense(unit, position) if position < len(unit.parameters) else None

    @cached_property
    def lines(self) -> tuple[CxxLine, ...]:
        """The lines of C++ that wait, by file and place."""
        return tuple(self._lines())

    def _calls(self) -> Iterator[CxxCall]:
        for function, site, units in self._extensions.calls():
            found = [wait for unit in units for wait in self._of_call(function, site, unit)]
            yield CxxCall(function, site, units, tuple(sorted(found, key=lambda wait: -wait.trust)))

    def _of_call(self, function: Function, site: CallSite, unit: Unit) -> Iterator[Wait]:
        """The waits of a C++ function with the arguments of a Python call."""
        for wait in self._waits.of(unit) if not self._waits.is_cold(unit) else ():
            trust = self._trust(wait.operand, lambda position: self._argument(function, site, unit, position))
            if trust is not None:
                yield wait._replace(trust=min(trust, wait.trust))

    def _argument(self, function: Function, site: CallSite, unit: Unit, position: int) -> int | None:
        """How far an argument is believed to live on the device; None where it does not."""
        parameter = unit.parameters[position]
        expr: Expr | None = dict(site.call[3]).get(parameter.name)
        if expr is None:
            expr = site.call[2][position] if position < len(site.call[2]) else None
        if expr is None:
            return None if parameter.is_optional or len(site.call[2]) == 0 else 0
        value = self._inference.value(expr, At(function, site.seq, site.block))
        if value.kind in ("list", "tuple"):
            value = element(value)
        if value.kind == "none" or (value.where in HOST):
            return None
        return value.trust if value.accelerated or value.where is not None else 0

    @staticmethod
    def _trust(operand: Places | None, of_argument: Callable[[int], int | None]) -> int | None:
        """How far an operand is believed to live on the device; None where it does not."""
        if operand is None:
            return 2
        told: list[int] = []
        for place in operand:
            found = of_argument(place) if isinstance(place, int) else {"device": 2, "?": 0}.get(place)
            if found is not None:
                told.append(found)
        if not told:
            return None
        return max(told) if len(operand) == 1 else min(max(told), 1)

    # -- lines of C++ --

    def _lines(self) -> Iterator[CxxLine]:
        best: dict[tuple[str, int], CxxLine] = {}

        def offer(line: CxxLine) -> None:
            key = (line.wait.unit.path, line.wait.pos)
            known = best.get(key)
            if known is None or _rank(line) < _rank(known):
                best[key] = line

        called = {
            (wait.unit.path, wait.pos)
            for call in self._all_calls
            for unit in call.units
            for wait in self._waits.of(unit)
        }
        for wait in self._waits.own():
            trust = self._trust(wait.operand, lambda position: 0)
            if trust or (trust is not None and (wait.unit.path, wait.pos) not in called):
                heat = Heat.COLD if self._waits.is_cold(wait.unit) else Heat.UNREACHED
                offer(CxxLine(wait, min(trust, wait.trust), heat, None, ()))
        for call in self.calls:
            heat = self._heat().heat(call.function, call.site.block)
            row = row_of(call.site.call[4])
            root, chain = self._heat().chain(call.function, row, f"calls `{wording(call.site.call[1])}` of C++")
            for wait in call.waits:
                offer(
                    CxxLine(
                        wait,
                        wait.trust,
                        heat,
                        root,
                        (*chain, *wait.hops, wait.hop("synchronises here")) if chain else (),
                    )
                )
        for unit, why in self._roots():
            first = Hop(unit.path, unit.function.at.row, f"hot root `{unit.name}` ({why})")
            for wait in self._waits.of(unit):
                trust = self._trust(wait.operand, lambda position: 1)
                if trust is not None:
                    chain = (first, *wait.hops, wait.hop("synchronises here"))
                    offer(CxxLine(wait, min(trust, wait.trust), Heat.HOT, unit.name, chain))
        yield from sorted(best.values(), key=lambda line: (line.wait.unit.path, line.wait.pos))

    def _roots(self) -> Iterator[tuple[Unit, str]]:
        """C++ functions that are hot roots by a marker or by a given name."""
        wanted = Patterns(self._hot)
        for unit in self._values.units():
            if wanted and named_by(wanted, unit):
                yield unit, "given as hot root"
            elif self._values.marked(unit) == "hot":
                yield unit, "marked hot"

    def has_roots(self) -> bool:
        """Whether any C++ function is a hot root."""
        return any(True for _ in self._roots())

    def named(self, name: str) -> bool:
        """Whether a root that is given by name is a C++ function."""
        wanted = Patterns([name])
        return any(named_by(wanted, unit) for unit in self._values.units())


def named_by(patterns: Patterns, unit: Unit) -> bool:
    """Whether a pattern matches the end of a function's name."""
    name = [part for part in (unit.function.owner, unit.function.name) if part]
    return any(ends(name, pattern) for pattern in patterns.ending(unit.function.name))


def _rank(line: CxxLine) -> tuple[int, int, int]:
    """Hotter before colder, then more certain, then the shorter way."""
    return (_HEATS.index(line.heat), -line.trust, len(line.chain))
