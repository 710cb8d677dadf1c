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

from nosync_lint.finding import Applicability, Severity
from nosync_lint.link.program import Program
from nosync_lint.link.rewriting import argument_parts
from nosync_lint.link.syncs import Sync
from nosync_lint.link.wording import describe, wording
from nosync_lint.rule import Judgement, Rewrite, Rule, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class CheckedLinalg(Rule):
    code = "NSL306"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("checked-linalg",)
    recipes = ("unchecked-linalg",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        what = f"`{wording(site.expr)}` of {describe(site.operand)} does not return before its outcome is known"
        yield waits(site, program, what)

    def fix(self, site: object, program: Program) -> Rewrite | None:
        assert isinstance(site, Sync)
        func, module = site.expr[1], program.local_name(site, "torch")
        given = argument_parts(site.expr, ("check_errors",))
        if func[0] != "attr" or given is None or any(word == "out" for word, _ in site.expr[3]):
            return None
        name, told, message = func[2], Applicability.UNSAFE, "Leave out the check, which waits for the outcome"
        if site.verdict.row == "la.check_asked":
            return Rewrite("unchecked-linalg", told, message, f"{{receiver}}.{name}({', '.join(given)})")
        if name in ("inverse", "cholesky") and module is not None and program.value(site, func[1]).kind == "tensor":
            given = ["{receiver}", *given]
        variant = {**_VARIANTS, "inverse": _VARIANTS["inv"]}.get(name)
        if module is None or variant is None:
            return None
        return Rewrite(
            "unchecked-linalg", told, message, f"{module}.linalg.{variant[0]}({', '.join(given)}){variant[1]}"
        )


_VARIANTS = {
    "inv": ("inv_ex", ".inverse"),
    "cholesky": ("cholesky_ex", ".L"),
    "solve": ("solve_ex", ".result"),
    "lu_factor": ("lu_factor_ex", "[:2]"),
    "ldl_factor": ("ldl_factor_ex", "[:2]"),
}
"""The functions that leave the check to the caller, and where their result stands."""
