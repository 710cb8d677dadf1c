"""De-duplicating a device tensor reads the number of distinct values back to the host.

Why it matters
    The shape of the result depends on the data, so `torch.unique` waits for everything queued before it can return.
    On a free path that is a full drain of the stream per freed request.

Instead
    Nothing has the same contract. Where the position of the values is known, take representatives by slicing
    (`pages = tokens[::page_size] // page_size`); else sort and keep a mask of the first of each run, which has a
    fixed shape.

Missed alarms
    Operands that nothing shows to be a tensor on the device.

False alarms
    Tensors kept on the CPU for a reason that the program text does not show.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Severity
from nosync_lint.link.program import Program
from nosync_lint.link.syncs import Sync
from nosync_lint.link.wording import describe, wording
from nosync_lint.rule import Judgement, Rule, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class DedupOnDevice(Rule):
    code = "NSL301"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("dedup-on-device",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        message = f"`{wording(site.expr[1])}` of {describe(site.operand)} reads the number of distinct values back"
        judgement = waits(site, program, message, cure=_CURE)
        yield replace(judgement, sink=program.sink(site.function, site.pos))


_CURE = (
    "take one representative per page or segment by slicing where positions are known; else sort and mask the first of "
    "each run"
)
