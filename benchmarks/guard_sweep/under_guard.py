"""Runs `benchmarks.guard_sweep.recorder` with the record of the guard: an event is a wait.

python -m benchmarks.guard_sweep.under_guard OUT.json [NAME ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.crossval.under_guard import UnderGuard
from benchmarks.guard_sweep import recorder
from benchmarks.oracle import runtime

if __name__ == "__main__":
    runtime.record = UnderGuard()
    raise SystemExit(recorder.main(Path(sys.argv[1]), sys.argv[2:]))
