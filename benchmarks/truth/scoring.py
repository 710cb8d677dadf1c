"""Findings against labels: which places that wait are found, and which that do not are reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from benchmarks.truth.labels import SYNC_FAMILIES, Labels, Site


class Outcome(StrEnum):
    FOUND = "found"
    MISSED = "missed alarm"
    FALSE = "false alarm"
    SILENT = "rightly silent"


@dataclass(frozen=True, slots=True)
class Flag:
    """What of a finding is compared: its code, and the rows that it covers."""

    file: str
    first: int
    last: int
    code: str

    def covers(self, rows: Iterable[int]) -> bool:
        return any(self.first <= row <= self.last for row in rows)


@dataclass(frozen=True, slots=True)
class Scored:
    """A labelled place and what came of it."""

    site: Site
    outcome: Outcome


class Tally(Counter[Outcome]):
    """How many places came out which way."""

    @property
    def precision(self) -> float | None:
        return _share(self[Outcome.FOUND], self[Outcome.FALSE])

    @property
    def recall(self) -> float | None:
        return _share(self[Outcome.FOUND], self[Outcome.MISSED])


def flags(findings: Iterable[dict[str, Any]]) -> list[Flag]:
    """The findings of a JSON report."""
    return [
        Flag(found["filename"], found["location"]["row"], found["end_location"]["row"], found["code"])
        for found in findings
    ]


def score(labels: Labels, found: Sequence[Flag]) -> list[Scored]:
    """What came of every place whose label says yes or no; and of reports in exhaustive files that no label covers."""
    by_file: dict[str, list[Flag]] = {}
    for flag in found:
        by_file.setdefault(flag.file, []).append(flag)
    scored = [_scored(site, by_file.get(site.file, ())) for site in labels.sites if site.waits is not None]
    for file in sorted(labels.exhaustive):
        labelled = {row for site in labels.sites if site.file == file for row in site.rows}
        for flag in by_file.get(file, ()):
            if flag.code.startswith(SYNC_FAMILIES) and flag.code != "NSL105" and not flag.covers(labelled):
                scored.append(Scored(_unlabelled(flag), Outcome.FALSE))
    return scored


def tally(scored: Iterable[Scored]) -> Tally:
    return Tally(one.outcome for one in scored)


def _scored(site: Site, here: Iterable[Flag]) -> Scored:
    reported = any(flag.code.startswith(site.codes) and flag.covers(site.rows) for flag in here)
    if site.waits:
        return Scored(site, Outcome.FOUND if reported else Outcome.MISSED)
    return Scored(site, Outcome.FALSE if reported else Outcome.SILENT)


def _unlabelled(flag: Flag) -> Site:
    package = flag.file.partition("/")[0]
    reason = f"{flag.code} in a file in which every place that waits has a label"
    return Site(package, flag.file, frozenset({flag.first}), "unlabelled", False, "", "unlabelled", reason)


def _share(good: int, bad: int) -> float | None:
    return good / (good + bad) if good + bad else None
