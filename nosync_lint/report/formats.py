"""The formats a report is written in: one module each, imported when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TextIO

from nosync_lint.report import Report


@dataclass(frozen=True, slots=True)
class Style:
    """What a reader asked for besides the format. Formats for programs take no notice of it."""

    statistics: bool = False
    color: bool = False


FORMATS = {
    "full": "nosync_lint.report.full",
    "concise": "nosync_lint.report.concise",
    "grouped": "nosync_lint.report.grouped",
    "json": "nosync_lint.report.json",
    "json-lines": "nosync_lint.report.json_lines",
    "sarif": "nosync_lint.report.sarif",
    "github": "nosync_lint.report.github",
    "gitlab": "nosync_lint.report.gitlab",
    "junit": "nosync_lint.report.junit",
    "rdjson": "nosync_lint.report.rdjson",
    "azure": "nosync_lint.report.azure",
    "pylint": "nosync_lint.report.pylint",
    "markdown": "nosync_lint.report.markdown",
    "html": "nosync_lint.report.html",
}
"""The module of each format. It has `write(report, out, style)`."""

FINDINGS_ONLY = frozenset({"json-lines", "gitlab", "rdjson", "pylint"})
"""Formats that have no room for what failed and for notes."""


def write(report: Report, form: str, out: TextIO, style: Style) -> None:
    """Write a report in one of the `FORMATS`."""
    import_module(FORMATS[form]).write(report, out, style)
