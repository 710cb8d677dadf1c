"""A budget allows more syncs than there are.

Why it matters
    What was won is lost unseen: the next sync below this root still fits in.

Instead
    Lower the budget to what is there, in the same change that cured a sync.

Missed alarms
    Runs over a part of the project, which cannot know that nothing waits elsewhere.

False alarms
    A budget that is high on purpose: `ignore = ["loose-sync-budget"]`.
"""

from __future__ import annotations

from collections.abc import Iterator

from nosync_lint.finding import Confidence, Severity
from nosync_lint.link.program import Program
from nosync_lint.rule import BudgetCheck, Judgement, Rule


class LooseSyncBudget(Rule):
    code = "NSL007"
    since = "0.1.0"
    severity = Severity.WARNING
    sites = ("budget",)
    heated = False

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, BudgetCheck)
        count = len(site.syncs)
        if not site.complete or count >= site.budget:
            return
        yield Judgement(
            message=f"`{site.root}` waits in {count} place{'s'[: count != 1]}, and its budget is still {site.budget}",
            cure=f'"{site.root}" = {count}',
            confidence=Confidence.CERTAIN,
            filename=site.filename,
            span=site.span,
            related=site.syncs,
        )
