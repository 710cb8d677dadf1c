"""Streams and time on a device; on a CPU the same calls run one after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from reference_allocator.streams import StreamEvent

CALIBRATION = 10_000_000
"""Cycles that are timed to learn how long one takes."""


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def host_micros(call: Callable[[], object]) -> float:
    """How long the host is in a call."""
    begun = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - begun) / 1000


class Forward:
    """The stream of a model beside the current one."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.cycles = 0.0
        """Per millisecond."""
        if device == "cuda":
            self.stream: torch.cuda.Stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            self.cycles = self._calibrated()

    def _calibrated(self) -> float:
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        for _ in range(2):
            first.record()
            torch.cuda._sleep(CALIBRATION)  # type: ignore[no-untyped-call]
            last.record()
            torch.cuda.synchronize()
        return CALIBRATION / float(first.elapsed_time(last))

    def busy(self, milliseconds: float) -> None:
        """Keeps the current stream busy so long, on one thread of the device. Nothing on a CPU. Does not block."""
        if self.device == "cuda":
            torch.cuda._sleep(int(self.cycles * milliseconds))  # type: ignore[no-untyped-call]

    @contextmanager
    def running(self) -> Iterator[None]:
        """What is queued inside runs on the forward's stream, behind what the current one has so far."""
        if self.device != "cuda":
            yield
            return
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            yield

    def event(self) -> StreamEvent | None:
        """The end of what the forward has queued so far."""
        if self.device != "cuda":
            return None
        event: StreamEvent = self.stream.record_event()
        return event

    def join(self) -> None:
        """The current stream waits for the forward. Does not block the host."""
        if self.device == "cuda":
            torch.cuda.current_stream().wait_stream(self.stream)


def device_micros(device: str, run: Callable[[], None], forward: Forward, runs: int) -> float:
    """Microseconds that one of so many runs takes on the device, launches left out: all are queued behind busy work."""
    if device != "cuda":
        return min(host_micros(run) for _ in range(runs))
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    forward.busy(1 + runs / 4)
    first.record()
    for _ in range(runs):
        run()
    last.record()
    torch.cuda.synchronize()
    return 1000 * float(first.elapsed_time(last)) / runs
