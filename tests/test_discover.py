"""Which files are read, which of them are reported, and how they are called."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from nosync_lint.discover import Discovered, MissingPath, discover


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project folder, which is the working directory."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "nosync-lint.toml").touch()
    monkeypatch.chdir(folder)
    return folder


def write(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")


def reported(found: Discovered) -> list[str]:
    return [file.name for file in found.files if file.reported]


def linked(found: Discovered) -> list[str]:
    return [file.name for file in found.files]


def test_python_and_cuda_files_are_taken_and_others_are_not(root: Path) -> None:
    kept = [
        f"a{suffix}" for suffix in (".py", ".cu", ".cuh", ".cpp", ".cc", ".cxx", ".h", ".hpp", ".hh", ".hip", ".inl")
    ]
    write(root, *kept, "a.pyi", "a.txt", "a.pyc", "Makefile")
    assert reported(discover(["."])) == sorted(kept)


def test_files_come_in_the_order_of_their_names_whatever_was_given_first(root: Path) -> None:
    write(root, "b/z.py", "a/y.py", "b/a.py")
    assert linked(discover(["b", "a"])) == linked(discover(["a", "b"])) == ["a/y.py", "b/a.py", "b/z.py"]


def test_a_path_chooses_what_is_reported_and_the_project_is_linked(root: Path) -> None:
    write(root, "serve/a.py", "train/b.py")
    found = discover(["serve"])
    assert reported(found) == ["serve/a.py"]
    assert linked(found) == ["serve/a.py", "train/b.py"]
    assert found.root == root


def test_a_given_file_is_taken_whatever_its_suffix_or_folder(root: Path) -> None:
    write(root, "tool", "build/made.py", "a.py")
    (root / ".gitignore").write_text("a.py\n")
    assert reported(discover(["tool", "build/made.py", "a.py"])) == ["a.py", "build/made.py", "tool"]


def test_a_stub_file_is_silently_left_out(root: Path) -> None:
    write(root, "a.pyi")
    assert reported(discover(["a.pyi"])) == []


def test_excludes_apply_to_given_files_as_well(root: Path) -> None:
    write(root, "a.py", "gen/b.py", "deep/gen/c.py", "deep/d_pb2.py")
    assert linked(discover([".", "gen/b.py"], exclude=["gen", "*_pb2.py"])) == ["a.py"]
    assert linked(discover(["."], exclude=["deep/"])) == ["a.py", "gen/b.py"]
    assert linked(discover(["."], exclude=["deep/gen"])) == ["a.py", "deep/d_pb2.py", "gen/b.py"]


def test_folders_of_tools_and_environments_are_skipped(root: Path) -> None:
    write(root, "a.py", ".venv/lib/b.py", "__pycache__/c.py", "node_modules/d.py", ".git/hooks/e.py", "dist/f.py")
    assert linked(discover(["."])) == ["a.py"]


def test_a_missing_path_is_named(root: Path) -> None:
    with pytest.raises(MissingPath, match=r"^nowhere: no such file or folder"):
        discover(["nowhere"])


@pytest.mark.parametrize("target", ["gone", "loop"])
def test_a_broken_or_circular_link_is_named(root: Path, target: str) -> None:
    os.symlink(target, root / "loop")
    with pytest.raises(MissingPath, match=r"^loop: is a broken or circular link"):
        discover(["loop"])


def test_a_link_that_leads_back_ends_the_walk(root: Path) -> None:
    write(root, "a/b.py")
    os.symlink(root, root / "a" / "up")
    os.symlink("nothing", root / "a" / "broken.py")
    assert linked(discover(["."])) == ["a/b.py"]


def test_an_unreadable_folder_does_not_end_the_walk(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "a.py", "locked/b.py")
    scan = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert linked(discover(["."])) == ["a.py"]


def test_git_decides_what_belongs_to_a_repository(root: Path) -> None:
    (root / "nosync-lint.toml").unlink()
    subprocess.run(["git", "init", "-q", "."], check=True)
    write(root, "a.py", "new.py", "out/b.py", "deep/c.py", "deep/secret.py")
    (root / ".gitignore").write_text("out/\n")
    (root / "deep" / ".gitignore").write_text("secret.py\n")
    subprocess.run(["git", "add", "a.py", "deep/c.py"], check=True)
    assert linked(discover(["deep"])) == ["a.py", "deep/c.py", "new.py"]
    assert linked(discover(["."], gitignore=False)) == ["a.py", "deep/c.py", "deep/secret.py", "new.py", "out/b.py"]


def test_an_environment_that_git_does_not_ignore_is_no_source(root: Path) -> None:
    (root / "nosync-lint.toml").unlink()
    subprocess.run(["git", "init", "-q", "."], check=True)
    write(root, "a.py", ".venv/lib/b.py", "build/kept.py")
    subprocess.run(["git", "add", "-f", "build/kept.py"], check=True)
    assert linked(discover(["."])) == ["a.py", "build/kept.py"]


def test_a_link_to_a_file_is_that_file_in_a_repository_too(root: Path) -> None:
    (root / "nosync-lint.toml").unlink()
    subprocess.run(["git", "init", "-q", "."], check=True)
    write(root, "a.py")
    (root / "b.py").symlink_to("a.py")
    assert linked(discover(["."])) == ["a.py"]


def test_a_file_that_git_tracks_and_is_deleted_is_no_error(root: Path) -> None:
    subprocess.run(["git", "init", "-q", "."], check=True)
    write(root, "a.py", "b.py")
    subprocess.run(["git", "add", "."], check=True)
    (root / "b.py").unlink()
    assert linked(discover(["."])) == ["a.py"]


def test_without_git_the_topmost_ignore_file_is_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    write(root, "a.py", "out/b.py", "kept/out.py")
    (root / ".gitignore").write_text("out/\n*.cu\n")
    write(root, "k.cu")
    assert linked(discover(["."])) == ["a.py", "kept/out.py"]


def test_without_any_root_the_topmost_package_is_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "pkg/__init__.py", "pkg/a.py", "pkg/sub/__init__.py", "pkg/sub/b.py", "other.py")
    monkeypatch.chdir(tmp_path)
    found = discover(["pkg/sub"])
    assert reported(found) == ["pkg/sub/__init__.py", "pkg/sub/b.py"]
    assert "pkg/a.py" in linked(found)
    assert "other.py" not in linked(found)


def test_the_folder_of_the_configuration_is_the_project(root: Path) -> None:
    write(root, "a.py", "sub/b.py", "sub/pyproject.toml")
    assert linked(discover(["sub"])) == ["sub/b.py"]
    assert linked(discover(["sub"], config=root / "nosync-lint.toml")) == ["a.py", "sub/b.py"]


def test_extra_sources_are_linked_and_not_reported(root: Path, tmp_path: Path) -> None:
    write(root, "a.py")
    write(tmp_path, "vendored/lib.py")
    found = discover(["."], extra=["../vendored"])
    assert linked(found) == ["../vendored/lib.py", "a.py"]
    assert reported(found) == ["a.py"]


def test_names_are_relative_to_the_working_directory(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "a.py", "sub/b.py")
    monkeypatch.chdir(root / "sub")
    assert linked(discover([".."])) == ["../a.py", "b.py"]


def test_a_folder_without_sources_gives_no_files(root: Path) -> None:
    (root / "empty").mkdir()
    assert linked(discover(["empty"])) == []
