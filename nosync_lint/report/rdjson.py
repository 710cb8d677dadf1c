"""Reviewdog's diagnostic format. Its columns count bytes of UTF-8, its suggestions replace one range each."""

from __future__ import annotations

from typing import Any, TextIO

from nosync_lint.finding import Applicability, Finding, Fix, Hop, Severity
from nosync_lint.report import Report
from nosync_lint.report.formats import Style
from nosync_lint.report.json import dump
from nosync_lint.report.places import Repository, without_cells
from nosync_lint.report.text import code_lines, visible
from nosync_lint.source import Span

SEVERITIES = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.INFO: "INFO"}
Lines = tuple[str, ...]


def write(report: Report, out: TextIO, style: Style) -> None:
    """Write the findings of a report as one JSON object."""
    report = without_cells(report)
    repository = Repository()
    diagnostics = [
        _diagnostic(finding, report.sources.get(finding.file, ()), repository) for finding in report.findings
    ]
    dump({"source": {"name": "nosync-lint"}, "diagnostics": diagnostics}, out)


def _diagnostic(finding: Finding, lines: Lines, repository: Repository) -> dict[str, Any]:
    path = visible(repository.name(finding.filename))
    told = "\n".join(map(visible, (finding.message, *code_lines("instead", finding.cure))))
    diagnostic: dict[str, Any] = {
        "message": told,
        "location": {"path": path, "range": _range(finding.span, lines)},
        "severity": SEVERITIES[finding.severity],
        "code": {"value": finding.code, **({"url": finding.url} if finding.url else {})},
    }
    if finding.fix is not None:
        diagnostic["suggestions"] = _suggestions(finding.fix, lines)
    hops = (*finding.flow, *finding.evidence, *finding.related)
    if hops:
        diagnostic["related_locations"] = [_related(hop, repository) for hop in hops]
    return diagnostic


def _related(hop: Hop, repository: Repository) -> dict[str, Any]:
    path = visible(repository.name(hop.filename))
    return {"message": visible(hop.note), "location": {"path": path, "range": {"start": {"line": hop.row}}}}


def _suggestions(fix: Fix, lines: Lines) -> list[dict[str, Any]]:
    """A fix as one replacement: suggestions are taken one by one, and its edits belong together."""
    first, last = fix.edits[0].span, fix.edits[-1].span
    if fix.applicability is Applicability.DISPLAY or not 1 <= first.row <= last.end_row <= len(lines):
        return []
    text, row, column = "", first.row, first.column
    for edit in fix.edits:
        text += _between(lines, row, column, edit.span.row, edit.span.column) + edit.content
        row, column = edit.span.end_row, edit.span.end_column
    return [{"range": _range(Span(first.row, first.column, last.end_row, last.end_column), lines), "text": text}]


def _between(lines: Lines, row: int, column: int, end_row: int, end_column: int) -> str:
    """The source between two places."""
    if row == end_row:
        return lines[row - 1][column - 1 : end_column - 1]
    return "\n".join([lines[row - 1][column - 1 :], *lines[row : end_row - 1], lines[end_row - 1][: end_column - 1]])


def _range(span: Span, lines: Lines) -> dict[str, Any]:
    """A range with columns in bytes, or whole lines where the text of the file is not at hand."""
    if not 1 <= span.row <= span.end_row <= len(lines):
        return {"start": {"line": span.row}, "end": {"line": span.end_row}}
    return {
        "start": {"line": span.row, "column": _bytes(lines[span.row - 1], span.column)},
        "end": {"line": span.end_row, "column": _bytes(lines[span.end_row - 1], span.end_column)},
    }


def _bytes(line: str, column: int) -> int:
    return len(line[: column - 1].encode("utf-8", "surrogatepass")) + 1
