"""JSON Lines: one object for each finding, as in the JSON report, on a line of its own."""

from __future__ import annotations

from typing import TextIO

from nosync_lint.report import Report
from nosync_lint.report.formats import Style
from nosync_lint.report.json import dump, finding_as_json


def write(report: Report, out: TextIO, style: Style) -> None:
    """Write the findings of a report; nothing where there is none."""
    for finding in report.findings:
        dump(finding_as_json(finding), out, indent=None)
