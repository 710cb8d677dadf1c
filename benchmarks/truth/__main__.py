"""Lints labelled releases, scores the findings, and writes the tables of docs/accuracy.md.

usage: python -m benchmarks.truth LABELS_FOLDER [--list] [--jobs N]

LABELS_FOLDER holds files of labels (`*.json`). The releases that they name are fetched and kept as by
benchmarks/releases.py. If the folder has a scorer of its own (`score.py`), the totals must be the same: exit 1 if not.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.document import DOCS, table, write_part
from benchmarks.releases import fetch, lint
from benchmarks.truth.labels import Labels, load
from benchmarks.truth.scoring import Outcome, Scored, Tally, flags, score, tally

EVERYTHING = ("--heat", "any", "--min-confidence", "likely")
DEFAULT_REPORT_OF = "sglang"
COUNTS = ("sites", "found", "missed", "false", "silent", "precision", "recall")


@dataclass(frozen=True, slots=True)
class Release:
    """One linted release: everything that is at least likely, and what is reported by default where that was asked."""

    package: str
    version: str
    report: dict[str, Any]
    default: dict[str, Any] | None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("labels", type=Path, metavar="LABELS_FOLDER")
    parser.add_argument("--list", action="store_true", help="print every wrong outcome")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    labels = load(options.labels)
    if not labels:
        parser.error(f"{options.labels} holds no file of labels")
    named = sorted({release for one in labels for release in one.releases})
    releases = [_linted(package, version, options.jobs) for package, version in named]
    found = flags(finding for release in releases for finding in release.report["findings"])
    scored = {one.name: score(one, found) for one in labels}
    hot = _hot_in_the_default_report(labels, releases)
    write_part(DOCS / "accuracy.md", "truth", _told(releases, scored, hot))
    for name, outcomes in scored.items():
        total = tally(outcomes)
        print(f"{name}: " + ", ".join(f"{total[outcome]} {outcome}" for outcome in Outcome))
        if options.list:
            _print_wrong(outcomes)
    if options.list:
        print("hot places of the default report:")
        _print_wrong(hot)
    return _differences(options.labels / "score.py", labels, scored, releases)


def _linted(package: str, version: str, jobs: int) -> Release:
    folder = fetch(f"{package.replace('_', '-')}=={version}")
    with tempfile.TemporaryDirectory() as cache:
        _, _, report = lint(folder, [package], jobs, cache, EVERYTHING)
        default = lint(folder, [package], jobs, cache)[2] if package == DEFAULT_REPORT_OF else None
    return Release(package, version, report, default)


def _hot_in_the_default_report(labels: Sequence[Labels], releases: Sequence[Release]) -> list[Scored]:
    """Labelled hot places of the packages whose default report was asked for."""
    asked = [release for release in releases if release.default is not None]
    packages = {release.package for release in asked}
    found = flags(finding for release in asked for finding in (release.default or {})["findings"])
    scored = [outcome for one in labels for outcome in score(one, found)]
    return [one for one in scored if one.site.context == "hot" and one.site.package in packages]


def _told(releases: Sequence[Release], scored: dict[str, list[Scored]], hot: Sequence[Scored]) -> str:
    everything = [one for outcomes in scored.values() for one in outcomes]
    version = releases[0].report["tool"]["version"]
    return "\n\n".join(
        [
            f"nosync-lint {version}, Python {platform.python_version()}, {datetime.date.today():%-d %B %Y}; "
            "every heat, certain and likely findings.",
            table(
                ("release", "judged for torch", "findings"),
                (
                    (
                        f"{one.package} {one.version}",
                        _span(one.report["summary"]["target_torch"]),
                        len(one.report["findings"]),
                    )
                    for one in releases
                ),
            ),
            _breakdown("labels", {name: tally(outcomes) for name, outcomes in scored.items()}, tally(everything)),
            "By package:",
            _breakdown("package", _grouped(everything, lambda one: one.site.package)),
            "By what a reader needs in order to decide:",
            _breakdown("decidable by", _grouped(everything, lambda one: one.site.decidable)),
            "By what the place looks like:",
            _breakdown("pattern", _grouped(everything, lambda one: one.site.kind)),
            f"The default report of {DEFAULT_REPORT_OF}, hot lines only:",
            _breakdown("labels", {"hot sites": tally(hot)}),
        ]
    )


def _span(releases: Sequence[str]) -> str:
    return releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"


def _grouped(scored: Iterable[Scored], key: Callable[[Scored], str]) -> dict[str, Tally]:
    groups: dict[str, Tally] = {}
    for one in scored:
        groups.setdefault(key(one), Tally())[one.outcome] += 1
    return dict(sorted(groups.items(), key=lambda group: (-group[1].total(), group[0])))


def _breakdown(title: str, groups: dict[str, Tally], total: Tally | None = None) -> str:
    rows = [*groups.items(), *([("all", total)] if total is not None else [])]
    return table(
        (title, *COUNTS),
        (
            (name, one.total(), *(one[outcome] for outcome in Outcome), _number(one.precision), _number(one.recall))
            for name, one in rows
        ),
    )


def _number(share: float | None) -> str:
    return "-" if share is None else f"{share:.2f}"


def _print_wrong(scored: Iterable[Scored]) -> None:
    wrong = [one for one in scored if one.outcome in (Outcome.MISSED, Outcome.FALSE)]
    for one in sorted(wrong, key=lambda one: (one.outcome, one.site.file, min(one.site.rows))):
        site = one.site
        place = f"{site.file}:{min(site.rows)}"
        print(f"  {one.outcome}: {place} {site.pattern}, {site.context}, {site.decidable}: {site.reason}")


def _differences(
    scorer: Path, labels: Sequence[Labels], scored: dict[str, list[Scored]], releases: Sequence[Release]
) -> int:
    """Compare the totals with those of the scorer beside the labels. Returns the exit status."""
    if not scorer.is_file():
        print("no score.py beside the labels: totals not compared")
        return 0
    differ = 0
    with tempfile.NamedTemporaryFile("w", suffix=".json") as report:
        json.dump({"findings": [found for one in releases for found in one.report["findings"]]}, report)
        report.flush()
        for one in labels:
            root = next(iter(one.releases))[0] if one.below_package else "."
            command = [sys.executable, str(scorer), str(one.path), report.name, "--root", root]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            (line,) = [line.split() for line in done.stdout.splitlines() if line.startswith("all ")]
            theirs = tuple(int(number) for number in line[1:5])
            total = tally(scored[one.name])
            ours = tuple(total[outcome] for outcome in Outcome)
            if theirs != ours:
                differ += 1
                print(f"{one.name}: the scorer beside the labels counts {theirs}, this one {ours}")
    print("totals differ" if differ else "the scorer beside the labels counts the same")
    return 1 if differ else 0


if __name__ == "__main__":
    raise SystemExit(main())
