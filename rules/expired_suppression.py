"""The last day of a suppression is over, and what it covered is still there.

Why it matters
    Somebody meant to be rid of the synchronisation by then. The comment covers nothing any more.

Instead
    Cure what it covered, or agree on another day: `until=2027-06-30`, which is the last one on which it covers.

Missed alarms
    None known.

False alarms
    A clock that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

from nosync_lint.finding import Confidence, Severity
from nosync_lint.link.program import Program
from nosync_lint.rule import Judgement, Rule, Suppression


class ExpiredSuppression(Rule):
    code = "NSL004"
    since = "0.1.0"
    severity = Severity.WARNING
    sites = ("suppression",)
    heated = False

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Suppression)
        if not site.expired:
            return
        owner = f"; its owner is {site.owner}" if site.owner else ""
        yield Judgement(
            message=f"this suppression was good until {site.until} and covers nothing any more{owner}",
            cure="cure what it covered and remove it, or agree on another day",
            confidence=Confidence.CERTAIN,
            filename=site.filename,
            span=site.span,
        )
