"""Places in the joined code of a notebook, told as a cell and the row in it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from nosync_lint.finding import Finding, Hop, Suppressed
from nosync_lint.source import Span

T = TypeVar("T")
_ROWS = ("row", "rows", "statement")
"""Fields of answers that hold rows of the file that the record they stand in is about."""


class Cells:
    """The cells of the notebooks of a run: by the name of the file, where each begins and its number."""

    def __init__(self, starts: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        self._starts = {name: found for name, found in starts.items() if found}

    def place(self, filename: str, row: int) -> tuple[int | None, int]:
        """The number of the cell and the row in it; no cell for a place in any other file."""
        starts = self._starts.get(filename)
        if starts is None:
            return None, row
        first, number = starts[max(bisect_right(starts, row, key=lambda start: start[0]) - 1, 0)]
        return number, row - first + 1

    def row(self, filename: str, cell: int, row: int) -> int | None:
        """The row of the joined code of a place in a cell; None where the notebook has no such code cell or row."""
        starts = self._starts.get(filename, ())
        first = next((first for first, number in starts if number == cell), None)
        known = first is not None and row >= 1 and self.place(filename, first + row - 1)[0] == cell
        return first + row - 1 if first is not None and known else None

    def numbers(self, filename: str) -> list[int]:
        """The numbers of the code cells of a notebook; none for any other file."""
        return [number for _, number in self._starts.get(filename, ())]

    def finding(self, finding: Finding) -> Finding:
        """A finding as it is reported. One in a notebook has no fix: the edits would be made to other text."""
        if not self._starts:
            return finding
        flow, evidence, related = (self._hops(hops) for hops in (finding.flow, finding.evidence, finding.related))
        finding = replace(finding, flow=flow, evidence=evidence, related=related)
        cell, row = self.place(finding.filename, finding.span.row)
        if cell is None:
            return finding
        return replace(finding, cell=cell, span=_shifted(finding.span, finding.span.row - row), fix=None)

    def suppressed(self, one: Suppressed) -> Suppressed:
        """A finding that is accepted, and the comment that does so."""
        row = self.place(one.finding.filename, one.row)[1] if one.row else one.row
        return replace(one, finding=self.finding(one.finding), row=row)

    def sources(self, sources: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
        """The lines of files, and of each cell of a notebook under the name that places in it have."""
        found = {name: tuple(lines) for name, lines in sources.items() if name not in self._starts}
        for name in self._starts.keys() & sources.keys():
            ends = [first for first, _ in self._starts[name][1:]] + [len(sources[name]) + 1]
            for (first, number), end in zip(self._starts[name], ends, strict=True):
                found[f"{name}:cell {number}"] = tuple(sources[name][first - 1 : end - 1])
        return found

    def answer(self, answer: T) -> T:
        """An answer with the cell in the name of the file of each place in a notebook."""
        return self._told(answer, 0) if self._starts else answer

    def _hops(self, hops: Iterable[Hop]) -> tuple[Hop, ...]:
        return tuple(self._hop(hop) for hop in hops)

    def _hop(self, hop: Hop) -> Hop:
        cell, row = self.place(hop.filename, hop.row)
        return hop if cell is None else replace(hop, cell=cell, row=row)

    def _told(self, value: Any, above: int) -> Any:
        """A part of an answer; `above` counts the rows above the cell that the record around it is in."""
        if isinstance(value, Finding):
            return self.finding(value)
        if isinstance(value, Hop):
            return self._hop(value)
        if isinstance(value, Span):
            return _shifted(value, above)
        if isinstance(value, tuple):
            return tuple(self._told(one, above) for one in value)
        if not is_dataclass(value) or isinstance(value, type):
            return value
        given: dict[str, Any] = {one.name: getattr(value, one.name) for one in fields(value)}
        if "filename" in given and "row" in given:
            cell, row = self.place(given["filename"], given["row"])
            above = given["row"] - row
            if cell is not None:
                given["filename"] = f"{given['filename']}:cell {cell}"
        return replace(value, **{name: self._part(name, part, above) for name, part in given.items()})

    def _part(self, name: str, part: Any, above: int) -> Any:
        if name in _ROWS and isinstance(part, int):
            return part - above
        if name in _ROWS and isinstance(part, tuple):
            return tuple(row - above for row in part)
        return self._told(part, above)


def _shifted(span: Span, above: int) -> Span:
    return span._replace(row=span.row - above, end_row=span.end_row - above)
