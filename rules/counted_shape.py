"""A function that takes the size or range of its result from the values of a device tensor reads them back.

Why it matters
    `bincount`, `one_hot` without classes, `histc` without a range, `combinations` before torch 2.14 and sparse
    conversions allocate what the data says, so the host waits for the data. `minlength` does not spare `bincount` the
    look.

Instead
    State the size: `one_hot(x, num_classes=n)`, `histc(x, bins, min, max)`, `zeros(n).scatter_add_(0, x, ones)` for
    `bincount`, `size=` for sparse tensors.

Missed alarms
    Operands that nothing in the project shows to be a tensor on the device.

False alarms
    Tensors kept on the CPU for a reason that the program text does not show. `coalesce()` of what is coalesced already.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Applicability, Severity
from nosync_lint.link.program import Program
from nosync_lint.link.rewriting import argument_parts
from nosync_lint.link.syncs import Sync
from nosync_lint.link.wording import describe, wording
from nosync_lint.rule import Judgement, Rewrite, Rule, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class CountedShape(Rule):
    code = "NSL305"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("counted-shape",)
    recipes = ("num-classes",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        yield waits(
            site, program, f"`{wording(site.expr)}` takes the size or range of its result from {describe(site.operand)}"
        )

    def fix(self, site: object, program: Program) -> Rewrite | None:
        assert isinstance(site, Sync)
        given = argument_parts(site.expr, ("num_classes",))
        if site.verdict.row != "dyn.one_hot.auto" or given is None or len(site.expr[2]) > 1:
            return None
        sized = f"{{function}}({', '.join([*given, 'num_classes=...'])})"
        message = "State the number of classes, which is to be put in place of the dots"
        return Rewrite("num-classes", Applicability.DISPLAY, message, sized)
