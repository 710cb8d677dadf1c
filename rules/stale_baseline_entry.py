"""The baseline accepts more findings than there are.

Why it matters
    The next one that looks alike would pass unseen.

Instead
    `nosync-lint check --prune-baseline` removes what is stale, or lowers its count, and keeps everything else.

Missed alarms
    Entries about files, rules or releases of torch that this run did not look at.

False alarms
    Findings that only another target torch has.
"""

from __future__ import annotations

from collections.abc import Iterator

from nosync_lint.finding import Confidence, Hop, Severity
from nosync_lint.link.program import Program
from nosync_lint.rule import Judgement, Rule, StaleEntry


class StaleBaselineEntry(Rule):
    code = "NSL005"
    since = "0.1.0"
    severity = Severity.WARNING
    sites = ("baseline-entry",)
    heated = False

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, StaleEntry)
        there = "none of them is" if not site.found else "one is" if site.found == 1 else f"{site.found} are"
        asked = "a finding that is gone" if site.listed == 1 else f"{site.listed} findings of which {there} left"
        yield Judgement(
            message=f"the baseline accepts {asked}: {site.name}",
            cure="nosync-lint check --prune-baseline",
            confidence=Confidence.CERTAIN,
            filename=site.filename,
            span=site.span,
            related=(Hop(site.source, 1, "the file that it is about"),),
        )
