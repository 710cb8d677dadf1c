"""A configured root, contract or path names nothing in the project.

Why it matters
    After a rename the linter would look at nothing and report nothing: an empty report that is no clean one.

Instead
    Correct the name; a root is a qualified name or its end (`Class.method`), and each part may hold `*`.

Missed alarms
    Names that still match something else than was meant.

False alarms
    Names that exist only in files this run does not link.
"""

from __future__ import annotations

from collections.abc import Iterator

from nosync_lint.finding import Confidence, Severity
from nosync_lint.link.program import Program
from nosync_lint.rule import ConfiguredName, Judgement, Rule


class UnknownRoot(Rule):
    code = "NSL003"
    since = "0.1.0"
    severity = Severity.WARNING
    sites = ("configured-name",)
    heated = False

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, ConfiguredName)
        if site.exists:
            return
        yield Judgement(
            message=f"{site.kind} `{site.name}` names nothing in this project",
            cure=site.cure,
            confidence=Confidence.CERTAIN,
            filename=site.filename,
            span=site.span,
        )
