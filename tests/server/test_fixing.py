"""Sessions that fix what is found: the buffer becomes the file that `check --fix` writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CONFIG = 'heat = "any"\nselect = ["NSL101", "NSL102", "NSL103"]\ntarget-torch = ">=2.9"\n'
TABLE = """import torch


class Table:
    \"\"\"Rows by page. 🗂️\"\"\"

    def __init__(self, size: int, device: str) -> None:
        self.rows = torch.full((size,), -1, dtype=torch.int64, device=device)

    def free(self, pages: torch.Tensor, count: int) -> None:
        "🧹🧹é"; self.rows[pages.to(torch.int64)] = -1  # gone 🗑️
        self.count = count
"""
FILL = "self.rows.index_fill_(0, pages.to(torch.int64).reshape(-1), -1)"
UPLOAD = '        name = "𝐚𝐛"; self.other = torch.tensor([count, 2], device=pages.device), "𝐜"\n'
OVERLAP = """

def reset(pages: list[int]) -> torch.Tensor:
    lengths = torch.ones(64, dtype=torch.int64, device="cuda")
    lengths[pages] = 0
    return lengths
"""
LINE_ENDS = pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["unix", "windows"])
EVERYWHERE = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "nosync-lint.toml").write_text(CONFIG)
    return folder


def fixed(project: Path, text: str, *options: str) -> str:
    """What the command line makes of a text, in a project like this one."""
    folder = project.parent / "fixed"
    folder.mkdir(exist_ok=True)
    (folder / "nosync-lint.toml").write_bytes((project / "nosync-lint.toml").read_bytes())
    (folder / "table.py").write_bytes(text.encode())
    command = [sys.executable, "-m", "nosync_lint", "check", "table.py", "--fix", "--exit-zero", *options]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return (folder / "table.py").read_bytes().decode()


def opened(client: Any, project: Path, text: str) -> tuple[str, list[Any]]:
    """A file on disk that is opened: its address, and its diagnostics."""
    path = project / "table.py"
    path.write_bytes(text.encode())
    return path.as_uri(), client.open(path.as_uri(), text)


def codes(diagnostics: list[Any]) -> list[str]:
    return [one["code"] for one in diagnostics]


def fixes(client: Any, uri: str, diagnostic: Any) -> list[Any]:
    """The quick fixes for a finding that are no comments."""
    found = client.actions(uri, diagnostic["range"], ["quickfix"])
    return [one for one in found if ": ignore " not in one["title"]]


@LINE_ENDS
def test_a_quick_fix_makes_what_the_command_line_makes(connect: Any, project: Path, end: str) -> None:
    text = TABLE.replace("\n", end)
    client = connect(project)
    uri, (found,) = opened(client, project, text)
    assert found["code"] == "NSL101"
    start = TABLE.splitlines()[10].index("self.rows")
    assert found["range"]["start"] == {"line": 10, "character": start + 2}  # two brooms are two units more

    longer = text.replace("# gone", '# gone"').replace("class Table", f"ROWS = '🧮'{end}{end}{end}class Table")
    after = client.change(uri, longer)
    (found,) = client.diagnostics(uri, after)
    assert found["range"]["start"] == {"line": 13, "character": start + 2}

    (action,) = fixes(client, uri, found)
    assert (action["kind"], action["isPreferred"]) == ("quickfix", True)
    after = client.apply(action)
    assert client.texts[uri] == fixed(project, longer)
    assert client.texts[uri] == longer.replace("self.rows[pages.to(torch.int64)] = -1", FILL)
    assert client.diagnostics(uri, after) == []
    assert client.actions(uri, EVERYWHERE) == []
    assert client.end() == 0


@LINE_ENDS
def test_an_unsafe_quick_fix_makes_what_the_command_line_makes_with_unsafe_fixes(
    connect: Any, project: Path, end: str
) -> None:
    text = (TABLE + UPLOAD).replace("\n", end)
    client = connect(project)
    uri, found = opened(client, project, text)
    assert codes(found) == ["NSL101", "NSL103"]

    (action,) = fixes(client, uri, found[1])
    assert action["title"].endswith("(unsafe: look at it)")
    assert not action["isPreferred"]
    after = client.apply(action)
    (found,) = client.diagnostics(uri, after)
    (action,) = fixes(client, uri, found)
    after = client.apply(action)
    assert client.texts[uri] == fixed(project, text, "--unsafe-fixes")
    assert "torch.tensor([count, 2], pin_memory=True).to(pages.device, non_blocking=True)" in client.texts[uri]
    assert client.diagnostics(uri, after) == []


@LINE_ENDS
def test_fix_all_makes_what_the_command_line_makes(connect: Any, project: Path, end: str) -> None:
    again = '        𝐱 = "🧹"; self.rows[pages.to(torch.int64)] = count; self.rows[pages.to(torch.int64)] = 1\n'
    text = (TABLE + again + UPLOAD).replace("\n", end)
    client = connect(project)
    uri, found = opened(client, project, text)
    assert codes(found) == ["NSL101", "NSL101", "NSL101", "NSL103"]
    (action,) = client.actions(uri, EVERYWHERE, ["source.fixAll"])
    assert (action["kind"], action["title"]) == ("source.fixAll.nosync-lint", "nosync-lint: apply 3 safe fixes")
    after = client.apply(action)
    assert client.texts[uri] == fixed(project, text)
    assert codes(client.diagnostics(uri, after)) == ["NSL103"]
    assert client.actions(uri, EVERYWHERE, ["source.fixAll.nosync-lint"]) == []


def test_fix_all_makes_the_fixes_that_the_configuration_wants(connect: Any, project: Path) -> None:
    config = project / "nosync-lint.toml"
    text = TABLE + UPLOAD
    client = connect(project)
    uri, _ = opened(client, project, text)
    (action,) = client.actions(uri, EVERYWHERE, ["source.fixAll"])
    assert action["title"] == "nosync-lint: apply 1 safe fix"

    config.write_text(CONFIG + "unsafe-fixes = true\n")
    after = len(client.received)
    client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": config.as_uri(), "type": 2}]})
    client.wait_for(lambda one: (one.get("params") or {}).get("diagnostics"), after)
    (action,) = client.actions(uri, EVERYWHERE, ["source.fixAll"])
    assert action["title"] == "nosync-lint: apply 2 fixes"

    config.write_text(CONFIG + 'unsafe-fixes = true\nunfixable = ["NSL101"]\n')
    after = len(client.received)
    client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": config.as_uri(), "type": 2}]})
    client.wait_for(lambda one: (one.get("params") or {}).get("diagnostics"), after)
    (action,) = client.actions(uri, EVERYWHERE, ["source.fixAll"])
    after = client.apply(action)
    assert client.texts[uri] == fixed(project, text)
    (found,) = client.diagnostics(uri, after)
    assert found["code"] == "NSL101"
    assert not fixes(client, uri, found)[0]["isPreferred"]


def test_fixes_that_overlap_take_as_many_rounds_as_on_the_command_line(connect: Any, project: Path) -> None:
    (project / "nosync-lint.toml").write_text(CONFIG + "unsafe-fixes = true\n")
    client = connect(project)
    uri, found = opened(client, project, TABLE + OVERLAP)
    rounds = 0
    while action := client.actions(uri, EVERYWHERE, ["source.fixAll"]):
        found = client.diagnostics(uri, client.apply(action[0]))
        rounds += 1
    assert rounds == 2
    assert client.texts[uri] == fixed(project, TABLE + OVERLAP)
    assert found == []
