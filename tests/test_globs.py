"""How files are called, and which of them a glob means: on Windows as elsewhere."""

from __future__ import annotations

from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

import pytest

from nosync_lint.commands.check import _file_and_line
from nosync_lint.config import common_folder, display, load_config, matches


@pytest.mark.parametrize(
    ("path", "here", "name"),
    [
        (PurePosixPath("/work/a/b.py"), PurePosixPath("/work"), "a/b.py"),
        (PurePosixPath("/work/a.py"), PurePosixPath("/work/b/c"), "../../a.py"),
        (PurePosixPath("/x/a.py"), PurePosixPath("/work"), "../x/a.py"),
        (PurePosixPath("/work"), PurePosixPath("/work"), "."),
        (PureWindowsPath(r"C:\work\a\b.py"), PureWindowsPath(r"C:\work"), "a/b.py"),
        (PureWindowsPath(r"c:\Work\a.py"), PureWindowsPath(r"C:\work\inner"), "../a.py"),
        (PureWindowsPath(r"D:\other\a.py"), PureWindowsPath(r"C:\work"), "D:/other/a.py"),
        (PureWindowsPath(r"\\host\share\a.py"), PureWindowsPath(r"C:\work"), "//host/share/a.py"),
    ],
    ids=str,
)
def test_a_file_is_called_from_the_working_directory_with_slashes(path: PurePath, here: PurePath, name: str) -> None:
    assert display(path, here) == name


@pytest.mark.parametrize(
    ("name", "glob"),
    [
        ("gen/a.py", "gen"), ("gen/a.py", "gen/"), ("gen/a.py", "gen/*"), ("gen/a.py", "gen/**"), ("gen/a.py", "./gen"),
        ("deep/gen/a.py", "gen"), ("deep/gen/a.py", "**/gen/**"), ("gen/a.py", "**/gen/*.py"), ("a.py", "**/*.py"),
        ("a/b/c_pb2.py", "*_pb2.py"), ("a/x/y/b.py", "a/**/b.py"), ("a/b.py", "a/**/b.py"), ("a/b.py", "a/b.py"),
    ],
)  # fmt: skip
def test_a_glob_means_a_file_by_its_name_a_part_or_a_folder(name: str, glob: str) -> None:
    assert matches(name, glob)


@pytest.mark.parametrize(
    ("name", "glob"),
    [("generated/a.py", "gen"), ("a/gen.py", "gen"), ("b/a.py", "a/*"), ("A.py", "a.py"), ("a.py", "b/../a.py")],
)
def test_a_glob_does_not_mean_others(name: str, glob: str) -> None:
    assert not matches(name, glob, windows=False)


def test_on_windows_case_and_slashes_do_not_count() -> None:
    assert matches("Gen/A.py", r"gen\*.PY", windows=True)
    assert matches(r"Gen\Inner\A.py", "gen/inner", windows=True)
    assert not matches("Gen/A.py", r"gen\*.PY", windows=False)


def test_paths_have_a_folder_in_common_unless_they_are_on_different_drives() -> None:
    posix = [PurePosixPath("/a/b/c.py"), PurePosixPath("/a/b/d"), PurePosixPath("/a/bc")]
    assert common_folder(posix[:2]) == PurePosixPath("/a/b")
    assert common_folder(posix) == PurePosixPath("/a")
    assert common_folder(posix[:1]) == posix[0]
    windows = [PureWindowsPath(r"C:\A\b"), PureWindowsPath(r"c:\a\c"), PureWindowsPath(r"D:\a")]
    assert common_folder(windows[:2]) == PureWindowsPath(r"C:\A")
    assert common_folder(windows) is None


@pytest.mark.parametrize(
    ("text", "place"),
    {
        r"C:\work\a.py:12": (r"C:\work\a.py", None, 12),
        r"C:\work\a.py:12:3": (r"C:\work\a.py", None, 12),
        r"C:\work\a.ipynb:cell 3:12:3": (r"C:\work\a.ipynb", 3, 12),
        "a.py:12:": ("a.py", None, 12),
    }.items(),
)
def test_a_drive_is_no_line(text: str, place: tuple[str, int | None, int]) -> None:
    assert _file_and_line(text) == place


def test_a_configuration_may_have_the_line_ends_of_windows(tmp_path: Path) -> None:
    path = tmp_path / "nosync-lint.toml"
    path.write_bytes(b'\r\nheat = "any"\r\nexclude = [\r\n  "gen\\\\made",\r\n]\r\nhot = ["a"]\r\n')
    settings = load_config(path)
    assert (settings.exclude, settings.row("hot")) == (("gen\\made",), 6)
