"""Notebooks: which cells are read, what gives way in them, and that no row or column moves."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest

from nosync_lint.index.cells import notebook_code
from nosync_lint.notebook import joined, read_cells, starts
from nosync_lint.source import UnreadableFile


def notebook(*cells: str | tuple[str, str], **metadata: Any) -> bytes:
    """A notebook of code cells, or of (kind, text) ones."""
    made = [
        {"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True)}
        for kind, text in (cell if isinstance(cell, tuple) else ("code", cell) for cell in cells)
    ]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": made}).encode()


def python(*cells: str) -> str:
    """The code of a notebook in which every cell can be read."""
    code = notebook_code(notebook(*cells))
    assert code.unread == ()
    ast.parse(code.data)
    return code.data.decode()


def test_cells_are_joined_and_counted_as_the_notebook_counts_them() -> None:
    data = notebook(("markdown", "# title"), "a = 1\nb = 2", ("raw", "x"), "", "c = 3\n")
    cells = read_cells(data)
    assert [cell.number for cell in cells] == [2, 4, 5]
    assert joined(cells) == "a = 1\nb = 2\n\nc = 3\n"
    assert starts(cells) == ((1, 2), (3, 4), (4, 5))


@pytest.mark.parametrize(
    ("line", "kept"),
    {
        "%matplotlib inline": "0                 ",
        "!pip install torch": "0                 ",
        "!ls": "0  ",
        "?torch": "0     ",
        "torch.unique??": "0             ",
        "%psource?": "0        ",
        "files = !ls *.py": "files = _       ",
        "a, b = %run x.py": "a, b = _        ",
        "%time y = step(x)": "0;    y = step(x)",
        "%timeit -n 10 -r 3 step(x)": "0;                 step(x)",
        "%time": "0    ",
        "    !ls": "    0  ",
        "%time for x in y: pass": "0" + " " * 21,
    }.items(),
)
def test_what_is_for_ipython_gives_way_to_text_of_its_length(line: str, kept: str) -> None:
    head = "if True:\n" if line.startswith(" ") else ""
    assert len(kept) == len(line)
    assert python(f"{head}{line}\nafter = 1") == f"{head}{kept}\nafter = 1"


@pytest.mark.parametrize(
    "text",
    ["x = (a\n     % b)", "s = '''\n!ls\n%time\nx?\n'''", "x = a \\\n  % b", "# 50 % done?\n# !ls"],
)
def test_what_only_looks_like_it_is_left_alone(text: str) -> None:
    assert python("!ls", text) == "0  \n" + text


def test_a_command_goes_on_behind_a_backslash() -> None:
    assert python("!pip install \\\n   a 'b \\\n   c\nx = 1") == "0             \n\n\nx = 1"


@pytest.mark.parametrize("magic", ["bash", "writefile x.py", "html", "cython", "sql --x"])
def test_the_cell_of_another_language_is_left_out(magic: str) -> None:
    assert python("a = 1", f"%%{magic}\nthis (is none", "b = 2") == "a = 1\n\n\nb = 2"


@pytest.mark.parametrize("magic", ["time", "timeit -n 3", "capture out", "prun"])
def test_a_magic_of_the_cell_that_runs_it_is_looked_through(magic: str) -> None:
    assert python(f"\n%%{magic}\nx = 1\n!ls") == "\n\nx = 1\n0  "


def test_a_cell_that_is_no_python_is_told_and_the_others_are_kept() -> None:
    code = notebook_code(notebook("a = 1\n", "b = 1\nthis is no python", "c = 2"))
    assert code.data.decode() == "a = 1\n\n\n\nc = 2"
    ((reason, row),) = code.unread
    assert row == 4
    assert reason.startswith("cannot be parsed as Python ")


def test_a_comment_about_the_encoding_changes_nothing() -> None:
    text = "# -*- coding: latin-1 -*-\nx = 'ü'"
    assert python(text).splitlines()[1] == "x = 'ü'"
    compile(notebook_code(notebook(text)).data, "x", "exec")


@pytest.mark.parametrize("metadata", [{"language_info": {"name": "julia"}}, {"kernelspec": {"language": "R"}}])
def test_a_notebook_in_another_language_has_no_cells(metadata: dict[str, Any]) -> None:
    assert read_cells(notebook("x <- 1", **metadata)) == ()


def test_a_notebook_that_says_python_or_nothing_has() -> None:
    for metadata in ({}, {"language_info": {"name": "ipython"}}, {"kernelspec": {"language": "python"}}):
        assert len(read_cells(notebook("x = 1", **metadata))) == 1


def test_a_cell_in_another_language_of_the_editor_is_left_out() -> None:
    data = json.loads(notebook("select 1", "x = 1"))
    data["cells"][0]["metadata"] = {"vscode": {"languageId": "sql"}}
    assert [cell.number for cell in read_cells(json.dumps(data).encode())] == [2]


def test_a_source_may_be_one_text_with_any_line_ends() -> None:
    data = json.loads(notebook("x"))
    data["cells"][0]["source"] = "a = 1\r\nb = 2\rc = 3"
    assert joined(read_cells(json.dumps(data).encode())) == "a = 1\nb = 2\nc = 3"


WRONG = {
    b"": "not valid JSON",
    b"{": "not valid JSON",
    b"[]": "it holds no JSON object",
    b"\xff\xfe{": "is no notebook",
    b'{"nbformat": 4}': "it has no list of cells",
    b'{"nbformat": 3, "worksheets": []}': "is a notebook of format 3, which is not read; convert it",
    b'{"nbformat": 4, "cells": [3]}': "cell 1 is no JSON object",
    b'{"nbformat": 4, "cells": [{"cell_type": "code"}]}': "cell 1 has no source",
    b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": [1]}]}': "cell 1 has no source",
}


@pytest.mark.parametrize("data", WRONG)
def test_what_is_wrong_with_a_notebook_is_told(data: bytes) -> None:
    with pytest.raises(UnreadableFile) as raised:
        read_cells(data)
    assert WRONG[data] in raised.value.reason
    assert "; " in raised.value.reason


@pytest.mark.parametrize("text", ["x = '\ud800'", "x = 1\x00", "(" * 3000 + ")" * 3000])
def test_odd_text_in_a_cell_is_told(text: str) -> None:
    code = notebook_code(notebook("a = 1", text))
    assert len(code.unread) == 1
    assert code.data.decode().startswith("a = 1\n")


def test_an_empty_notebook_is_no_code() -> None:
    assert notebook_code(notebook()) == (b"", (), ())
