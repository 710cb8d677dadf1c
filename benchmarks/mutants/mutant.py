"""Mutants as records, read from the TOML files of this folder."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
TESTS = "tests/reference_allocator"
"""Where the witnesses are."""

STATIC = "static"
TESTED = ("dispatch", "functional", "verifier", "bit-exact", "ptx")
"""Layers of tests: operations as a device would see them, results, invariants, bits, and widths of device code."""
EDIT = ("file", "old", "new")
FIELDS = frozenset({"id", "change", *EDIT, "also", STATIC, *TESTED})


class MutantError(Exception):
    """A row that cannot be used; the text names the mutant and the file."""


@dataclass(frozen=True)
class Edit:
    """The text that stands once in a file, and what takes its place."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Mutant:
    """One change of correct code: one edit, or several where one alone would not run.

    id: its group and number. change: what is wrong then. rules: codes that the linter must report. witnesses: by
    layer, the tests that must fail, as node ids below tests/reference_allocator.
    """

    id: str
    change: str
    edits: tuple[Edit, ...]
    rules: tuple[str, ...]
    witnesses: dict[str, tuple[str, ...]]

    @property
    def layers(self) -> tuple[str, ...]:
        """What must catch it."""
        return (*([STATIC] if self.rules else []), *self.witnesses)

    def applied(self, root: Path) -> dict[str, str]:
        """The changed files by name. Raises `MutantError` unless each old text stands exactly once in its file."""
        changed: dict[str, str] = {}
        for edit in self.edits:
            path = root / edit.file
            if not path.is_file():
                raise MutantError(f"{self.id}: there is no {edit.file}")
            text = changed.get(edit.file) or path.read_text(encoding="utf-8")
            found = text.count(edit.old)
            if found != 1:
                raise MutantError(f"{self.id}: the old text stands {found} times in {edit.file}, not once")
            changed[edit.file] = text.replace(edit.old, edit.new)
        return changed


@dataclass(frozen=True)
class Excused:
    """A change that the specification lists and that cannot be made here, and why."""

    id: str
    change: str
    reason: str


def load() -> tuple[list[Mutant], list[Excused]]:
    """All rows by id. Raises `MutantError` for a row that is not well formed."""
    mutants: list[Mutant] = []
    excused: list[Excused] = []
    for path in sorted(FOLDER.glob("*.toml")):
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        mutants += [_mutant(path.name, row) for row in data.pop("mutant", [])]
        excused += [Excused(**row) for row in data.pop("excused", [])]
        if data:
            raise MutantError(f"{path.name}: what is {sorted(data)}?")
    return sorted(mutants, key=lambda one: one.id), sorted(excused, key=lambda one: one.id)


def _mutant(name: str, row: dict[str, Any]) -> Mutant:
    identity = row.get("id", "a row without an id")
    unknown = row.keys() - FIELDS
    missing = {"id", "change", *EDIT} - row.keys()
    if unknown or missing:
        raise MutantError(f"{name}, {identity}: unknown keys {sorted(unknown)}, missing keys {sorted(missing)}")
    rules = tuple(row.get(STATIC, ()))
    witnesses = {layer: tuple(row[layer]) for layer in TESTED if layer in row}
    if not rules and not any(witnesses.values()):
        raise MutantError(f"{name}, {identity}: nothing is said to catch it")
    edits = [Edit(*(each[key] for key in EDIT)) for each in (row, *row.get("also", ()))]
    return Mutant(identity, row["change"], tuple(edits), rules, witnesses)
