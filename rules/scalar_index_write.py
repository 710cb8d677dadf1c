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

from nosync_lint.finding import Hop, Severity
from nosync_lint.link.program import Program
from nosync_lint.link.syncs import Store, Sync
from nosync_lint.link.values import HOST
from nosync_lint.link.wording import describe, receiver, spelled, wording
from nosync_lint.rule import Judgement, Rule, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


_WHOLE = ("slice", ("const", None), ("const", None), ("const", None))


class ScalarIndexWrite(Rule):
    code = "NSL101"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("scalar-index-write",)

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


def _evidence(store: Store, program: Program) -> tuple[Hop, ...]:
    """Why the target is believed to live on the device: by itself, or by an index that does."""
    told = (program.evidence(value) for value in (store.target, *(value for _, value in store.shape.parts)))
    return next((hops for hops in told if hops), ())


def _cure(site: Store) -> str:
    """What to write: by the kinds of the index items; in words where an expression cannot be spelled out."""
    subscript = site.write.subscript
    items = subscript[1] if subscript[0] == "tuple" else (subscript,)
    kinds = [kind for kind, _ in site.shape.parts]
    target, value, parts = spelled(site.write.base), spelled(site.write.value), [spelled(item) for item in items]
    if target is None or value is None or None in parts:
        return (
            "pass the scalar as a kernel argument: `index_fill_`, `fill_` on the indexed view, or a 0-dim device tensor"
        )
    target = receiver(target)
    index = ", ".join(part for part in parts if part is not None)
    if all(kind == "int" for kind in kinds):
        return f"{target}[{index}].fill_({value})"
    tensors = [position for position, kind in enumerate(kinds) if kind in ("tensor", "any-tensor", "integers")]
    if "sequence" in kinds:
        return (
            f"build the index once on the device (the list is copied too), then {target}.index_fill_(0, index, {value})"
        )
    if len(tensors) == 1 and all(items[n] == _WHOLE for n in range(len(items)) if n not in tensors):
        part = receiver(parts[tensors[0]] or "")
        flat = "" if site.shape.parts[tensors[0]][1].rank in (0, 1) else ".reshape(-1)"
        wide = "" if part.endswith(("int64)", ".long()")) else ".long()"
        if site.shape.parts[tensors[0]][1].where in HOST:
            wide += f".pin_memory().to({target}.device, non_blocking=True)"
        return f"{target}.index_fill_({tensors[0]}, {part}{flat}{wide}, {value})"
    return f"{target}[{index}] = {target}.new_full((), {value})"
