"""Which files are read: the reported ones under the given paths, and the rest of the project that is linked."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nosync_lint.config import FILES, common_folder, display, matches
from nosync_lint.source import CUDA_SUFFIXES, NOTEBOOK_SUFFIXES, PYTHON_SUFFIXES, SourceFile

SKIPPED_FOLDERS = frozenset({
    ".git", ".hg", ".svn", ".venv", "venv", ".tox", ".nox", ".mypy_cache", ".ruff_cache", ".pytest_cache",
    "__pycache__", "node_modules", ".nosync_lint_cache", ".ipynb_checkpoints", "build", "dist", ".eggs",
    "site-packages", "__pypackages__",
})  # fmt: skip
_SUFFIXES = PYTHON_SUFFIXES | CUDA_SUFFIXES | NOTEBOOK_SUFFIXES


class MissingPath(Exception):
    """A given path does not exist."""


@dataclass(frozen=True, slots=True)
class Discovered:
    """The linked files in the order of their names, and the root they belong to. `unlisted` are folders that could
    not be listed, each with the reason."""

    files: tuple[SourceFile, ...]
    root: Path
    unlisted: tuple[tuple[str, str], ...] = ()


def discover(
    paths: Sequence[str],
    exclude: Sequence[str] = (),
    extra: Sequence[str] = (),
    gitignore: bool = True,
    config: Path | None = None,
    overlay: Mapping[Path, bytes] | None = None,
) -> Discovered:
    """The files to link, each marked as reported or not. Raises `MissingPath`.

    A path that is a file is taken whatever its suffix or the ignore rules say; excludes apply to it as well. `overlay`
    holds what stands for files on disk, by their resolved paths; a file that is not there yet is linked with the rest.
    """
    overlay = overlay or {}
    here = Path.cwd()
    given = [Path(path) for path in paths]
    for path, text in zip(given, paths, strict=True):
        if Path(os.path.realpath(path)) in overlay:
            continue
        if not os.path.lexists(path):
            raise MissingPath(f"{text}: no such file or folder; give a path that exists")
        if not path.exists():
            raise MissingPath(f"{text}: is a broken or circular link; give a path that can be read")
    given = [path.resolve() for path in given]
    roots = project_roots(given, config)
    reported: dict[Path, bool] = {}
    unlisted: dict[Path, str] = {}
    for path in given:
        for file in _walk(path, gitignore, unlisted) if path.is_dir() else [path]:
            if file.suffix != ".pyi":  # declarations only: nothing in them runs
                reported[file] = True
    for folder in [*roots, *((config.parent if config else here) / one for one in extra)]:
        for file in _walk(folder, gitignore, {}):
            reported.setdefault(file, False)
    for path in overlay:
        if not path.exists() and any(root in path.parents for root in roots):
            reported.setdefault(path, any(folder in path.parents for folder in given))
    project = config.parent.resolve() if config is not None else here
    bases = {project, here} if project in here.parents else {project}  # from above, the way to the project says nothing
    files = [
        SourceFile(path, name, flag, overlay.get(path))
        for path, flag in reported.items()
        for name in [display(path, here)]
        if not any(matches(display(path, base), glob) for base in bases for glob in exclude)
    ]
    names = tuple(sorted((display(folder, here), reason) for folder, reason in unlisted.items()))
    return Discovered(tuple(sorted(files, key=lambda file: file.name)), _common(roots or given), names)


def project_roots(given: Iterable[Path], config: Path | None) -> list[Path]:
    """What is linked: the folder of the configuration, else of the version control system, else the topmost package."""
    if config is not None:
        return [config.parent.resolve()]
    found: list[Path] = []
    for path in given:
        folder = path if path.is_dir() else path.parent
        root = root_of(folder) or folder
        if root not in found:
            found.append(root)
    return [one for one in found if not any(other != one and other in one.parents for other in found)]


def root_of(folder: Path) -> Path | None:
    """The project that a folder without a configuration belongs to, or None where nothing tells."""
    above = (folder, *folder.parents)
    marked = next((one for one in above if os.path.exists(one / ".git") or _is_root(one)), None)
    packages = [one for one in above if os.path.isfile(one / "__init__.py")]
    return marked or (packages[-1] if packages else None)


def _is_root(folder: Path) -> bool:
    return any(os.path.isfile(folder / name) for name in FILES)


def _common(folders: Sequence[Path]) -> Path:
    return (common_folder(folders) if folders else None) or Path.cwd()


def _walk(folder: Path, gitignore: bool, unlisted: dict[Path, str]) -> Iterator[Path]:
    listed = _git_files(folder) if gitignore else None
    if listed is not None:
        yield from (path for path in listed if path.is_file() and is_source(path))
        return
    patterns = _IgnoreFiles(folder) if gitignore else None
    pending = [folder]
    seen: set[str] = set()
    while pending:
        current = pending.pop()
        real = os.path.realpath(current)
        if real in seen:  # a link that leads back
            continue
        seen.add(real)
        try:
            entries = sorted(os.scandir(current), key=lambda entry: entry.name)
        except OSError as error:
            unlisted[current] = (
                f"is a folder that cannot be listed: {error.strerror}; fix its permissions or exclude it"
            )
            continue
        for entry in entries:
            path = Path(entry.path)
            try:
                is_folder = entry.is_dir()
            except OSError:
                continue
            if patterns is not None and patterns.ignores(path, is_folder):
                continue
            if is_folder:
                if entry.name not in SKIPPED_FOLDERS:
                    pending.append(path)
            elif is_source(path) and os.path.isfile(path):
                yield path.resolve() if entry.is_symlink() else path


def is_source(path: Path) -> bool:
    """Whether a file is Python, a notebook, C++ or CUDA by its name."""
    return path.suffix.lower() in _SUFFIXES


def _git_files(folder: Path) -> list[Path] | None:
    """The files that git tracks or would track, without untracked ones of folders that are never sources; links
    resolved. None outside a work tree or without git."""
    tracked, untracked = _git_list(folder, "-c"), _git_list(folder, "-o", "--exclude-standard")
    if tracked is None or untracked is None:
        return None
    names = tracked + [name for name in untracked if SKIPPED_FOLDERS.isdisjoint(name.split("/")[:-1])]
    paths = (folder / name for name in names)
    return list(dict.fromkeys(path.resolve() if path.is_symlink() else path for path in paths))


def _git_list(folder: Path, *options: str) -> list[str] | None:
    command = ["git", "-C", str(folder), "ls-files", "-z", *options]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        return None
    return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name] if done.returncode == 0 else None


class _IgnoreFiles:
    """The .gitignore at the top of a folder that is not in a repository."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        path = folder / ".gitignore"
        self._spec = None
        if path.is_file():
            import pathspec

            self._spec = pathspec.GitIgnoreSpec.from_lines(
                path.read_text(encoding="utf-8", errors="replace").splitlines()
            )

    def ignores(self, path: Path, is_folder: bool) -> bool:
        if self._spec is None:
            return False
        name = path.relative_to(self._folder).as_posix() + ("/" if is_folder else "")
        return self._spec.match_file(name)
