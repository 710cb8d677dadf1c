"""Whether the order of files, of sites and of processes, or what else is reported, changes what is found.

`python -m benchmarks.shuffled_release FOLDER [--jobs N]` lints a folder as it is, then with its files in another order,
its sites in another order, half of its files reported, and two and four processes. Findings of every heat and
confidence are compared, messages too.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from nosync_lint import pipeline
from nosync_lint.config import Settings
from nosync_lint.discover import Discovered, discover
from nosync_lint.finding import Finding
from nosync_lint.link import sharing
from nosync_lint.link.project import Function
from nosync_lint.link.syncs import Sync, Syncs

SEEDS = (1, 2, 3)


def main() -> int:
    """Print a row per order and exit with 1 where any differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--jobs", type=int, default=1, help="processes for the runs in another order")
    folder, jobs = (given := parser.parse_args()).folder, given.jobs
    expected = found(folder, 1)
    print(f"{len(expected)} findings")
    worst = 0
    for name, jobs, order in (
        *((f"files, seed {seed}", jobs, shuffled_files(seed)) for seed in SEEDS),
        *((f"sites, seed {seed}", jobs, shuffled_sites(seed)) for seed in SEEDS),
        *((f"half, seed {seed}", jobs, half_reported(seed)) for seed in SEEDS),
        *((f"{jobs} processes", jobs, shared()) for jobs in (2, 4)),
    ):
        with order as reported:
            other = found(folder, jobs)
        wanted = {one for one in expected if reported is None or one.filename in reported}
        lost, new = len(wanted - set(other)), len(set(other) - wanted)
        print(f"{name:16} lost {lost} new {new}")
        worst = max(worst, lost + new)
    return int(worst > 0)


def found(folder: str, jobs: int) -> tuple[Finding, ...]:
    """Every finding of a folder."""
    settings = Settings(heat="any", min_confidence="possible")
    findings = pipeline.run([folder], settings, jobs=jobs, cache=False).findings
    return tuple(replace(one, group=None) for one in findings)  # a group is told by how many findings share it


@contextmanager
def shared() -> Iterator[None]:
    """Processes share programs of any size."""
    with replaced(sharing, "SMALL_PROGRAM", 0):
        yield


@contextmanager
def half_reported(seed: int) -> Iterator[set[str]]:
    """Every second file is only linked."""
    names: set[str] = set()

    def halved(*given: Any) -> Discovered:
        listed = discover(*given)
        names.update(random.Random(seed).sample([file.name for file in listed.files], len(listed.files) // 2))
        return replace(listed, files=tuple(replace(file, reported=file.name in names) for file in listed.files))

    with replaced(pipeline, "discover", halved):
        yield names


@contextmanager
def shuffled_files(seed: int) -> Iterator[None]:
    """`discover` lists the files in another order."""

    def shuffled(*given: Any) -> Discovered:
        listed = discover(*given)
        files = list(listed.files)
        random.Random(seed).shuffle(files)
        return replace(listed, files=tuple(files))

    with replaced(pipeline, "discover", shuffled):
        yield


@contextmanager
def shuffled_sites(seed: int) -> Iterator[None]:
    """Functions are judged in another order, and the sites of each are, too."""

    def over(self: Syncs, functions: Sequence[Function]) -> Iterator[Sync]:
        mixed = random.Random(seed)
        listed = [function for function in functions if not self._roots.elsewhere(function)]
        judged = {}
        for function in mixed.sample(listed, len(listed)):
            spots = list(self.spots(function))
            judged[function.number] = [
                sync for spot in mixed.sample(spots, len(spots)) for sync in self.at(function, spot)
            ]
        for number in sorted(judged):
            yield from sorted(judged[number], key=lambda sync: (sync.pos, sync.verdict.rule))

    with replaced(Syncs, "over", over):
        yield


@contextmanager
def replaced(owner: object, name: str, value: object) -> Iterator[None]:
    """An attribute has another value for a while."""
    kept = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, kept)


if __name__ == "__main__":
    sys.exit(main())
