"""Budgets of syncs: what counts, what fails, and what a run over a part of the project can say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from nosync_lint.config import ConfigError, load_config
from nosync_lint.pipeline import run
from nosync_lint.report import Report

Lint = Callable[..., Report]

POOL = """
import torch

class Pool:
    def __init__(self):
        self.owners = torch.zeros(8, device="cuda")

    def put(self, rows: torch.LongTensor):
        self.owners[rows] = -1

    @property
    def total(self):
        return self.owners.sum().item()
"""
LOOP = """
from pool import Pool

class Loop:
    def __init__(self):
        self.pool = Pool()

    def step(self, rows):
        self.pool.put(rows)
        return self.pool.total

    def other(self, rows):
        self.pool.put(rows)
"""


def about_budgets(report: Report) -> list[str]:
    return [one.message for one in report.findings if one.filename == "nosync-lint.toml"]


def files(budgets: str, loop: str = LOOP, pool: str = POOL) -> dict[str, str]:
    return {"loop.py": loop, "pool.py": pool, "nosync-lint.toml": budgets}


def test_a_budget_that_is_kept_says_nothing(lint: Lint) -> None:
    assert about_budgets(lint(files('[budgets]\n"Loop.step" = 2\n"Loop.other" = 1\n'))) == []


def test_a_root_over_its_budget_fails_and_names_the_syncs(lint: Lint) -> None:
    report = lint(files('[budgets]\n"Loop.step" = 1\n"Loop.other" = 0\n'))
    (first, second) = (one for one in report.findings if one.filename == "nosync-lint.toml")
    assert first.message == "`Loop.step` waits in 2 places, and its budget is 1"
    assert [(hop.filename, hop.row) for hop in first.related] == [("pool.py", 9), ("pool.py", 13)]
    assert (first.span.row, second.span.row) == (2, 3)
    assert (first.code, report.exit_code) == ("NSL006", 1)


def test_a_budget_may_only_go_down(lint: Lint) -> None:
    report = lint(files('[budgets]\n"Loop.step" = 3\n'))
    (loose,) = (one for one in report.findings if one.filename == "nosync-lint.toml")
    assert loose.message == "`Loop.step` waits in 2 places, and its budget is still 3"
    assert loose.cure == '"Loop.step" = 2'
    assert report.exit_code == 1


def test_accepted_syncs_count(lint: Lint) -> None:
    pool = POOL.replace("= -1", "= -1  # nosync-lint: ignore[NSL101] meant")
    pool = pool.replace(".item()", ".item()  # nosync-lint: ignore[NSL201] meant")
    report = lint(files('[budgets]\n"Loop.step" = 1\n', pool=pool))
    assert about_budgets(report) == ["`Loop.step` waits in 2 places, and its budget is 1"]
    known = '{"nosync-lint-baseline": 1}\n'
    known += '{"file": "pool.py", "scope": "Pool.put", "code": "NSL101", "snippet": "self.owners[rows]"}\n'
    report = lint({**files('baseline = "k.jsonl"\n[budgets]\n"Loop.step" = 1\n'), "k.jsonl": known})
    assert about_budgets(report) == ["`Loop.step` waits in 2 places, and its budget is 1"]


def test_what_is_cold_or_unsure_does_not_count(lint: Lint) -> None:
    loop = LOOP.replace(
        "        return self", "        if self.debug:\n            self.pool.total\n        return 0; self"
    )
    assert about_budgets(lint(files('[budgets]\n"Loop.step" = 1\n', loop=loop))) == []


def test_a_part_of_the_project_is_not_called_loose(lint: Lint) -> None:
    project = files('[budgets]\n"Loop.step" = 3\n')
    assert about_budgets(lint(project, paths=("loop.py",))) == []
    assert len(about_budgets(lint(project))) == 1


def test_what_a_change_touches_is_not_called_loose(lint: Lint) -> None:
    lint(files('[budgets]\n"Loop.step" = 3\n'))
    settings = replace(load_config(Path("nosync-lint.toml").absolute()), target_torch=">=2.9")
    for touching, told in ((None, 1), (["loop.py"], 0)):
        assert len(about_budgets(run(["."], settings, jobs=1, cache=False, touching=touching))) == told


def test_a_budget_makes_its_function_a_hot_root(lint: Lint) -> None:
    report = lint(files('[budgets]\n"Loop.step" = 2\n'))
    assert {one.root for one in report.findings} == {"loop.Loop.step"}


def test_a_budget_for_nothing_is_told(lint: Lint) -> None:
    report = lint(files('hot = ["Loop.step"]\n[budgets]\n"Loop.stop" = 2\n'))
    (wrong,) = (one for one in report.findings if one.filename == "nosync-lint.toml")
    assert (wrong.code, wrong.span.row) == ("NSL003", 3)
    assert "hot root `Loop.stop` names nothing" in wrong.message


def test_rules_about_budgets_can_be_left_out(lint: Lint) -> None:
    assert about_budgets(lint(files('ignore = ["loose-sync-budget"]\n[budgets]\n"Loop.step" = 3\n'))) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("budgets = 3", "x.toml:1: `budgets` must be a table"),
        ('[budgets]\n"a.b" = "2"', "x.toml:2: `budgets.\"a.b\"` must be a number of syncs from 0, not '2'"),
        ('[budgets]\n"a.b" = -1', "not -1"),
        ('[budgets]\n"a.b" = true', "not True"),
        ("[budgets]\nLoop.step = 2", 'quote the name of a root in `budgets`: "Loop.step" = 2'),
        ('[budgets]\n" " = 2', "`budgets` holds an empty name"),
    ],
)
def test_unusable_budgets_are_named(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(ConfigError) as error:
        load_config(tmp_path / "x.toml")
    assert said in str(error.value)


def test_a_budget_over_an_extended_one_takes_its_place(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text('[budgets]\n"a" = 1\n"b" = 2\n')
    (tmp_path / "x.toml").write_text('extend = "base.toml"\nbaseline = "k.jsonl"\n[budgets]\n"b" = 3\n')
    read = load_config(tmp_path / "x.toml")
    assert [(one.root, one.syncs, one.file) for one in read.budgets] == [
        ("a", 1, tmp_path / "base.toml"),
        ("b", 3, tmp_path / "x.toml"),
    ]
    assert read.baseline == "k.jsonl"
