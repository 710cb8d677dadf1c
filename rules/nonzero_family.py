"""`nonzero`, `argwhere` and one-argument `where` read a count back.

Why it matters
    The shape of the result depends on the data, so the number of elements is read back before the result can be
    allocated.

Instead
    Stay with masks and `torch.where(mask, a, b)`; `torch.nonzero_static(t, size=n)` where an upper bound is known.

Missed alarms
    Operands that nothing in the project shows to be a tensor on the device.

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
from nosync_lint.link.wording import describe, spelled, wording
from nosync_lint.rule import Judgement, Rule, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class NonzeroFamily(Rule):
    code = "NSL302"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("nonzero-family",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        operand = spelled(site.spelled) or "t"
        yield waits(
            site,
            program,
            f"`{wording(site.expr)}` reads back how many elements of {describe(site.operand)} are not zero",
            cure=f"torch.nonzero_static({operand}, size=n) where n is known to be enough (the rest is filled with -1); "
            "or stay with the mask: `torch.where(mask, a, b)`",
        )
