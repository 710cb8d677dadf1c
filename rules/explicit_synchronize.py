"""An explicit wait for a device, stream or event stops the host.

Why it matters
    `synchronize()` returns when everything queued has run. Torch's own sync debug mode does not report the device
    and event forms.

Instead
    `stream.wait_stream(other)` or `event.wait()` where one stream must follow another: the host goes on.
    `event.query()` where it can come back later. No timeout for `work.wait()`: without one it orders streams only.
    Graphs are captured once, before the loop.

Missed alarms
    Waits behind names that the project does not resolve.

False alarms
    Timing and shutdown code that no cold stop names.
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


class ExplicitSynchronize(Rule):
    code = "NSL401"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("explicit-synchronize",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        yield waits(site, program, f"`{wording(site.expr)}` stops the host until the device has caught up", stops=",")
