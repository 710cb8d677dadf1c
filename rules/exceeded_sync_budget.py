"""A hot root waits for the device in more places than its budget has.

Why it matters
    The budget is what was agreed on for one step. Each further wait drains the stream once more in every step.

Instead
    Cure one of the syncs that are named. A budget is lowered when a sync is gone and not raised when one is added.

Missed alarms
    Calls that could not be resolved, and syncs below the confidence that was asked for.

False alarms
    Syncs that never run in the same step.
"""

from __future__ import annotations

from collections.abc import Iterator

from nosync_lint.finding import Confidence, Severity
from nosync_lint.link.program import Program
from nosync_lint.rule import BudgetCheck, Judgement, Rule


class ExceededSyncBudget(Rule):
    code = "NSL006"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("budget",)
    heated = False

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, BudgetCheck)
        count = len(site.syncs)
        if count <= site.budget:
            return
        yield Judgement(
            message=f"`{site.root}` waits in {count} place{'s'[: count != 1]}, and its budget is {site.budget}",
            cure=f"cure {count - site.budget} of them",
            confidence=Confidence.CERTAIN,
            filename=site.filename,
            span=site.span,
            related=site.syncs,
        )
