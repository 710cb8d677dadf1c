"""Lints small programs with bugs that real projects had and fixed, and writes the table of docs/accuracy.md.

usage: python -m benchmarks.corpus CORPUS_FOLDER

CORPUS_FOLDER holds the programs and their scorer, `score.py`, which lints every case before and after its fix with this
linter and prints a table. Where a case could not be linted, nothing is written and the exit status is 1.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.document import DOCS, table, write_part
from nosync_lint import __version__

COLUMNS = ("kind", "cases", "found", "complete", "lines", "lines found", "false alarms on the fix")
_ROW = re.compile(r"(?P<kind>\S.*?)" + r"\s+(\d+)" * len(COLUMNS))
_FAILED = re.compile(r"^[\w-]+: exit \d", re.MULTILINE)
_TRAPS = re.compile(r"traps: (\d+), false alarms on them: (\d+)")


def rows(printed: str) -> Iterator[tuple[str, ...]]:
    """The rows of the table that the scorer prints."""
    for line in printed.splitlines():
        if found := _ROW.fullmatch(line.strip()):
            yield found.groups()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, metavar="CORPUS_FOLDER")
    options = parser.parse_args()
    linter = shlex.join([sys.executable, "-m", "nosync_lint"])
    command = [sys.executable, str(options.corpus / "score.py"), "--lint", linter, "--verbose"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    print(done.stdout)
    told = list(rows(done.stdout))
    traps = _TRAPS.search(done.stdout)
    if not told or traps is None:
        raise SystemExit("the scorer printed no table that can be read")
    if _FAILED.search(done.stdout):
        return 1
    write_part(
        DOCS / "accuracy.md",
        "corpus",
        f"nosync-lint {__version__}, Python {platform.python_version()}, {datetime.date.today():%-d %B %Y}.\n\n"
        f"{table(COLUMNS, (row[:-1] for row in told))}\n\n{traps[1]} traps, false alarms on them: {traps[2]}.",
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
