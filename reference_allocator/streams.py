"""What the allocator asks of streams. On a CPU nothing is asked, and none of this is needed.

Allocator work is queued on the current stream. A wait here is one that a stream does: the host goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import torch
from torch import Tensor


class StreamEvent(Protocol):
    """A point of a stream; `torch.cuda.Event` is one."""

    def wait(self) -> None:
        """Makes later work of the current stream wait. Does not block the host."""

    def query(self) -> bool:
        """Whether the stream has passed the point. Does not block the host."""


class SideQueue(Protocol):
    """A second queue for compaction."""

    def run(self, work: Callable[[], None], after: StreamEvent | None) -> StreamEvent:
        """Queues `work` behind the current stream and `after`. The event fires when it is done. Never blocks."""

    def hand_over(self, tensors: Iterable[Tensor]) -> None:
        """Tells the memory allocator that the current stream uses tensors that `work` made. Never blocks."""


class SideStream:
    """A CUDA stream as the second queue."""

    def __init__(self, device: torch.device) -> None:
        self.stream: torch.cuda.Stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def run(self, work: Callable[[], None], after: StreamEvent | None) -> StreamEvent:
        """See `SideQueue.run`."""
        self.stream.wait_stream(torch.cuda.current_stream(self.stream.device))
        with torch.cuda.stream(self.stream):
            if after is not None:
                after.wait()
            work()
            done: StreamEvent = self.stream.record_event()
        return done

    def hand_over(self, tensors: Iterable[Tensor]) -> None:
        """See `SideQueue.hand_over`."""
        for tensor in tensors:
            tensor.record_stream(torch.cuda.current_stream(self.stream.device))
