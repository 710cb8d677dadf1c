"""What ran, what waited and what is reported, statement by statement."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.library_use.comparison import Compared, compare
from benchmarks.library_use.linted import lint
from benchmarks.library_use.reasons import UNREAD, Reasons

CODE = """\
import torch

LIMIT = len("abc")


def reads(x: torch.Tensor, limit: float) -> float:
    y = (
        x.sum()
        .item()
    )
    if limit > 1 and bool(x.any()):
        return 0.0
    z = str(x.unknown())
    return y


def not_run(x: torch.Tensor) -> float:
    return x.max().item()
"""
RAN = (1, 3, 6, 8, 9, 11, 13, 14)


@pytest.fixture
def compared(tmp_path: Path) -> Compared:
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "code.py").write_text(CODE)
    events = [
        {"code": code, "filename": name, "location": {"row": row}}
        for code, name, row in (
            ("NSL201", "package/code.py", 9),
            ("NSL201", "package/code.py", 8),
            ("NSL205", "package/code.py", 13),
            ("NSL101", "/elsewhere/program.py", 3),
        )
    ]
    linted = lint(folder, "2.13")
    found = compare(folder, {"package/code.py": RAN}, events, linted.findings)
    (line,) = linted.lines(one.key for one in found.guard_only).values()
    assert any("unknown" in why for why in line.silent)
    return found


def test_a_wait_and_a_report_in_one_statement_agree(compared: Compared) -> None:
    (both,) = compared.both
    assert (both.row, both.waited, both.same_rule) == (7, {"NSL201": 2}, True)


def test_what_is_not_reported_and_what_did_not_wait_are_told_apart(compared: Compared) -> None:
    assert [one.row for one in compared.guard_only] == [13]
    assert [one.row for one in compared.linter_only] == [11]
    assert compared.elsewhere == 1


def test_only_statements_of_functions_that_ran_are_counted(compared: Compared) -> None:
    assert compared.ran == 3


def test_reasons_stand_by_row_or_for_a_whole_file(compared: Compared) -> None:
    (idle,) = compared.linter_only
    groups = [
        {"right": "both", "why": "the limit is small", "at": {"code.py": [11]}},
        {"right": "neither", "why": "all of it", "at": {"c*.py": []}},
    ]
    assert Reasons("package", groups).why(idle) == ("both", "the limit is small")
    assert Reasons("package", groups[1:]).why(idle) == ("neither", "all of it")
    assert Reasons("other", groups).why(idle) == UNREAD


def test_every_reason_names_somebody_who_is_right() -> None:
    for package in ("kornia", "torch_geometric", "transformers"):
        groups = Reasons.of(package)._groups
        assert {group["right"] for group in groups} <= {"guard", "linter", "both", "neither"}
        assert all(group["why"] and group["at"] for group in groups)
