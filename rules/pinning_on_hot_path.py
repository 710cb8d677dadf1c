"""Pinning memory in every step calls the host allocator of the driver.

Why it matters
    The first allocation of a size page-locks memory, which is slow and can serialise with the device; later ones
    come from a cache, but the data is copied each time.

Instead
    Allocate the pinned buffer once, with `pin_memory=True`, and `copy_` into it. Two buffers in turn, where a copy
    may still be in flight.

Missed alarms
    Factories with `pin_memory=True`, and functions of the project that allocate.

False alarms
    Pinning that a copy in flight makes necessary: a suppression with that reason is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Severity
from nosync_lint.link.program import Program
from nosync_lint.link.syncs import Sync
from nosync_lint.link.wording import outline, spelled
from nosync_lint.rule import Judgement, Rule, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class PinningOnHotPath(Rule):
    code = "NSL106"
    since = "0.1.0"
    severity = Severity.WARNING
    default = False
    sites = ("pinning-on-hot-path",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        what = f"`{outline(site.expr)}` page-locks memory, or takes it from a cache, each time the line runs"
        source = spelled(site.spelled)
        cure = (
            f"a buffer that is made once, with pin_memory=True, and filled each time: buffer.copy_({source or '...'})"
        )
        yield waits(site, program, what, cure=cure, stops=",")
