"""A copy marked asynchronous is not, because the memory on the host is not pinned or not dense.

Why it matters
    `non_blocking=True` is a promise that only pinned, densely laid out memory can keep. From pageable memory the
    driver stages the copy and may wait for the stream; torch's own sync debug mode does not see it.

Instead
    Pin the memory first: `x.pin_memory().to(device, non_blocking=True)`, or allocate with `pin_memory=True`. Copy
    whole rows, or `.contiguous()` before pinning.

Missed alarms
    Memory that is pinned under a condition, and views whose layout nothing shows.

False alarms
    Tensors kept on the CPU for a reason that the program text does not show. Small copies that the driver takes in
    passing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Applicability, Severity
from nosync_lint.link.program import Program
from nosync_lint.link.rewriting import argument_parts
from nosync_lint.link.syncs import Sync
from nosync_lint.link.wording import arguments, describe, outline, receiver, spelled
from nosync_lint.rule import Judgement, Rewrite, Rule, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class PageableAsyncCopy(Rule):
    code = "NSL105"
    since = "0.1.0"
    severity = Severity.WARNING
    sites = ("pageable-async-copy",)
    recipes = ("pinned-staging",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        copy, host = f"`{outline(site.expr)}` copies {describe(site.operand)}", ""
        if site.verdict.row == _STRIDED:
            host = ", laid out with gaps or in another order on one side"
        elif site.operand.accelerated:
            host = " into host memory that is not pinned"
        else:
            host = ", which is not pinned"
        yield waits(site, program, copy + host, cure=_cure(site), stops=", and the driver may wait")

    def fix(self, site: object, program: Program) -> Rewrite | None:
        assert isinstance(site, Sync)
        func, given = site.expr[1], argument_parts(site.expr)
        upload = site.operand.kind == "tensor" and site.operand.where == "host" and site.verdict.row != _STRIDED
        if not upload or func[0] != "attr" or given is None:
            return None
        if func[2] == "copy_":
            copy = f"{{receiver}}.copy_({', '.join(['{args[0]}.pin_memory()', *given[1:]])})"
        elif func[2] in ("to", "cuda"):
            copy = f"{{receiver}}.pin_memory().{func[2]}({', '.join(given)})"
        else:
            return None
        return Rewrite("pinned-staging", Applicability.UNSAFE, "Stage the data in pinned memory", copy)


_STRIDED = "h2d.noncontig_pinned"


def _cure(site: Sync) -> str:
    """The same copy with host memory that is pinned and dense; empty where a part cannot be spelled out."""
    source, func = spelled(site.spelled), site.expr[1]
    target = spelled(func[1]) if func[0] == "attr" else None
    if source is None or target is None:
        return ""
    if site.verdict.row == _STRIDED:
        side = f"take {target} on the host" if site.operand.accelerated else f"take {source} on the device"
        return f"copy whole rows, or the whole tensor, and {side}"
    if site.operand.accelerated:
        return f"allocate {target} once, with pin_memory=True"
    pinned = f"{receiver(source)}.pin_memory()"
    if func[2] == "copy_":
        return f"{receiver(target)}.copy_({pinned}, non_blocking=True), or a buffer that is pinned once"
    given = arguments(site.expr)
    return f"{pinned}.{func[2]}({given}), or a buffer that is pinned once" if given else ""
