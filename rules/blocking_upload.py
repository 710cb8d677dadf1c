"""A blocking copy from the host to the device waits until the stream has drained.

Why it matters
    `.to(device)`, `.cuda()` and `copy_` return when the copy is done, and the copy is queued behind everything
    else. That holds for pinned memory too, as long as `non_blocking=True` is missing.

Instead
    Pinned memory and `non_blocking=True`: `x.pin_memory().to(device, non_blocking=True)`, where nothing overwrites
    `x` before the copy has run. Better still: make the tensor on the device.

Missed alarms
    Tensors whose place nothing in the project shows, modules of other packages, `load_state_dict`, and
    `torch._foreach_copy_`.

False alarms
    Tensors kept on the CPU for a reason that the program text does not show. Copies of what is already there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Applicability, Severity
from nosync_lint.link.program import Program
from nosync_lint.link.rewriting import argument_parts
from nosync_lint.link.syncs import Sync
from nosync_lint.link.wording import arguments, describe, outline, receiver, spelled, wording
from nosync_lint.rule import Judgement, Rewrite, Rule, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class BlockingUpload(Rule):
    code = "NSL104"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("blocking-upload",)
    recipes = ("pinned-staging", "full-scalar")

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Subscript() | m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        store, moved = site.store, describe(site.operand)
        if store is not None:
            what = (
                f"storing `{wording(store.write.value)}`, {moved}, into `{outline(site.expr)}` copies it to the device"
            )
        elif site.verdict.row == _MODULE:
            what = f"`{outline(site.expr)}` copies each parameter to the device"
        else:
            what = f"`{outline(site.expr)}` copies {moved} to the device"
        yield waits(site, program, what, cure="" if site.verdict.row == _MODULE else _cure(site))

    def fix(self, site: object, program: Program) -> Rewrite | None:
        assert isinstance(site, Sync)
        pinned, func = site.operand.where == "pinned", site.expr[1]
        told = Applicability.DISPLAY if pinned else Applicability.UNSAFE  # who writes to it next is not known
        pin = "" if pinned else ".pin_memory()"
        message = "Copy without waiting, from pinned memory"
        if site.store is not None:
            copy = f"{{target}}[{{index}}].copy_({{value}}{pin}, non_blocking=True)"
            return Rewrite("pinned-staging", told, message, copy, statement=True)
        given = argument_parts(site.expr, ("non_blocking",))
        if site.operand.kind != "tensor" or func[0] != "attr" or given is None or site.verdict.row == _MODULE:
            return None
        made = func[1]  # a number on its way to the device
        number = made[0] == "call" and made[1][-1] == "tensor" and len(made[2]) == 1 and made[2][0][0] == "const"
        device = func[2] == "to" and len(site.expr[2]) == 1 and program.value(site, site.expr[2][0]).kind == "device"
        if number and device and not made[3] and not site.expr[3] and made[1][0] == "attr":
            filled = "{receiver.receiver}.full((), {receiver.args[0]}, device={args[0]})"
            return Rewrite("full-scalar", Applicability.SAFE, "Fill the tensor on the device", filled)
        if func[2] == "copy_" and len(site.expr[2]) == 1:
            copy = f"{{receiver}}.copy_({{args[0]}}{pin}, non_blocking=True)"
            return Rewrite("pinned-staging", told, message, copy)
        switched = any(one[0] == "const" and isinstance(one[1], bool) for one in site.expr[2])  # by position
        if func[2] not in ("to", "cuda") or switched:
            return None
        arguments = ", ".join([*given, "non_blocking=True"])
        return Rewrite("pinned-staging", told, message, f"{{receiver}}{pin}.{func[2]}({arguments})")


_MODULE = "h2d.module_to"


def _cure(site: Sync) -> str:
    """The same copy from pinned memory and without waiting; empty where a part cannot be spelled out."""
    source, func = spelled(site.spelled), site.expr[1]
    if source is None:
        return ""
    pinned = receiver(source) + ("" if site.operand.where == "pinned" else ".pin_memory()")
    if site.store is not None:
        target = spelled(site.expr)
        copy = f"{target}.copy_({pinned}, non_blocking=True)" if target else ""
    elif func[0] != "attr":
        return ""
    elif func[2] == "copy_":
        target = spelled(func[1])
        copy = f"{receiver(target)}.copy_({pinned}, non_blocking=True)" if target else ""
    else:
        given = arguments(site.expr, ("non_blocking",), "non_blocking=True")
        copy = f"{pinned}.{'to' if func[2] == 'type_as' else func[2]}({given})" if given else ""
    if not copy:
        return ""
    if site.spelled[0] == "call":
        return f"make it on the device, or copy it without waiting: {copy}"
    return f"{copy} (where nothing writes to {source} before the copy has run)"
