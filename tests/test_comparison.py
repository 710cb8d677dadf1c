"""The page that compares us with others: behind each yes stands a test that there is, or a command that runs."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
HERE = {"yes", "by construction", "partly", "open", "no"}


class Row(NamedTuple):
    """A feature: its number, how much it is needed, whether it is here, and what shows it."""

    number: int
    feature: str
    need: str
    here: str
    proofs: tuple[str, ...]


def read_rows() -> list[Row]:
    found = []
    for line in (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8").splitlines():
        if re.match(r"\| \d+ \|", line):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            assert len(cells) == 14, line
            number, feature, need, here, proofs = *cells[:4], cells[13]
            found.append(Row(int(number), feature, need, here, tuple(re.findall(r"`([^`]+)`", proofs))))
    return found


ROWS = read_rows()
COMMANDS = sorted({proof for row in ROWS for proof in row.proofs if proof.startswith("nosync-lint ")})


@cache
def names_in(path: str) -> frozenset[str]:
    """The names of the tests in a file; none where there is no such file."""
    if not (ROOT / path).is_file():
        return frozenset()
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(
        node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


def is_there(proof: str) -> bool:
    """Whether a proof is a test of this tree. Commands are run by a test of their own."""
    path, _, name = proof.partition("::")
    return proof in COMMANDS or name in names_in(path)


def test_the_rows_are_numbered_and_say_what_they_may() -> None:
    assert [row.number for row in ROWS] == list(range(1, 86))
    assert {row.need for row in ROWS} == {"M", "S", "C"}
    assert {row.here for row in ROWS} <= HERE


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.number))
def test_behind_what_is_here_stands_a_test_or_a_command(row: Row) -> None:
    if row.here in ("yes", "by construction", "partly"):
        assert row.proofs, row.feature
        assert [proof for proof in row.proofs if not is_there(proof)] == []
    if row.here == "by construction":
        assert any("::" in proof for proof in row.proofs)


@pytest.mark.parametrize("row", [row for row in ROWS if row.here == "open"], ids=lambda row: str(row.number))
def test_what_is_open_is_not_there(row: Row) -> None:
    """When all that would show it is there, the page says yes."""
    assert not all(map(is_there, row.proofs)), f"row {row.number}, {row.feature}, is there: write yes"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_shows_something_runs(command: str, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    shutil.copytree(ROOT / "demo", folder, ignore=shutil.ignore_patterns(".*"))
    done = subprocess.run(
        [sys.executable, "-m", "nosync_lint", *shlex.split(command)[1:]],
        cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout


@pytest.mark.xfail(any(row.here == "open" for row in ROWS), reason="parts are open", strict=True)
def test_everything_that_is_needed_is_here_and_most_of_what_is_welcome() -> None:
    assert [row.feature for row in ROWS if row.need == "M" and row.here not in ("yes", "by construction")] == []
    welcome = [row.here in ("yes", "by construction") for row in ROWS if row.need == "S"]
    assert sum(welcome) >= 0.8 * len(welcome)
