"""`.tolist()` on a device tensor copies all of it back and waits.

Why it matters
    One copy whatever the size, and it is queued behind everything else.

Instead
    One batched copy after the loop, or a pinned buffer with `non_blocking=True` and an event. Often the numbers are
    known on the host already.

Missed alarms
    Operands that nothing in the project shows to be a tensor on the device, and reads of a `storage()`.

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


class TolistRead(Rule):
    code = "NSL202"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("tolist-read",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        read = spelled(site.spelled)
        early = f'{receiver(read)}.to("cpu", non_blocking=True)' if read else "a copy with non_blocking=True"
        cure = f"{early} and an event after it; .tolist() of that copy once the event has passed, a step later"
        yield waits(site, program, f"`{outline(site.expr)}` copies {describe(site.operand)} back", cure=cure)
