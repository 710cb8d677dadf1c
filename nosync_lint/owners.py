"""Who owns a file: read from the CODEOWNERS of the repository, as GitHub and GitLab read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from nosync_lint.source import SourceFile, UnreadableFile, decode, read_source

PLACES = (".github/CODEOWNERS", ".gitlab/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")
MAX_SIZE = 3_000_000
"""GitHub reads no larger one."""


class Owned(NamedTuple):
    """The owners of files by the names of these, and why they could not be read."""

    by_name: dict[str, str]
    trouble: str = ""


def owners(folder: Path, files: Iterable[SourceFile]) -> Owned:
    """The owners of files; none for files that nobody owns, or where there is no CODEOWNERS.

    It is looked for in the folder and those above it, up to the top of the repository.
    """
    for top in (folder, *folder.parents):
        for place in PLACES:
            if (top / place).is_file():
                try:
                    return Owned(_owned(_rows(top / place), top, files))
                except UnreadableFile as error:
                    return Owned({}, f"{top / place} {error.reason}")
        if (top / ".git").exists():
            break
    return Owned({})


def _rows(path: Path) -> list[tuple[str, str]]:
    """Patterns and their owners. Headings of sections are left out: what they add differs between hosts."""
    text = decode(read_source(path, MAX_SIZE), is_python=False)
    words = [line.partition("#")[0].split() for line in text.splitlines()]
    return [(row[0], " ".join(row[1:])) for row in words if row and not row[0].startswith(("[", "^[", "!"))]


def _owned(rows: Sequence[tuple[str, str]], top: Path, files: Iterable[SourceFile]) -> dict[str, str]:
    """The last pattern that matches a file decides, also where it names nobody."""
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    patterns = [(text, GitIgnoreSpecPattern(text), owner) for text, owner in reversed(rows)]
    found = {}
    for file in files:
        if file.path.is_relative_to(top):
            inner = file.path.relative_to(top).as_posix()
            met = (
                owner
                for text, pattern, owner in patterns
                if pattern.match_file(inner) and (not text.endswith("/*") or _directly(text, inner))
            )
            if owner := next(met, ""):
                found[file.name] = owner
    return found


def _directly(pattern: str, inner: str) -> bool:
    """Whether a file stands in the very folder that a pattern like `docs/*` names: these reach no deeper."""
    return "**" in pattern or inner.count("/") == pattern.strip("/").count("/")
