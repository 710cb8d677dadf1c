"""Why the guard and the linter disagree at a place: who is right, from reading the source; `reasons.toml` has them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from benchmarks.library_use.comparison import Place

FILE = Path(__file__).resolve().parent / "reasons.toml"
UNREAD = ("?", "not read yet")


@dataclass(frozen=True, slots=True)
class Reasons:
    """The groups of one package: each says who is right and why, at which rows of which files; of all without rows."""

    _package: str
    _groups: list[dict[str, Any]]

    @staticmethod
    def of(package: str) -> Reasons:
        """Those of `reasons.toml`."""
        return Reasons(package, tomllib.loads(FILE.read_text(encoding="utf-8")).get(package, []))

    def why(self, place: Place) -> tuple[str, str]:
        """Who is right at a place, and why."""
        name = place.filename.removeprefix(f"{self._package}/")
        for group in self._groups:
            for pattern, rows in group["at"].items():
                if fnmatchcase(name, pattern) and (not rows or place.row in rows):
                    return group["right"], group["why"]
        return UNREAD
