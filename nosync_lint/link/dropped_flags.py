"""Copies that were to be asynchronous, and functions that take the flag and make them without it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nosync_lint.index.records import CallSite
from nosync_lint.link.call_models import CallModels, Given
from nosync_lint.link.dead_arguments import ignores
from nosync_lint.link.inference import Inference
from nosync_lint.link.names import At
from nosync_lint.link.parts import within
from nosync_lint.link.project import Function, Project


class DroppedFlag(NamedTuple):
    """A call that asks for asynchronous copies, by `flag`, of a function that never reads it and makes `copy` without
    it."""

    function: Function
    site: CallSite
    flag: str
    callee: Function
    copy: CallSite


class DroppedFlags:
    """Compares what is asked of functions that copy with what they ask of the copies."""

    def __init__(self, project: Project, inference: Inference) -> None:
        self._project, self._inference = project, inference
        self._copies = CallModels().copy_methods
        self._flags = {copy.flag.name for copy in self._copies.values()}

    def __iter__(self) -> Iterator[DroppedFlag]:
        """The calls whose flag is lost, in project order."""
        for function in self._project.reported:
            for site in function.record.calls:
                for name, value in site.call[3]:
                    if name in self._flags and value == ("const", True):
                        yield from self._dropped(function, site, name)

    def _dropped(self, function: Function, site: CallSite, flag: str) -> Iterator[DroppedFlag]:
        """The first copy for which no function that a call may run hands its flag on."""
        found: list[DroppedFlag] = []
        for target in self._inference.targets(function, site):
            callee = self._project.functions[target.function]
            if callee.record.flags & {"stub", "abstract"}:
                continue
            index = callee.parameter(flag)
            if index is None or not ignores(callee, index):
                return
            found += [DroppedFlag(function, site, flag, callee, copy) for copy in self._plain_copies(callee, flag)]
        yield from found[:1]

    def _plain_copies(self, callee: Function, flag: str) -> Iterator[CallSite]:
        """The copies of tensors in a function that take such a flag and are not given it, to where a parameter says."""
        given = {one.name for one in callee.record.parameters} - {flag}
        for site in callee.record.calls:
            func = site.call[1]
            copy = self._copies.get(func[2]) if func[0] == "attr" else None
            if copy is None or copy.flag.name != flag or Given(site.call, func[1]).find(copy.flag) is not None:
                continue
            arguments = (*site.call[2], *(value for _, value in site.call[3]))
            mentioned = {part[1] for argument in arguments for part in within(argument) if part[0] == "name"}
            if mentioned & given and self._inference.value(func[1], At(callee, site.seq, site.block)).kind == "tensor":
                yield site
