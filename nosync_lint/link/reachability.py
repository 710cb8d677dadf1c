"""Why a line is hot or not: the chain from a hot root, or what stands between the line and every root."""

from __future__ import annotations

from dataclasses import replace

from nosync_lint.answers import HeatAnswer, Step
from nosync_lint.finding import Hop
from nosync_lint.index.records import Expr, row_of
from nosync_lint.link.calls import Binding
from nosync_lint.link.flow import enclosing
from nosync_lint.link.heat import HeatMap
from nosync_lint.link.inference import Inference
from nosync_lint.link.names import At
from nosync_lint.link.project import Function, Project
from nosync_lint.link.sources import Sources
from nosync_lint.link.summary_sources import called, place_of
from nosync_lint.link.wording import outline, wording

UPWARDS = 3
"""Callers that no root reaches are followed this many calls up."""
SHOWN = 4
"""At most this many callers of one function are told."""

_GUARDS = {
    "debug": "under a debug switch",
    "platform": "in a branch for another platform",
    "error": "in a branch that ends in an exception",
}


class Reachability:
    """Asks the heat map for reasons."""

    def __init__(self, project: Project, inference: Inference, heat: HeatMap, sources: Sources) -> None:
        self._project, self._inference, self._heat, self._sources = project, inference, heat, sources
        self._roots = heat.roots

    def of(self, function: Function, block: int, row: int) -> HeatAnswer:
        """How often a row of a block runs, and why."""
        heat = self._heat.heat(function, block)
        while (
            function.record.form == "lambda" and function.parent is not None and function.number not in self._heat.hot
        ):
            function, block = function.parent, 0
        if function.number in self._heat.hot:
            _, chain = self._heat.chain(function, row, "this line")
            guard = self.guard(function, block)
            return HeatAnswer(
                heat, f"`{called(function)}` is hot, but this line stands {guard}" if guard else "", chain
            )
        why = self._stop(function)
        callers = self._callers(function, UPWARDS, frozenset())
        if why is None:
            why = f"no hot root reaches `{called(function)}`"
            if not callers:
                why += f": {self._unreached(function)}"
        else:
            why = f"`{called(function)}`: {why}"
        return HeatAnswer(heat, why, (), callers)

    def guard(self, function: Function, block: int) -> str | None:
        """Where a block stands that makes it rare, in words; None where it runs as often as its function."""
        blocks = function.record.blocks
        for number in reversed(enclosing(blocks, block)):
            rare = self._roots.rare_block(function, number)
            if rare is not None:
                test = blocks[number].test
                return _GUARDS[rare] + (f", `{_condition(test, blocks[number].form)}`" if test is not None else "")
        return None

    def _stop(self, function: Function) -> str | None:
        """What of a function itself keeps heat out."""
        elsewhere = self._roots.why_elsewhere(function)
        if elsewhere is not None:
            return f"never runs on a CUDA host: {elsewhere}"
        return self._roots.why_cold(function)

    def _callers(self, function: Function, left: int, seen: frozenset[int]) -> tuple[Step, ...]:
        """The calls that may run a function, each with what keeps it from being hot."""
        first: dict[int, Binding] = {}
        for binding in sorted(self._inference.callers(function), key=lambda one: place_of(one.caller, one.site)):
            if binding.caller.number not in seen and binding.caller is not function:
                first.setdefault(binding.caller.number, binding)
        hot = self._heat.hot
        bindings = sorted(
            first.values(), key=lambda one: (one.caller.number not in hot, place_of(one.caller, one.site))
        )
        steps = [self._caller(one, left, seen | {function.number}) for one in bindings[:SHOWN]]
        if len(bindings) > SHOWN:
            steps[-1] = replace(steps[-1], more=f"and {len(bindings) - SHOWN} more callers")
        return tuple(steps)

    def _caller(self, binding: Binding, left: int, seen: frozenset[int]) -> Step:
        caller, row = binding.caller, row_of(binding.site.call[4])
        note = f"`{called(caller)}` calls it"
        stop = self._stop(caller)
        steps: tuple[Step, ...] = ()
        end = ""
        if caller.number in self._heat.hot:
            guard = self.guard(caller, binding.site.block)
            state = f"hot, but this call stands {guard}" if guard else "hot"
        elif stop is not None:
            state = stop
        else:
            state = "unreached"
            if left > 1:
                steps = self._callers(caller, left - 1, seen)
                end = "" if steps else self._unreached(caller)
        return Step(caller.module.file.name, row, note, state, steps, end)

    def _unreached(self, function: Function) -> str:
        """Why no caller is known, and where the function is handed on as a value."""
        told = self._sources.uncalled(function)
        hop = self._mention(function)
        if hop is None:
            return told
        where = f"{hop.filename}:{hop.row} {hop.note}"
        return f"{told}; it is handed on as a value at {where}, and such calls are not followed"

    def _mention(self, function: Function) -> Hop | None:
        """The first call that is given a function under its name."""
        name, form = function.record.name, "name" if function.cls is None else "attr"
        for other in sorted(self._project.functions, key=lambda one: (one.module.file.name, one.record.pos)):
            for site in other.record.calls:
                for expr in (*site.call[2], *(value for _, value in site.call[3])):
                    if expr[0] == form and expr[-1] == name:
                        value = self._inference.value(expr, At(other, site.seq, site.block))
                        if value.kind in ("function", "method") and function.number in value.ref:
                            return Hop(other.module.file.name, row_of(site.call[4]), f"`{outline(site.call)}`")
        return None


def _condition(test: Expr, form: str) -> str:
    return f"{'else of ' if form == 'else' else ''}if {wording(test)}"
