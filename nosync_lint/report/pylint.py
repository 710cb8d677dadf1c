"""The lines of pylint's parseable output, which many CI tools read."""

from __future__ import annotations

from typing import TextIO

from nosync_lint.report import Report
from nosync_lint.report.formats import Style
from nosync_lint.report.places import without_cells
from nosync_lint.report.text import Page


def write(report: Report, out: TextIO, style: Style) -> None:
    """Write the findings of a report; nothing where there is none."""
    page = Page(out)
    for finding in without_cells(report).findings:
        page.line(f"{finding.filename}:{finding.span.row}: [{finding.code}] {finding.name} {finding.message}")
