"""The command that starts the server."""

from __future__ import annotations

import subprocess
import sys

import pytest

from nosync_lint.cli import main


def test_without_the_extra_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pygls", None)
    assert main(["server"]) == 2
    told = capsys.readouterr().err
    assert told == (
        "nosync-lint: error: the server needs pygls, which is not installed: `pip install 'nosync-lint[lsp]'`\n"
    )


def test_other_commands_do_not_import_it() -> None:
    code = "import sys; from nosync_lint.cli import _parser; _parser(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert {"pygls", "lsprotocol", "shtab"} & set(done.stdout.split()) == set()


def test_it_ends_when_its_input_does() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nosync_lint", "server"],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, b"")  # nobody said goodbye
