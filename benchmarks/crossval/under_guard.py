"""Runs `benchmarks.oracle.recorder` with the record of the guard: an event is a wait.

python -m benchmarks.crossval.under_guard OUT.json SAMPLE...
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.oracle import recorder, runtime
from nosync_lint.guard import guard


class UnderGuard:
    """A guard is open from here on, in this process and in those that it forks."""

    def __init__(self) -> None:
        self._report = guard(level="allow").__enter__()

    def start(self) -> None:
        self._report.events.clear()

    def take(self) -> runtime.Recorded | None:
        """Events, and apart from them those where only the driver may wait."""
        events = list(self._report.events)
        self._report.events.clear()
        hidden = sum(event.hidden for event in events)
        return runtime.Recorded(len(events) - hidden, hidden) if events else None

    def reads_give(self, value: int) -> None:
        """Values are real here."""


if __name__ == "__main__":
    runtime.record = UnderGuard()
    raise SystemExit(recorder.main(Path(sys.argv[1]), [Path(one) for one in sys.argv[2:]]))
