"""The statements of a file that could wait: what calls, subscripts, compares, tests or computes something."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.oracle.seen import Extent

_OPERATIONS = (ast.Call, ast.Subscript, ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.JoinedStr, ast.Starred)
_TESTS = (ast.If, ast.While, ast.For, ast.AsyncFor, ast.Assert)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


class Statement(NamedTuple):
    """A statement, a compound one without its blocks.

    `definition` is the row of the function around it, 0 without; `context` is what a `with` governs.
    """

    extent: Extent
    definition: int
    context: Extent | None = None


def statements(text: str) -> list[Statement]:
    """All of a file, in order; those inside an expression or that only define something are not among them."""
    return sorted(_statements(ast.parse(text).body, text.splitlines(), 0))


def _statements(body: Sequence[ast.AST], lines: list[str], definition: int) -> Iterator[Statement]:
    for node in body:
        inner = [one for block in _BLOCKS for one in getattr(node, block, ())]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _statements(inner, lines, node.lineno)
            continue
        yield from _statements(inner, lines, definition)
        if isinstance(node, ast.stmt) and not isinstance(node, _DEFINITIONS) and _can_wait(node):
            context = _whole(node, lines) if isinstance(node, ast.With | ast.AsyncWith) else None
            yield Statement(_header(node, inner, lines), definition, context)


def _can_wait(node: ast.stmt) -> bool:
    return isinstance(node, _TESTS) or any(isinstance(one, _OPERATIONS) for one in _own(node))


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """The expressions of a statement, without those in its blocks."""
    for name, value in ast.iter_fields(node):
        if name not in _BLOCKS:
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, ast.AST):
                    yield from ast.walk(one)


def _header(node: ast.stmt, inner: Sequence[ast.AST], lines: list[str]) -> Extent:
    """A statement up to its first block."""
    whole = _whole(node, lines)
    first = min((one for one in inner if isinstance(one, ast.stmt)), key=lambda one: one.lineno, default=None)
    if first is None:
        return whole
    return Extent(*whole.start, first.lineno, _characters(lines[first.lineno - 1], first.col_offset) + 1)


def _whole(node: ast.stmt, lines: list[str]) -> Extent:
    end_row, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
    first, last = lines[node.lineno - 1], lines[end_row - 1]
    return Extent(node.lineno, _characters(first, node.col_offset) + 1, end_row, _characters(last, end_column) + 1)


def _characters(line: str, column: int) -> int:
    return len(line.encode()[:column].decode())
