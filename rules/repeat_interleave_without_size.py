"""`repeat_interleave` with a tensor of repeats and no `output_size` reads the total back.

Why it matters
    The result is as long as the repeats add up to, which only the device knows.

Instead
    `output_size=n`, where the sum is known on the host. Else find the owner of each place of a result of fixed size by
    search: `torch.bucketize(places, repeats.cumsum(0), right=True)`.

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


class RepeatInterleaveWithoutSize(Rule):
    code = "NSL304"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("repeat-interleave-without-size",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        what = f"`{wording(site.expr)}` reads back what {describe(site.operand)} adds up to"
        text = spelled(site.expr)
        sized = f"{text[:-1]}, output_size=n)" if text is not None and "output_size" not in text else ""
        cure = f"{sized}, where n, the sum of the repeats, is known on the host" if sized else ""
        yield waits(site, program, what, cure=cure)
