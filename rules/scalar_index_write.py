"""A Python scalar stored through a tensor index stops the host until the stream drains.

Why it matters
    The scalar becomes a 0-dim CPU tensor, and copying it from pageable memory waits for all queued work: about
    16 ms behind an 8192-token prefill. Nothing in the statement says so.

Instead
    `table.index_fill_(0, index, value)` for one integer index tensor, `table[i].fill_(value)` where every dimension
    is an integer, `table[i, j] = table.new_full((), value)` for several index tensors: the scalar then travels as
    a kernel argument. `index_fill_` wants int64 indices: `.long()` costs nothing where they are.

Missed alarms
    Tables reached only through `getattr` with a computed name, and index tensors whose dtype nothing tells.

False alarms
    Tensors kept on the CPU for a reason that the program text does not show.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Applicability, Hop, Severity
from nosync_lint.link.program import Program
from nosync_lint.link.rewriting import WHOLE, fits, is_host_scalar, is_integer, is_proven, may_trade_places, runs_code
from nosync_lint.link.stores import Store
from nosync_lint.link.syncs import Sync
from nosync_lint.link.values import HOST
from nosync_lint.link.wording import describe, filled, receiver, spelled, wording
from nosync_lint.rule import Judgement, Rewrite, Rule, tier, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class ScalarIndexWrite(Rule):
    code = "NSL101"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("scalar-index-write",)
    recipes = ("index-fill", "element-fill", "device-scalar", "pinned-index")

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        target = m.AssignTarget(m.Subscript() | m.Tuple() | m.List())
        call = m.Call(func=m.Attribute(attr=m.Name("__setitem__") | m.Name("setitem")) | m.Name())
        return m.Assign(targets=[m.ZeroOrMore(), target, m.ZeroOrMore()]) | m.AnnAssign(target=m.Subscript()) | call

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        store = site.store
        assert store is not None
        stored = "a Python number" if store.value.kind != "tensor" else "a 0-dim CPU tensor"
        what = (
            f"storing {stored} into `{wording(site.spelled)}`, {describe(store.target)}, copies it from pageable memory"
        )
        judgement = waits(site, program, what, cure=_cure(store))
        yield replace(judgement, evidence=_evidence(store, program))

    def fix(self, site: object, program: Program) -> Rewrite | None:
        assert isinstance(site, Sync)
        return _rewrite(site.store) if site.store is not None and site.store.write.op is None else None


def _evidence(store: Store, program: Program) -> tuple[Hop, ...]:
    """Why the target is believed to live on the device: by itself, or by an index that does."""
    told = (program.evidence(value) for value in (store.target, *(value for _, value in store.shape.parts)))
    return next((hops for hops in told if hops), ())


def _cure(store: Store) -> str:
    """What to write: by the kinds of the index items; in words where an expression cannot be spelled out."""
    found = _rewrite(store)
    text = filled(found.template, store.parts) if found is not None else None
    if text is not None:
        return text
    if "sequence" in store.shape.kinds:
        target = receiver(spelled(store.write.base) or "table")
        return (
            f"build the index once on the device (the list is copied too), then {target}.index_fill_(0, index, value)"
        )
    return "pass the scalar as a kernel argument: `index_fill_`, `fill_` on the indexed view, or a 0-dim device tensor"


def _rewrite(store: Store) -> Rewrite | None:
    """By the kinds of the index items. Safe where nothing that it rests on leaves a doubt."""
    write, items, kinds = store.write, store.shape.items, [kind for kind, _ in store.shape.parts]
    sure = is_proven(store.target) and may_trade_places(write.value, (write.base, write.subscript))
    sure = sure and is_host_scalar(store.value)
    if set(kinds) <= {"int", "ellipsis"}:
        told = tier(sure and all(kind == "ellipsis" or is_integer(value) for kind, value in store.shape.parts))
        return Rewrite("element-fill", told, "Fill the element in place", "{target}[{index}].fill_({value})", True)
    found = [place for place, kind in enumerate(kinds) if kind in ("tensor", "any-tensor", "integers", "mask")]
    if "sequence" in kinds or not found:
        return None
    short = str(store.target.ref).startswith("float8")  # for which there is no fill by index
    if short or len(found) > 1 or any(items[n] != WHOLE for n in range(len(items)) if n not in found):
        told = tier(sure and store.value.kind != "tensor" and not runs_code(write.base))
        stored = "{target}[{index}] = {target}.new_full((), {value})"
        return Rewrite("device-scalar", told, "Store a 0-dim tensor that is made on the device", stored, True)
    place = found[0]
    if items[place][0] == "elem":
        return None
    part, index = (f"{{index[{place}]}}" if len(items) > 1 else "{index}"), store.shape.parts[place][1]
    moved = ".pin_memory().to({target}.device, non_blocking=True)" if index.where in HOST else ""
    if kinds[place] == "mask":
        stored = f"{{target}}[{part}{moved}] = {{value}}"
        staged = Rewrite("pinned-index", Applicability.UNSAFE, "Upload the mask without waiting", stored, True)
        return staged if moved and len(items) == 1 else None
    flat, wide = "" if index.rank in (0, 1) else ".reshape(-1)", "" if index.ref == "int64" else ".long()"
    sure = sure and is_proven(index) and index.ref in ("int32", "int64") and index.accelerated
    told = tier(sure and fits(write.value, store.target)) if index.dtype == "int" else Applicability.DISPLAY
    filled_in = f"{{target}}.index_fill_({place}, {part}{flat}{wide}{moved}, {{value}})"
    return Rewrite("index-fill", told, "Hand the scalar to the kernel", filled_in, True)
