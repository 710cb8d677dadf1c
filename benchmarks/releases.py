"""Lints whole releases: time, lines per second, peak memory, findings per rule, heat and confidence.

usage: python -m benchmarks.releases [PACKAGE==VERSION ...] [--paths PATH ...] [--jobs N]

Wheels are fetched with `pip download --no-deps`, unpacked once, and kept in the user's cache folder. Without
arguments: sglang 0.5.18, 0.5.19 and 0.5.23. Every release is linted cold (no cache) in a process of its own, and a
second time with a warm cache.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from nosync_lint.source import CUDA_SUFFIXES, PYTHON_SUFFIXES

DEFAULT = ("sglang==0.5.18", "sglang==0.5.19", "sglang==0.5.23")
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "nosync-lint" / "releases"


def fetch(requirement: str) -> Path:
    """The folder of an unpacked release, fetched when it is not there yet."""
    folder = CACHE / requirement.replace("==", "-")
    if not folder.is_dir():
        with tempfile.TemporaryDirectory() as wheels:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", wheels, requirement]
            subprocess.run(command, check=True)
            (wheel,) = Path(wheels).glob("*.whl")
            folder.parent.mkdir(parents=True, exist_ok=True)
            partial = folder.with_suffix(".partial")
            zipfile.ZipFile(wheel).extractall(partial)
            partial.rename(folder)
    return folder


def lint(
    folder: Path, paths: list[str], jobs: int, cache: str | None, options: Sequence[str] = ()
) -> tuple[float, float, dict[str, object]]:
    """Wall seconds, peak memory in GB over all processes, and the report of one run."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [sys.executable, "-m", "nosync_lint", "check", *paths, *options]
        command += ["--output-format", "json", "-o", out.name]
        command += ["-j", str(jobs)] + (["--cache-dir", cache] if cache else ["--no-cache"])
        before = time.perf_counter()
        done = subprocess.run(command, cwd=folder, check=False)
        seconds = time.perf_counter() - before
        if done.returncode not in (0, 1):
            raise SystemExit(f"{folder.name}: exit {done.returncode}")
        report: dict[str, object] = json.load(open(out.name))  # noqa: SIM115 - the file is temporary
    return seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6, report


def count_lines(folder: Path, paths: list[str]) -> int:
    files = [file for path in paths for file in (folder / path).rglob("*") if file.is_file()]
    wanted = [file for file in files if file.suffix in PYTHON_SUFFIXES | CUDA_SUFFIXES]
    return sum(file.read_bytes().count(b"\n") + 1 for file in wanted)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("releases", nargs="*", default=DEFAULT)
    parser.add_argument("--paths", nargs="+", help="relative to the unpacked release (default: its package folder)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    for requirement in options.releases:
        folder = fetch(requirement)
        paths = options.paths or [requirement.partition("==")[0].replace("-", "_")]
        lines = count_lines(folder, paths)
        cold, memory, report = lint(folder, paths, options.jobs, None)
        with tempfile.TemporaryDirectory() as cache:
            lint(folder, paths, options.jobs, cache)
            warm, _, _ = lint(folder, paths, options.jobs, cache)
        show(requirement, lines, cold, warm, memory, report)
    return 0


def show(requirement: str, lines: int, cold: float, warm: float, memory: float, report: dict[str, object]) -> None:
    findings = report["findings"]
    summary = report["summary"]
    assert isinstance(findings, list)
    assert isinstance(summary, dict)
    calls = summary["calls_resolved"] + summary["calls_unresolved"]
    unresolved = summary["calls_unresolved"] / calls if calls else 0.0
    print(f"{requirement}: {lines:,} lines, {summary['files_reported']} files, {summary['files_linked']} linked")
    print(f"  cold {cold:.1f} s ({lines / cold:,.0f} lines/s), warm {warm:.1f} s, peak memory {memory:.2f} GB")
    for field in ("code", "heat", "confidence"):
        counted = sorted(Counter(str(finding[field]) for finding in findings).items())
        print(f"  {field}: " + ", ".join(f"{name} {count}" for name, count in counted))
    hidden = ", ".join(f"{count} {name}" for name, count in summary["hidden"].items() if count)
    print(f"  hidden: {hidden or 'nothing'}; calls unresolved on hot paths: {unresolved:.0%} of {calls:,}")
    if summary["failures"]:
        print("  FAILED: " + "; ".join(summary["failures"]))


if __name__ == "__main__":
    raise SystemExit(main())
