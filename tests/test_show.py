"""What a run would do is shown without one: settings, files, keys."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from nosync_lint import cli
from nosync_lint.config import KEYS
from nosync_lint.schema import schema

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("a.py", "b.ipynb", "c.txt", "old/d.py", "tests/e.py", "k.cuh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("not even Python")
    (tmp_path / "nosync-lint.toml").write_text('exclude = ["old"]\nheat = "warm"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(capsys: Capture, *arguments: str) -> str:
    assert cli.main(["check", *arguments]) == 0
    return capsys.readouterr().out


def test_the_reported_files_are_shown_and_not_read(project: Path, capsys: Capture) -> None:
    assert shown(capsys, "--show-files").split() == ["a.py", "b.ipynb", "k.cuh", "tests/e.py"]
    assert shown(capsys, "--show-files", "--extend-exclude", "*.ipynb", ".").split() == ["a.py", "k.cuh", "tests/e.py"]
    assert shown(capsys, "--show-files", "tests").split() == ["tests/e.py"]
    assert cli.main(["check", "--show-files", "missing"]) == 2
    assert "missing: no such file or folder" in capsys.readouterr().err


def test_the_settings_are_shown_with_where_they_come_from(project: Path, capsys: Capture) -> None:
    out = shown(capsys, "--show-settings", "--select", "NSL1", "--hot", "step", "--config", 'fail-on = "info"')
    path = project / "nosync-lint.toml"
    assert out.startswith(f"# configuration file: {path}\n")
    assert list(tomllib.loads(out)) == list(KEYS)
    for line in (
        f'exclude = ["old"]  # {path}:1', f'heat = "warm"  # {path}:2', 'select = ["NSL1"]  # command line',
        'hot = ["step"]  # command line', 'fail-on = "info"  # command line', "preview = false  # default",
    ):  # fmt: skip
        assert line in out.splitlines()
    assert shown(capsys, "--show-settings", "--isolated").startswith("# configuration file: none\n")


def test_what_is_wrong_with_settings_is_told_before_they_are_shown(project: Path, capsys: Capture) -> None:
    assert cli.main(["check", "--show-settings", "--select", "NSL9"]) == 2
    assert "no rule is called `NSL9`" in capsys.readouterr().err


def test_the_command_line_says_what_two_files_mean(project: Path, capsys: Capture) -> None:
    assert cli.main(["check", "--config", "a.toml", "--config", "b.toml"]) == 2
    assert "--config names several files: a.toml, b.toml; give one" in capsys.readouterr().err


def test_keys_are_listed_for_programs(capsys: Capture) -> None:
    assert cli.main(["config", "--output-format", "json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(rows) == list(KEYS)
    assert rows["heat"] == {
        "name": "heat", "description": "least heat of the lines that are shown", "type": "string",
        "choices": ["hot", "warm", "any"], "default": '"hot"', "example": "",
    }  # fmt: skip
    assert cli.main(["config", "heat", "--output-format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == rows["heat"]


def test_the_schema_is_printed(capsys: Capture) -> None:
    assert cli.main(["config", "--output-format", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schema()


def test_a_key_is_explained(capsys: Capture) -> None:
    assert cli.main(["config", "presets"]) == 0
    out = capsys.readouterr().out
    assert out.startswith('presets = ["auto"]\n\nframeworks whose entry points are hot roots')
    assert "One of: auto, deepspeed," in out
    assert 'Example: presets = ["sglang"]' in out


def test_presets_can_be_named(project: Path, capsys: Capture) -> None:
    (project / "old" / "d.py").write_text(
        "import torch\nclass Scheduler:\n    def run_batch(self, t: torch.Tensor):\n        return torch.unique(t.cuda())\n"
    )
    arguments = ["check", "--isolated", "--no-cache", "--select", "NSL301", "--output-format", "json", "old"]

    def heats(*more: str) -> list[str]:
        cli.main([*arguments, *more])
        return [one["heat"] for one in json.loads(capsys.readouterr().out)["findings"]]

    assert heats("--heat", "any") == ["unreached"]
    assert heats("--config", 'presets = ["sglang"]') == ["hot"]
    assert heats("--config", 'presets = ["vllm"]', "--heat", "any") == ["unreached"]
    (project / "old" / "f.py").write_text("import sglang\n")
    assert heats() == ["hot"]
    assert heats("--config", "presets = []", "--heat", "any") == ["unreached"]
