"""A library function builds small tensors on the host and copies them to the device.

Why it matters
    `torch.unravel_index`, the functions of `torch.masked`, signal windows, nested tensors and CTC losses make
    constants or offsets with blocking copies. Nothing in the call says so.

Instead
    What the finding names: integer division instead of `unravel_index`, `torch.where` instead of `torch.masked`,
    `torch.hann_window` instead of `torch.signal.windows.hann`; or once, outside the step.

Missed alarms
    Operands that nothing in the project shows to be a tensor on the device, and losses that are made as modules.

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
from nosync_lint.link.wording import outline
from nosync_lint.rule import Judgement, Rule, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class HiddenUpload(Rule):
    code = "NSL108"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("hidden-upload",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        yield waits(
            site, program, f"`{outline(site.expr)}` copies a small tensor of its own from the host to the device"
        )
