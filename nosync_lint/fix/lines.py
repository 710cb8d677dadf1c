"""Edits of whole lines: statements that go, or move out of their loop."""

from __future__ import annotations

from collections.abc import Sequence

from nosync_lint.finding import Edit
from nosync_lint.source import Span

_LOOPS = ("for ", "while ", "async for ")


def removal(lines: Sequence[str], span: Span) -> Edit | None:
    """The lines of a statement, taken away. None where something else stands on them, such as a comment."""
    before, after = lines[span.row - 1][: span.column - 1], lines[span.end_row - 1][span.end_column - 1 :]
    commented = any("#" in line for line in lines[span.row - 1 : span.end_row])
    if before.strip() or after.strip() or commented:
        return None
    return Edit(Span(span.row, 1, span.end_row + 1, 1), "")


def hoisted(lines: Sequence[str], span: Span) -> tuple[Edit, ...]:
    """A statement of one line, moved before the loop whose body it stands in. None where that is not to be seen."""
    gone = removal(lines, span)
    if gone is None or span.row != span.end_row:
        return ()
    line = lines[span.row - 1]
    depth = span.column - 1
    above = (row for row in range(span.row - 1, 0, -1) if lines[row - 1].strip() and _depth(lines[row - 1]) < depth)
    row = next(above, None)
    if row is None or not lines[row - 1].lstrip().startswith(_LOOPS):
        return ()
    indent = lines[row - 1][: _depth(lines[row - 1])]
    return Edit(Span(row, 1, row, 1), f"{indent}{line.strip()}\n"), gone


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
