"""JSON for programs. The schema has a version, names follow ruff's where ruff has the field, and nothing in it varies
between two runs over the same input."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, TextIO

from nosync_lint import __version__
from nosync_lint.finding import Finding, Fix, Hop, Suppressed
from nosync_lint.report import Report
from nosync_lint.report.formats import Style

SCHEMA_VERSION = 1


def write(report: Report, out: TextIO, style: Style) -> None:
    """Write a report as one JSON object."""
    dump(as_json(report), out)


def dump(value: Any, out: TextIO, indent: int | None = 2) -> None:
    """Write a value and end the line. It is pure ASCII, so that every output can encode it, file names included, and
    holds no `##[`, which CI services take for a command in their logs."""
    out.write(json.dumps(value, indent=indent).replace("##", "#\\u0023") + "\n")


def as_json(report: Report) -> dict[str, Any]:
    """The report as JSON's own types."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "nosync-lint", "version": __version__},
        "findings": [finding_as_json(finding) for finding in report.findings],
        "suppressed": [_suppressed(one) for one in report.suppressed],
        "summary": {
            "shown": len(report.findings),
            "hidden": asdict(report.hidden),
            "files_reported": report.files_reported,
            "files_linked": report.files_linked,
            "calls_resolved": report.calls_resolved,
            "calls_unresolved": report.calls_unresolved,
            "target_torch": list(report.target_torch),
            "failures": list(report.failures),
            "notes": list(report.notes),
        },
    }


def finding_as_json(finding: Finding) -> dict[str, Any]:
    """One finding as JSON's own types."""
    span = finding.span
    return {
        "code": finding.code,
        "name": finding.name,
        "message": finding.message,
        "filename": finding.filename,
        "cell": finding.cell,
        "location": {"row": span.row, "column": span.column},
        "end_location": {"row": span.end_row, "column": span.end_column},
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "scope": finding.scope or None,
        "heat": finding.heat.value if finding.heat else None,
        "group": finding.group,
        "fingerprint": finding.fingerprint,
        "root": finding.root,
        "flow": _hops(finding.flow),
        "evidence": _hops(finding.evidence),
        "related": _hops(finding.related),
        "cure": finding.cure,
        "fix": _fix(finding.fix) if finding.fix else None,
        "url": finding.url or None,
    }


def _suppressed(one: Suppressed) -> dict[str, Any]:
    """A finding that is accepted, and by what."""
    suppression = {
        "kind": one.form,
        "justification": one.reason,
        "row": one.row or None,
        "owner": one.owner or None,
        "until": one.until or None,
    }
    return {**finding_as_json(one.finding), "suppression": suppression}


def _fix(fix: Fix) -> dict[str, Any]:
    edits = [
        {
            "content": edit.content,
            "location": {"row": edit.span.row, "column": edit.span.column},
            "end_location": {"row": edit.span.end_row, "column": edit.span.end_column},
        }
        for edit in fix.edits
    ]
    return {"applicability": fix.applicability.value, "message": fix.message, "recipe": fix.recipe, "edits": edits}


def _hops(hops: tuple[Hop, ...]) -> list[dict[str, Any]]:
    return [_hop(hop) for hop in hops]


def _hop(hop: Hop) -> dict[str, Any]:
    """One hop. Only one in a notebook has a cell."""
    cell = {} if hop.cell is None else {"cell": hop.cell}
    return {"filename": hop.filename, **cell, "row": hop.row, "note": hop.note}
