"""The source lines around a finding with the place marked, and the lines that a fix takes out and puts in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from nosync_lint.finding import Edit
from nosync_lint.report.full import CONTEXT
from nosync_lint.report.text import printable
from nosync_lint.source import Span

MAX_MARKED = 12
"""Rows of a place that are shown: the rest of a longer one is left out."""
MAX_LINE = 400
"""Columns of a line that are shown around the marked place: longer lines are generated."""
BEFORE_MARK = 80
"""Columns that are shown before the mark in a line that is cut."""
CUT = "…"


def frame(lines: Sequence[str], span: Span) -> dict[str, Any]:
    """The rows around a place: the number of the first, and for each its text before, in and behind the mark.

    Rows outside the place are one text. Nothing where the file could not be read again.
    """
    if not 1 <= span.row <= len(lines):
        return {}
    last = min(span.end_row, span.row + MAX_MARKED - 1, len(lines))
    first, end = max(1, span.row - CONTEXT), min(len(lines), last + CONTEXT)
    return {"row": first, "lines": [_pieces(lines[row - 1], row, span, last) for row in range(first, end + 1)]}


def _pieces(line: str, row: int, span: Span, last: int) -> list[str]:
    if not span.row <= row <= last:
        return [_shown(shortened(line))]
    start = span.column - 1 if row == span.row else len(line) - len(line.lstrip())
    end = max(span.end_column - 1 if row == span.end_row else len(line.rstrip()), start + 1)
    before, marked, behind = line[:start], line[start:end], line[end:]
    if len(line) > MAX_LINE:
        before = before if len(before) <= BEFORE_MARK else CUT + before[-BEFORE_MARK:]
        marked, behind = shortened(marked), behind[:BEFORE_MARK] + CUT * (len(behind) > BEFORE_MARK)
    return [_shown(before), _shown(marked), _shown(behind)]


def shortened(line: str) -> str:
    """A line, or the beginning of a long one."""
    return line if len(line) <= MAX_LINE else line[:MAX_LINE] + CUT


def difference(lines: Sequence[str], edits: Sequence[Edit]) -> list[list[str]]:
    """What edits change, as pairs of a sign and a line: `-` goes, `+` comes, a blank stays, `@` is the first row.

    Edits do not overlap and stand in their order. Those whose rows touch are one change.
    """
    told: list[list[str]] = []
    for change in _changes(edits):
        first, last = change[0].span.row, change[-1].span.end_row
        if not 1 <= first <= last <= len(lines):
            return []  # the file is not what it was
        told.append(["@", str(first)])
        told += _compared(lines[first - 1 : last], _edited(lines, change).split("\n"))
    return told


def _compared(old: Sequence[str], new: Sequence[str]) -> Iterator[list[str]]:
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from ([" ", _shown(shortened(line))] for line in old[a:b])
        else:
            yield from (["-", _shown(shortened(line))] for line in old[a:b])
            yield from (["+", _shown(shortened(line))] for line in new[c:d])


def _changes(edits: Sequence[Edit]) -> list[list[Edit]]:
    changes: list[list[Edit]] = []
    for edit in edits:
        if changes and edit.span.row <= changes[-1][-1].span.end_row + 1:
            changes[-1].append(edit)
        else:
            changes.append([edit])
    return changes


def _edited(lines: Sequence[str], change: Sequence[Edit]) -> str:
    """The rows of a change as they become."""
    text, row, column = "", change[0].span.row, 1
    for edit in change:
        text += _between(lines, row, column, edit.span.row, edit.span.column) + edit.content
        row, column = edit.span.end_row, edit.span.end_column
    return text + lines[row - 1][column - 1 :]


def _between(lines: Sequence[str], row: int, column: int, end_row: int, end_column: int) -> str:
    if row == end_row:
        return lines[row - 1][column - 1 : end_column - 1]
    inner = [lines[one - 1] for one in range(row + 1, end_row)]
    return "\n".join([lines[row - 1][column - 1 :], *inner, lines[end_row - 1][: end_column - 1]])


def _shown(text: str) -> str:
    return printable(text.expandtabs(4), "utf-8")
