"""What a reader is told of the settings besides findings: what is not read, and what another linter would undo."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from nosync_lint.config import FILES, Settings, display, is_config
from nosync_lint.index.records import Pragma
from nosync_lint.ruff_settings import EXTERNAL, ruff_settings
from nosync_lint.source import SourceFile

SHOWN = 3
"""Files that a note names."""


def notes_on_settings(
    files: Sequence[SourceFile], settings: Settings, root: Path, pragmas: Iterable[Pragma]
) -> Iterator[str]:
    """Configurations further down, which are not read, and settings of ruff that take our comments away."""
    below = sorted(_below(files, settings.path, root)) if settings.nearest else []
    if below:
        shown = ", ".join(display(path, Path.cwd()) for path in below[:SHOWN])
        more = f" and {len(below) - SHOWN} more" if len(below) > SHOWN else ""
        ruling = display(settings.path, Path.cwd()) if settings.path is not None else "the defaults"
        yield f"one configuration governs a run, here {ruling}; not read: {shown}{more} (check those folders apart)"
    if any(pragma.form == "noqa" for pragma in pragmas):
        ruff = ruff_settings(root)
        if ruff is not None and ruff.removes:
            where = f"under {ruff.table} in {display(ruff.path, Path.cwd())}"
            yield f"ruff takes `# noqa: NSL...` comments away (RUF102): add `{EXTERNAL}` {where}"


def _below(files: Sequence[SourceFile], governing: Path | None, root: Path) -> set[Path]:
    """The configuration files between the root of the project and its reported files."""
    folders: set[Path] = set()
    for file in files:
        folder = file.path.parent
        while file.reported and folder not in folders and root in folder.parents:
            folders.add(folder)
            folder = folder.parent
    return {folder / name for folder in folders for name in FILES if is_config(folder / name)} - {governing}
