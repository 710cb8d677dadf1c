"""Suppression comments: which findings they cover, and which of them cover none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from nosync_lint.index.records import Pragma
from nosync_lint.rule import Suppression
from nosync_lint.source import Span

COVERING = frozenset({"ignore", "noqa", "waiver", "off", "skip-file"})


class Suppressions:
    """The suppression comments of one file."""

    def __init__(self, pragmas: Sequence[Pragma], lines: Callable[[], Sequence[str]]) -> None:
        self._pragmas = [pragma for pragma in pragmas if pragma.form in COVERING | {"on", "unknown"}]
        self._lines = lines
        self._used: set[Pragma] = set()

    def cover(self, code: str, slug: str, first: int, last: int) -> Pragma | None:
        """The nearest comment that covers a finding whose statement stands in these rows. All that do count as used."""
        covering = [
            pragma for pragma in self._pragmas if self._names(pragma, code, slug) and self._reaches(pragma, first, last)
        ]
        self._used.update(covering)
        return max(covering, key=lambda pragma: pragma.row, default=None)

    def reaching(self, first: int, last: int) -> list[Pragma]:
        """The comments that cover findings whose statement stands in these rows, whatever rule they name."""
        return [pragma for pragma in self._pragmas if self._reaches(pragma, first, last)]

    @staticmethod
    def _names(pragma: Pragma, code: str, slug: str) -> bool:
        return not pragma.names or any(name.upper() == code or name.lower() == slug for name in pragma.names)

    def _reaches(self, pragma: Pragma, first: int, last: int) -> bool:
        if pragma.form == "skip-file":
            return True
        if pragma.form == "off":
            return pragma.row < first and not any(
                other.form == "on"
                and pragma.row < other.row <= first
                and (not other.names or other.names == pragma.names)
                for other in self._pragmas
            )
        if pragma.form not in ("ignore", "noqa", "waiver"):
            return False
        if first <= pragma.row <= last:
            return True
        return pragma.alone and pragma.row < first and self._only_comments(pragma.row + 1, first - 1)

    def _only_comments(self, first: int, last: int) -> bool:
        lines = self._lines()
        return last - first < 20 and all(
            lines[row - 1].lstrip().startswith(("#", "//")) for row in range(first, last + 1)
        )

    def sites(self, filename: str, known: Iterable[str], judged: Iterable[str]) -> Iterator[Suppression]:
        """Every comment, with whether it was needed. One that names only rules which were not judged counts as used."""
        known, judged = set(known), set(judged)
        for pragma in self._pragmas:
            if pragma.form in ("on", "waiver"):  # a waiver may be about something that another tool finds
                continue
            unknown = tuple(name for name in pragma.names if name.upper() not in known and name.lower() not in known)
            asked = not pragma.names or any(name.upper() in judged or name.lower() in judged for name in pragma.names)
            used = pragma in self._used or (not asked and not unknown)
            yield Suppression(
                filename, Span(pragma.row, 1, pragma.row, 1), pragma.form, pragma.names, unknown, pragma.reason, used
            )
