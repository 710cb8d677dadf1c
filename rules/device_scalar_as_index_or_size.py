"""A 0-dim device tensor as index, slice bound or size is read back.

Why it matters
    An integer index and the sizes of a tensor are needed on the host, so `t[i]`, `t[:n]` and `torch.zeros(n)` call
    `item()` once for each such tensor.

Instead
    `t.index_select(0, i.view(1))` for an index; a mask, `torch.arange(size, device=t.device) < n`, for a bound;
    Python integers for sizes.

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
from nosync_lint.link.rewriting import fits, is_number, is_proven, may_trade_places
from nosync_lint.link.syncs import Sync
from nosync_lint.link.wording import describe, outline, receiver, spelled, wording
from nosync_lint.rule import Judgement, Rewrite, Rule, tier, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class DeviceScalarAsIndexOrSize(Rule):
    code = "NSL207"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("device-scalar-as-index-or-size",)
    recipes = ("index-select", "masked-fill", "put-device-value")

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Subscript() | m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        place = {"slice": "a bound of ", "tuple": "a part of ", "list": "a part of "}.get(site.spelled[0], "")
        read = f"{place}`{wording(site.spelled)}`, {describe(site.operand)},"
        yield waits(site, program, f"`{outline(site.expr)}` reads {read} back", cure=_cure(site))

    def fix(self, site: object, program: Program) -> Rewrite | None:
        assert isinstance(site, Sync)
        store, row = site.store, site.verdict.row
        if row == "read.cuda0d_idx" and site.expr[0] == "sub" and site.expr[2] == site.spelled:
            taken = "{target}.index_select(0, {index}).squeeze(0)"
            return Rewrite("index-select", Applicability.UNSAFE, "Select by the device index, into a copy", taken)
        if store is None or not store.alone or store.write.op is not None:
            return None
        write, value, index = store.write, store.value, store.shape.parts[0][1]
        sure = is_proven(store.target) and is_proven(index) and index.rank == 0
        sure = sure and may_trade_places(write.value, (write.base, write.subscript))
        if row == "write.cuda0d_bool" and is_number(value):
            filled = "{target}.masked_fill_({index}, {value})"
            told = tier(sure and index.ref == "bool" and fits(write.value, store.target))
            return Rewrite("masked-fill", told, "Fill by the mask", filled, statement=True)
        if row == "write.cuda0d_idx.cuda0d":
            same = is_proven(value) and value.rank == 0 and value.ref == store.target.ref and index.ref == "int64"
            put = "{target}.index_put_(({index}.view(1),), {value})"
            return Rewrite("put-device-value", tier(sure and same), "Store by the device index", put, statement=True)
        return None


_WHOLE = ("slice", ("const", None), ("const", None), ("const", None))


def _cure(site: Sync) -> str:
    """What needs no number, by where the number stands; the text of the row where a part cannot be spelled out."""
    row, index = site.verdict.row, spelled(site.spelled)
    if site.expr[0] == "call":
        return "a number that the host knows, or the largest one and a mask"
    base = receiver(spelled(site.expr[1]) or "...")
    if index is None:
        return ""
    if row == "read.slice_tensor_bound":
        places = f"torch.arange({base}.shape[0], device={base}.device)"
        return f"a mask, {places} compared with the bound; or a bound that the host knows"
    if row == "read.cpu_tensor_cuda_index":
        return f"keep {base} on the device, or {index} on the host"
    items = site.expr[2][1] if site.expr[2][0] == "tuple" else (site.expr[2],)
    place = items.index(site.spelled) if site.spelled in items else 0
    known = all(item == _WHOLE for item in items[:place])  # otherwise the dimension depends on the other items
    one = f"{receiver(index)}.view(1)"
    if row == "read.cuda0d_idx" and known:
        rest = "" if len(items) == 1 else " first, and the rest of the index after it"
        return f"{base}.index_select({place}, {index}).squeeze({place}){rest}"
    if row == "write.aug.sync_idx" and len(items) == 1:
        return f"{base}.index_add_(0, {one}, addend), or index_select, the change, and index_copy_"
    stored = spelled(site.store.write.value) if site.store is not None else None
    if stored is None or len(items) > 1:
        return ""
    if row == "write.cuda0d_idx.nd":
        return f"{base}.index_copy_(0, {one}, {receiver(stored)}.unsqueeze(0))"
    if row == "write.cuda0d_bool":
        return f"{base}.copy_(torch.where({index}, {stored}, {base}))"
    return f"{base}.index_put_(({one},), {stored})" if row == "write.cuda0d_idx.cuda0d" else ""
