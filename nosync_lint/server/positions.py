"""Places in a document as editors count them: rows from 0, columns in the units that the client asked for."""

from __future__ import annotations

from collections.abc import Sequence

from lsprotocol import types
from pygls.workspace import PositionCodec

from nosync_lint.source import Span


class Positions:
    """The places of one text."""

    def __init__(self, lines: Sequence[str], codec: PositionCodec) -> None:
        self._lines, self._codec = lines, codec

    def range(self, span: Span) -> types.Range:
        """The range of a span, which counts rows and code points from 1."""
        return types.Range(self._position(span.row, span.column), self._position(span.end_row, span.end_column))

    def end(self, row: int) -> types.Range:
        """The empty range at the end of a row."""
        column = len(self._lines[row - 1]) + 1
        return self.range(Span(row, column, row, column))

    def _position(self, row: int, column: int) -> types.Position:
        last = len(self._lines)
        if row > last:
            return types.Position(row - 1, 0)
        before = self._lines[row - 1][: column - 1]
        return types.Position(row - 1, self._codec.client_num_units(before))


def whole_row(row: int) -> types.Range:
    """A row of a file whose text is not at hand: from its start to that of the next one."""
    return types.Range(types.Position(row - 1, 0), types.Position(row, 0))


def overlap(one: types.Range, other: types.Range) -> bool:
    """Whether two ranges share a place; ends count, so that a cursor at the end of a word is on it."""
    return _key(one.start) <= _key(other.end) and _key(other.start) <= _key(one.end)


def _key(position: types.Position) -> tuple[int, int]:
    return position.line, position.character
