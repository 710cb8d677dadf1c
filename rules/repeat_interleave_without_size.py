"""`repeat_interleave` with a tensor of repeats and no `output_size` reads the total back.

Why it matters
    The result is as long as the repeats add up to, which only the device knows.

Instead
    `output_size=n`, where the sum is known on the host. Else find the owner of each place of a result of fixed size by
    search: `torch.bucketize(places, repeats.cumsum(0), right=True)`.

Missed alarms
    Operands that nothing in the project shows to be a tensor on the device.

False alarms
    Tensors kept on the CPU for a reason that the program text does not show.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Applicability, Severity
from nosync_lint.link.program import Program
from nosync_lint.link.rewriting import argument_parts, runs_code
from nosync_lint.link.syncs import Sync
from nosync_lint.link.values import Value
from nosync_lint.link.wording import describe, spelled, wording
from nosync_lint.rule import Judgement, Rewrite, Rule, tier, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class RepeatInterleaveWithoutSize(Rule):
    code = "NSL304"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("repeat-interleave-without-size",)
    recipes = ("output-size",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        what = f"`{wording(site.expr)}` reads back what {describe(site.operand)} adds up to"
        text = spelled(site.expr)
        sized = f"{text[:-1]}, output_size=n)" if text is not None and "output_size" not in text else ""
        cure = f"{sized}, where n, the sum of the repeats, is known on the host" if sized else ""
        yield waits(site, program, what, cure=cure)

    def fix(self, site: object, program: Program) -> Rewrite | None:
        assert isinstance(site, Sync)
        given = argument_parts(site.expr)
        if given is None:
            return None
        for part, repeats in zip(given, (*site.expr[2], *(value for _, value in site.expr[3])), strict=True):
            made = repeats[0] == "call" and repeats == site.spelled and repeats[1][-1] == "tensor" and repeats[2]
            counts = program.value(site, repeats[2][0]) if made else None
            if counts is not None and counts.kind in ("list", "tuple") and not runs_code(repeats[2][0]):
                total = f"sum({part.partition('=')[2] or part}".replace("}", ".args[0]})")
                sure = counts.trust == 2 and isinstance(counts.items, Value) and counts.items.kind == "int"
                sized = f"{{function}}({', '.join([*given, f'output_size={total}'])})"
                return Rewrite("output-size", tier(sure), "State the size, which the host knows", sized)
        sized = f"{{function}}({', '.join([*given, 'output_size=...'])})"
        message = "State the sum of the repeats, which is to be put in place of the dots"
        return Rewrite("output-size", Applicability.DISPLAY, message, sized)
