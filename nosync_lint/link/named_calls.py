"""Calls by what they call, for rules that the models know nothing of: those of other distributions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nosync_lint.index.records import CallSite
from nosync_lint.link.inference import Inference
from nosync_lint.link.names import At
from nosync_lint.link.project import Function, Project
from nosync_lint.link.values import UNKNOWN, Value
from nosync_lint.link.wording import wording


class NamedCall(NamedTuple):
    """A call, and the function it stands in."""

    function: Function
    site: CallSite

    @property
    def spelled(self) -> str:
        """What is called, as it is written."""
        return wording(self.site.call[1])

    @property
    def at(self) -> At:
        return At(self.function, self.site.seq, self.site.block)


def named_calls(project: Project) -> Iterator[NamedCall]:
    """Every call of the reported files."""
    for function in project.reported:
        for site in function.record.calls:
            yield NamedCall(function, site)


def called(call: NamedCall, project: Project, inference: Inference) -> tuple[str, ...]:
    """The qualified names of what a call may run: functions of the project, or something from outside of it."""
    targets = {project.functions[target.function].name for target in inference.targets(call.function, call.site)}
    value = inference.value(call.site.call[1], call.at)
    return (*sorted(targets), value.ref) if value.kind == "extern" else tuple(sorted(targets))


def argument(call: NamedCall, position: int, name: str, inference: Inference) -> Value:
    """What is known of an argument, by its position or its name; unknown where it is not given as either."""
    words = dict(call.site.call[3])
    given = call.site.call[2]
    if name in words:
        return inference.value(words[name], call.at)
    if position < len(given) and not any(one[0] == "star" for one in given[: position + 1]):
        return inference.value(given[position], call.at)
    return UNKNOWN
