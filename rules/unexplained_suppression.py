"""A suppression comment gives no reason.

Why it matters
    Whoever meets the line next cannot tell a synchronisation that was weighed from one that was silenced.

Instead
    Write the reason behind the bracket: `# nosync-lint: ignore[NSL101] one write at start-up`.

Missed alarms
    `# noqa: NSL101`, whose readers do not expect a reason.

False alarms
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from nosync_lint.finding import Confidence, Severity
from nosync_lint.link.program import Program
from nosync_lint.rule import Judgement, Option, Rule, Suppression


class UnexplainedSuppression(Rule):
    code = "NSL002"
    since = "0.1.0"
    severity = Severity.WARNING
    sites = ("suppression",)
    heated = False
    options = (Option("least-words", 1, "a reason of fewer words than this counts as none"),)

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Suppression)
        words = len(site.reason.split())
        if words >= max(self.option("least-words"), 1) or site.form not in ("ignore", "off", "skip-file"):
            return
        yield Judgement(
            message="this suppression gives no reason" if not words else f"this reason is {words} words long",
            cure=f"nosync-lint: {site.form}{'[' + ', '.join(site.names) + ']' if site.names else ''} REASON",
            confidence=Confidence.CERTAIN,
            filename=site.filename,
            span=site.span,
        )
