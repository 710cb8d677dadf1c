"""What a run says besides findings: of functions that nothing calls, of settings that it does not read, and of ruff."""

from __future__ import annotations

from pathlib import Path

import pytest

from nosync_lint import cli

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two packages, each with a configuration of its own, below one for both."""
    for name in ("a", "b"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "inner" / "x.py").write_text("x = 1\n")
    (tmp_path / "nosync-lint.toml").touch()
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.nosync-lint]\n")
    (tmp_path / "b" / "pyproject.toml").write_text("[tool.other]\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def notes(capsys: Capture, *arguments: str) -> list[str]:
    cli.main(["check", "--no-cache", "-j", "1", *arguments])
    return [
        line for line in capsys.readouterr().out.splitlines() if line.startswith("note: ") and "hot root" not in line
    ]


def test_a_configuration_further_down_is_told_of(project: Path, capsys: Capture) -> None:
    told = "note: one configuration governs a run, here nosync-lint.toml; not read: a/pyproject.toml (check those folders apart)"
    assert notes(capsys) == [told]
    assert notes(capsys, "a", "b") == [told]
    assert notes(capsys, "a") == notes(capsys, "b") == []


def test_one_below_the_defaults_is_told_of_and_one_that_was_set_aside_is_not(project: Path, capsys: Capture) -> None:
    assert notes(capsys, "--isolated") == notes(capsys, "--config", "nosync-lint.toml") == []
    (project / "nosync-lint.toml").unlink()
    assert notes(capsys, ".") == [
        "note: one configuration governs a run, here the defaults; not read: a/pyproject.toml (check those folders apart)"
    ]


@pytest.mark.parametrize(
    ("settings", "told"),
    {
        '[lint]\nselect = ["RUF"]': True,
        '[lint]\nextend-select = ["RUF102"]': True,
        'select = ["ALL"]': True,
        '[lint]\nselect = ["RUF"]\nexternal = ["NSL"]': False,
        '[lint]\nselect = ["RUF"]\nignore = ["RUF102"]': False,
        '[lint]\nselect = ["E", "RUF2"]': False,
        "[lint": False,
        "lint = 3": False,
    }.items(),
)
def test_ruff_that_takes_comments_away_is_told_of(project: Path, capsys: Capture, settings: str, told: bool) -> None:
    (project / "a" / "pyproject.toml").unlink()
    (project / "ruff.toml").write_text(settings)
    assert notes(capsys) == []
    (project / "a" / "y.py").write_text("x = 1  # noqa: NSL101\n")
    expected = (
        'note: ruff takes `# noqa: NSL...` comments away (RUF102): add `external = ["NSL"]` under [lint] in ruff.toml'
    )
    assert notes(capsys) == ([expected] if told else [])


LOOP = """import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x


def train(model, loader):
    for batch in loader:
        loss = model(batch.cuda()).sum()
        loss.cuda().item()
        loss.cuda().tolist()


def helper(x: torch.Tensor):
    return x.cuda().tolist()


def evaluate(x: torch.Tensor):
    return helper(x), x.cuda().item()


def main():
    train(Net(), [])


main()
"""


def test_functions_with_hidden_findings_that_nothing_calls_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop.py").write_text(LOOP)
    told = "note: findings are hidden in `train` and `evaluate`, of which no caller is known that runs often: "
    (note,) = notes(capsys)
    assert note == f"{told}if one runs in every step, say so with --hot train or `# nosync-lint: hot`"
    assert notes(capsys, "--hot", "train", "--hot", "evaluate") == []
    assert notes(capsys, "--heat", "any") == notes(capsys, "--per-file-ignores", "*:NSL") == []


def test_findings_that_a_cure_keeps_quiet_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text(LOOP)
    Path("nosync-lint.toml").write_text('cures = ["helper"]\nhot = ["evaluate"]\n')
    cli.main(["check", "--no-cache", "-j", "1", "--select", "NSL202"])
    assert "0 shown; hidden: 1 unreached (--heat any), 1 cured\n" in capsys.readouterr().out
