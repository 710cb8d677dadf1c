"""The linter's findings in a sample against what torch did there.

A place that is reported must wait, and a statement in which nothing is reported must not. A pageable copy marked
asynchronous (NSL105) must be recorded as one, a conversion that raises (NSL209) must raise, what waits in the backward
(NSL307) must wait there, and what `pin_memory` costs (NSL106) is not judged, nor is what the linter reports with little
confidence.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from benchmarks.oracle.seen import Extent, Seen, seen_in
from benchmarks.oracle.statements import Statement, statements
from nosync_lint.config import Settings, load_config
from nosync_lint.finding import Confidence, Finding
from nosync_lint.pipeline import run

CONFIG = "nosync-lint.toml"
JUDGED = ("NSL1", "NSL2", "NSL3")
EXPLICIT = "NSL4"
PAGEABLE, PINNING, RAISES, BACKWARD = "NSL105", "NSL106", "NSL209", "NSL307"
UNREACHED = "no choice of arguments reaches it"
_GOES_BACK = re.compile(r"\bbackward\(|\bautograd\.grad\(")
_MISSED = re.compile(r"# missed: \[")


class Verdict(StrEnum):
    AGREE = "agree"
    DISAGREE = "disagree"
    KNOWN = "known missed alarm"
    NOT_RUN = "not run"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one finding, or of one statement without any: `slug` is the rule that it is counted for."""

    slug: str
    filename: str
    row: int
    reported: bool
    verdict: Verdict
    note: str = ""


def judge(sample: Path, slug: str, recorded: dict[str, Any], release: str) -> list[Outcome]:
    """The outcomes of one sample of a rule for one release of torch."""
    seen = seen_in(sample, recorded)
    paths = sorted(sample.rglob("*.py")) if sample.is_dir() else [sample]
    root = sample if sample.is_dir() else sample.parent
    findings = lint(sample, release)
    outcomes = []
    for path in paths:
        name = path.relative_to(root).as_posix()
        here = [one for one in findings if one.filename == name]
        file = _File(
            slug, name, path.read_text(encoding="utf-8"), here, seen.get(name, Seen()), recorded.get("died", "")
        )
        outcomes += list(file.outcomes())
    where = sample.name if sample.is_dir() else ""
    return [replace(one, filename="/".join(part for part in (slug, where, one.filename) if part)) for one in outcomes]


def lint(sample: Path, release: str) -> tuple[Finding, ...]:
    """Everything that the linter says of synchronisations in a sample, as a project of its own, for one release."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "sample"
        if sample.is_dir():
            shutil.copytree(sample, root, ignore=shutil.ignore_patterns("__pycache__", ".nosync_lint_cache"))
        else:
            root.mkdir()
            shutil.copy(sample, root)
        config = root / CONFIG
        settings = load_config(config) if config.exists() else Settings()
        config.touch()
        wanted = replace(
            settings, select=(*JUDGED, EXPLICIT), heat="any", min_confidence="possible", target_torch=release
        )
        with contextlib.chdir(root):
            return run(["."], wanted, jobs=1, cache=False).findings


class _File:
    """One file of a sample: which recorded event belongs to which finding, and what is left on either side."""

    def __init__(self, slug: str, name: str, text: str, findings: list[Finding], seen: Seen, died: str) -> None:
        self.slug, self.name, self.seen, self.died = slug, name, seen, died
        self.lines = text.splitlines()
        self.statements = statements(text)
        ranked = sorted(findings, key=lambda one: -one.confidence.rank)
        self.findings = [(_extent(one), one) for one in ranked]
        waiting = [one for one in self.findings if one[1].code not in (PAGEABLE, PINNING, RAISES, BACKWARD)]
        copying = [one for one in self.findings if one[1].code == PAGEABLE]
        self.waits, self.unreported = _matched(seen.syncs, waiting)
        self._give_to_contexts(waiting)
        self.copies, unmarked = _matched(seen.pageable, copying)
        self.unreported |= {at for at in unmarked if not any(at.touches(extent) for extent, _ in self.findings)}

    def _give_to_contexts(self, findings: list[tuple[Extent, Finding]]) -> None:
        """A finding at the head of a `with` tells of what waits inside because of it."""
        for statement in self.statements:
            heads = [one for extent, one in findings if statement.context and statement.extent.contains(extent)]
            for finding in heads:
                inside = {at for at in self.unreported if statement.context and statement.context.contains(at)}
                if inside and id(finding) not in self.waits:
                    self.waits.add(id(finding))
                    self.unreported -= inside

    def outcomes(self) -> Iterator[Outcome]:
        for extent, finding in self.findings:
            if finding.code.startswith(JUDGED):
                verdict, note = self._of_finding(extent, finding)
                yield Outcome(finding.name, self.name, extent.row, True, verdict, note)
        for statement in self.statements:
            found = self._of_silence(statement)
            if found is not None:
                yield Outcome(self.slug, self.name, statement.extent.row, False, *found)

    def _of_finding(self, extent: Extent, finding: Finding) -> tuple[Verdict, str]:
        if finding.code == PINNING or finding.confidence is Confidence.POSSIBLE:
            return Verdict.NOT_JUDGED, "little confidence" if finding.code != PINNING else "what pinning costs"
        failed = {place: why for place, why in self.seen.failures.items() if place.touches(extent)}
        if finding.code == RAISES and any(why.startswith("TypeError") for why in failed.values()):
            return Verdict.AGREE, ""
        if finding.code == BACKWARD:
            return self._of_backward(extent)
        if id(finding) in (self.copies if finding.code == PAGEABLE else self.waits):
            return Verdict.AGREE, ""
        statement = next((one for one in self.statements if one.extent.contains(extent)), Statement(extent, 0))
        why = self._why_not_run(statement)
        if why or not any(extent.contains(place) for place in self.seen.executed):
            return Verdict.NOT_RUN, why or UNREACHED
        if finding.code == RAISES:
            return Verdict.DISAGREE, f"{finding.code} is reported and nothing is raised"
        what = "no pageable copy is made" if finding.code == PAGEABLE else "torch does not wait"
        return Verdict.DISAGREE, f"{finding.code} is reported and {what}"

    def _of_backward(self, extent: Extent) -> tuple[Verdict, str]:
        counts = [self.seen.backward[row] for row in extent.rows if row in self.seen.backward]
        if not counts:
            return Verdict.NOT_RUN, "no gradient comes back to it from what its function returns"
        if any(counts):
            return Verdict.AGREE, ""
        return Verdict.DISAGREE, f"{BACKWARD} is reported and torch does not wait in the backward"

    def _of_silence(self, statement: Statement) -> tuple[Verdict, str] | None:
        """What came of a statement in which nothing is reported, None if something is and torch does no more."""
        inside = [at for at in self.unreported if statement.extent.contains(at)]
        lines = self.lines[statement.extent.row - 1 : statement.extent.end_row]
        marked = any(_MISSED.search(line) for line in lines)
        why = self._why_not_run(statement)
        if marked and (inside or why):
            return Verdict.KNOWN, ""
        if statement.extent.row in self.seen.assumed and (inside or why):
            return Verdict.NOT_JUDGED, "its callers in the sample do not reach it"
        if inside and any(_GOES_BACK.search(line) for line in lines):
            return Verdict.NOT_JUDGED, "what waits in the backward is judged where its forward stands"
        if inside:
            at = min(inside)
            what = "torch waits" if at in self.seen.syncs else "torch copies pageable memory asynchronously"
            return Verdict.DISAGREE, f"{what} at column {at.column} and nothing is reported"
        reported = [finding for extent, finding in self.findings if statement.extent.contains(extent)]
        waits_later = any(self.seen.backward.get(row) for row in statement.extent.rows)
        if waits_later and not any(one.code == BACKWARD for one in reported):
            return Verdict.DISAGREE, "torch waits in the backward and nothing is reported"
        if reported:
            return None
        return (Verdict.NOT_RUN, why) if why else (Verdict.AGREE, "")

    def _why_not_run(self, statement: Statement) -> str:
        """Why a statement did not run to its end, empty if it did."""
        if self.died:
            return self.died
        extent = statement.extent
        failed = {place: why for place, why in self.seen.failures.items() if extent.contains(place)}
        for why in failed.values():
            if not why.startswith("AssertionError"):
                return why
        if any(extent.contains(place) for place in self.seen.executed):
            return ""
        return self.seen.uncalled.get(statement.definition, UNREACHED)


def _matched(events: dict[Extent, int], findings: list[tuple[Extent, Finding]]) -> tuple[set[int], set[Extent]]:
    """The findings (by `id`) that have an event of their own, and the events without a finding.

    An event belongs to the findings at its very place, else to the nearest around it, else to those inside it; where
    there are fewer waits than findings, the surest findings have them.
    """
    satisfied: set[int] = set()
    left: set[Extent] = set()
    for at, count in events.items():
        around = [extent for extent, _ in findings if extent.contains(at)]
        nearest = max(around, key=lambda one: (one.start, (-one.end_row, -one.end_column)), default=None)
        here = [finding for extent, finding in findings if (extent == nearest if nearest else at.contains(extent))]
        satisfied |= {id(finding) for finding in here[:count]}
        if not here:
            left.add(at)
    return satisfied, left


def _extent(finding: Finding) -> Extent:
    span = finding.span
    return Extent(span.row, span.column, span.end_row, span.end_column)
