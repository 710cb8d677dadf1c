"""Builtin `min`, `max`, `sorted`, `any` and `all` over device tensors read every element back.

Why it matters
    Python compares element by element, and each comparison is a truth test on the device.

Instead
    `t.max()`, `t.any()`, `torch.sort(t)`; for separate tensors `torch.stack(list).max()` or `torch.maximum(a, b)`.

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
from nosync_lint.link.syncs import Sync
from nosync_lint.link.wording import describe, outline, receiver, spelled
from nosync_lint.rule import Judgement, Rewrite, Rule, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class BuiltinOverDeviceTensor(Rule):
    code = "NSL206"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("builtin-over-device-tensor",)
    recipes = ("device-reduction",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        operand = describe(site.operand)
        if len(site.expr[2]) > 1:
            what = f"`{outline(site.expr)}` compares on the host, for which it reads {operand} back"
        elif site.operand.rank == 0:
            what = f"`{outline(site.expr)}` looks at one {operand.partition(' ')[2]} after the other"
        else:
            what = f"`{outline(site.expr)}` looks at one element after the other of {operand}"
        yield waits(site, program, what, cure=_cure(site), stops=", and waits for the stream each time")

    def fix(self, site: object, program: Program) -> Rewrite | None:
        assert isinstance(site, Sync)
        name, given = site.expr[1][-1], site.expr[2]
        module = program.local_name(site, "torch")
        if site.expr[1][0] != "name" or site.expr[3] or any(one[0] in ("star", "comp") for one in given):
            return None
        if len(given) == 2 and name in _PAIRS:
            function, bound = _PAIRS[name]
            numbers = [place for place, one in enumerate(given) if one[0] == "const"]
            if len(numbers) == 1:
                made = f"{{args[{1 - numbers[0]}]}}.clamp({bound}={{args[{numbers[0]}]}})"
            elif module and not numbers:
                made = f"{module}.{function}({{args[0]}}, {{args[1]}})"
            else:
                return None
        elif len(given) != 1 or name == "sorted":
            return None
        elif site.operand.rank == 0:
            made = f"{module}.stack({{args[0]}}).{name}()" if module else ""
        else:
            made = f"{{args[0]}}.{name}()"
        message = "Reduce on the device"
        return Rewrite("device-reduction", Applicability.UNSAFE, message, made) if made else None


_PAIRS = {"max": ("maximum", "min"), "min": ("minimum", "max")}


def _cure(site: Sync) -> str:
    """The reduction of torch; empty where a part cannot be spelled out."""
    name, given = site.expr[1][-1], site.expr[2]
    first, *others = [spelled(one) or "..." for one in given]
    if others and name in _PAIRS:
        function, bound = _PAIRS[name]
        constants = [one for one, expr in zip([first, *others], given, strict=True) if expr[0] == "const"]
        tensors = [one for one in (first, *others) if one not in constants]
        if len(tensors) == len(constants) == 1:
            return f"{receiver(tensors[0])}.clamp({bound}={constants[0]})"
        return f"torch.{function}({first}, {others[0]})" if len(others) == 1 and not constants else ""
    over = f"torch.stack({first})" if site.operand.rank == 0 else receiver(first)
    return f"torch.sort({over}).values" if name == "sorted" else f"{over}.{name}()"
