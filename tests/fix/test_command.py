"""`check --fix` and its kind, from the command line."""

from __future__ import annotations

import codecs
import json
import os
import subprocess
from pathlib import Path

import pytest

from nosync_lint import cli, pipeline

TABLE = """import torch


class Table:
    def __init__(self, size: int, device: str) -> None:
        self.rows = torch.full((size,), -1, dtype=torch.int64, device=device)

    def free(self, pages: torch.Tensor, count: int) -> None:
        self.rows[pages.to(torch.int64)] = -1  # gone
"""
FIXED = TABLE.replace(
    "self.rows[pages.to(torch.int64)] = -1", "self.rows.index_fill_(0, pages.to(torch.int64).reshape(-1), -1)"
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "nosync-lint.toml").write_text('heat = "any"\nselect = ["NSL101", "NSL103"]\ntarget-torch = ">=2.9"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(*arguments: str, paths: tuple[str, ...] = ("a.py",)) -> int:
    return cli.main(["check", *paths, "--no-cache", "-j", "1", *arguments])


def written(project: Path, text: str = TABLE) -> Path:
    path = project / "a.py"
    path.write_text(text)
    return path


def test_fix_writes_and_reports_what_is_left(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(project)
    assert check("--fix") == 0
    assert path.read_text() == FIXED
    assert "0 shown, 1 fixed; nothing hidden" in capsys.readouterr().out
    assert check("--fix") == 0
    assert path.read_text() == FIXED


def test_without_fix_the_findings_are_marked(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(project, TABLE)
    assert check() == 1
    out = capsys.readouterr().out
    assert "a.py:9:9: NSL101 scalar-index-write [*] storing" in out
    assert "\n[*] 1 fixable with --fix" in out
    assert path.read_text() == TABLE


def test_a_diff_is_shown_and_nothing_is_written(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(project)
    assert check("--diff") == 1
    told = capsys.readouterr()
    assert path.read_text() == TABLE
    assert "+        self.rows.index_fill_(0, pages.to(torch.int64).reshape(-1), -1)  # gone\n" in told.out
    assert told.err == "would fix 1 finding in 1 file\n"
    (project / "fix.diff").write_text(told.out)
    subprocess.run(["patch", "-p0", "-i", "fix.diff"], check=True, capture_output=True)
    assert path.read_text() == FIXED
    assert check("--diff") == 0


def test_fix_only_is_silent_about_the_rest(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(project, TABLE + "        self.rows[pages] = -1\n")
    assert check("--fix-only") == 0
    assert path.read_text() == FIXED + "        self.rows[pages] = -1\n"
    assert capsys.readouterr() == ("", "fixed 1 finding in 1 file\n")


def test_unsafe_fixes_are_made_where_they_are_asked_for(project: Path) -> None:
    unsafe = "        self.other = torch.tensor([count, 2], device=pages.device)\n"
    path = written(project, TABLE + unsafe)
    assert check("--fix") == 1
    assert path.read_text() == FIXED + unsafe
    assert check("--fix", "--unsafe-fixes") == 0
    assert "torch.tensor([count, 2], pin_memory=True).to(pages.device, non_blocking=True)" in path.read_text()


def test_rules_can_be_left_alone(project: Path) -> None:
    path = written(project)
    assert check("--fix", "--unfixable", "NSL101") == 1
    assert path.read_text() == TABLE
    assert check("--fix", "--fixable", "device-tensor-from-python-data") == 1
    assert path.read_text() == TABLE
    assert check("--fix", "--fixable", "NSL1") == 0
    assert path.read_text() == FIXED


def test_the_exit_code_can_tell_that_something_was_fixed(project: Path) -> None:
    written(project)
    assert check("--fix", "--exit-non-zero-on-fix") == 1
    assert check("--fix", "--exit-non-zero-on-fix") == 0


def test_the_fixes_are_listed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(project)
    check("--fix", "--show-fixes")
    assert "a.py:\n    1 x NSL101 scalar-index-write (index-fill)\n" in capsys.readouterr().out


def test_json_has_the_edits(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(project)
    check("--output-format", "json")
    fix = json.loads(capsys.readouterr().out)["findings"][0]["fix"]
    assert fix["applicability"] == "safe"
    assert [edit["content"] for edit in fix["edits"]] == [".index_fill_(0, ", ".reshape(-1), ", ")"]


@pytest.mark.parametrize(
    "arguments",
    [("--fix", "--diff"), ("--fix-only", "--diff"), ("--show-fixes",), ("--exit-non-zero-on-fix",),
     ("--diff", "--output-format", "json"), ("--fix", "--explain", "a.py:1"), ("--fix", "--fixable", "NSL999")],
)  # fmt: skip
def test_options_that_contradict_each_other_are_refused(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    path = written(project)
    assert check(*arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("nosync-lint: error: ")
    assert told.err.count("\n") == 1
    assert path.read_text() == TABLE


ENCODINGS = {
    "line ends of Windows": TABLE.replace("\n", "\r\n").encode(),
    "line ends of old": TABLE.replace("\n", "\r").encode(),
    "mixed line ends": TABLE.replace("\n", "\r\n", 4).encode(),
    "a byte order mark": codecs.BOM_UTF8 + TABLE.encode(),
    "latin-1": ("# -*- coding: latin-1 -*-\n# é\n" + TABLE.replace("gone", "fœtal".replace("œ", "ö"))).encode(
        "latin-1"
    ),
    "shift-jis": ("# coding: shift_jis\nname = '表示'\n" + TABLE).encode("shift_jis"),
    "no line end at the end": TABLE.rstrip("\n").encode(),
    "characters beyond ASCII before the place": TABLE.replace("self.rows[", "é = 'ü'; self.rows[").encode(),
    "tabs": TABLE.replace("    ", "\t").encode(),
    "a form feed": TABLE.replace("class", "\f\nclass").encode(),
}


@pytest.mark.parametrize("name", ENCODINGS)
def test_everything_else_in_a_file_is_kept(project: Path, name: str) -> None:
    before = ENCODINGS[name]
    path = project / "a.py"
    path.write_bytes(before)
    assert check("--fix") == 0
    call = b"self.rows.index_fill_(0, pages.to(torch.int64).reshape(-1), -1)"
    assert path.read_bytes() == before.replace(b"self.rows[pages.to(torch.int64)] = -1", call)


def test_a_read_only_file_is_told_and_the_others_are_fixed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, other = written(project), project / "b.py"
    other.write_text(TABLE)
    path.chmod(0o444)
    assert check("--fix", paths=("a.py", "b.py")) == 2
    out = capsys.readouterr().out
    assert "failed: a.py: not fixed: is read-only; make it writable and run again\n" in out
    assert "1 shown, 1 fixed" in out
    assert (path.read_text(), other.read_text()) == (TABLE, FIXED)


def test_a_file_that_changes_during_the_run_is_left_alone(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(project)
    repaired = pipeline.repaired

    def later(*arguments: object) -> object:
        path.write_text(TABLE + "# more\n")
        return repaired(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(pipeline, "repaired", later)
    assert check("--fix") == 2
    assert path.read_text() == TABLE + "# more\n"
    assert "failed: a.py: not fixed: has changed since it was read; run again\n" in capsys.readouterr().out


def test_a_write_that_fails_is_told(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(project)

    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    assert check("--fix") == 2
    out = capsys.readouterr().out
    assert "failed: a.py: not fixed: cannot be written: No space left on device; it is unchanged\n" in out
    assert path.read_text() == TABLE


def test_a_suppressed_finding_is_not_fixed(project: Path) -> None:
    text = TABLE.replace("# gone", "# nosync-lint: ignore[NSL101] once a day")
    path = written(project, text)
    assert check("--fix") == 0
    assert path.read_text() == text
