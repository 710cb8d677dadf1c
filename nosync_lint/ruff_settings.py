"""Whether ruff, where a project uses it, leaves our codes in `noqa` comments alone.

Its rules of the group RUF take codes that they do not know out of `# noqa: ...`, with the reason behind them, unless
`external` names them.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

EXTERNAL = 'external = ["NSL"]'
FILES = (".ruff.toml", "ruff.toml", "pyproject.toml")
_REMOVING = ("ALL", "RUF", "RUF1", "RUF10", "RUF102")


class Ruff(NamedTuple):
    """The settings of ruff that hold in a folder: the file, and whether it keeps our codes or takes them out."""

    path: Path
    keeps: bool
    removes: bool

    @property
    def table(self) -> str:
        """The table in which `external` stands."""
        return "[tool.ruff.lint]" if self.path.name == "pyproject.toml" else "[lint]"


def ruff_settings(folder: Path) -> Ruff | None:
    """The nearest settings of ruff at or above a folder; None where there are none that can be read."""
    for one in (folder, *folder.parents):
        for name in FILES:
            table = _table(one / name)
            if table is not None:
                return _read(one / name, table)
    return None


def _table(path: Path) -> dict[str, Any] | None:
    try:
        data: Any = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        if path.name == "pyproject.toml":
            data = data["tool"]["ruff"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return data if isinstance(data, dict) else None


def _read(path: Path, table: dict[str, Any]) -> Ruff:
    lint = table.get("lint")
    tables = [table, lint if isinstance(lint, dict) else {}]  # older settings have no table `lint`

    def listed(*keys: str) -> list[str]:
        found = [one.get(key) for one in tables for key in keys]
        return [word for words in found if isinstance(words, list) for word in words if isinstance(word, str)]

    selected = set(listed("select", "extend-select")) & set(_REMOVING)
    keeps = any(word and "NSL".startswith(word[:3]) for word in listed("external"))
    return Ruff(path, keeps, bool(selected) and not keeps and "RUF102" not in listed("ignore", "extend-ignore"))
