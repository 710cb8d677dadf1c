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
    "text": "nosync_lint.report.text",
    "json": "nosync_lint.report.json",
    "html": "nosync_lint.report.html",
}
"""The module of each format. It has `write(report, out, style)`."""


def write(report: Report, form: str, out: TextIO, style: Style) -> None:
    """Write a report in one of the `FORMATS`."""
    import_module(FORMATS[form]).write(report, out, style)
