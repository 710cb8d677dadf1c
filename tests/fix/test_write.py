"""New content takes the place of the old one whole, or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from nosync_lint.fix.write import NotWritten, replace_content


def file_of(folder: Path, content: bytes = b"old", mode: int = 0o644) -> Path:
    path = folder / "a.py"
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_the_content_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    replace_content(path, b"old", b"new")
    assert path.read_bytes() == b"new"
    assert [one.name for one in tmp_path.iterdir()] == ["a.py"]


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o664, 0o2755])
def test_the_mode_is_kept(tmp_path: Path, mode: int) -> None:
    path = file_of(tmp_path, mode=mode)
    replace_content(path, b"old", b"new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    link = tmp_path / "link.py"
    link.symlink_to(path)
    replace_content(link, b"old", b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"


def test_a_file_that_has_changed_is_left_as_it_is(tmp_path: Path) -> None:
    path = file_of(tmp_path, b"other")
    with pytest.raises(NotWritten, match="has changed since it was read; run again"):
        replace_content(path, b"old", b"new")
    assert path.read_bytes() == b"other"
    assert [one.name for one in tmp_path.iterdir()] == ["a.py"]


def test_a_read_only_file_is_left_as_it_is_by_everyone(tmp_path: Path) -> None:
    path = file_of(tmp_path, mode=0o444)
    with pytest.raises(NotWritten, match="is read-only; make it writable and run again"):
        replace_content(path, b"old", b"new")
    assert path.read_bytes() == b"old"


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotWritten, match="cannot be written: No such file or directory"):
        replace_content(tmp_path / "a.py", b"old", b"new")


@pytest.mark.parametrize("call", ["fsync", "chmod", "replace"])
def test_a_write_that_fails_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    path = file_of(tmp_path)

    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(NotWritten, match="cannot be written: No space left on device; it is unchanged"):
        replace_content(path, b"old", b"new")
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["a.py"]


def test_an_interrupt_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file_of(tmp_path)

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        replace_content(path, b"old", b"new")
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["a.py"]
