"""Sessions in which a check takes long: nobody waits for what is not asked for any more, or needs no check."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from nosync_lint.index import SMALL_RUN

SLEEPY = '''
"""A rule that thinks about every call for an hour."""

import time

from nosync_lint.finding import Severity
from nosync_lint.rule import Rule


class SleepyRun(Rule):
    code, since, severity, sites = "HSE102", "1.0.0", Severity.INFO, ("call",)

    def judge(self, site, program):
        time.sleep(3600)
        yield
'''
CALLING = "import torch\n\n\ndef step(t: torch.Tensor):\n    return t.unique()\n"
SILENT = "import torch\n"
BROKEN = "def step(t:\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "nosync-lint.toml").touch()
    return folder


@pytest.fixture
def sleepy(tmp_path: Path) -> Path:
    """Where the rule is installed."""
    home = tmp_path / "site" / "sleepy-1.0.dist-info"
    home.mkdir(parents=True)
    (home / "METADATA").write_text("Metadata-Version: 2.1\nName: sleepy\nVersion: 1.0\n")
    (home / "entry_points.txt").write_text("[nosync_lint.rules]\nsleepy = sleepy_run:SleepyRun\n")
    (home.parent / "sleepy_run.py").write_text(SLEEPY.lstrip())
    return home.parent


def codes(diagnostics: list[Any]) -> list[str]:
    return [one["code"] for one in diagnostics]


def children(pid: int) -> set[str]:
    """The processes that a process has started and that have not ended."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # it has just ended
        if parent == str(pid) and state != "Z":
            found.add(path.parent.name)
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes in /proc")
def test_a_newer_text_ends_the_check_of_the_older_one(connect: Any, project: Path, sleepy: Path) -> None:
    client, uri = connect(project, path=sleepy), (project / "step.py").as_uri()
    client.open_quietly(uri, CALLING)
    while not (old := children(client.process.pid)):
        time.sleep(0.05)
    after = client.change(uri, SILENT)
    assert client.diagnostics(uri, after) == []
    assert not old & children(client.process.pid)


def test_a_text_that_cannot_be_parsed_waits_for_nothing(connect: Any, project: Path, sleepy: Path) -> None:
    client = connect(project, path=sleepy)
    step, other = (project / "step.py").as_uri(), (project / "other.py").as_uri()
    client.open_quietly(step, CALLING)
    assert codes(client.open(other, BROKEN)) == ["NSL000"]
    assert codes(client.diagnostics(other, client.change(other, BROKEN + "\n"))) == ["NSL000"]
    after = client.change(step, SILENT)  # the other one is told again, too
    assert client.diagnostics(step, after) == []
    assert codes(client.diagnostics(other, after)) == ["NSL000"]
    published = [one["params"] for one in client.received if one.get("method") == "textDocument/publishDiagnostics"]
    assert [one["uri"] for one in published] == [other, other, other, step]


def test_what_is_broken_is_told_as_in_a_check_of_everything(connect: Any, project: Path) -> None:
    config = project / "nosync-lint.toml"
    config.write_text('extend-exclude = ["left.py"]\n[per-file-ignores]\n"ignored.py" = ["NSL000"]\n')
    client = connect(project)
    broken, ignored, left = ((project / name).as_uri() for name in ("broken.py", "ignored.py", "left.py"))
    alone = client.open(broken, "x = 1\n" + BROKEN)
    assert (codes(alone), alone[0]["range"]["start"]["line"]) == (["NSL000"], 1)
    assert client.open(ignored, BROKEN) == []
    assert client.open(left, CALLING) == []
    after = client.change(broken, client.texts[broken] + "\n")
    assert client.diagnostics(broken, after) == alone
    assert "NSL000" in client.hover(broken, 1, 0)
    assert client.hover(left, 4, 12) == ""
    sound = (project / "sound.py").as_uri()
    after = len(client.received)
    assert codes(client.open(sound, CALLING)) == ["NSL301"]
    assert client.diagnostics(broken, after) == alone


def test_a_project_that_several_processes_must_read_is_checked(connect: Any, project: Path) -> None:
    line = "rows = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26]\n"
    for number in range(4):
        text = line * (SMALL_RUN // len(line) // 4 + 1)
        (project / f"part{number}.py").write_text(f"part = {number}\n{text}")
    client = connect(project)
    assert codes(client.open((project / "step.py").as_uri(), CALLING)) == ["NSL301"]
