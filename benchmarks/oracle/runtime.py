"""The one place that talks to torch and reads what it asked of CUDA. Importable where torch and numpy are installed."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Protocol

from nosync_lint.guard import stub

torch: Any = importlib.import_module("torch")
numpy: Any = importlib.import_module("numpy")


@dataclass(frozen=True, slots=True)
class Recorded:
    """What torch asked for: waits, and copies marked asynchronous from or to pageable memory."""

    syncs: int
    pageable: int


class Record(Protocol):
    """Who watches torch."""

    def start(self) -> None:
        """Forget what is recorded and go on recording."""

    def take(self) -> Recorded | None:
        """What was recorded since `start`, None if nothing was. Recording starts over."""

    def reads_give(self, value: int) -> None:
        """What small reads of device memory give, where no kernel computes anything."""


class OnStubs:
    """The record of the stub CUDA runtime, of all threads: the backward has threads of its own."""

    def __init__(self) -> None:
        self._recorder = stub.recorder(all_threads=True)

    def start(self) -> None:
        self._recorder.forget()

    def take(self) -> Recorded | None:
        calls = self._recorder.calls()
        self._recorder.forget()
        if not calls:
            return None
        return Recorded(sum(call.waits for call in calls), len(stub.pageable_copies(calls)))

    def reads_give(self, value: int) -> None:
        stub.reads_give(value)


record: Record
"""Set by the program that runs."""


def version() -> str:
    return str(torch.__version__)
