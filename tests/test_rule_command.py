"""`nosync-lint rule`: plain in a pipe, laid out on a terminal."""

from __future__ import annotations

import re

import pytest

from nosync_lint.cli import main
from nosync_lint.registry import documentation, find

Capture = pytest.CaptureFixture[str]
ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")


def test_a_pipe_gets_the_documentation_as_it_is_written(capsys: Capture) -> None:
    assert main(["rule", "NSL101"]) == 0
    rule = find("NSL101")
    assert rule is not None
    assert capsys.readouterr().out == f"NSL101 scalar-index-write (error, since 0.1.0)\n\n{documentation(rule)}\n"


@pytest.mark.parametrize("width", [50, 200])
def test_a_terminal_gets_headings_code_and_its_width(
    width: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["rule", "NSL101", "--color", "always"]) == 0
    told = capsys.readouterr().out
    assert "\x1b[1;4mWhy it matters\x1b[0m" in told
    assert "\x1b[36m`table[i].fill_(value)`\x1b[0m" in told
    plain = ESCAPE.sub("", told)
    assert all(len(line) <= width for line in plain.splitlines())
    rule = find("NSL101")
    assert rule is not None
    assert plain.split()[5:] == documentation(rule).split()  # not a word is lost
