"""`init` writes a configuration that fits the project, keeps everything else as it is, and never a second one."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from nosync_lint import cli
from nosync_lint.config import KEYS, load_config
from nosync_lint.selection import check_names

ROOT = Path(__file__).resolve().parent.parent
Capture = pytest.CaptureFixture[str]
PROJECT = '[project]\nname = "x"\ndependencies = ["torch>=2.10"]  # kept\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "serve.py").write_text(
        "import torch\n\ndef f():\n    import transformers.models\n    from vllm import LLM\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(*arguments: str) -> int:
    return cli.main(["init", *arguments])


def test_a_table_is_added_and_everything_else_stays_byte_for_byte(project: Path, capsys: Capture) -> None:
    path = project / "pyproject.toml"
    path.write_text(PROJECT)
    assert init() == 0
    written = path.read_bytes()
    assert written.startswith(PROJECT.encode() + b"\n[tool.nosync-lint]\n")
    settings = load_config(path)
    assert settings.presets == ("transformers", "vllm")
    assert settings.target_torch == ">=2.10"
    out = capsys.readouterr().out
    assert out == "written: pyproject.toml\npresets: transformers, vllm\ntorch: >=2.10\nnext: nosync-lint check\n"


def test_without_a_pyproject_a_file_of_our_own_is_written(project: Path, capsys: Capture) -> None:
    assert init(str(project)) == 0
    settings = load_config(project / "nosync-lint.toml")
    assert settings.presets == ("transformers", "vllm")
    assert settings.target_torch == ""
    assert "torch: the project requires no release" in capsys.readouterr().out


@pytest.mark.parametrize(
    "before", ["[project]\r\nname = 'x'\r\n", "[project]\nname = 'x'", "\ufeff[project]\nname = 'ü'\n", ""]
)
def test_line_ends_marks_and_a_missing_last_one_are_kept(project: Path, before: str) -> None:
    path = project / "pyproject.toml"
    path.write_bytes(before.encode())
    assert init() == 0
    written = path.read_bytes()
    assert written.startswith(before.encode())
    added = written[len(before.encode()) :].decode()
    assert added.count("\n") == added.count("\r\n") if "\r\n" in before else "\r" not in added
    assert load_config(path).presets == ("transformers", "vllm")
    assert tomllib.loads(written.decode("utf-8-sig")).get("project") == tomllib.loads(
        before.removeprefix("\ufeff")
    ).get("project")


def test_every_key_is_there_and_every_example_can_be_read(project: Path) -> None:
    init()
    path = project / "nosync-lint.toml"
    text = path.read_text()
    keys = re.findall(r"^(?:# )?([a-z-]+) = ", text, re.M)
    assert sorted(keys) == sorted(set(KEYS) - {"extend"})
    path.write_text(re.sub(r"^# ([a-z-]+ = )", r"\1", text, flags=re.M))
    check_names(load_config(path))


@pytest.mark.parametrize("name", ["nosync-lint.toml", ".nosync-lint.toml", "pyproject.toml"])
def test_a_second_configuration_is_refused(project: Path, capsys: Capture, name: str) -> None:
    text = "[tool.nosync-lint]\n" if name == "pyproject.toml" else ""
    (project / name).write_text(text)
    assert init() == 2
    error = capsys.readouterr().err
    assert name in error
    assert "is there already; edit it" in error
    assert (project / name).read_text() == text


@pytest.mark.parametrize(
    ("text", "told"),
    {
        "a = = 1": "is not valid TOML",
        "tool = { x = 1 }\n": "a table [tool.nosync-lint] cannot be added",
        "tool = 3\n": "`tool` is no table; repair it first",
    }.items(),
)
def test_a_file_that_cannot_hold_the_table_is_left_alone(project: Path, capsys: Capture, text: str, told: str) -> None:
    (project / "pyproject.toml").write_text(text)
    assert init() == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
    assert (project / "pyproject.toml").read_text() == text


def test_a_dry_run_prints_what_would_be_written(project: Path, capsys: Capture) -> None:
    (project / "pyproject.toml").write_text(PROJECT)
    assert init("--dry-run") == 0
    shown = capsys.readouterr().out
    assert (project / "pyproject.toml").read_text() == PROJECT
    init()
    assert (project / "pyproject.toml").read_text() == PROJECT + shown


@pytest.mark.parametrize("path", ["serve.py", "missing"])
def test_a_path_that_is_no_folder_is_refused(project: Path, capsys: Capture, path: str) -> None:
    assert init(path) == 2
    assert f"{path}: is no folder" in capsys.readouterr().err


def test_a_configuration_above_is_told_of(project: Path, capsys: Capture) -> None:
    (project / "nosync-lint.toml").touch()
    (project / "inner").mkdir()
    assert init("inner") == 0
    assert (
        f"note: {project / 'nosync-lint.toml'} no longer governs runs in {project / 'inner'}" in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("name", "text", "table"),
    [
        ("pyproject.toml", '[tool.ruff.lint]\nselect = ["RUF"]\n', "[tool.ruff.lint]"),
        ("ruff.toml", "line-length = 100\n", "[lint]"),
        (".ruff.toml", 'external = ["V"]\n', "[lint]"),
    ],
)
def test_ruff_is_told_to_keep_our_comments(project: Path, capsys: Capture, name: str, text: str, table: str) -> None:
    (project / name).write_text(text)
    init()
    told = f'ruff: add `external = ["NSL"]` under {table} in {project / name}'
    assert told in capsys.readouterr().out


def test_ruff_that_keeps_them_is_not_told(project: Path, capsys: Capture) -> None:
    (project / "ruff.toml").write_text('[lint]\nselect = ["ALL"]\nexternal = ["NSL"]\n')
    init()
    assert "ruff" not in capsys.readouterr().out


def test_after_init_the_demo_is_checked_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    shutil.copytree(
        ROOT / "demo", tmp_path / "demo", ignore=shutil.ignore_patterns("__pycache__", ".nosync_lint_cache")
    )
    monkeypatch.chdir(tmp_path / "demo")
    path = Path("pyproject.toml")
    before = cli.main(["check", "--no-cache"]), capsys.readouterr().out
    path.write_text(path.read_text().partition("# Makes this folder")[0])
    assert init() == 0
    capsys.readouterr()
    assert (cli.main(["check", "--no-cache"]), capsys.readouterr().out) == before


def test_what_ignored_folders_import_counts_for_nothing(project: Path, capsys: Capture) -> None:
    subprocess.run(["git", "init", "-q", "."], check=True)
    (project / ".gitignore").write_text("old/\n")
    (project / "old").mkdir()
    (project / "old" / "a.py").write_text("import sglang\n")
    init()
    assert "presets: transformers, vllm\n" in capsys.readouterr().out
