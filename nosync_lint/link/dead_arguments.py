"""Arguments that nobody reads: computed by a wait, and given to a parameter that no function which may run uses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nosync_lint.index.records import CallSite, Expr
from nosync_lint.link.calls import Binding, bind
from nosync_lint.link.inference import Inference
from nosync_lint.link.parts import statements, within
from nosync_lint.link.project import Function, Project
from nosync_lint.link.syncs import Sync
from nosync_lint.models import load


class DeadArgument(NamedTuple):
    """A wait that is made for an argument which no callee reads. `name` is the variable that holds it in between."""

    sync: Sync
    call: CallSite
    parameter: str
    callees: tuple[Function, ...]
    name: str | None

    @property
    def function(self) -> Function:
        return self.sync.function


class DeadArguments:
    """Compares what is computed for a call with what the functions it may run read."""

    def __init__(self, project: Project, inference: Inference, syncs: Sequence[Sync]) -> None:
        self._project, self._inference = project, inference
        self._syncs: dict[int, list[Sync]] = defaultdict(list)
        for sync in syncs:
            self._syncs[sync.function.number].append(sync)

    def __iter__(self) -> Iterator[DeadArgument]:
        """Waits made for nothing, each once, in project order."""
        for number, syncs in sorted(self._syncs.items()):
            function = self._project.functions[number]
            calls: dict[int, list[CallSite]] = defaultdict(list)
            for call in function.record.calls:
                calls[call.seq].append(call)
            variables: dict[int, list[tuple[str, Expr]]] = defaultdict(list)
            for name, definitions in function.record.definitions.items():
                if len(definitions) == 1 and "~" not in name:
                    variables[definitions[0].seq].append((name, definitions[0].value))
            found: dict[int, DeadArgument] = {}
            for sync in syncs:
                for call, argument, variable in self._given(sync, calls[sync.seq], variables[sync.seq]):
                    dead = self._unread(sync, call, argument, variable)
                    if dead is not None:
                        found.setdefault(sync.pos, dead)
            yield from (found[pos] for pos in sorted(found))

    @staticmethod
    def _given(
        sync: Sync, calls: Sequence[CallSite], variables: Sequence[tuple[str, Expr]]
    ) -> Iterator[tuple[CallSite, Expr, str | None]]:
        """The arguments that a wait is made for: those it stands in, or a variable that is only given to one call."""
        for call in calls:
            if call.call != sync.expr:
                for argument in _arguments(call):
                    if any(part == sync.expr for part in within(argument)):
                        yield call, argument, None
        for name, value in variables:
            if any(part == sync.expr for part in within(value)):
                yield from _only_use(sync.function, name)

    def _unread(self, sync: Sync, call: CallSite, argument: Expr, name: str | None) -> DeadArgument | None:
        """Whether no function that a call may run reads an argument."""
        function = sync.function
        parameters: list[str] = []
        callees: list[Function] = []
        for target in self._inference.targets(function, call):
            callee = self._project.functions[target.function]
            if callee.record.flags & {"stub", "abstract"}:
                continue
            index = next(
                (
                    place
                    for place in range(len(callee.record.parameters))
                    if bind(callee, Binding(function, call, target.bound), place) is argument
                ),
                None,
            )
            if index is None or not ignores(callee, index):
                return None
            parameters.append(callee.record.parameters[index].name)
            callees.append(callee)
        return DeadArgument(sync, call, parameters[0], tuple(callees), name) if callees else None


def ignores(callee: Function, index: int) -> bool:
    """Whether a function never reads a parameter, and nothing around it does."""
    record = callee.record
    parameter, form = record.parameters[index][:2]
    plain: list[str] = load("contracts")["classes"]["plain_decorators"]
    decorators = {path[1][-1] if path[0] == "call" else path[-1] for path in record.decorators}
    read = {parameter, "locals"} & record.reads or form in ("args", "kwargs")
    return not read and decorators <= set(plain)


def _arguments(call: CallSite) -> Iterator[Expr]:
    yield from call.call[2]
    yield from (value for _, value in call.call[3])


def _only_use(function: Function, name: str) -> Iterator[tuple[CallSite, Expr, str]]:
    """The one call that a variable is given to, where nothing else reads it."""
    record = function.record
    variable = ("name", name)
    if name in record.globals or any(
        name in inner.record.reads for inner in function.module.functions if inner.parent is function
    ):
        return
    calls = [call for call in record.calls if any(argument == variable for argument in _arguments(call))]
    if len(calls) != 1:
        return
    uses = {seq for seq, expr in statements(record) if any(part == variable for part in within(expr))}
    if uses == {calls[0].seq}:
        given = [argument for argument in _arguments(calls[0]) if argument == variable]
        everywhere = [part for part in within(calls[0].call) if part == variable]
        if len(given) == 1 and len(everywhere) == 1:
            yield calls[0], given[0], name
