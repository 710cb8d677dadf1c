"""`torch.where` with a 0-dim tensor of the host copies it to the device and waits.

Why it matters
    Other element-wise operations take a 0-dim CPU tensor as a kernel argument; `where` moves it with a blocking
    copy.

Instead
    The Python number itself: `torch.where(mask, x, 0.0)`. It is filled on the device.

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
from nosync_lint.link.wording import describe, outline, receiver, spelled, wording
from nosync_lint.rule import Judgement, Rule, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode

    from nosync_lint.index.records import Expr


class HostScalarOperand(Rule):
    code = "NSL107"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("host-scalar-operand",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        scalar = f"`{wording(site.spelled)}`, {describe(site.operand)},"
        what = f"`{outline(site.expr)}` copies {scalar} to the device"
        yield waits(site, program, what, cure=_cure(site.spelled))


def _cure(scalar: Expr) -> str:
    """The Python number: the one that the tensor is made of where that is written down, or what is read on the host."""
    made = scalar[0] == "call" and scalar[1][-1] == "tensor" and len(scalar[2]) == 1
    number = spelled(scalar[2][0]) if made else None
    if number is not None:
        return f"pass the number: {number}"
    text = spelled(scalar)
    return f"pass a number: {receiver(text)}.item(), which does not wait on the host" if text else ""
