"""Why the guard and the linter disagree at a place: who is right, from reading the source; `reasons.toml` has them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from benchmarks.library_use.comparison import Place

FILE = Path(__file__).resolve().parent / "reasons.toml"
UNREAD = ("?", "not read yet")


@dataclass(frozen=True, slots=True)
class Reasons:
    """The reasons of one package, by file and by the text of the first line of a statement."""

    _known: dict[tuple[str, str], tuple[str, str]]

    @staticmethod
    def of(package: str) -> Reasons:
        """Those of `reasons.toml`."""
        groups = tomllib.loads(FILE.read_text(encoding="utf-8")).get(package, [])
        return Reasons(
            {
                (f"{package}/{filename}", text): (group["right"], group["why"])
                for group in groups
                for filename, texts in group["at"].items()
                for text in texts
            }
        )

    def why(self, place: Place) -> tuple[str, str]:
        """Who is right at a place, and why."""
        return self._known.get((place.filename, place.text), UNREAD)
