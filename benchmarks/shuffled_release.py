"""Whether the order of files, of sites and of processes changes what is found.

`python -m benchmarks.shuffled_release FOLDER` lints a folder as it is, then with its files in another order, its
sites in another order, and two and four processes. Findings of every heat and confidence are compared, messages too.
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
    folder = parser.parse_args().folder
    expected = found(folder, 1)
    print(f"{len(expected)} findings")
    worst = 0
    for name, jobs, order in (
        *((f"files, seed {seed}", 1, shuffled_files(seed)) for seed in SEEDS),
        *((f"sites, seed {seed}", 1, shuffled_sites(seed)) for seed in SEEDS),
        *((f"{jobs} processes", jobs, as_they_are()) for jobs in (2, 4)),
    ):
        with order:
            other = found(folder, jobs)
        lost, new = len(set(expected) - set(other)), len(set(other) - set(expected))
        print(f"{name:16} lost {lost} new {new}")
        worst = max(worst, lost + new)
    return int(worst > 0)


def found(folder: str, jobs: int) -> tuple[Finding, ...]:
    """Every finding of a folder."""
    settings = Settings(heat="any", min_confidence="possible")
    return pipeline.run([folder], settings, jobs=jobs, cache=False).findings


@contextmanager
def as_they_are() -> Iterator[None]:
    """Processes share programs of any size."""
    small, sharing.SMALL_PROGRAM = sharing.SMALL_PROGRAM, 0
    try:
        yield
    finally:
        sharing.SMALL_PROGRAM = small


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
