"""Statements of a package that ran under the guard: what waited there, and what the linter reports there."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.oracle.statements import Statement, statements
from nosync_lint.finding import Confidence, Finding, Heat

BACKWARD = "NSL307"
"""Waits of the backward are put to the line of `.backward()`, which is not where the linter reports them."""


@dataclass(slots=True)
class Place:
    """One statement that ran: the rules of what waited there, how often, and what the linter reports there."""

    filename: str
    row: int
    text: str
    waited: dict[str, int] = field(default_factory=dict)
    reported: list[Finding] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, int]:
        return self.filename, self.row

    @property
    def best(self) -> Finding | None:
        """The report that is shown first: by heat, then by confidence."""
        return max(self.reported, key=lambda one: (one.heat is Heat.HOT, one.confidence.rank), default=None)

    @property
    def is_hot(self) -> bool:
        return any(one.heat is Heat.HOT for one in self.reported)

    @property
    def by_default(self) -> bool:
        """Whether a run without options reports the statement."""
        return any(one.heat is Heat.HOT and one.confidence.rank >= Confidence.LIKELY.rank for one in self.reported)

    @property
    def same_rule(self) -> bool:
        return not self.waited.keys().isdisjoint(one.code for one in self.reported)


@dataclass(frozen=True, slots=True)
class Compared:
    """All statements of a package that ran and could wait, how many, and those where one side says that they do."""

    ran: int
    places: list[Place]
    elsewhere: int
    """Waits at lines that are none of the package: of the programs, and of other packages."""

    @property
    def both(self) -> list[Place]:
        return [one for one in self.places if one.waited and one.reported]

    @property
    def guard_only(self) -> list[Place]:
        return [one for one in self.places if one.waited and not one.reported]

    @property
    def linter_only(self) -> list[Place]:
        return [one for one in self.places if not one.waited]


def compare(
    folder: Path, rows: Mapping[str, Iterable[int]], events: Iterable[Mapping[str, Any]], findings: Iterable[Finding]
) -> Compared:
    """`rows` are those that ran, by file relative to what `folder` lies in; `events` as `--nosync-json` has them."""
    files = {name: _File(name, folder.parent / name, set(ran)) for name, ran in rows.items()}
    elsewhere = 0
    for event in events:
        file = files.get(event["filename"])
        if file is None:
            elsewhere += 1
        else:
            place = file.at(event["location"]["row"])
            place.waited[event["code"]] = place.waited.get(event["code"], 0) + 1
    for finding in findings:
        file = files.get(finding.filename)
        if file is not None and finding.code != BACKWARD and file.ran(finding.span.row):
            file.at(finding.span.row).reported.append(finding)
    places = [place for _, file in sorted(files.items()) for _, place in sorted(file.places.items())]
    return Compared(sum(file.count for file in files.values()), places, elsewhere)


class _File:
    def __init__(self, name: str, path: Path, ran: set[int]) -> None:
        self._name, self._ran = name, ran
        text = path.read_text(encoding="utf-8")
        self._lines = text.splitlines()
        self._statements = statements(text)
        inside = _in_functions(text)
        self.count = sum(one.extent.row in inside and not ran.isdisjoint(one.extent.rows) for one in self._statements)
        self.places: dict[int, Place] = {}

    def _statement(self, row: int) -> Statement | None:
        around = [one for one in self._statements if row in one.extent.rows]
        return max(around, key=lambda one: (one.extent.start, [-end for end in one.extent.end]), default=None)

    def at(self, row: int) -> Place:
        """The place of the innermost statement at a row."""
        statement = self._statement(row)
        first = statement.extent.row if statement is not None else row
        return self.places.setdefault(first, Place(self._name, first, self._lines[first - 1].strip()))

    def ran(self, row: int) -> bool:
        statement = self._statement(row)
        return not self._ran.isdisjoint(statement.extent.rows if statement is not None else (row,))


def _in_functions(text: str) -> set[int]:
    """The rows of the bodies of functions: what is outside of them runs when a module is imported."""
    return {
        row
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for row in range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
    }
