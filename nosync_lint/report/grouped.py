"""One line for each finding, below the name of its file."""

from __future__ import annotations

from itertools import groupby
from typing import TextIO

from nosync_lint.report import Report
from nosync_lint.report.concise import fix_mark
from nosync_lint.report.formats import Style
from nosync_lint.report.text import SEVERITY_STYLES, page_for, write_counts, write_end


def write(report: Report, out: TextIO, style: Style) -> None:
    """Write a report. With `style.statistics` a count per rule takes the place of the findings."""
    page = page_for(out, style)
    if style.statistics:
        write_counts(page, report.findings)
    else:
        for filename, group in groupby(report.findings, key=lambda finding: finding.file):
            findings = list(group)
            page.row((f"{filename}:", "bold"))
            places = [f"{finding.span.row}:{finding.span.column}" for finding in findings]
            width = max(map(len, places))
            for finding, place in zip(findings, places, strict=True):
                rule = f"  {finding.code} {finding.name}{fix_mark(finding)}"
                page.row(
                    (f"  {place:<{width}}", ""), (rule, SEVERITY_STYLES[finding.severity]), (f" {finding.message}", "")
                )
            page.row(("", ""))
    write_end(page, report)
