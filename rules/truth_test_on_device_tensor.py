"""A device tensor as a condition is read back before the branch is taken.

Why it matters
    `if`, `while`, `assert`, `not`, `and`, `or`, `in` and chained comparisons call `bool()`, which reads the
    element.

Instead
    `torch.where` where both sides can be computed, `&` and `|` instead of `and` and `or`, `torch._assert_async` for
    checks; `is not None` where that is what is meant.

Missed alarms
    Operands that nothing in the project shows to be a tensor on the device.

False alarms
    Tensors kept on the CPU for a reason that the program text does not show.
"""

from __future__ import annotations

from collections.abc import Iterator

from nosync_lint.finding import Severity
from nosync_lint.link.program import Program
from nosync_lint.link.syncs import Sync
from nosync_lint.link.wording import describe, outline, receiver, spelled, wording
from nosync_lint.rule import Judgement, Rule, waits


class TruthTestOnDeviceTensor(Rule):
    code = "NSL204"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("truth-test-on-device-tensor",)

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        asked = f"`{wording(site.spelled)}`, {describe(site.operand)},"
        if site.expr[0] == "cmp" and site.verdict.row != _CALLED:
            what = f"`{outline(site.expr)}` compares {asked} reads the outcome back"
        else:
            what = f"a condition reads the truth of {asked} back"
        yield waits(site, program, what, cure=_cure(site))


_CALLED = "d2h.bool"


def _cure(site: Sync) -> str:
    """What keeps the answer on the device, by how it is asked."""
    asked = spelled(site.spelled)
    expr = site.expr
    if asked is None:
        return ""
    if site.verdict.row == "d2h.in_list":
        held = spelled(expr[3][0]) if expr[0] == "cmp" else None
        same = f"any(one is {asked} for one in {held})" if held else "a comparison by `is`"
        return f"{same} where the tensor itself is meant; otherwise numbers that the host knows"
    if site.verdict.row == "d2h.contains":
        item = spelled(expr[2])
        return f"({receiver(asked)} == {item}).any(), kept on the device" if item else ""
    if site.verdict.row == "d2h.chained_cmp":
        sides = [expr[2], *expr[3]]
        pairs = [
            spelled(("cmp", (op,), left, (right,)))
            for op, left, right in zip(expr[1], sides[:-1], sides[1:], strict=True)
        ]
        return " & ".join(f"({pair})" for pair in pairs) if all(pairs) else ""
    if site.verdict.row == "d2h.cond":
        return f"torch.where({asked}, ...) with both sides computed, or torch.cond in a compiled region"
    return (
        f"torch.where({asked}, ...) where both sides can be computed, & and | in place of and/or, "
        "torch._assert_async for a check"
    )
