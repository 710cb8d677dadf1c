"""The cells of a notebook as one Python file, row by row and column by column.

What is addressed to IPython gives way to text of the same length that does nothing. The parser says where that stands:
no Python statement begins with `%`, `!` or `?`, and a `%` inside an expression is left alone.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from typing import NamedTuple

from nosync_lint.index.records import Unreadable
from nosync_lint.index.syntax import complaint
from nosync_lint.notebook import Cell, read_cells, starts

_LOOKED_THROUGH = frozenset({"capture", "debug", "prun", "python", "python3", "time", "timeit"})
"""Magics of a cell whose body is Python that runs in the notebook."""
_CELL_MAGIC = re.compile(r"%%(\w+)")
_TIMED = re.compile(r"(\s*)(%(?:time|timeit|prun)\s+(?:-\w+(?:\s+\d+)?\s+)*)(?=\S)")
_ASSIGNED = re.compile(r"(\s*[\w.,\[\]'\"* ]+=\s*)([!%].*)")
_ESCAPED = re.compile(r"(\s*)([!%?].*|[%\w.*]+\?{1,2}\s*)$")
_CODING = re.compile(r"coding[:=]")


class NotebookCode(NamedTuple):
    """The code of a notebook as a Python file, where its cells begin, and the cells that could not be read."""

    data: bytes
    starts: tuple[tuple[int, int], ...]
    unread: tuple[Unreadable, ...]


def notebook_code(data: bytes) -> NotebookCode:
    """The code cells of a notebook. Raises `UnreadableFile`. A cell that is no Python is left empty and told."""
    lines: list[str] = []
    unread = []
    cells = read_cells(data)
    for cell in cells:
        kept, problem = _python(cell)
        if problem is not None:
            unread.append(Unreadable(problem.reason, len(lines) + problem.row))
        lines += kept
    for row, line in enumerate(lines[:2]):  # a cell is text already: no comment changes its encoding
        lines[row] = _CODING.sub("coding ", line)
    return NotebookCode("\n".join(lines).encode(), starts(cells), tuple(unread))


def _python(cell: Cell) -> tuple[list[str], Unreadable | None]:
    """The lines of a cell as Python, or empty ones with what is wrong."""
    lines = list(cell.lines)
    first = next((row for row, line in enumerate(lines) if line.strip()), None)
    magic = _CELL_MAGIC.match(lines[first]) if first is not None else None
    if first is not None and magic is not None:
        if magic[1] not in _LOOKED_THROUGH:
            return [""] * len(lines), None
        lines[first] = ""
    waiting: dict[int, Iterator[list[str]]] = {}
    while True:
        problem = _problem("\n".join(lines))
        if problem is None:
            return lines, None
        at = problem.row - 1
        if not 0 <= at < len(lines):
            return [""] * len(lines), problem
        while at and lines[at - 1].endswith("\\"):
            at -= 1
        rewrites = waiting.setdefault(at, _rewrites(cell.lines, at))
        written = next(rewrites, None)
        if written is None:
            return [""] * len(lines), problem
        lines[at : at + len(written)] = written


def _problem(text: str) -> Unreadable | None:
    """What keeps a text from being Python."""
    try:
        text.encode()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return Unreadable(complaint(error), error.lineno or 1)
    except UnicodeEncodeError as error:
        return Unreadable("holds half a character; correct the cell", text[: error.start].count("\n") + 1)
    except ValueError as error:
        return Unreadable(f"cannot be parsed: {error}; correct the cell", 1)
    except (RecursionError, MemoryError):
        return Unreadable("is nested too deeply to parse; split it or exclude it", 1)
    return None


def _rewrites(lines: tuple[str, ...], at: int) -> Iterator[list[str]]:
    """What may stand in place of a line for IPython, and of the lines that it goes on in: the best first."""
    line = lines[at]
    timed, assigned, escaped = _TIMED.match(line), _ASSIGNED.fullmatch(line), _ESCAPED.match(line)
    if timed:
        yield [timed[1] + "0;".ljust(len(timed[2])) + line[timed.end() :]]
    end = at
    while lines[end].endswith("\\") and end + 1 < len(lines):
        end += 1
    rest = [""] * (end - at)
    if assigned:  # what a command gives is not known
        yield [assigned[1] + "_".ljust(len(assigned[2])), *rest]
    if escaped:
        yield [escaped[1] + "0".ljust(len(escaped[2])), *rest]
