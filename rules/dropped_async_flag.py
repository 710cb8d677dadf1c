"""A call asks for an asynchronous copy, and the function that makes it drops the flag.

Why it matters
    Copies run beside the work of the stream only where every call on the way hands the flag on. A wrapper that takes
    `non_blocking` and forgets it turns each transfer into one that waits, and its callers cannot see that.

Instead
    Hand the flag on to the copy.

Missed alarms
    Flags that are handed to a variable first, and wrappers that swallow it in `**kwargs`.

False alarms
    Functions that order their copies by an event of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Confidence, Severity
from nosync_lint.link.dropped_flags import DroppedFlag
from nosync_lint.link.program import Program
from nosync_lint.link.wording import wording
from nosync_lint.rule import Judgement, Rule

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class DroppedAsyncFlag(Rule):
    code = "NSL507"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("dropped-flag",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, DroppedFlag)
        copy = wording(site.copy.call)
        yield Judgement(
            message=f"`{wording(site.site.call)}` asks not to wait, and `{site.callee.record.qualname}` never reads "
            f"`{site.flag}`: its `{copy}` waits for the copy",
            cure=f"hand `{site.flag}` on to `{copy}`",
            confidence=Confidence.LIKELY,
            related=(program.call_hop(site.callee, site.copy, f"copies without `{site.flag}`"),),
        )
