"""Selecting by a device mask reads back how many elements it holds.

Why it matters
    `t[mask]` and `masked_select` have a shape that depends on the data, and `t[mask] = values` with a device tensor
    needs the places. `t[mask] = 0` does not: it becomes `masked_fill_`.

Instead
    `torch.where(mask, t, fill)` keeps the shape; for a store `torch.where(mask, values, t)` or
    `t.masked_scatter_(mask, packed)`. Multiply by the mask where the result is summed.

Missed alarms
    Masks whose dtype nothing in the project shows, and lists of indices made before they are given to `index_put_`.

False alarms
    Tensors kept on the CPU for a reason that the program text does not show.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Applicability, Severity
from nosync_lint.link.program import Program
from nosync_lint.link.rewriting import is_proven, may_trade_places, runs_code
from nosync_lint.link.syncs import Sync
from nosync_lint.link.wording import describe, receiver, spelled, wording
from nosync_lint.rule import Judgement, Rewrite, Rule, tier, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class MaskSelect(Rule):
    code = "NSL303"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("mask-select",)
    recipes = ("where-device-value",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Subscript() | m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        expr = f"`{wording(site.expr)}`"
        if site.store is not None:
            what = f"storing into {expr} selects by a mask"
        else:
            counted = "" if site.verdict.because else ", whose count is read back"
            what = f"{expr} selects by {describe(site.operand)}{counted}"
        yield waits(site, program, what, cure=_stored(site) if site.store is not None else _taken(site))

    def fix(self, site: object, program: Program) -> Rewrite | None:
        assert isinstance(site, Sync)
        store, module = site.store, program.local_name(site, "torch")
        if store is None or module is None or not store.alone or store.write.op is not None:
            return None
        target, mask, write = store.target, store.shape.parts[0][1], store.write
        if store.value.kind != "tensor" or store.value.rank != 0 or runs_code(write.base):
            return None
        known = is_proven(target) and is_proven(mask) and target.rank == mask.rank is not None
        sure = known and is_proven(store.value) and may_trade_places(write.value, (write.base, write.subscript))
        chosen = f"{{target}}.copy_({module}.where({{index}}, {{value}}, {{target}}))"
        told = tier(sure) if known else Applicability.DISPLAY  # a mask of fewer dimensions selects whole rows
        return Rewrite("where-device-value", told, "Choose between the tensor and the value", chosen, statement=True)


def _taken(site: Sync) -> str:
    """What to write for a selection: the shape stays, and what is not selected is filled."""
    expr = site.expr
    alone = expr[0] == "sub" and expr[2][0] != "tuple"
    target, mask = (spelled(expr[1]), spelled(expr[2])) if alone else (None, None)
    kept = f"torch.where({mask}, {target}, fill)" if target and mask else "`torch.where(mask, t, fill)`"
    return f"{kept} keeps the shape (the mask in as many dimensions); where the result is summed, multiply by the mask"


def _stored(site: Sync) -> str:
    """What to write for a store: spelled out where the mask is the only index."""
    store, (_, base, subscript, _) = site.store, site.expr
    target, mask = spelled(base), spelled(subscript)
    if store is None or target is None or mask is None or subscript[0] == "tuple":
        return "make one mask of all the indices, and use `torch.where(mask, value, t)` or `masked_fill_(mask, number)`"
    rank, own = store.target.rank, store.shape.parts[0][1].rank
    if rank is not None and own is not None and own < rank:
        mask = f"{receiver(mask)}[{', '.join([':'] * own + ['None'] * (rank - own))}]"
    value, op = store.write.value, store.write.op
    same = value[0] == "sub" and value[2] == subscript  # what another tensor holds at the same places
    text = spelled(value[1] if same else value) or "value"
    if op is None and not same and store.value.rank != 0:
        packed = f"{receiver(target)}.masked_scatter_({mask}, {text})"
        return f"{packed} where the values are packed, `torch.where(mask, value, t)` where they broadcast"
    text = text if op is None else f"{target} {op} {text}"
    return f"{receiver(target)}.copy_(torch.where({mask}, {text}, {target}))"
