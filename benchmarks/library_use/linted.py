"""What the linter says of a package: its findings at any heat and confidence, and what it knows of single lines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from nosync_lint.config import Settings
from nosync_lint.finding import Finding
from nosync_lint.judge import Texts
from nosync_lint.link.explanation import Explanations
from nosync_lint.link.program import Program
from nosync_lint.link.solver import with_room
from nosync_lint.pipeline import run

SYNCHRONISATIONS = ("NSL1", "NSL2", "NSL3", "NSL4")


class Line(NamedTuple):
    """How hot a line is, and why the linter reports nothing there: for each thing that could wait, what it knows."""

    heat: str
    silent: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Linted:
    """The findings in a package, and the program that they come from."""

    findings: tuple[Finding, ...]
    _program: Program

    def lines(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], Line]:
        """What is known of these rows, by file and row."""
        wanted = list(places)
        return with_room(lambda: {place: self._line(*place) for place in wanted})

    def _line(self, filename: str, row: int) -> Line:
        module = next(one for one in self._program.project.modules if one.file.name == filename)
        facts = Explanations(self._program).line(module, row, Texts().lines(module.file.path.as_posix()))
        silent = tuple(f"`{site.text}`: {site.silent}" for site in facts.sites if site.silent)
        return Line(facts.heat.heat.value if facts.heat is not None else "", silent)


def lint(folder: Path, release: str) -> Linted:
    """Lints a package where it is installed, for one release of torch."""
    settings = Settings(select=SYNCHRONISATIONS, heat="any", min_confidence="possible", target_torch=release)
    with contextlib.chdir(folder.parent):
        report = run([folder.name], settings, cache=False)
    assert isinstance(report.program, Program)
    return Linted(report.findings, report.program)
