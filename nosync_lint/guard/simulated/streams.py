"""Streams and events of the simulated device. Work is done when it is queued, so nothing is ever outstanding."""

from __future__ import annotations

import itertools
import time
from typing import Any

from nosync_lint.guard.operations.constructs import WAITS
from nosync_lint.guard.operations.copies import COPIES
from nosync_lint.guard.operations.sightings import saw_wait
from nosync_lint.guard.simulated.tensor import DEVICE

_NUMBERS = itertools.count(1)


class Event:
    """As `torch.cuda.Event`: `synchronize` is a wait of the host, `query` and `wait` are none."""

    def __init__(self, device: Any = None, *, enable_timing: bool = False, **_: Any) -> None:
        self.device = DEVICE
        self._timing = enable_timing
        self._recorded: float | None = None
        self._copies = 0

    def record(self, stream: Any = None) -> None:
        self._recorded = time.perf_counter()
        self._copies = COPIES.started

    def wait(self, stream: Any = None) -> None:
        """A stream waits; the host does not."""

    def query(self) -> bool:
        COPIES.waited(self._copies)
        return True

    def synchronize(self) -> None:
        saw_wait(*WAITS["event"], self._copies)

    def elapsed_time(self, end_event: Event) -> float:
        if not (self._timing and end_event._timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._recorded is None or end_event._recorded is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end_event._recorded - self._recorded) * 1000


class Stream:
    """As `torch.cuda.Stream`: `synchronize` is a wait of the host, everything else only orders work."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        self.device, self.priority = DEVICE, priority
        self.device_index, self.device_type = 0, 1
        self.stream_id = self.cuda_stream = next(_NUMBERS)
        self._outer: list[Stream] = []

    def synchronize(self) -> None:
        saw_wait(*WAITS["stream"])

    def query(self) -> bool:
        COPIES.waited()
        return True

    def wait_stream(self, stream: Any) -> None:
        """This stream waits; the host does not."""

    def wait_event(self, event: Any) -> None:
        """This stream waits; the host does not."""

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    @staticmethod
    def is_capturing() -> bool:
        return False

    def __enter__(self) -> Stream:
        self._outer.append(Current.stream)
        Current.stream = self
        return self

    def __exit__(self, *_: object) -> None:
        Current.stream = self._outer.pop()


class Current:
    """The stream that is current, and the one that is when no other was chosen."""

    default = Stream()
    stream = default


class StreamContext:
    """As `torch.cuda.stream(...)`; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *raised: object) -> None:
        if self.stream is not None:
            self.stream.__exit__(*raised)
