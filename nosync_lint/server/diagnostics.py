"""Findings as diagnostics: the message with its cure, and the chain and the evidence as related places."""

from __future__ import annotations

from collections.abc import Callable

from lsprotocol import types

from nosync_lint.finding import Finding, Severity
from nosync_lint.server.positions import Positions, whole_row

SOURCE = "nosync-lint"
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
}


def diagnostic(finding: Finding, positions: Positions, uri_of: Callable[[str], str] | None) -> types.Diagnostic:
    """A finding in a document. Without `uri_of`, which gives the address of a file, no related places are told."""
    ranks = [finding.confidence.value, *([finding.heat.value] if finding.heat else [])]
    cure = f"\nInstead: {finding.cure}" if finding.cure else ""
    return types.Diagnostic(
        range=positions.range(finding.span),
        message=f"{finding.message} ({finding.name}: {', '.join(ranks)}){cure}",
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        code_description=types.CodeDescription(finding.url) if finding.url else None,
        source=SOURCE,
        related_information=_related(finding, uri_of) if uri_of is not None else None,
    )


def _related(finding: Finding, uri_of: Callable[[str], str]) -> list[types.DiagnosticRelatedInformation]:
    told = dict.fromkeys((*finding.flow, *finding.evidence, *finding.related))
    return [
        types.DiagnosticRelatedInformation(types.Location(uri_of(hop.filename), whole_row(hop.row)), hop.note)
        for hop in told
    ]
