"""`.item()` on a device tensor reads one element back and waits for it.

Why it matters
    The element is there when everything queued before it has run: the host stands still until the stream has
    drained.

Instead
    Keep the 0-dim tensor on the device. Where the host needs the number, copy it into a pinned buffer with
    `non_blocking=True`, record an event, and read it a step later.

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
from nosync_lint.link.wording import describe, outline, spelled
from nosync_lint.rule import Judgement, Rule, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class ItemRead(Rule):
    code = "NSL201"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("item-read",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        read = spelled(site.spelled)
        kept = f"keep {read or 'the 0-dim tensor'} on the device"
        cure = f"{kept}; where the host needs the number, copy it with non_blocking=True and read that a step later"
        yield waits(site, program, f"`{outline(site.expr)}` reads {describe(site.operand)} back", cure=cure)
