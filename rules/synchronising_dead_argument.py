"""A value is read back from the device for a parameter that no function reads.

Why it matters
    The wait is paid on every call, and buys nothing: each function that the call may run ignores the argument.

Instead
    Drop the argument, or the parameter; or give what is known on the host.

Missed alarms
    Calls that cannot be resolved, arguments behind `*` and `**`, and decorators that this tool does not know.

False alarms
    Overrides outside the linked project that do read the parameter.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Severity
from nosync_lint.link.dead_arguments import DeadArgument
from nosync_lint.link.program import Program
from nosync_lint.link.wording import wording
from nosync_lint.rule import Judgement, Rule

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class SynchronisingDeadArgument(Rule):
    code = "NSL505"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("dead-argument",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.OneOf(m.Call(), m.Subscript(), m.Comparison(), m.BooleanOperation(), m.UnaryOperation(), m.IfExp())

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, DeadArgument)
        sync, callees = site.sync, site.callees
        names = f"`{callees[0].record.qualname}` never reads"
        if len(callees) > 1:
            names = f"{len(callees)} functions that the call may run never read"
        through = f", through `{site.name}`," if site.name is not None else ""
        yield Judgement(
            message=f"`{wording(sync.expr)}` waits {program.when(sync.verdict)} for an argument{through} that is not "
            f"used: {names} `{site.parameter}`",
            cure=f"drop `{site.parameter}`, or pass a number that the host already knows",
            confidence=sync.verdict.confidence,
            evidence=program.evidence(sync.operand),
            related=tuple(program.hop(one, f"never reads `{site.parameter}`") for one in callees),
        )
