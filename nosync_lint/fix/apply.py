"""Edits to text: which fixes can be made at once, and what they make of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from nosync_lint.finding import Finding
from nosync_lint.source import Span

_LINE_END = re.compile(r"\r\n|\r|\n")


def compatible(findings: Sequence[Finding]) -> list[Finding]:
    """The findings of one file whose fixes can be made together: of two that overlap the first one is."""
    taken = list[Finding]()
    spans = list[Span]()
    for finding in findings:
        edits = finding.fix.edits if finding.fix is not None else ()
        if not any(_overlap(edit.span, span) for edit in edits for span in spans):
            taken.append(finding)
            spans += [edit.span for edit in edits]
    return taken


def _overlap(one: Span, other: Span) -> bool:
    """Whether two places share a character, or are the same place between two."""
    start, end = max(one[:2], other[:2]), min(one[2:], other[2:])
    return start < end or one == other


def applied(text: str, findings: Iterable[Finding]) -> str:
    """The text with fixes made that do not overlap. New lines end as the lines of the file do."""
    edits = [edit for finding in findings if finding.fix is not None for edit in finding.fix.edits]
    starts = [0, *(end.end() for end in _LINE_END.finditer(text))]
    end_of_line = line_end(text)
    for edit in sorted(edits, key=lambda edit: edit.span, reverse=True):
        start, end = (_offset(*place, starts, text) for place in (edit.span[:2], edit.span[2:]))
        text = text[:start] + edit.content.replace("\n", end_of_line) + text[end:]
    return text


def line_end(text: str) -> str:
    """How the first line of a text ends: new ones end like it."""
    first = _LINE_END.search(text)
    return first.group() if first is not None else "\n"


def _offset(row: int, column: int, starts: Sequence[int], text: str) -> int:
    return starts[row - 1] + column - 1 if row <= len(starts) else len(text)  # after a last line that has no end
