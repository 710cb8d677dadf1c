"""A barrier, or a collective of Python objects on the device group, stops the host.

Why it matters
    `barrier()` waits for the stream. Object collectives pickle on the host and send through the device group: sizes
    are read back, the payload is uploaded and downloaded. A device tensor in a Gloo group goes through host memory.

Instead
    No barrier where collectives already order the ranks. Objects over a Gloo group, `group=cpu_group`, and device
    tensors over the device group.

Missed alarms
    Groups whose names do not tell where they work: they are only `possible`. Wrappers that other packages put around
    collectives.

False alarms
    Default groups on the CPU. A group is taken for one on the CPU where its name holds `cpu` or `gloo`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Severity
from nosync_lint.link.program import Program
from nosync_lint.link.syncs import Sync
from nosync_lint.link.wording import wording
from nosync_lint.rule import Judgement, Rule, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class HostCollective(Rule):
    code = "NSL402"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("host-collective",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        yield waits(
            site,
            program,
            f"`{wording(site.expr)}` stops the host until the stream and the other ranks have caught up",
            stops=",",
        )
