"""A suppression comment matches no finding.

Why it matters
    It hides the next real one, and tells readers of a synchronisation that is not there.

Instead
    Remove the comment, or correct the name of the rule in it.

Missed alarms
    Comments about rules that were not selected in this run.

False alarms
    Comments that are only needed for another target torch.
"""

from __future__ import annotations

from collections.abc import Iterator

from nosync_lint.finding import Confidence, Severity
from nosync_lint.link.program import Program
from nosync_lint.rule import Judgement, Rule, Suppression


class UnusedSuppression(Rule):
    code = "NSL001"
    since = "0.1.0"
    severity = Severity.WARNING
    sites = ("suppression",)
    heated = False

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Suppression)
        if site.used:
            return
        if site.form == "unknown":
            message = f"this comment is addressed to nosync-lint and does nothing: {site.reason}"
        elif site.unknown:
            message = f"no rule is called {', '.join(f'`{name}`' for name in site.unknown)}"
        else:
            message = "this suppression matches no finding"
        yield Judgement(
            message=message,
            cure="remove the comment or correct it",
            confidence=Confidence.CERTAIN,
            filename=site.filename,
            span=site.span,
        )
