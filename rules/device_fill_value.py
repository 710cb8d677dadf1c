"""`masked_fill` and `index_fill` with a device value read the value back.

Why it matters
    The kernels take the value as an argument, so a 0-dim device tensor is turned into a number first. A fix is not
    in any release up to 2.15.

Instead
    `torch.where(mask, value, t)` for a mask, `t.index_put_((index,), value)` for an index.

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
from nosync_lint.link.rewriting import is_proven, runs_code
from nosync_lint.link.syncs import Sync
from nosync_lint.link.wording import describe, outline, receiver, spelled, wording
from nosync_lint.rule import Judgement, Rewrite, Rule, tier, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class DeviceFillValue(Rule):
    code = "NSL211"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("device-fill-value",)
    recipes = ("where-device-value", "put-device-value")

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        what = f"`{outline(site.expr)}` reads its value `{wording(site.spelled)}`, {describe(site.operand)}, back"
        yield waits(site, program, what, cure=_cure(site))

    def fix(self, site: object, program: Program) -> Rewrite | None:
        assert isinstance(site, Sync)
        _, func, given, words, _ = site.expr
        module, value = program.local_name(site, "torch"), "{args[value]}" if words else f"{{args[{len(given) - 1}]}}"
        if module is None or func[0] != "attr" or any(word != ("value", site.spelled) for word in words):
            return None
        target = program.value(site, func[1])
        same = is_proven(target) and is_proven(site.operand) and target.ref == site.operand.ref
        inside = func[2].endswith("_")
        if target.kind == "tensor" and site.verdict.row == "write.masked_fill.cuda_value":
            chosen = f"{module}.where({{args[0]}}, {value}, {{receiver}})"
            chosen = f"{{receiver}}.copy_({chosen})" if inside else chosen
            told = tier(same and not (inside and runs_code(func[1])) and site.operand.rank == 0)
            return Rewrite("where-device-value", told, "Choose between the tensor and the value", chosen)
        if target.kind != "tensor" or given[:1] != (("const", 0),) or len(given) + len(words) != 3:
            return None
        index = program.value(site, given[1])
        sure = same and is_proven(index) and index.ref == "int64" and index.rank in (0, 1)
        put = f"{{receiver}}.index_put{'_' if inside else ''}(({{args[1]}},), {value})"
        return Rewrite("put-device-value", tier(sure), "Store the value from the device", put)


def _cure(site: Sync) -> str:
    """The operation that takes a device value as it is; the text of the row where a part cannot be spelled out."""
    _, func, given, words, _ = site.expr
    if func[0] != "attr" or any(word != ("value", site.spelled) for word in words):
        return ""
    exprs = given if func[1] == ("name", "torch") else (func[1], *given)
    parts = [text for text in map(spelled, exprs) if text is not None]
    value = spelled(site.spelled)
    if len(parts) != len(exprs) or len(parts) < 2 or value is None:
        return ""
    target = receiver(parts[0])
    if site.verdict.row == "write.masked_fill.cuda_value":
        chosen = f"torch.where({parts[1]}, {value}, {parts[0]})"
        return f"{target}.copy_({chosen})" if func[2].endswith("_") else chosen
    put = "index_put_" if func[2].endswith("_") else "index_put"
    return f"{target}.{put}(({parts[2]},), {value})" if parts[1] == "0" and len(parts) > 2 else ""
