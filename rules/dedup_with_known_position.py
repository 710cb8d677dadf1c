"""A call drops a position that its caller knew, on the way to a de-duplication that the position makes unnecessary.

Why it matters
    With the position, representatives are a strided slice of fixed shape. Without it the callee has to ask the device
    which pages occur, which waits for the stream.

Instead
    Hand the position on: call the method that takes it, or slice here.

Missed alarms
    Positions that no override of the method uses: nothing then shows that the argument is one.

False alarms
    Methods whose subclasses that reach the de-duplication are never used with this call.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Confidence, Severity
from nosync_lint.link.program import DropSite, Program
from nosync_lint.link.wording import wording
from nosync_lint.rule import Judgement, Rule

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class DedupWithKnownPosition(Rule):
    code = "NSL502"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("drop",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, DropSite)
        dropped = site.dropped
        call = wording(dropped.call.call)
        related = tuple(
            program.call_hop(leak.function, leak.sink, f"de-duplication in `{leak.function.record.qualname}`")
            for leak in dropped.leaks
        )
        yield Judgement(
            message=f"`{call}` drops `{dropped.parameter}`, with which `{dropped.sibling.record.qualname}` avoids the "
            f"de-duplication that this call leads to",
            cure=f"pass `{dropped.parameter}` on, or take representatives here by slicing",
            confidence=Confidence.LIKELY,
            related=related,
            sink=program.sink(dropped.leaks[0].function, dropped.leaks[0].sink.call[4]),
        )
