"""What was recorded of one sample, by the places in its files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple


class Extent(NamedTuple):
    """Where an expression stands: rows and columns from 1, columns in characters, the end behind the last one."""

    row: int
    column: int
    end_row: int
    end_column: int

    @property
    def start(self) -> tuple[int, int]:
        return self.row, self.column

    @property
    def end(self) -> tuple[int, int]:
        return self.end_row, self.end_column

    @property
    def rows(self) -> range:
        return range(self.row, self.end_row + 1)

    def contains(self, other: Extent) -> bool:
        return self.start <= other.start and other.end <= self.end

    def touches(self, other: Extent) -> bool:
        return self.contains(other) or other.contains(self)


@dataclass(slots=True)
class Seen:
    """What torch did in one file."""

    executed: set[Extent] = field(default_factory=set)
    syncs: dict[Extent, int] = field(default_factory=dict)
    pageable: dict[Extent, int] = field(default_factory=dict)
    failures: dict[Extent, str] = field(default_factory=dict)
    assumed: set[int] = field(default_factory=set)
    """Rows where made-up arguments stand for those of callers in the sample that did not come there."""
    backward: dict[int, int] = field(default_factory=dict)
    """How often the backward of what a row computes waits; a row that no gradient came back to is not there."""
    uncalled: dict[int, str] = field(default_factory=dict)
    """Why a function could not be called, by the row of its `def`."""


def seen_in(sample: Path, recorded: dict[str, Any]) -> dict[str, Seen]:
    """What was recorded of a sample, by the name of the file in it."""
    root = sample if sample.is_dir() else sample.parent
    found: dict[str, Seen] = {}
    lines: dict[str, list[bytes]] = {}

    def places(entries: list[list[Any]]) -> Iterator[tuple[Seen, Extent, list[Any]]]:
        for file, row, column, end_row, end_column, *rest in entries:
            if file not in lines:
                lines[file] = (root / file).read_bytes().splitlines()
            first, last = lines[file][row - 1][:column], lines[file][end_row - 1][:end_column]
            extent = Extent(row, len(first.decode()) + 1, end_row, len(last.decode()) + 1)
            yield found.setdefault(file, Seen()), extent, rest

    for row in recorded["rows"]:
        for seen, extent, _ in places(row["executed"]):
            seen.executed.add(extent)
        for seen, extent, (count,) in places(row["syncs"]):
            seen.syncs[extent] = count
        for seen, extent, (count,) in places(row["pageable"]):
            seen.pageable[extent] = count
        for seen, extent, (reason,) in places(row["failures"]):
            seen.failures[extent] = reason
        for file, number in [row["assumed"]] if row["assumed"] else []:
            found.setdefault(file, Seen()).assumed.add(number)
        for file, number, count in [row["backward"]] if row["backward"] else []:
            found.setdefault(file, Seen()).backward[number] = count
    for file, row, reason in recorded["reasons"]:
        found.setdefault(file, Seen()).uncalled[row] = reason
    return found
