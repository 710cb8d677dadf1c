"""A blocking copy from the device to the host waits until the stream has drained.

Why it matters
    `.cpu()`, `.to("cpu")` and `host.copy_(t)` return when the bytes have arrived, behind everything queued before.

Instead
    `t.to("cpu", non_blocking=True)` gives a pinned tensor; record an event after it and wait for that event where
    the host first reads. Best: a step later.

Missed alarms
    Operands that nothing in the project shows to be a tensor on the device, modules of other packages, types such as
    `torch.FloatTensor`, and tensors in dictionaries that are saved.

False alarms
    Tensors kept on the CPU for a reason that the program text does not show.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Severity
from nosync_lint.link.program import Program
from nosync_lint.link.syncs import Sync
from nosync_lint.link.wording import arguments, describe, outline, receiver, spelled
from nosync_lint.rule import Judgement, Rule, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class HostCopy(Rule):
    code = "NSL203"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("host-copy",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Subscript() | m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        what = f"`{outline(site.expr)}` copies {describe(site.operand)} to the host"
        yield waits(site, program, what, cure=_cure(site))


_SERIALISED = "d2h.serialise"
_TO_HOST = '"cpu", non_blocking=True'


def _cure(site: Sync) -> str:
    """The same copy without waiting; empty where a part cannot be spelled out."""
    source, func = spelled(site.spelled), site.expr[1]
    if site.verdict.row == _SERIALISED:
        return "a copy to pinned memory with non_blocking=True first, written once an event after it has passed"
    target = spelled(func[1]) if func[0] == "attr" else None
    if source is None or target is None:
        return ""
    if func[2] == "copy_":
        copy, where = f"{receiver(target)}.copy_({source}, non_blocking=True)", f", with {target} in pinned memory"
    else:
        given = arguments(site.expr, ("non_blocking",), "non_blocking=True") if func[2] == "to" else None
        copy, where = f"{receiver(source)}.to({given or _TO_HOST})", ""
    return f"{copy}{where}, and an event after it, waited for where the host first reads, best a step later"
