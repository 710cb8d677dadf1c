"""Kills `nosync-lint check --fix` at random moments, and looks at what it leaves: every file as it was, or fixed.

python -m benchmarks.fix_kills --kills 500
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from nosync_lint import cli

FILES = 16
SOURCE = '''"""Table {number}."""
import torch


class Table:
    def __init__(self, size: int, device: str) -> None:
        self.rows = torch.full((size,), -1, dtype=torch.int64, device=device)

    def free(self, pages: torch.Tensor) -> None:  # nosync-lint: hot
        self.rows[pages.to(torch.int64)] = -1  # row {number}
'''


class Left(NamedTuple):
    """What a killed run left: how many files were as before and how many fixed, those that were neither, and whether
    the run had come to its end."""

    old: int
    new: int
    torn: tuple[str, ...]
    ended: bool


def contents() -> dict[str, bytes]:
    """The files of the project."""
    return {f"table_{number:02}.py": SOURCE.format(number=number).encode() for number in range(FILES)}


def started(folder: Path) -> int:
    """A child that fixes the project, forked from this process, which has everything imported."""
    child = os.fork()
    if child:
        return child
    try:
        os.chdir(folder)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os._exit(cli.main(["check", ".", "--fix", "--quiet", "--jobs", "1", "--no-cache"]))
    finally:
        os._exit(9)


def killed(folder: Path, delay: float, written_first: bool, fixed: dict[str, bytes]) -> Left:
    """Start a run, kill it after a while, and look. With `written_first` the clock starts when a file has changed."""
    before = contents()
    for name, data in before.items():
        (folder / name).write_bytes(data)
    child = started(folder)
    if written_first:
        _wait_for_a_change(folder, before, child)
    time.sleep(delay)
    ended = os.waitpid(child, os.WNOHANG)[0] != 0
    if not ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    old = new = 0
    torn = []
    for name, data in before.items():
        path = folder / name
        found = path.read_bytes() if path.exists() else None
        if found == data:
            old += 1
        elif found == fixed[name]:
            new += 1
        else:
            torn.append(name)
    return Left(old, new, tuple(torn), ended)


def _wait_for_a_change(folder: Path, before: dict[str, bytes], child: int) -> None:
    first = folder / min(before)
    size = len(before[first.name])
    while first.stat().st_size == size:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return


def measure(kills: int, seed: int = 0) -> tuple[list[Left], int]:
    """Many killed runs, at random moments of the run or of its writing, and how many temporary files they left."""
    folder = Path(tempfile.mkdtemp(prefix="nosync-lint-kills-"))
    try:
        (folder / "nosync-lint.toml").touch()
        fixed = _fixed(folder)
        start = time.perf_counter()
        killed(folder, 0.0, True, fixed)
        reached = time.perf_counter() - start
        draw = random.Random(seed)
        found = [
            killed(folder, draw.uniform(0, 0.03) if writing else draw.uniform(0, reached * 1.2), writing, fixed)
            for writing in (draw.random() < 0.7 for _ in range(kills))
        ]
        return found, len(list(folder.glob(".*.nosync-lint")))
    finally:
        shutil.rmtree(folder)


def _fixed(folder: Path) -> dict[str, bytes]:
    """What a run that is left alone makes of the files. It runs here, so that the children have nothing to import."""
    for name, data in contents().items():
        (folder / name).write_bytes(data)
    with redirect_stdout(StringIO()):
        assert cli.main(["check", str(folder), "--fix", "--quiet", "--jobs", "1", "--no-cache"]) == 0
    fixed = {name: (folder / name).read_bytes() for name in contents()}
    assert all(b"index_fill_" in data for data in fixed.values())
    return fixed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    options = parser.parse_args()
    found, litter = measure(options.kills)
    torn = [name for left in found for name in left.torn]
    states = Counter(
        "ended before"
        if left.ended
        else "none fixed"
        if not left.new
        else "all fixed"
        if not left.old
        else "some fixed"
        for left in found
    )
    print(f"{len(found)} runs over {FILES} files: {dict(states)}")
    print(f"files neither old nor new: {len(torn)}; temporary files left beside them: {litter}")
    return 1 if torn else 0


if __name__ == "__main__":
    sys.exit(main())
