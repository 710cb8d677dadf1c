"""How long the linter takes over the reference allocator, the bad example left out.

usage: python -m benchmarks.allocator.lint

A process of its own each time, from its start to its end, the best of 5; without the cache and with a warm one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.document import DOCS, table

RUNS = 5
PACKAGE = ("reference_allocator", "--exclude", "reference_allocator/naive.py", "--heat", "any")


class Run(NamedTuple):
    """Files that are reported on, files that are linked, findings, and seconds without the cache and with it."""

    files: int
    linked: int
    findings: int
    cold: float
    warm: float


def measure(runs: int = RUNS) -> Run:
    """Best of so many runs of either kind."""
    with tempfile.TemporaryDirectory() as folder:
        cache = ("--cache-dir", str(Path(folder) / "cache"))
        said = _check(*cache)[1]
        warm = min(_check(*cache)[0] for _ in range(runs))
        cold = min(_check("--no-cache")[0] for _ in range(runs))
    return Run(said["summary"]["files_reported"], said["summary"]["files_linked"], len(said["findings"]), cold, warm)


def _check(*options: str) -> tuple[float, dict[str, Any]]:
    """Seconds, and the report. Raises `CalledProcessError` where the linter reports something or fails."""
    command = [sys.executable, "-m", "nosync_lint", "check", *PACKAGE, *options, "--output-format", "json"]
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=DOCS.parent, capture_output=True, text=True, check=True)
    return time.perf_counter() - begun, json.loads(done.stdout)


def told(run: Run) -> str:
    head = ("files", "files linked", "findings", "seconds, no cache", "seconds, warm cache")
    return table(head, [(*run[:3], f"{run.cold:.2f}", f"{run.warm:.2f}")])


if __name__ == "__main__":
    print(told(measure()))
