"""Findings with fixes, for tests that need no program."""

from __future__ import annotations

from nosync_lint.finding import Applicability, Confidence, Edit, Finding, Fix, Severity
from nosync_lint.source import Span


def finding_with(fix: Fix | None, filename: str = "a.py", *, scope: str = "", fingerprint: str = "") -> Finding:
    """A finding whose fix is all that matters."""
    return Finding(
        "NSL101", "scalar-index-write", "message", filename, Span(1, 1, 1, 2), Severity.ERROR, Confidence.CERTAIN, "cure",
        fix=fix, scope=scope, fingerprint=fingerprint or f"{filename}:{fix.edits if fix else ''}",
    )  # fmt: skip


def replacing(column: int, end: int, content: str, row: int = 1) -> Fix:
    """A fix of one edit in one row."""
    return Fix("recipe", Applicability.SAFE, "message", (Edit(Span(row, column, row, end), content),))
