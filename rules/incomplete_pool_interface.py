"""A pool lacks something that is asked of its family: a method, or layer 0 of a stage that starts later.

Why it matters
    Pools of one family are exchanged by configuration. A class that lacks a method its consumers call fails when that
    configuration starts, and a buffer looked up at layer 0 fails, or is another layer's, in every stage of a pipeline
    but the first.

Instead
    Give the class the method that its siblings have, handing it on where it stands for another pool; ask for the layer
    at which the stage starts.

Missed alarms
    Classes with bases outside the project, instances that are handed out by registries, and consumers behind a test
    that the place where the instances are made does not know.

False alarms
    Consumers that a configuration this tool does not see keeps away from the class.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Confidence, Severity
from nosync_lint.link.layers import LiteralLayer
from nosync_lint.link.pools import MissingMethod, UnwrittenMethod
from nosync_lint.link.program import Program
from nosync_lint.link.wording import listed, wording
from nosync_lint.rule import Judgement, Rule

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class IncompletePoolInterface(Rule):
    code = "NSL506"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("missing-method", "unwritten-method", "literal-layer")
    heated = False

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        yield _judged(site, program)


def _judged(site: object, program: Program) -> Judgement:
    if isinstance(site, UnwrittenMethod):
        return _unwritten(site, program)
    return _lacks(site, program) if isinstance(site, MissingMethod) else _literal(site, program)


def _unwritten(site: UnwrittenMethod, program: Program) -> Judgement:
    name, method = site.cls.record.name, site.method.record.name
    owners = list(dict.fromkeys(one.cls.record.name for one in site.siblings if one.cls is not None))
    return Judgement(
        message=f"`{name}` has no `{method}` but the declaration in `{site.method.record.qualname}`, and "
        f"{listed(owners)} define{'s' if len(owners) == 1 else ''} it: no instance can be made",
        cure=f"define `{method}` in `{name}`",
        confidence=Confidence.LIKELY,
        flow=(program.hop(site.method, "is declared here"),),
        related=tuple(program.hop(one, "a sibling that has it") for one in site.siblings),
    )


def _lacks(site: MissingMethod, program: Program) -> Judgement:
    method = site.site.call[1][-1]
    names = [one.cls.record.name for one in site.missing]
    made = [program.call_hop(one.function, one.site, f"an instance of `{one.cls.record.name}`") for one in site.missing]
    owners = [one.cls.record.name for one in site.siblings if one.cls is not None]
    return Judgement(
        message=f"{listed(names)} may get here and {'has' if len(names) == 1 else 'have'} no `{method}`, "
        f"which {listed(owners)} define",
        cure=f"define `{method}` in `{names[0]}`",
        confidence=Confidence.LIKELY,
        flow=(*made, program.call_hop(site.function, site.site, f"is asked for `{method}`")),
        related=tuple(program.hop(one, "a sibling that has it") for one in site.siblings),
    )


def _literal(site: object, program: Program) -> Judgement:
    assert isinstance(site, LiteralLayer)
    method, receiver = site.method.record.qualname, wording(site.site.call[1][1])
    return Judgement(
        message=f"`{wording(site.site.call)}` asks for layer 0, and `{method}` counts layers from `{site.first}`",
        cure=f"ask for the layer at `{receiver}.{site.first}`",
        confidence=Confidence.LIKELY,
        flow=(
            program.hop(site.method, f"counts from `{site.first}`"),
            program.call_hop(site.function, site.site, "is asked for layer 0"),
        ),
    )
