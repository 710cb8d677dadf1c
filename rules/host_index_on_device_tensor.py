"""Indexing a device tensor with a list, an array or a tensor of the host copies the index up and waits.

Why it matters
    The index becomes a CPU tensor, and expanding it onto the device is a blocking copy: one per index item, on
    reads and on stores, pinned or not. A mask on the host is the exception since torch 2.9.

Instead
    Build the index once on the device, outside the loop. Where it changes, upload it without waiting:
    `index.pin_memory().to(table.device, non_blocking=True)`. A contiguous run is a slice.

Missed alarms
    Indices whose place nothing in the project shows, and lists of them made before they are given to `index_put_`.

False alarms
    Tensors kept on the CPU for a reason that the program text does not show. An array that is in fact a single
    number.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Applicability, Severity
from nosync_lint.link.program import Program
from nosync_lint.link.rewriting import runs_code
from nosync_lint.link.syncs import Sync
from nosync_lint.link.values import Value
from nosync_lint.link.wording import describe, receiver, spelled, wording
from nosync_lint.rule import Judgement, Rewrite, Rule, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class HostIndexOnDeviceTensor(Rule):
    code = "NSL102"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("host-index-on-device-tensor",)
    recipes = ("pinned-index", "range-slice")

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Subscript() | m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        what = f"indexing with `{wording(site.spelled)}`, {describe(site.operand)}, copies the index to the device"
        yield waits(site, program, what, cure=_cure(site))

    def fix(self, site: object, program: Program) -> Rewrite | None:
        assert isinstance(site, Sync)
        if site.expr[0] != "sub" or runs_code(site.expr[1]) or (site.store and site.store.write.op is not None):
            return None
        items = site.expr[2][1] if site.expr[2][0] == "tuple" else (site.expr[2],)
        if site.spelled not in items:
            return None
        parts = [f"{{index[{number}]}}" for number in range(len(items))] if len(items) > 1 else ["{index}"]
        place = items.index(site.spelled)
        recipe, item = "pinned-index", _uploaded(site, program, parts[place])
        call = site.spelled[0] == "call" and site.spelled[1] == ("name", "range") and not site.spelled[3]
        if call and len(items) == 1 and len(site.spelled[2]) in (1, 2):
            bounds = [f"{{index.args[{number}]}}" for number in range(len(site.spelled[2]))]
            recipe, item = "range-slice", ":".join(bounds if len(bounds) == 2 else ["", *bounds])
        if item is None:
            return None
        parts[place] = item
        text = f"{{target}}[{', '.join(parts)}]" + (" = {value}" if site.store else "")
        message = "Index with a slice" if recipe == "range-slice" else "Upload the index from pinned memory"
        lent = site.operand.where == "pinned" and recipe == "pinned-index"  # who writes to it next is not known
        told = Applicability.DISPLAY if lent else Applicability.UNSAFE
        return Rewrite(recipe, told, message, text, statement=site.store is not None)


def _cure(site: Sync) -> str:
    """What to index with instead, by what the index is; in words where an expression cannot be spelled out."""
    item, table = spelled(site.spelled), spelled(site.expr[1])
    if item is None or table is None:
        return "index with a tensor that is made on the device, or uploaded from pinned memory with non_blocking=True"
    upload = f".to({receiver(table)}.device, non_blocking=True)"
    operand = site.operand
    if operand.kind == "tensor":
        pinned = receiver(item) + ("" if operand.where == "pinned" else ".pin_memory()")
        return f"make the index on the device, or upload it without waiting: {pinned}{upload}"
    held = operand.items
    if isinstance(held, Value) and held.kind == "bool":
        return "keep the mask on the device, as a bool tensor"
    if site.spelled[0] == "call" and site.spelled[1] == ("name", "range") and len(site.spelled[2]) <= 2:
        low, high = ["", *(spelled(bound) or "" for bound in site.spelled[2])][-2:]
        return f"the slice {low}:{high}, which needs no copy (where no bound is negative)"
    pinned = (
        f"torch.from_numpy({item}).pin_memory()"
        if operand.kind == "numpy"
        else f"torch.tensor({item}, pin_memory=True)"
    )
    return (
        f"build the index once, on the device; where it changes each time upload it without waiting: {pinned}{upload}"
    )


def _uploaded(site: Sync, program: Program, part: str) -> str | None:
    """An index item on its way to the device without waiting, as part of a template."""
    operand, upload = site.operand, ".to({target}.device, non_blocking=True)"
    if operand.kind == "tensor":
        return f"{part}{'' if operand.where == 'pinned' else '.pin_memory()'}{upload}"
    module = program.local_name(site, "torch")
    flat = operand.kind == "list" and isinstance(operand.items, Value) and operand.items.kind == "int"
    return f"{module}.tensor({part}, pin_memory=True){upload}" if module and flat else None
