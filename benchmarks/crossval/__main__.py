"""Runs the samples of families 1 to 3 under the guard and compares with the linter; writes docs/crossval.md.

usage: python -m benchmarks.crossval [--only SLUG ...]

As `python -m benchmarks.oracle`, with the guard in place of a recording CUDA runtime, on the torch of this environment.
With --only, what comes out is only printed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.document import DOCS, write_part
from benchmarks.oracle.__main__ import FIXTURES, compared, samples, told
from benchmarks.oracle.judging import Verdict

UNDER_GUARD = [sys.executable, "-m", "benchmarks.crossval.under_guard"]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", default=[], metavar="SLUG")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fixtures = Path(shutil.copytree(FIXTURES, Path(folder).resolve() / "fixtures"))
        wanted = samples(fixtures, options.only)
        if not wanted:
            parser.error("no samples there")
        version, outcomes = compared(UNDER_GUARD, wanted)
    text = told({version: outcomes})
    if options.only:
        print(text)
    else:
        write_part(DOCS / "crossval.md", "crossval", text)
        counts = Counter(one.verdict for one in outcomes)
        print(f"torch {version}: " + ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict))
    return 1 if any(one.verdict is Verdict.DISAGREE for one in outcomes) else 0


if __name__ == "__main__":
    raise SystemExit(main())
