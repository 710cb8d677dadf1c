"""A suppression comment matches no finding.

Why it matters
    It hides the next real one, and tells readers of a synchronisation that is not there.

Instead
    Remove the comment (`--fix` does), or correct the name of the rule in it.

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
        message = _message(site)
        if message:
            yield Judgement(
                message=message,
                cure="correct the comment" if site.removal is None else site.removal.message,
                confidence=Confidence.CERTAIN,
                filename=site.filename,
                span=site.span,
                fix=site.removal,
            )


def _message(site: Suppression) -> str:
    """What is wrong with a comment, or nothing."""
    if site.form == "unknown":
        return f"this comment is addressed to nosync-lint and does nothing: {site.reason}"
    if site.unknown:
        return f"no rule is called {', '.join(f'`{name}`' for name in site.unknown)}"
    if not site.used:
        return "this comment ends no region" if site.form == "on" else "this suppression matches no finding"
    if site.unused:
        return f"this suppression matches no finding of {', '.join(f'`{name}`' for name in site.unused)}"
    return ""
