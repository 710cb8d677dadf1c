"""The code cells of a Jupyter notebook, which is JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from nosync_lint.source import UnreadableFile

OLDEST = 4
"""The format that is read: older ones keep their cells elsewhere."""


class Cell(NamedTuple):
    """A code cell: its number, counted from 1 over all cells as notebooks show them, and its lines."""

    number: int
    lines: tuple[str, ...]


def read_cells(data: bytes) -> tuple[Cell, ...]:
    """The code cells of a notebook; none where it is in another language. Raises `UnreadableFile`."""
    notebook = _decoded(data)
    if not _is_python(notebook.get("metadata")):
        return ()
    return tuple(_code_cells(notebook["cells"]))


def joined(cells: Sequence[Cell]) -> str:
    """The code of all cells, one after the other, as it stands in them."""
    return "\n".join(line for cell in cells for line in cell.lines)


def starts(cells: Sequence[Cell]) -> tuple[tuple[int, int], ...]:
    """Where the cells begin in the joined code: the row, and the number of the cell."""
    row, found = 1, []
    for cell in cells:
        found.append((row, cell.number))
        row += len(cell.lines)
    return tuple(found)


def _decoded(data: bytes) -> dict[str, Any]:
    try:
        notebook = json.loads(data)
    except json.JSONDecodeError as error:
        raise UnreadableFile(
            f"is no notebook: not valid JSON: {error.msg}; save it again from Jupyter, or exclude it", error.lineno
        ) from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise UnreadableFile(f"is no notebook: {error}; save it again from Jupyter, or exclude it") from error
    if not isinstance(notebook, dict):
        raise UnreadableFile("is no notebook: it holds no JSON object; repair or exclude it")
    version = notebook.get("nbformat", OLDEST)
    if "worksheets" in notebook or (isinstance(version, int) and version < OLDEST):
        cure = "convert it with `jupyter nbconvert --to notebook --inplace`, or exclude it"
        raise UnreadableFile(f"is a notebook of format {version}, which is not read; {cure}")
    if not isinstance(notebook.get("cells"), list):
        raise UnreadableFile("is no notebook: it has no list of cells; repair or exclude it")
    return notebook


def _is_python(metadata: object) -> bool:
    """Whether a notebook is in Python, which one that does not say is taken to be."""
    if not isinstance(metadata, dict):
        return True
    for holder, key in (("language_info", "name"), ("kernelspec", "language")):
        told = metadata.get(holder)
        language = told.get(key) if isinstance(told, dict) else None
        if isinstance(language, str):
            return "python" in language.lower()
    return True


def _code_cells(cells: Sequence[object]) -> Iterator[Cell]:
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict):
            raise UnreadableFile(f"is a damaged notebook: cell {number} is no JSON object; repair or exclude it")
        if cell.get("cell_type") != "code" or not _is_python_cell(cell.get("metadata")):
            continue
        source = cell.get("source")
        if isinstance(source, list) and all(isinstance(line, str) for line in source):
            source = "".join(source)
        if not isinstance(source, str):
            raise UnreadableFile(f"is a damaged notebook: cell {number} has no source; repair or exclude it")
        yield Cell(number, tuple(source.replace("\r\n", "\n").replace("\r", "\n").split("\n")))


def _is_python_cell(metadata: object) -> bool:
    """Whether an editor that mixes languages says nothing else of a cell."""
    editor = metadata.get("vscode") if isinstance(metadata, dict) else None
    language = editor.get("languageId") if isinstance(editor, dict) else None
    return language in (None, "python")
