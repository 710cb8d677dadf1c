"""Completion scripts, in the shells that are installed here."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nosync_lint.cli import main
from nosync_lint.commands.completion import SHELLS


def script(shell: str, folder: Path) -> Path:
    done = subprocess.run(
        [sys.executable, "-m", "nosync_lint", "completion", shell],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    path = folder / f"completion.{shell}"
    path.write_text(done.stdout)
    return path


def ask(folder: Path, *command: str) -> list[str]:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.split()


def needs(shell: str) -> str:
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    return path


CASES = {
    "che": ["check"],
    "check --stat": ["--statistics"],
    "check --heat ": ["hot", "warm", "any"],
    "rule NSL10": [f"NSL10{number}" for number in range(1, 9)],
    "rule dedup": ["dedup-on-device", "dedup-with-known-position"],
    "check --select scalar": ["scalar-index-write"],
    "check sam": ["sample.py"],
    "completion ": list(SHELLS),
}


@pytest.mark.parametrize(("line", "wanted"), CASES.items(), ids=CASES.keys())
def test_bash_completes(line: str, wanted: list[str], tmp_path: Path) -> None:
    bash = needs("bash")
    (tmp_path / "sample.py").touch()
    words = f"nosync-lint {line}".split() + ([""] if line.endswith(" ") else [])
    quoted = " ".join(f"'{word}'" for word in words)
    asked = (
        f"source '{script('bash', tmp_path)}'\n"
        f"COMP_WORDS=({quoted}) COMP_CWORD={len(words) - 1}\n"
        '$(complete -p nosync-lint | sed "s/.*-F \\([^ ]*\\).*/\\1/") nosync-lint "${COMP_WORDS[COMP_CWORD]}"\n'
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    assert sorted(ask(tmp_path, bash, "--norc", "-c", asked)) == sorted(wanted)


@pytest.mark.parametrize(("line", "wanted"), CASES.items(), ids=CASES.keys())
def test_fish_completes(line: str, wanted: list[str], tmp_path: Path) -> None:
    fish = needs("fish")
    (tmp_path / "sample.py").touch()
    asked = f"source '{script('fish', tmp_path)}'; complete -C 'nosync-lint {line}'"  # with descriptions
    assert set(wanted) <= set(ask(tmp_path, fish, "--no-config", "-c", asked))


def test_zsh_takes_the_script(tmp_path: Path) -> None:
    zsh = needs("zsh")
    folder = tmp_path / "functions"
    folder.mkdir()
    script("zsh", tmp_path).rename(folder / "_nosync-lint")
    asked = f"fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; print $_comps[nosync-lint]"
    (name,) = ask(tmp_path, zsh, "-f", "-c", asked)
    assert name == "_nosync-lint"
    assert ask(tmp_path, zsh, "-n", str(folder / "_nosync-lint")) == []


def test_tcsh_takes_the_script(tmp_path: Path) -> None:
    tcsh = needs("tcsh")
    path = script("tcsh", tmp_path)
    assert "check" in " ".join(ask(tmp_path, tcsh, "-f", "-c", f"source {path}; complete nosync-lint"))


def test_without_the_extra_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    told = capsys.readouterr().err
    assert told == (
        "nosync-lint: error: completion needs shtab, which is not installed: `pip install 'nosync-lint[completion]'`\n"
    )
