"""Measures the guard on a GPU, in parts; the last table says which targets were met.

usage: python -m benchmarks.gpu.guard [--backend cuda|stub]

Needs the CUDA build of torch and a GPU, gcc and binutils; without them it says so in one line and exits 2. Exits 1
where a target is missed. Everything is written to `$OUT/guard.json`, or `build/gpu/guard.json`. With `--backend stub`
it tries itself, without a GPU.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.gpu.report import Cell, Check, Part, finished

ROOT = Path(__file__).resolve().parents[2]
TESTS = ("tests/guard/test_constructs.py", "tests/guard/test_measured.py", "tests/guard/test_early_reads.py")
CALLS = 2_000
MOST_OVERHEAD = 25.0


def constructs(backend: str) -> Part:
    """The tests that name the waits of constructs, on the device, with what the CUDA runtime is asked for recorded."""
    rows: list[tuple[Cell, ...]] = []
    checks = []
    for path in TESTS:
        options = ["-q", "-p", "no:cacheprovider", "-o", f"nosync_backend={backend}"]
        command = [sys.executable, "-m", "pytest", *options, path]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
        last = done.stdout.strip().rpartition("\n")[2] or done.stderr.strip()
        failed = re.findall(r"^FAILED \S+::(\S+)", done.stdout, re.MULTILINE)
        rows.append((path, last))
        checks.append(Check(f"{path} passes", ", ".join(failed) or last, done.returncode == 0))
    return Part("h1: constructs on the device", ("tests", "outcome"), rows, checks)


def overhead() -> Part:
    """What the host spends on an operation with a guard open, beside the same without."""
    import torch

    from nosync_lint.guard import guard

    left, right = torch.ones(8, 8, device="cuda"), torch.ones(8, 8, device="cuda")
    pages, table = torch.arange(3, device="cuda"), torch.zeros(8, device="cuda")
    operations: dict[str, Callable[[], object]] = {
        "add": lambda: left + right,
        "view": lambda: left[1:],
        "matmul": lambda: left @ right,
        "index": lambda: table[pages],
        "index_fill_": lambda: table.index_fill_(0, pages, -1),
    }
    rows: list[tuple[Cell, ...]] = []
    ratios = []
    for name, operation in operations.items():
        plain = _microseconds(operation, torch.cuda.synchronize)
        with guard(level="allow"):
            guarded = _microseconds(operation, torch.cuda.synchronize)
        ratios.append(guarded / plain)
        rows.append((name, round(plain, 1), round(guarded, 1), round(guarded / plain, 1)))
    median = sorted(ratios)[len(ratios) // 2]
    aim = f"a guarded operation takes the host at most {MOST_OVERHEAD:.0f} times as long, median"
    check = Check(aim, f"{median:.1f}", median <= MOST_OVERHEAD)
    return Part("h2: time of the host", ("operation", "plain, us", "guarded, us", "ratio"), rows, [check])


def _microseconds(operation: Callable[[], object], wait: Callable[[], object]) -> float:
    for _ in range(CALLS // 10):
        operation()
    wait()
    started = time.perf_counter()
    for _ in range(CALLS):
        operation()
    return (time.perf_counter() - started) / CALLS * 1e6


def missing(backend: str) -> str | None:
    """What is needed and not there, in one line. With `stub`, puts the stub runtime in its place."""
    lacking = [name for name in ("gcc", "readelf") if shutil.which(name) is None]
    if lacking:
        return f"{', '.join(lacking)} is not installed: what records the CUDA runtime cannot be built"
    if backend == "stub":
        from nosync_lint.guard import stub

        try:
            stub.load()
        except stub.StubError as error:
            return str(error)
    import torch

    return None if torch.cuda.is_available() else f"no CUDA device is visible to torch {torch.__version__}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--backend", choices=("cuda", "stub"), default="cuda")
    backend = parser.parse_args().backend
    if lacking := missing(backend):
        print(f"benchmarks.gpu.guard: {lacking}")
        return 2
    parts = {"h1": constructs(backend), "h2": overhead()}
    for part in parts.values():
        print(f"{part.told()}\n")
    return finished("guard", parts)


if __name__ == "__main__":
    raise SystemExit(main())
