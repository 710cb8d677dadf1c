"""The text around a place: its line, its statement, the expression that ran, and the comments that cover it."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Sequence
from datetime import date
from functools import cached_property, lru_cache
from pathlib import Path

from nosync_lint.fingerprint import snippet
from nosync_lint.index.pragmas import python_pragmas
from nosync_lint.source import Span
from nosync_lint.suppression import Suppressions


class SourceText:
    """One file as it was when it was first asked for. What cannot be read or parsed has no lines and no statements."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = [line.rstrip("\r\n") for line in lines]
        text = "\n".join(self.lines) + "\n"
        try:
            self._tree: ast.Module | None = ast.parse(text) if self.lines else None
            pragmas = python_pragmas(text) if self._tree else ()
        except (SyntaxError, ValueError):  # notebooks, templates: the place is known, its syntax is not
            self._tree, pragmas = None, ()
        self._has_comments = bool(pragmas)
        self._suppressions = Suppressions(pragmas, lambda: self.lines, date.today())

    def line(self, row: int) -> str:
        """A line without its indentation, by its 1-based row; empty where there is none."""
        return self.lines[row - 1].strip() if 0 < row <= len(self.lines) else ""

    def snippet(self, span: Span) -> str:
        """The expression at a place in its plain form, as the linter has it."""
        return snippet(self.lines, span, is_python=True)

    def column(self, row: int, offset: int) -> int:
        """The 1-based column, in code points, of a byte offset in a row."""
        if not 0 < row <= len(self.lines):
            return offset + 1
        return len(self.lines[row - 1].encode()[:offset].decode(errors="replace")) + 1

    def statement(self, row: int) -> tuple[int, int]:
        """The first and last row of the innermost statement at a row; of a compound one, its header."""
        return self._statements.get(row, (row, row))

    @cached_property
    def _statements(self) -> dict[int, tuple[int, int]]:
        """The first and last row of the innermost statement, by row."""
        found: dict[int, tuple[int, int]] = {}
        for node in ast.walk(self._tree) if self._tree else ():  # outer statements first
            if isinstance(node, ast.stmt):
                body = getattr(node, "body", None)
                last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno
                found.update(dict.fromkeys(range(node.lineno, last + 1), (node.lineno, last)))
        return found

    def called(self, span: Span) -> str | None:
        """The last name of the function that is called by the expression with this span; None where it is no call."""
        node = self._expressions.get(span)
        if not isinstance(node, ast.Call):
            return None
        name = node.func
        return name.attr if isinstance(name, ast.Attribute) else name.id if isinstance(name, ast.Name) else None

    def read(self, span: Span) -> str | None:
        """The kind of read by index that the expression with this span is; None where it is none."""
        node = self._expressions.get(span)
        if not isinstance(node, ast.Subscript):
            return None
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(isinstance(item, ast.Slice) for item in items):
            return "read-slice"
        return "read-list" if any(isinstance(item, ast.List) for item in items) else "read"

    @cached_property
    def _expressions(self) -> dict[Span, ast.expr]:
        """Calls and reads by index, by where they stand."""
        found: dict[Span, ast.expr] = {}
        for node in ast.walk(self._tree) if self._tree else ():
            if isinstance(node, ast.Call | ast.Subscript):
                row, end_row = node.lineno, node.end_lineno or node.lineno
                start, end = self.column(row, node.col_offset), self.column(end_row, node.end_col_offset or 0)
                found[Span(row, start, end_row, end)] = node
        return found

    def suppressed(self, code: str, slug: str, row: int) -> str | None:
        """The reason of a comment that covers a finding of this rule at this row, empty where it gives none."""
        if not self._has_comments:
            return None
        first, last = self.statement(row)
        covering = self._suppressions.cover(code, slug, first, last)
        return None if covering is None else covering.reason


@lru_cache(maxsize=512)
def source(filename: str) -> SourceText:
    """The text of a file that runs, by the name that its code object has."""
    return SourceText(linecache.getlines(filename))


@lru_cache(maxsize=4096)
def shown(filename: str) -> str:
    """A file name as the user sees it: relative to the working directory where possible, with `/`."""
    path = Path(filename)
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.as_posix()
