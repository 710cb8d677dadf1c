"""One line for each finding, as other linters print them."""

from __future__ import annotations

from typing import TextIO

from nosync_lint.finding import Applicability, Finding
from nosync_lint.report import Report
from nosync_lint.report.formats import Style
from nosync_lint.report.text import SEVERITY_STYLES, page_for, write_counts, write_end


def write(report: Report, out: TextIO, style: Style) -> None:
    """Write a report. With `style.statistics` a count per rule takes the place of the findings."""
    page = page_for(out, style)
    if style.statistics:
        write_counts(page, report.findings)
    else:
        for finding in report.findings:
            place = f"{finding.file}:{finding.span.row}:{finding.span.column}:"
            rule = f" {finding.code} {finding.name}{fix_mark(finding)}"
            page.row((place, "bold"), (rule, SEVERITY_STYLES[finding.severity]), (f" {finding.message}", ""))
    write_end(page, report)


def fix_mark(finding: Finding) -> str:
    """A mark for a finding that `--fix` takes away."""
    return " [*]" if finding.fix is not None and finding.fix.applicability is Applicability.SAFE else ""
