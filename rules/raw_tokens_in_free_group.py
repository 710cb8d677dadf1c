"""A function that is told where its tokens begin puts all of them into a group buffer, to be sorted out at the end.

Why it matters
    With the position, one token of each page is a strided slice of fixed shape. Once whole runs are joined with others,
    that structure is gone: the release of the group has to ask the device which pages occur, and waits.

Instead
    Slice before buffering, into a buffer of representatives that is released without a de-duplication. Copy the slice:
    the caller may reuse its row before the group ends.

Missed alarms
    Buffers that are no attribute of the allocator, and positions that no method of the family slices by.

False alarms
    Allocators whose pages hold one token where no test in the function says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Confidence, Severity
from nosync_lint.link.free_groups import RawTokens
from nosync_lint.link.program import Program
from nosync_lint.link.wording import wording
from nosync_lint.rule import Judgement, Rule

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class RawTokensInFreeGroup(Rule):
    code = "NSL503"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("raw-tokens",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, RawTokens)
        told, cuts = site.positioned.record.qualname, site.cuts.record.qualname
        by = "it" if site.cuts is site.positioned else f"`{cuts}`"
        yield Judgement(
            message=f"`{wording(site.site.call)}` buffers all of `{site.tokens}`, although `{told}` is given "
            f"`{site.position}`, by which {by} takes one token of each page",
            cure=f"slice `{site.tokens}` by `{site.position}`, and buffer a copy of that",
            confidence=Confidence.LIKELY,
            related=(
                program.hop(site.cuts, f"slices by `{site.position}`"),
                program.call_hop(site.closer, site.closes, f"releases all of `{site.buffer}`"),
            ),
        )
