"""GitLab's code quality report: the findings of a merge request in its widget and its diff."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, TextIO

from nosync_lint.finding import Finding, Severity
from nosync_lint.report import Report
from nosync_lint.report.formats import Style
from nosync_lint.report.json import dump
from nosync_lint.report.places import Repository, without_cells
from nosync_lint.report.text import visible

SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}


def write(report: Report, out: TextIO, style: Style) -> None:
    """Write the findings of a report as one JSON array; an empty one tells GitLab that old findings are gone."""
    report = without_cells(report)
    repository = Repository()
    names = zip(report.findings, _fingerprints(report.findings), strict=True)
    dump([_issue(finding, fingerprint, repository) for finding, fingerprint in names], out)


def _issue(finding: Finding, fingerprint: str, repository: Repository) -> dict[str, Any]:
    span = finding.span
    return {
        "description": visible(f"{finding.name}: {finding.message}"),
        "check_name": finding.code,
        "fingerprint": fingerprint,
        "severity": SEVERITIES[finding.severity],
        "location": {
            "path": visible(repository.name(finding.filename)),
            "positions": {
                "begin": {"line": span.row, "column": span.column},
                "end": {"line": span.end_row, "column": span.end_column},
            },
        },
    }


def _fingerprints(findings: Sequence[Finding]) -> Iterator[str]:
    """A name for each finding. GitLab shows only the first of equal ones, so the next ones get names of their own."""
    seen: Counter[str] = Counter()
    for finding in findings:
        name = finding.fingerprint
        seen[name] += 1
        if name and seen[name] == 1:
            yield name
        else:
            key = "\0".join((name, str(seen[name]), finding.code, finding.filename, finding.message))
            yield blake2b(key.encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()
