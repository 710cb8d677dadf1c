"""Emptying the allocator's cache frees device memory, which waits for the device.

Why it matters
    `empty_cache()` calls `cudaFree` for every cached block, and each waits for the device. The next step allocates
    them again.

Instead
    Leave it out. Where memory is short, look at fragmentation (`expandable_segments`) instead.

Missed alarms
    Flushes behind names that the project does not resolve.

False alarms
    Flushes after loading, in functions that no cold stop names, and in handlers of out-of-memory errors.
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


class AllocatorFlush(Rule):
    code = "NSL403"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("allocator-flush",)

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
            f"`{wording(site.expr)}` gives cached memory back to the driver, which waits for the device",
            stops=",",
        )
