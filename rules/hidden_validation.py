"""A library function checks values on the device and reads the outcome back.

Why it matters
    Distributions validate their parameters, `clip_grad_norm_(error_if_nonfinite=True)` and anomaly detection look
    for NaN, `torch.cov`, `istft` and `searchsorted(sorter=...)` check their inputs. Nothing in the call says so.

Instead
    Switch the check off where the inputs are known to be good: `validate_args=False`, `error_if_nonfinite=False`;
    or check the returned value a step later.

Missed alarms
    Operands that nothing in the project shows to be a tensor on the device, and distributions that a caller made.

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
from nosync_lint.link.wording import describe, outline
from nosync_lint.rule import Judgement, Rule, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class HiddenValidation(Rule):
    code = "NSL212"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("hidden-validation",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        of = "values" if site.operand.kind == "unknown" else describe(site.operand)
        yield waits(site, program, f"`{outline(site.expr)}` checks {of}, reads the outcome back")
