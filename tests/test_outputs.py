"""Which reports a run writes, where they go, and what is left of a file when that fails."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TextIO

import pytest

from nosync_lint.cli import main
from nosync_lint.commands import output
from nosync_lint.registry import rules
from nosync_lint.report import Report
from nosync_lint.report.formats import FORMATS, Style

FLAGGED = "import torch\n\ndef step(ids: torch.Tensor):  # nosync-lint: hot\n    return ids.unique()\n"
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one finding, which is the working directory."""
    for name in ("NOSYNC_LINT_OUTPUT_FORMAT", "GITHUB_STEP_SUMMARY", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "nosync-lint.toml").touch()
    (tmp_path / "hot.py").write_text(FLAGGED)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(*arguments: str) -> int:
    return main(["check", "-j", "1", "--no-cache", *arguments])


def form_of(text: str) -> str:
    """Which of three formats a text is in."""
    if text.startswith('{"$schema"'):
        return "sarif"
    return "json" if text.startswith('{\n  "schema_version"') else "full"


@pytest.mark.parametrize(
    ("arguments", "printed", "files"),
    [
        ("", "full", {}),
        ("--output-format json", "json", {}),
        ("-o a", None, {"a": "full"}),
        ("--output-format json -o a", None, {"a": "json"}),
        ("-o a --output-format json", None, {"a": "json"}),
        ("--output-format sarif -o a --output-format full", "full", {"a": "sarif"}),
        ("--output-format full --output-format sarif -o a", "full", {"a": "sarif"}),
        ("--output-format sarif -o a --output-format json --output-file b", None, {"a": "sarif", "b": "json"}),
        ("--output-format sarif -o a --output-format json -o b --output-format full", "full", {"a": "sarif", "b": "json"}),
    ],
)  # fmt: skip
def test_a_file_belongs_to_the_format_before_it(
    project: Path, capsys: Capture, arguments: str, printed: str | None, files: dict[str, str]
) -> None:
    assert check(*arguments.split()) == 1
    text = capsys.readouterr().out
    assert (form_of(text) if text else None) == printed
    assert {name: form_of((project / name).read_text()) for name in files} == files
    assert {path.name for path in project.iterdir()} == {"nosync-lint.toml", "hot.py", *files}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--output-format full --output-format json", "full and json both go to standard output; put -o PATH after all but one"),
        ("--output-format json -o a -o b", "--output-format json has two files, a and b"),
        ("-o a -o b", "-o a stands before any --output-format"),
        ("-o a --output-format json --output-format full", "-o a stands before any --output-format"),
        ("--output-format json -o a --output-format sarif -o ./a", "two reports go to"),
        ("--output-format json -o hot.py", "hot.py: is source code by its name"),
        ("--output-format json -o new.cuh", "new.cuh: is source code by its name"),
        ("--output-format json -o absent/a.json", "absent/a.json: cannot be written: No such file or directory"),
        ("--output-format json -o .", ".: cannot be written: Is a directory"),
        ("--explain hot.py:4 --output-format sarif", "an explanation is written as full or json, not as sarif"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_refused_before_anything_is_read(
    project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, arguments: str, told: str
) -> None:
    monkeypatch.setattr("nosync_lint.pipeline._linked", lambda *given: pytest.fail("something was read"))
    assert check(*arguments.split()) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert told in captured.err
    assert (project / "hot.py").read_text() == FLAGGED


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_can_be_asked_for(project: Path, capsys: Capture, form: str) -> None:
    assert check("--output-format", form) == 1
    assert "NSL301" in capsys.readouterr().out


def test_the_environment_names_the_format_that_is_not_given(
    project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOSYNC_LINT_OUTPUT_FORMAT", "sarif")
    check()
    assert form_of(capsys.readouterr().out) == "sarif"
    check("--output-format", "json")
    assert form_of(capsys.readouterr().out) == "json"
    monkeypatch.setenv("NOSYNC_LINT_OUTPUT_FORMAT", "text")
    assert check() == 2
    assert "NOSYNC_LINT_OUTPUT_FORMAT must be one of full, concise, grouped, json" in capsys.readouterr().err


def test_an_explanation_goes_to_several_outputs_too(project: Path, capsys: Capture) -> None:
    assert check("--explain", "hot.py:4", "--output-format", "json", "-o", "a", "--output-format", "full") == 0
    assert capsys.readouterr().out.startswith("hot.py:4")
    assert json.loads((project / "a").read_text())["row"] == 4


def broken(report: Report, out: TextIO, style: Style) -> None:
    out.write("half a rep")
    raise OSError(28, "No space left on device")


def interrupted(report: Report, out: TextIO, style: Style) -> None:
    out.write("half a rep")
    raise KeyboardInterrupt


@pytest.mark.parametrize(("write", "code"), [(broken, 2), (interrupted, 130)])
@pytest.mark.parametrize("before", ["the report of yesterday", None])
def test_a_report_that_is_not_finished_leaves_the_old_one_whole(
    project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, write: object, code: int, before: str | None
) -> None:
    monkeypatch.setattr("nosync_lint.report.json.write", write)
    if before is not None:
        (project / "report.json").write_text(before)
    left = {path.name for path in project.iterdir()}
    assert check("--output-format", "json", "-o", "report.json") == code
    assert {path.name for path in project.iterdir()} == left
    assert before is None or (project / "report.json").read_text() == before
    assert code == 130 or "report.json: cannot be written: No space left on device" in capsys.readouterr().err


def test_a_report_keeps_the_mode_of_its_file_and_the_link_to_it(project: Path) -> None:
    (project / "real.json").write_text("")
    (project / "real.json").chmod(0o640)
    os.symlink("real.json", project / "link.json")
    check("--output-format", "json", "-o", "link.json")
    assert (project / "link.json").is_symlink()
    assert form_of((project / "real.json").read_text()) == "json"
    assert stat.S_IMODE((project / "real.json").stat().st_mode) == 0o640


def test_a_new_report_has_the_mode_of_any_new_file(project: Path) -> None:
    (project / "any").write_text("")
    check("-o", "report.txt")
    assert (project / "report.txt").stat().st_mode == (project / "any").stat().st_mode


def test_a_report_goes_into_a_pipe(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nosync_lint", "check", "--no-cache", "-j", "1", "--output-format", "json", "-o", "/dev/stdout"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, form_of(done.stdout)) == (1, "json")


def test_a_reader_that_goes_away_costs_no_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "hot.py").write_text(FLAGGED + "    ids.unique()\n" * 2000)
    command = f"{sys.executable} -m nosync_lint check --no-cache -j 1 --output-format full --output-format json -o a | head -n 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout.count("\n"), done.stderr) == (1, "")
    assert len(json.loads((project / "a").read_text())["findings"]) == 2001


def crash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a rule crash."""
    (crashing,) = [type(rule) for rule in rules() if rule.code == "NSL302"]
    monkeypatch.setattr(crashing, "judge", lambda *given: 1 / 0)
    Path("hot.py").write_text(FLAGGED + "    ids.nonzero()\n")


@pytest.mark.parametrize("form", FORMATS)
def test_what_failed_is_told_whatever_the_format(
    project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    crash(monkeypatch)
    assert check("--output-format", form, "--hot", "nobody") == 2
    captured = capsys.readouterr()
    told = captured.err if form in ("json-lines", "gitlab", "rdjson", "pylint") else captured.out
    assert "rule NSL302 nonzero-family crashed" in told
    assert "nobody names no function" in told.replace("\\", "")
    assert captured.err == "" or told is captured.err


def test_what_failed_is_told_once(project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    crash(monkeypatch)
    check("--output-format", "gitlab", "-o", "a", "--output-format", "full")
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.count("crashed") == 1


def test_the_github_format_adds_to_the_job_summary(
    project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = project / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    check("--output-format", "full")
    assert summary.read_text() == "before\n"
    check("--output-format", "github")
    check("--output-format", "github", "-o", "annotations")
    text = summary.read_text()
    assert text.startswith("before\n## nosync-lint: 1 finding\n")
    assert text.count("## nosync-lint: 1 finding\n") == 2
    assert "::error " in capsys.readouterr().out


def test_the_job_summary_stays_within_its_limit(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = project / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setattr(output, "MAX_JOB_SUMMARY", 5000)
    (project / "hot.py").write_text(FLAGGED + "    ids.unique()\n" * 50)
    for _ in range(3):
        check("--output-format", "github")
        assert summary.stat().st_size <= 5000
    assert "more findings have no room here" in summary.read_text()


def test_a_job_summary_that_cannot_be_written_is_named(
    project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "/no/such/folder/summary.md")
    assert check("--output-format", "github") == 2
    assert "GITHUB_STEP_SUMMARY /no/such/folder/summary.md: cannot be written" in capsys.readouterr().err
