"""`torch.equal` and `torch.allclose` read the outcome of a comparison back.

Why it matters
    They return a Python bool, which is known when everything queued before has run.

Instead
    `(a == b).all()` or `torch.isclose(a, b).all()`, kept on the device.

Missed alarms
    Operands that nothing in the project shows to be a tensor on the device.

False alarms
    Tensors kept on the CPU for a reason that the program text does not show. `torch.equal` of tensors that differ
    in shape is decided on the host.
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


class HostComparison(Rule):
    code = "NSL210"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("host-comparison",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        what = f"`{outline(site.expr)}` compares {describe(site.operand)}, reads the outcome back"
        yield waits(site, program, what, cure=_cure(site))


def _cure(site: Sync) -> str:
    """The comparison whose outcome stays on the device; empty where a part cannot be spelled out."""
    func, given = site.expr[1], site.expr[2]
    if func[0] != "attr":
        return ""
    exprs = given[:2] if func[1] == ("name", "torch") else (func[1], *given)[:2]
    parts = [text for text in map(spelled, exprs) if text is not None]
    if func[2] == "is_nonzero" and len(parts) == 1:
        return f"{receiver(parts[0])} != 0, kept on the device"
    if len(parts) != 2 or func[2] not in ("equal", "allclose"):
        return ""
    if func[2] == "equal":
        return f"({receiver(parts[0])} == {receiver(parts[1])}).all(), kept on the device (where the shapes are equal)"
    return f"torch.isclose({', '.join(parts)}).all(), kept on the device"
