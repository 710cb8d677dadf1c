"""Annotations on the changed lines of a pull request: commands that GitHub reads in the log of a job.

GitHub shows ten of each level for a step and drops the rest without a word. So the worst are written, and a last one
says how many are left; the log and the job summary, which the command writes beside this, hold more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from nosync_lint.finding import Finding, Severity
from nosync_lint.report import Report
from nosync_lint.report.formats import Style
from nosync_lint.report.places import Repository, without_cells
from nosync_lint.report.text import Page, story, write_end

LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
MOST = 10
"""Annotations of each level that GitHub shows for a step."""

_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}


def write(report: Report, out: TextIO, style: Style) -> None:
    """Write the annotations of a report, and its end as lines of the log."""
    report = without_cells(report)
    page, repository = Page(out), Repository()
    chosen = list(_chosen(report))
    for text in report.failures[:MOST]:
        out.write(command("error", page.clean(text), title="nosync-lint failed"))
    for finding in chosen:
        text = "\n".join(page.clean(line) for line in (finding.message, *story(finding)))
        out.write(command(LEVELS[finding.severity], text, **_place(finding, page, repository)))
    left = len(report.findings) - len(chosen)
    if left:
        out.write(command("notice", f"{left:,} more findings are not annotated", title="nosync-lint"))
    write_end(page, report)


def command(level: str, text: str, **properties: str) -> str:
    """One line that GitHub takes for an annotation."""
    told = ",".join(f"{name}={_escaped(value, _PROPERTY)}" for name, value in properties.items())
    return f"::{level} {told}::{_escaped(text, _DATA)}\n"


def _chosen(report: Report) -> Iterator[Finding]:
    """The findings that are annotated, the worst first."""
    room = dict.fromkeys(Severity, MOST)
    room[Severity.ERROR] -= min(MOST, len(report.failures))
    counts = dict.fromkeys(Severity, 0)
    for finding in report.findings:
        counts[finding.severity] += 1
    if any(counts[severity] > room[severity] for severity in Severity):
        room[Severity.INFO] -= 1  # the notice that says how many are left
    for severity in LEVELS:
        alike = (finding for finding in report.findings if finding.severity is severity)
        for finding, _ in zip(alike, range(room[severity]), strict=False):
            yield finding


def _place(finding: Finding, page: Page, repository: Repository) -> dict[str, str]:
    span = finding.span
    place = {
        "title": f"{finding.code} {finding.name}",
        "file": page.clean(repository.name(finding.filename)),
        "line": str(span.row),
        "endLine": str(span.end_row),
    }
    if span.row == span.end_row:  # GitHub takes columns only within one line
        place |= {"col": str(span.column), "endColumn": str(span.end_column)}
    return place


def _escaped(text: str, table: dict[str, str]) -> str:
    return "".join(table.get(character, character) for character in text)
