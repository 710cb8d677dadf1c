"""Times what pre-commit runs: the hook on one staged file of a released package, cold and warm.

usage: python -m benchmarks.hook [PACKAGE==VERSION] [--part FOLDER] [--files FILE ...]

The package is fetched once, a part of it is put into a git repository of its own, and each file is given to the hook's
command as pre-commit gives it. The cold run reads everything, the others find it in the cache. Seconds are of the wall,
and of the processors, which a busy machine changes less.
"""

from __future__ import annotations

import argparse
import json
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.releases import fetch

ROOT = Path(__file__).resolve().parent.parent
STAGED = (
    "sglang/srt/environ.py",
    "sglang/srt/mem_cache/common.py",
    "sglang/srt/model_executor/model_runner.py",
    "sglang/srt/managers/scheduler.py",
)


class Timed(NamedTuple):
    """A run: seconds of the wall and of all processors, and how many findings it tells."""

    wall: float
    work: float
    findings: int


def entry() -> list[str]:
    """The command of the first hook, without the name of the script."""
    lines = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8").splitlines()
    return shlex.split(next(line.partition(": ")[2] for line in lines if "entry: " in line))[1:]


def timed(folder: Path, *arguments: str) -> Timed:
    report = folder.parent / "report.json"
    before, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "nosync_lint", *arguments, "--output-format", "json", "-o", str(report)],
        cwd=folder, check=False,
    )  # fmt: skip
    wall, spent = time.perf_counter() - before, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{shlex.join(arguments)}: exit {done.returncode}")
    work = spent.ru_utime + spent.ru_stime - used.ru_utime - used.ru_stime
    return Timed(wall, work, len(json.loads(report.read_text(encoding="utf-8"))["findings"]))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("release", nargs="?", default="sglang==0.5.23")
    parser.add_argument("--part", default="sglang/srt", help="the folder of it that is the project")
    parser.add_argument("--files", nargs="+", default=STAGED, help="the staged files, one for each run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "project"
        shutil.copytree(fetch(options.release) / options.part, folder / options.part)
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
        print("| staged | cache | findings | seconds | seconds of processors |\n|---|---|---|---|---|")

        def row(name: str, cache: str, *arguments: str) -> None:
            one = timed(folder, *arguments)
            print(f"| {name} | {cache} | {one.findings} | {one.wall:.1f} | {one.work:.1f} |", flush=True)

        row(f"`{options.files[0]}`", "cold", *entry(), options.files[0])
        for file in options.files:
            row(f"`{file}`", "warm", *entry(), file)
        row("nothing", "warm", *entry())
        row("(the project hook)", "warm", "check")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
