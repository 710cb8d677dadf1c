"""An optimizer, scheduler or gradient scaler reads a device value back in every step.

Why it matters
    `GradScaler.step` reads whether gradients overflowed, `get_scale` reads the scale, ASGD, Adafactor and LBFGS
    read their state, and a plateau scheduler reads its metric.

Instead
    A fused optimizer (`fused=True` handles overflow on the device), bfloat16 without a scaler, `capturable=True`
    where there is one, and a metric that was copied back before.

Missed alarms
    Optimizers made by factories that the project does not hold, and learning rates that are device tensors.

False alarms
    Optimizers that are fused by a setting which the program text does not show.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Severity
from nosync_lint.link.program import Program
from nosync_lint.link.syncs import Sync
from nosync_lint.link.wording import outline
from nosync_lint.rule import Judgement, Rule, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class OptimizerReadsDevice(Rule):
    code = "NSL213"
    since = "0.1.0"
    severity = Severity.WARNING
    sites = ("optimizer-reads-device",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        yield waits(site, program, f"`{outline(site.expr)}` reads a value of the training state back")
