"""What the page shows, as JSON's own types. Places that many findings name stand there once.

Every text is printable: what could move or hide text on the page is spelled out, as in the report for terminals.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from nosync_lint import __version__
from nosync_lint.finding import Finding, Hop, Suppressed
from nosync_lint.report import Report
from nosync_lint.report.html.frames import difference, frame, shortened
from nosync_lint.report.text import printable, release_range

_ACCEPTED = ("suppressed", "baselined")
"""Hidden findings that the page shows all the same, in a list of their own."""


def content(report: Report) -> dict[str, Any]:
    """The content of the page of a report."""
    places = _Places(report)
    findings = [_finding(finding, report, places) for finding in report.findings]
    accepted = [_accepted(one, report, places) for one in report.suppressed]
    return {
        "version": __version__,
        "torch": release_range(report.target_torch) if report.target_torch else "",
        "hidden": {kind: count for kind, count in asdict(report.hidden).items() if count and kind not in _ACCEPTED},
        "files": [report.files_reported, report.files_linked],
        "calls": [report.calls_resolved, report.calls_unresolved],
        "failures": [_line(text) for text in report.failures],
        "notes": [_line(text) for text in report.notes],
        "findings": findings,
        "accepted": accepted,
        "places": places.told,
    }


class _Places:
    """The hops of all findings: each once, with the source line it points at."""

    def __init__(self, report: Report) -> None:
        self._sources = report.sources
        self._numbers: dict[Hop, int] = {}
        self.told: list[list[str | int]] = []

    def numbers(self, hops: tuple[Hop, ...]) -> list[int]:
        return [self._number(hop) for hop in hops]

    def _number(self, hop: Hop) -> int:
        if hop not in self._numbers:
            self._numbers[hop] = len(self.told)
            lines = self._sources.get(hop.file, ())
            text = lines[hop.row - 1].strip() if 1 <= hop.row <= len(lines) else ""
            self.told.append([_line(hop.file), hop.row, _line(hop.note), _line(shortened(text))])
        return self._numbers[hop]


def _finding(finding: Finding, report: Report, places: _Places) -> dict[str, Any]:
    """One finding; what is empty is left out."""
    lines = report.sources.get(finding.file, ())
    told = {
        "id": finding.fingerprint,
        "code": _line(finding.code),
        "name": _line(finding.name),
        "message": _line(finding.message),
        "file": _line(finding.file),
        "row": finding.span.row,
        "column": finding.span.column,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "heat": finding.heat.value if finding.heat else "",
        "scope": _line(finding.scope),
        "root": _line(finding.root or ""),
        "group": _line(finding.group or ""),
        "owner": _line(report.owners.get(finding.filename, "")),
        "cure": _lines(finding.cure),
        "frame": frame(lines, finding.span),
        "flow": places.numbers(finding.flow),
        "evidence": places.numbers(finding.evidence),
        "related": places.numbers(finding.related),
        "url": _line(finding.url) if finding.url.startswith(("https://", "http://")) else "",
    }
    if finding.fix is not None:
        told["fix"] = {
            "message": _line(finding.fix.message),
            "applicability": finding.fix.applicability.value,
            "lines": difference(lines, finding.fix.edits),
        }
    return {key: value for key, value in told.items() if value}


def _accepted(one: Suppressed, report: Report, places: _Places) -> dict[str, Any]:
    """Who has accepted a finding owns it, where that is told."""
    finding = _finding(one.finding, report, places)
    return {
        **finding,
        **({"owner": _line(one.owner)} if one.owner else {}),
        "accepted": {
            "form": _line(one.form),
            "reason": _line(one.reason),
            "row": one.row,
            "owner": _line(one.owner),
            "until": _line(one.until),
        },
    }


def _line(text: str) -> str:
    return printable(text, "utf-8")


def _lines(text: str) -> str:
    return "\n".join(_line(line) for line in text.splitlines())
