"""Linear algebra that checks its outcome reads an error code back.

Why it matters
    `inv`, `cholesky`, `solve` and decompositions run on the device, and then the host reads whether they succeeded. So
    do norms that are made of singular values.

Instead
    `torch.linalg.inv_ex`, `cholesky_ex`, `solve_ex`, ... with `check_errors=False`, and a look at `info` where the
    host waits anyway. Decompositions such as `eigh` and `svd` have no such variant.

Missed alarms
    Operands that nothing in the project shows to be a tensor on the device, orders and powers that are no literals,
    and waits inside cuSOLVER and MAGMA.

False alarms
    Tensors kept on the CPU for a reason that the program text does not show. Small matrices that are meant to be
    inverted on the host.
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


class CheckedLinalg(Rule):
    code = "NSL306"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("checked-linalg",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        what = f"`{wording(site.expr)}` of {describe(site.operand)} does not return before its outcome is known"
        yield waits(site, program, what)
