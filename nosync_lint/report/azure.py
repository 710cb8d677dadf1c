"""Issues of a build: commands that Azure Pipelines reads in the log of a job."""

from __future__ import annotations

from typing import TextIO

from nosync_lint.finding import Severity
from nosync_lint.report import Report
from nosync_lint.report.formats import Style
from nosync_lint.report.places import Repository, without_cells
from nosync_lint.report.text import Page, write_end

LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "warning"}
"""Azure Pipelines knows no third level."""

_DATA = {"%": "%AZP25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ";": "%3B", "]": "%5D"}


def write(report: Report, out: TextIO, style: Style) -> None:
    """Write the findings of a report, what failed, and the end of the report as lines of the log."""
    report = without_cells(report)
    page, repository = Page(out), Repository()
    for text in report.failures:
        out.write(command(page.clean(text), type="error"))
    for finding in report.findings:
        out.write(
            command(
                page.clean(f"{finding.code} {finding.name}: {finding.message}"),
                type=LEVELS[finding.severity],
                sourcepath=page.clean(repository.name(finding.filename)),
                linenumber=str(finding.span.row),
                columnnumber=str(finding.span.column),
                code=finding.code,
            )
        )
    write_end(page, report)


def command(text: str, **properties: str) -> str:
    """One line that Azure Pipelines takes for an issue."""
    told = "".join(f"{name}={_escaped(value, _PROPERTY)};" for name, value in properties.items())
    return f"##vso[task.logissue {told}]{_escaped(text, _DATA)}\n"


def _escaped(text: str, table: dict[str, str]) -> str:
    return "".join(table.get(character, character) for character in text)
