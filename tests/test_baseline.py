"""The file of accepted findings: what it survives, what it does not let pass, and what is told of it."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nosync_lint.baseline import BaselineError, load_baseline
from nosync_lint.cli import main
from nosync_lint.config import load_config

GRID = """
import torch

class Grid:
    def __init__(self):
        self.cells = torch.zeros(8, device="cuda")

    def step(self, rows: torch.LongTensor):  # nosync-lint: hot
        self.cells[rows] = -1
        return self.cells.sum().item()

    def load(self, rows: torch.LongTensor):
        self.cells[rows] = -1
"""
HEADER = {"nosync-lint-baseline": 1}
ENTRY: dict[str, Any] = {"file": "grid.py", "scope": "Grid.step", "code": "NSL101", "snippet": "self.cells[rows]"}


class Project:
    """A project with a baseline, checked by the command line."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.output = self.errors = ""
        self._capsys = capsys

    def check(self, *options: str) -> int:
        code = main(["check", "-q", "-n", "-j", "1", "--baseline", "known.jsonl", *options])
        self.output, self.errors = self._capsys.readouterr()
        return code

    @property
    def codes(self) -> list[str]:
        """The codes of what is shown, in order."""
        return [line.split(": ")[1].split()[0] for line in self.output.splitlines() if ": NSL" in line]

    @property
    def entries(self) -> list[dict[str, Any]]:
        header, *entries = map(json.loads, Path("known.jsonl").read_text().splitlines())
        assert header == HEADER
        return entries

    def write(self, *entries: dict[str, Any]) -> None:
        Path("known.jsonl").write_text("\n".join(map(json.dumps, [HEADER, *entries])) + "\n")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Project:
    monkeypatch.chdir(tmp_path)
    Path("nosync-lint.toml").touch()
    Path("grid.py").write_text(GRID)
    made = Project(capsys)
    assert made.check("--write-baseline") == 0
    return made


def test_a_baseline_has_no_rows_and_accepts_what_was_found(project: Project) -> None:
    assert project.entries == [ENTRY, {**ENTRY, "code": "NSL201", "snippet": "self.cells.sum().item()"}]
    assert project.check() == 0
    assert "0 shown; hidden: 1 unreached (--heat any), 2 baselined" in project.output


def test_writing_again_changes_nothing_and_keeps_reasons(project: Project) -> None:
    project.write({**ENTRY, "reason": "ä", "owner": "@me"}, project.entries[1])
    before = Path("known.jsonl").read_text()
    assert project.check("--write-baseline") == 0
    assert json.loads(Path("known.jsonl").read_text().splitlines()[1]) == {**ENTRY, "reason": "ä", "owner": "@me"}
    assert project.check("--write-baseline") == 0
    assert Path("known.jsonl").read_text().replace("ä", "\\u00e4") == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\nimport torch\n", "\n\n# more\n\nimport torch\n"),
        ("self.cells[rows] = -1\n        return", "self.cells[\n            rows  # laid out\n        ] = -1\n        return"),
        ("self.cells[rows] = -1\n        return", "self.cells[(rows)] = -7\n        return"),
        ("self.cells.sum().item()", "(\n            self.cells.sum()\n            .item()\n        )"),
        ("class Grid:\n", "class Grid:\n    def first(self): ...\n\n"),
    ],
    ids=["rows above", "line breaks", "brackets and value", "brackets around", "a method above"],
)  # fmt: skip
def test_moves_and_layout_disturb_nothing(old: str, new: str, project: Project) -> None:
    assert old in GRID
    Path("grid.py").write_text(GRID.replace(old, new))
    assert project.check() == 0
    assert "2 baselined" in project.output


def test_a_new_finding_fails_also_where_it_looks_like_a_known_one(project: Project) -> None:
    Path("grid.py").write_text(GRID.replace("        return", "        self.cells[rows] = -2\n        return"))
    assert project.check() == 1
    assert project.codes == ["NSL101"]
    assert "grid.py:10:" in project.output


def test_the_same_expression_in_another_function_is_new(project: Project) -> None:
    assert project.check("--heat", "any") == 1
    assert "grid.py:13:" in project.output
    assert project.codes == ["NSL101"]


def test_what_is_gone_is_told_and_fails_until_it_is_pruned(project: Project) -> None:
    Path("grid.py").write_text(GRID.replace("        return self.cells.sum().item()\n", ""))
    assert project.check() == 1
    assert project.codes == ["NSL005"]
    assert "known.jsonl:3:1: NSL005 stale-baseline-entry the baseline accepts a finding that is gone" in project.output
    assert project.check("--prune-baseline") == 0
    assert project.entries == [ENTRY]
    assert project.check() == 0


def test_pruning_accepts_nothing_new(project: Project) -> None:
    Path("grid.py").write_text(GRID.replace(".item()", ".tolist()"))
    assert project.check("--prune-baseline") == 1
    assert project.codes == ["NSL202"]
    assert project.entries == [ENTRY]


def test_one_of_several_that_are_gone_lowers_the_count(project: Project) -> None:
    project.write({**ENTRY, "count": 3, "reason": "old"}, project.entries[1])
    assert project.check() == 1
    assert "3 findings of which one is left" in project.output
    assert project.check("--prune-baseline") == 0
    assert project.entries[0] == {**ENTRY, "reason": "old"}


def test_a_comment_makes_an_entry_stale(project: Project) -> None:
    Path("grid.py").write_text(
        GRID.replace("= -1\n        ret", "= -1  # nosync-lint: ignore[NSL101] once\n        ret")
    )
    assert project.check() == 1
    assert project.codes == ["NSL005"]


@pytest.mark.parametrize("options", [["--select", "NSL201,NSL005"], ["other.py"], ["--exclude", "grid.py"]])
def test_what_a_run_does_not_look_at_is_not_stale(options: list[str], project: Project) -> None:
    Path("other.py").write_text("x = 1\n")
    Path("grid.py").write_text(GRID.replace("self.cells[rows] = -1", "..."))
    assert project.check(*options) == 0, project.output
    assert project.check(*options, "--write-baseline") == 0
    assert ENTRY in project.entries


def test_what_heat_or_confidence_hide_is_not_stale(project: Project) -> None:
    assert project.check("--heat", "any", "--write-baseline") == 0
    assert len(project.entries) == 3
    assert project.check() == 0
    assert project.check("--write-baseline") == 0
    assert len(project.entries) == 3


def test_what_a_change_does_not_touch_is_not_stale(project: Project) -> None:
    Path("other.py").write_text("x = 1\n")
    Path("grid.py").write_text(GRID.replace("self.cells[rows] = -1", "..."))
    assert project.check("--touching", "other.py") == 0, project.output
    assert project.check("--touching", "grid.py") == 1
    assert project.codes == ["NSL005"]


def test_what_is_ignored_in_its_file_is_not_stale(project: Project) -> None:
    Path("nosync-lint.toml").write_text('[per-file-ignores]\n"grid.py" = ["NSL1"]\n')
    assert project.check() == 0, project.output


def test_entries_of_an_unreadable_file_wait(project: Project) -> None:
    Path("grid.py").write_text(GRID + "(")
    assert project.check() == 1
    assert project.codes == ["NSL000"]


def test_entries_follow_a_renamed_file_or_function(project: Project) -> None:
    shutil.move("grid.py", "cells.py")
    assert project.check() == 0
    assert "2 entries of the baseline moved with their code: --prune-baseline writes it down" in project.output
    assert project.check("--prune-baseline") == 0
    assert {entry["file"] for entry in project.entries} == {"cells.py"}
    assert project.check() == 0
    assert "moved" not in project.output
    Path("cells.py").write_text(GRID.replace("def step", "def advance"))
    assert project.check() == 0
    assert project.check("--write-baseline") == 0
    assert {entry["scope"] for entry in project.entries} == {"Grid.advance"}


def test_entries_follow_nothing_while_their_place_is_there(project: Project) -> None:
    Path("cells.py").write_text(GRID)
    Path("grid.py").write_text(GRID.replace("self.cells[rows] = -1", "...").replace(".item()", ""))
    assert project.check() == 1
    assert sorted(project.codes) == ["NSL005", "NSL005", "NSL101", "NSL201"]


def test_entries_do_not_guess_between_two_places(project: Project) -> None:
    Path("a.py").write_text(GRID)
    shutil.move("grid.py", "b.py")
    assert project.check() == 1
    assert project.codes.count("NSL005") == 2


def test_a_baseline_does_not_depend_on_the_working_directory(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "nosync-lint.toml").write_text('baseline = "known.jsonl"\n')
    monkeypatch.chdir(tmp_path / "deep")
    assert main(["check", "-q", "-n", "-j", "1", ".."]) == 0


BROKEN = {
    "": "known.jsonl:1: is no baseline: the first line must be",
    '{"findings": []}': "known.jsonl:1: is no baseline",
    "[1]": "known.jsonl:1: is no baseline",
    '{"nosync-lint-baseline": 2}': "known.jsonl:1: is of version 2, and this release reads version 1",
    json.dumps(HEADER) + "\n<<<<<<< HEAD": "known.jsonl:2: holds the conflict markers of a merge",
    json.dumps(HEADER) + "\n7": "known.jsonl:2: must be a JSON object",
    json.dumps(HEADER) + '\n{"file": "a.py"}': "known.jsonl:2: the entry lacks code, snippet",
    json.dumps(HEADER) + "\n" + json.dumps({**ENTRY, "row": 3}): "known.jsonl:2: unknown key `row`",
    json.dumps(HEADER) + "\n" + json.dumps({**ENTRY, "count": 0}): "`count` must be a number from 1, not 0",
    json.dumps(HEADER) + "\n" + json.dumps({**ENTRY, "count": True}): "`count` must be a number from 1, not True",
    json.dumps(HEADER) + "\n" + json.dumps({**ENTRY, "code": 3}): "`code` must be a text, not 3",
    "\n".join(map(json.dumps, [HEADER, ENTRY, {**ENTRY, "reason": "x"}])): "known.jsonl:3: is the same entry as line 2",
}


@pytest.mark.parametrize(("text", "said"), BROKEN.items(), ids=range(len(BROKEN)))
def test_a_broken_baseline_is_one_clear_line(text: str, said: str, project: Project) -> None:
    Path("known.jsonl").write_text(text)
    ours = text.startswith(json.dumps(HEADER))
    for options in ((), ("--prune-baseline",), *(() if ours else (("--write-baseline",),))):
        assert project.check(*options) == 2
        assert said in project.errors
        assert len(project.errors.splitlines()) == 1
    assert Path("known.jsonl").read_text() == text


@pytest.mark.parametrize("text", [text for text in BROKEN if text.startswith(json.dumps(HEADER))])
def test_a_broken_baseline_is_written_anew(text: str, project: Project) -> None:
    before = project.entries
    Path("known.jsonl").write_text(text)
    assert project.check("--write-baseline") == 0
    assert [{**entry, "reason": ""} for entry in project.entries] == [{**entry, "reason": ""} for entry in before]
    assert project.check() == 0


def test_a_conflict_of_two_branches_keeps_what_both_say(project: Project) -> None:
    one, other = ENTRY, {**ENTRY, "code": "NSL201", "snippet": "self.cells.sum().item()"}
    sides = [{**one, "reason": "v2 removes it"}, {**other, "count": 3}], [one, {**other, "owner": "@kv"}]
    ours, theirs = ("\n".join(map(json.dumps, side)) for side in sides)
    header = json.dumps(HEADER)
    Path("known.jsonl").write_text(f"{header}\n<<<<<<< HEAD\n{ours}\n=======\n{theirs}\n>>>>>>> other\nnot JSON\n")
    assert project.check() == 2
    cure = "keep the lines of both sides, each once, or write it anew with --write-baseline"
    assert f"known.jsonl:2: holds the conflict markers of a merge: {cure}" in project.errors
    assert project.check("--write-baseline") == 0
    assert "known.jsonl: 1 line of the old file could not be read: left out" in project.errors
    assert project.entries == [{**one, "reason": "v2 removes it"}, {**other, "owner": "@kv"}]
    Path("known.jsonl").write_text(f"<<<<<<< HEAD\n{header}\n{ours}\n=======\n{header}\n>>>>>>> other\n")
    assert project.check() == 2
    assert "known.jsonl:1: holds the conflict markers" in project.errors
    assert project.check("--write-baseline") == 0


def test_a_baseline_that_is_no_text_is_written_anew(project: Project) -> None:
    with open("known.jsonl", "ab") as file:
        file.write(b"\xff\n")
    assert project.check() == 2
    assert "write it anew with --write-baseline" in project.errors
    assert project.check("--write-baseline") == 0
    assert project.check() == 0


def test_brackets_that_change_the_meaning_keep_entries_apart(project: Project) -> None:
    step = "        return (self.cells + 1).sum().item(), (self.cells + self.cells.sum()).item()\n"
    Path("grid.py").write_text(GRID.replace("        return self.cells.sum().item()\n", step))
    assert project.check("--write-baseline") == 0
    assert [entry["snippet"] for entry in project.entries if entry["code"] == "NSL201"] == [
        "(self.cells+1).sum().item()",
        "(self.cells+self.cells.sum()).item()",
    ]
    Path("grid.py").write_text(GRID)
    assert project.check() == 1
    assert "`(self.cells+1).sum().item()`" in project.output


def test_a_missing_baseline_is_told(project: Project) -> None:
    Path("known.jsonl").unlink()
    assert project.check() == 2
    assert "known.jsonl: there is no such baseline; --write-baseline makes it" in project.errors
    assert project.check("--prune-baseline") == 2


CLASHES = [
    (["--write-baseline", "--prune-baseline"], "--write-baseline and --prune-baseline cannot be used together"),
    (["--write-baseline", "--since", "HEAD"], "--since cannot be used with --write-baseline"),
    (["--explain", "grid.py:3", "--add-ignore", "x"], "--explain and --add-ignore cannot be used together"),
    (["--explain", "grid.py:3", "--since", "x"], "--explain and --since cannot be used together"),
    (["--add-ignore", "x", "--fix"], "--add-ignore and fixes cannot be used together"),
    (["--write-baseline", "--diff"], "--write-baseline and fixes cannot be used together"),
    (["--prune-baseline", "-"], "--prune-baseline writes files and cannot be used with standard input"),
    (["--baseline", ""], "--baseline is empty"),
    (["--baseline", "no/where.jsonl", "--write-baseline"], "there is no folder"),
]


@pytest.mark.parametrize(("options", "said"), CLASHES, ids=[" ".join(options) for options, _ in CLASHES])
def test_options_that_clash_are_refused(options: list[str], said: str, project: Project) -> None:
    assert project.check(*options) == 2
    assert said in project.errors


def test_updating_needs_a_file(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--write-baseline"]) == 2
    assert "--write-baseline needs a file" in capsys.readouterr().err


def test_an_explanation_names_the_baseline(project: Project) -> None:
    assert project.check("--explain", "grid.py:9") == 0
    assert "is hidden: the baseline accepts it" in project.output


def test_a_baseline_is_replaced_at_once_and_keeps_its_mode(project: Project) -> None:
    Path("known.jsonl").chmod(0o640)
    project.write()
    assert project.check("--write-baseline") == 0
    assert Path("known.jsonl").stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in Path().iterdir()) == ["grid.py", "known.jsonl", "nosync-lint.toml"]


def test_what_is_written_is_read_again(project: Project) -> None:
    read = load_baseline(Path("known.jsonl").absolute())
    odd = replace(read.entries[0], identity=read.entries[0].identity._replace(snippet='"\u2028\n#é'), count=7)
    Path("known.jsonl").write_text(replace(read, entries=(odd,)).text(), encoding="utf-8")
    assert load_baseline(Path("known.jsonl")).entries == (replace(odd, row=2),)
    with pytest.raises(BaselineError):
        load_baseline(Path("grid.py"))


def test_the_page_about_baselines_shows_what_can_be_read(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parent.parent / "docs" / "baseline.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```json\n(.*?)```", page, re.S)
    (tmp_path / "shown.jsonl").write_text(shown, encoding="utf-8")
    read = load_baseline(tmp_path / "shown.jsonl")
    assert read.text() == shown
    assert (read.entries[0].count, read.entries[0].owner) == (2, "@kv-team")
    (table,) = re.findall(r"```toml\n(.*?)```", page, re.S)
    (tmp_path / "pyproject.toml").write_text(table, encoding="utf-8")
    budgets = load_config(tmp_path / "pyproject.toml").budgets
    assert [(one.root, one.syncs, one.row) for one in budgets] == [
        ("Scheduler.step", 2, 2),
        ("PageAllocator.free", 0, 3),
    ]
