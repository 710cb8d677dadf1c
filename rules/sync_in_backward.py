"""The backward of this operation reads values back, although its forward does not.

Why it matters
    The gradients of `prod` and `cumprod` look for zeros, that of `trace` reads the incoming gradient, that of
    `masked_scatter` selects by the mask. The wait is in `backward()`, far from this line.

Instead
    `x.log().sum().exp()` for the product of positive numbers, `x.diagonal().sum()` for the trace, a gather by position
    and `torch.where` for `masked_scatter`.

Missed alarms
    Functions that are no methods of a module, tensors that nothing shows to hold floating-point numbers, and projects
    in which nothing calls `backward`: modules that others train are only `possible`.

False alarms
    Results that no loss depends on.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Severity
from nosync_lint.link.program import Program
from nosync_lint.link.syncs import Sync
from nosync_lint.link.wording import describe, wording
from nosync_lint.rule import Judgement, Rule, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class SyncInBackward(Rule):
    code = "NSL307"
    since = "0.1.0"
    severity = Severity.WARNING
    sites = ("sync-in-backward",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        yield waits(
            site, program, f"the backward of `{wording(site.expr)}` looks at values of {describe(site.operand)}"
        )
