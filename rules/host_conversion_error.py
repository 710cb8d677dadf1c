"""`.numpy()` of a device tensor raises.

Why it matters
    There is no copy and no wait: numpy cannot see device memory, and torch says so with a TypeError.

Instead
    `t.cpu().numpy()`, with all that a copy costs.

Missed alarms
    Operands that nothing in the project shows to be a tensor on the device, and functions of numpy that convert.

False alarms
    Tensors kept on the CPU for a reason that the program text does not show.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Severity
from nosync_lint.link.program import Program
from nosync_lint.link.syncs import Sync
from nosync_lint.link.wording import describe, outline, receiver, spelled
from nosync_lint.rule import Judgement, Rule, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class HostConversionError(Rule):
    code = "NSL209"
    since = "0.1.0"
    severity = Severity.WARNING
    sites = ("host-conversion-error",)
    default = False

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        array = spelled(site.spelled)
        cure = f"{receiver(array)}.cpu().numpy(), with all that a copy costs" if array else ""
        what = f"`{outline(site.expr)}` raises, since numpy cannot read {describe(site.operand)}"
        yield waits(site, program, what, cure=cure, stops=",")
