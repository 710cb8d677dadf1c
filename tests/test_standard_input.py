"""Source code that is not, or not yet, on disk: `check -` with `--stdin-filename`, and what lies over other files."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from nosync_lint.cli import main
from nosync_lint.config import Settings
from nosync_lint.discover import discover
from nosync_lint.pipeline import run
from nosync_lint.source import decode, encode

FLAGGED = "import torch\n\ndef step(ids: torch.Tensor):  # nosync-lint: hot\n    return ids.unique()\n"
CLEAN = "x = 1\n"
Capture = pytest.CaptureFixture[str]


class Project:
    """A project folder, which is the working directory, and a standard input."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self._patch = folder, patch

    def check(self, text: str | bytes, *arguments: str) -> int:
        data = text if isinstance(text, bytes) else text.encode()
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        return main(["check", "-j", "1", "--no-cache", *arguments])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / "nosync-lint.toml").touch()
    (tmp_path / "clean.py").write_text(CLEAN)
    (tmp_path / "hot.py").write_text(FLAGGED)
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, monkeypatch)


def found(capsys: Capture) -> list[str]:
    """The places of the findings in a JSON report."""
    findings = json.loads(capsys.readouterr().out)["findings"]
    return [f"{one['filename']}:{one['location']['row']}:{one['location']['column']}" for one in findings]


def test_standard_input_stands_for_a_file_and_only_that_is_reported(project: Project, capsys: Capture) -> None:
    assert project.check("\n" + FLAGGED, "-", "--stdin-filename", "clean.py", "--output-format", "json") == 1
    assert found(capsys) == ["clean.py:5:12"]
    assert (project.folder / "clean.py").read_text() == CLEAN


def test_a_file_that_does_not_exist_yet_is_linked_with_its_project(project: Project, capsys: Capture) -> None:
    caller = "from hot import step\n\ndef run(ids):  # nosync-lint: hot\n    return step(ids).item()\n"
    assert project.check(caller, "--stdin-filename", "new/folder/run.py", "--output-format", "json", "-") == 1
    assert found(capsys) == ["new/folder/run.py:4:12"]
    assert not (project.folder / "new").exists()


def test_a_name_is_enough_and_a_dash_is(project: Project, capsys: Capture) -> None:
    assert project.check(FLAGGED, "--stdin-filename", "a.py", "--output-format", "json") == 1
    assert found(capsys) == ["a.py:4:12"]
    assert project.check(FLAGGED, "-", "--output-format", "json") == 1
    assert found(capsys) == ["-:4:12"]


def test_the_source_frame_shows_what_was_read(project: Project, capsys: Capture) -> None:
    text = FLAGGED.replace("return", "y = 'only here'; return")
    assert project.check(text, "-", "--stdin-filename", "hot.py", "--color", "always") == 1
    assert "only here" in capsys.readouterr().out


def test_a_comment_in_what_was_read_covers_a_finding(project: Project) -> None:
    text = FLAGGED.rstrip() + "  # nosync-lint: ignore[dedup-on-device] measured\n"
    assert project.check(text, "-", "--stdin-filename", "hot.py") == 0


def test_a_line_of_it_can_be_explained(project: Project, capsys: Capture) -> None:
    assert project.check("\n" + FLAGGED, "-", "--stdin-filename", "clean.py", "--explain", "clean.py:5") == 0
    assert capsys.readouterr().out.startswith("clean.py:5 in `step`\n    return ids.unique()\nreported: NSL301")


def test_the_configuration_is_that_of_the_name(project: Project) -> None:
    (project.folder / "quiet").mkdir()
    (project.folder / "quiet" / "nosync-lint.toml").write_text('ignore = ["NSL301"]\n')
    assert project.check(FLAGGED, "-", "--stdin-filename", "quiet/a.py") == 0


def test_an_excluded_name_is_not_reported(project: Project) -> None:
    assert project.check(FLAGGED, "-", "--stdin-filename", "gen/a.py", "--exclude", "gen") == 0


def test_cuda_sources_are_known_by_their_name(project: Project, capsys: Capture) -> None:
    waiting = "#include <cuda_runtime.h>\nvoid free_pages() { cudaDeviceSynchronize(); }\n"
    assert project.check(waiting, "-", "--stdin-filename", "pool.cu", "--heat", "any", "--output-format", "json") == 1
    assert found(capsys) == ["pool.cu:2:21"]


def test_what_cannot_be_read_is_a_finding_at_its_row(project: Project, capsys: Capture) -> None:
    assert project.check(b"x = 1\n\0", "-", "--stdin-filename", "clean.py") == 1
    assert "clean.py:2:1: NSL000 unreadable-file this file contains a NUL byte" in capsys.readouterr().out
    assert project.check(FLAGGED, "-", "--stdin-filename", "a.py", "--config", _limit(project.folder)) == 1
    assert "more than `max-file-size` (10)" in capsys.readouterr().out


def _limit(folder: Path) -> str:
    path = folder / "limit" / "nosync-lint.toml"
    path.parent.mkdir()
    path.write_text("max-file-size = 10\nextra-sources = ['..']\n")
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("-", "hot.py"), "standard input stands for one file: give `-` alone, with its name as --stdin-filename"),
        (("--stdin-filename", "a.py", "hot.py"), "standard input stands for one file"),
        (("-", "--add-ignore", "because"), "--add-ignore is about files on disk, and standard input stands for one"),
        (("-", "--write-baseline", "--baseline", "b.toml"), "--write-baseline is about files on disk"),
        (("-", "--stdin-filename", "."), "--stdin-filename .: is a folder; name the file that standard input stands"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    project: Project, capsys: Capture, arguments: tuple[str, ...], told: str
) -> None:
    assert project.check(FLAGGED, *arguments) == 2
    assert f"nosync-lint: error: {told}" in capsys.readouterr().err


def test_a_closed_standard_input_is_refused(project: Project, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["check", "-"]) == 2
    assert "standard input is closed" in capsys.readouterr().err


def test_new_files_of_an_overlay_are_linked_and_those_under_a_given_folder_are_reported(project: Project) -> None:
    new, outside = project.folder / "lib" / "new.py", project.folder.parent / "elsewhere.py"
    overlay = {new.resolve(): FLAGGED.encode(), outside.resolve(): FLAGGED.encode()}
    listed = {file.name: file.reported for file in discover(["hot.py"], overlay=overlay).files}
    assert listed == {"clean.py": False, "hot.py": True, "lib/new.py": False}
    listed = {file.name: file.reported for file in discover(["."], overlay=overlay).files}
    assert listed == {"clean.py": True, "hot.py": True, "lib/new.py": True}


def test_a_link_is_the_file_that_it_leads_to(project: Project) -> None:
    os.symlink("clean.py", project.folder / "link.py")
    overlay = {(project.folder / "link.py").resolve(): FLAGGED.encode()}
    report = run(["link.py"], Settings(), jobs=1, cache=False, overlay=overlay)
    assert [finding.filename for finding in report.findings] == ["clean.py"]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("s = 'é'\n", True),
        ("# -*- coding: latin-1 -*-\ns = 'é'\n", True),
        ("# -*- coding: latin-1 -*-\ns = '€'\n", False),  # not in it: read as it would be saved
        ("# -*- coding: nonsense -*-\ns = 'é'\n", None),
        ("s = '\ud800'\n", None),
    ],
)
def test_a_text_becomes_the_bytes_that_are_read_as_it(text: str, kept: bool | None) -> None:
    data = encode(text, True)
    if kept is None:
        assert data == text.encode("utf-8", "surrogatepass")
    else:
        assert (decode(data, True) == text) == kept
