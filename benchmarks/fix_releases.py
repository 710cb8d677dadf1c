"""Fixes whole releases with `--unsafe-fixes`: how many fixes of each recipe, and that nothing is worse afterwards.

usage: python -m benchmarks.fix_releases [PACKAGE==VERSION ...] [--everything]

A release is copied and fixed. Then every changed file must parse, no function may have more findings of a rule than
before, and a second run may change nothing. What breaks one of these is printed, and the exit code is 1. With
`--everything` findings of every heat and confidence are fixed, else those that a run shows by default.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.releases import fetch

DEFAULT = (
    "sglang==0.5.23", "trl==1.16.0", "accelerate==1.15.0", "torch_geometric==2.8.1", "kornia==0.9.0", "lmcache==0.5.6",
)  # fmt: skip
EVERYTHING = ("--heat", "any", "--min-confidence", "possible")
FIXED = re.compile(r"^ +(\d+) x NSL\d+ [\w-]+ \(([\w-]+)\)$", re.MULTILINE)


def check(folder: Path, *options: str) -> tuple[Counter[tuple[str, str, str]], Counter[str], str]:
    """One run: how many findings of a rule a function has, the fixes that were made by recipe, and what it says."""
    report = folder.parent / "report.json"
    command = [sys.executable, "-m", "nosync_lint", "check", "--isolated", "--no-cache", *options]
    command += ["--output-format", "json", "-o", str(report), "--output-format", "concise"]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{folder}: exit {done.returncode}: {done.stderr}")
    findings = json.loads(report.read_text(encoding="utf-8"))["findings"]
    fixed = Counter[str]()
    for count, recipe in FIXED.findall(done.stdout + done.stderr):
        fixed[recipe] += int(count)
    said = [line for line in done.stderr.splitlines() if "not fixed" in line]
    return Counter((one["filename"], one["scope"], one["code"]) for one in findings), fixed, "\n".join(said)


def python_files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.py"))}


def unparsable(data: bytes) -> bool:
    try:
        ast.parse(data)
    except (SyntaxError, ValueError):
        return True
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("releases", nargs="*", default=DEFAULT)
    parser.add_argument("--everything", action="store_true", help="findings of every heat and confidence")
    options = parser.parse_args()
    broken = 0
    print("| release | findings before | after | fixes | files | seconds | recipes |\n|---|---|---|---|---|---|---|")
    for release in options.releases:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "release"
            shutil.copytree(fetch(release), folder)
            shown = EVERYTHING if options.everything else ()
            old, _, _ = check(folder, *shown)
            was = python_files(folder)
            begun = time.perf_counter()
            _, fixed, said = check(folder, *shown, "--unsafe-fixes", "--fix", "--show-fixes")
            seconds = time.perf_counter() - begun
            now = python_files(folder)
            changed = [name for name, data in now.items() if data != was[name]]
            new, again, _ = check(folder, *shown, "--unsafe-fixes", "--fix", "--show-fixes")
            faults = [f"does not parse: {name}" for name in changed if unparsable(now[name])]
            faults += [f"{count} more: {' '.join(key)}" for key, count in (new - old).items()]
            faults += [
                f"a second run changes: {name}" for name, data in python_files(folder).items() if data != now[name]
            ]
            faults += [f"a second run fixes: {again}"] if again else []
        recipes = ", ".join(f"{name} {count}" for name, count in fixed.most_common())
        row = [release, old.total(), new.total(), fixed.total(), len(changed), round(seconds), recipes]
        print(f"| {' | '.join(map(str, row))} |", flush=True)
        print("\n".join(filter(None, [said, *faults])), file=sys.stderr, flush=True)
        broken += len(faults)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
