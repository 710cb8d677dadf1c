"""A file cannot be read, decoded or parsed, so nothing in it was checked.

Why it matters
    A file that drops out silently looks clean. Calls into it are unresolved, which can hide findings elsewhere too.

Instead
    Repair the file, save it as UTF-8, raise `max-file-size`, or exclude it in the configuration.

Missed alarms
    None: every file that was asked for and could not be used is reported.

False alarms
    Code in a Python newer than the one that runs the linter.
"""

from __future__ import annotations

from collections.abc import Iterator

from nosync_lint.finding import Confidence, Severity
from nosync_lint.link.program import Program
from nosync_lint.rule import BadFile, Judgement, Rule


class UnreadableFile(Rule):
    code = "NSL000"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("bad-file",)
    heated = False

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, BadFile)
        reason, _, cure = site.reason.partition("; ")
        yield Judgement(
            message=f"this file {reason}",
            cure=cure or "repair the file or exclude it",
            confidence=Confidence.CERTAIN,
            filename=site.filename,
            span=site.span,
        )
