"""Whether ruff, as this project has it configured, would remove our `# noqa` comments as ones of unknown rules."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nosync_lint.index.records import Pragma

_REMOVES = "RUF102"
"""The rule of ruff about codes that it does not know."""
_OURS = "NSL"
_FILES = (".ruff.toml", "ruff.toml", "pyproject.toml")


def noqa_notes(root: Path, pragmas: Mapping[str, Sequence[Pragma]]) -> tuple[str, ...]:
    """A note where comments of ours would be removed."""
    if not any(one.form == "noqa" and one.names for found in pragmas.values() for one in found):
        return ()
    path, lint = _settings(root)
    if path is None or not _removes(lint):
        return ()
    return (
        f'{path}: ruff takes our `# noqa` comments for unknown ones and removes them; add `external = ["{_OURS}"]` to '
        "its lint settings",
    )


def _settings(root: Path) -> tuple[Path | None, Mapping[str, Any]]:
    """The nearest configuration of ruff at or above a folder, and its settings about linting."""
    for folder in (root, *root.parents):
        for name in _FILES:
            path = folder / name
            if path.is_file():
                try:
                    data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
                except (OSError, ValueError):
                    continue  # ruff will say so itself
                ruff = data if name != _FILES[2] else data.get("tool", {}).get("ruff")
                if isinstance(ruff, dict):
                    lint = ruff.get("lint", {})
                    return path, {**ruff, **lint} if isinstance(lint, dict) else ruff
    return None, {}


def _removes(lint: Mapping[str, Any]) -> bool:
    if any(_OURS.startswith(str(word)) for word in lint.get("external", ())):
        return False
    selected = [*lint.get("select", ()), *lint.get("extend-select", ())]
    ignored = [*lint.get("ignore", ()), *lint.get("extend-ignore", ())]
    return _rank(selected) > _rank(ignored)


def _rank(words: Sequence[object]) -> int:
    """How precisely the rule is named; 0 where it is not. The more precise of `select` and `ignore` wins."""
    return max(
        (len(str(word)) if word != "ALL" else 1 for word in words if word == "ALL" or _is_named(word)), default=0
    )


def _is_named(word: object) -> bool:
    return str(word).startswith("RUF") and _REMOVES.startswith(str(word))
