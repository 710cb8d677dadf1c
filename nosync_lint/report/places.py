"""Names and places for services, which know the repository and not the working directory, and no cells of notebooks."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from nosync_lint.finding import Finding, Hop
from nosync_lint.report import Report
from nosync_lint.source import Span


class Repository:
    """The folder that git manages around the working directory, or that one where there is none."""

    def __init__(self) -> None:
        here = Path.cwd()
        self.root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
        self._names: dict[str, str] = {}

    def name(self, filename: str) -> str:
        """A file by its name in the repository, with `/`. One that lies outside keeps its full path."""
        if filename not in self._names:
            path = Path(os.path.abspath(filename))
            inside = path.is_relative_to(self.root)
            self._names[filename] = (path.relative_to(self.root) if inside else path).as_posix()
        return self._names[filename]

    def is_inside(self, filename: str) -> bool:
        return not os.path.isabs(self.name(filename))

    def uri(self, filename: str) -> str:
        """A file as a URI: relative to the repository, or absolute for one that lies outside."""
        name = quote(os.fsencode(self.name(filename)))
        return name if self.is_inside(filename) else f"file://{name if name.startswith('/') else '/' + name}"

    @property
    def root_uri(self) -> str:
        return f"file://{quote(os.fsencode(self.root.as_posix())).rstrip('/')}/"


def without_cells(report: Report) -> Report:
    """A report whose findings in notebooks stand at the first line of the file and name cell and row in words.

    A row of a cell is no row of the file that a service shows.
    """
    suppressed = (
        one if one.finding.cell is None else replace(one, finding=_in_file(one.finding), row=0)
        for one in report.suppressed
    )
    return replace(report, findings=tuple(map(_in_file, report.findings)), suppressed=tuple(suppressed))


def _in_file(finding: Finding) -> Finding:
    if finding.cell is None and all(hop.cell is None for hop in (*finding.flow, *finding.evidence, *finding.related)):
        return finding
    flow, evidence, related = (_hops_in_file(hops) for hops in (finding.flow, finding.evidence, finding.related))
    finding = replace(finding, flow=flow, evidence=evidence, related=related)
    if finding.cell is None:
        return finding
    message = f"cell {finding.cell}, row {finding.span.row}: {finding.message}"
    return replace(finding, message=message, span=Span(1, 1, 1, 1), cell=None)


def _hops_in_file(hops: Iterable[Hop]) -> tuple[Hop, ...]:
    return tuple(
        hop if hop.cell is None else Hop(hop.filename, 1, f"cell {hop.cell}, row {hop.row}: {hop.note}") for hop in hops
    )
