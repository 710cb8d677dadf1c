"""The number of matched arguments differs from the declared one: the guard itself may have gone blind.

Why it matters
    The matcher rules see what they can parse. When a matcher is deleted, moved behind a macro or renamed, they
    fall silent instead of failing. A declared count turns that silence into a finding.

Instead
    Restore the match, or change `matches` in the same commit that changes the kernels.

Missed alarms
    One matcher deleted and another added in the same change.

False alarms
    None: the count is exact, and the finding lists it per file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nosync_lint.finding import Confidence, Hop, Severity
from nosync_lint.link.kernels import Census
from nosync_lint.rule import Judgement, Rule

if TYPE_CHECKING:
    from nosync_lint.link.program import Program

SHOWN = 12  # files named in the message


class MatcherCensus(Rule):
    code = "NSL604"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("census",)
    heated = False

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Census)
        counted = program.kernels.census(site.files, site.where)
        if counted.total == site.matches:
            return
        where = f" ({site.where})" if site.where else ""
        files = [f"{path} {count}" for path, count in counted.files]
        rest = f" and {len(files) - SHOWN} more files" if len(files) > SHOWN else ""
        yield Judgement(
            message=f"{site.matches} matched arguments are declared for `{site.files}`{where}, {counted.total} found: "
            + (", ".join(files[:SHOWN]) + rest if files else "no file with a matcher"),
            cure=f"restore the missing match, or declare matches = {counted.total}",
            confidence=Confidence.CERTAIN,
            filename=site.path,
            span=site.span,
            flow=tuple(Hop(path, 1, f"{count} matched arguments") for path, count in counted.files),
        )
