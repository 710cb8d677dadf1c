"""Reads what the stub runtime recorded."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from nosync_lint.guard.stub.errors import StubError


class Call(NamedTuple):
    """A call of the CUDA runtime. `waits`: the host waits in it for the device.

    Kinds of memory are pageable, pinned and device, or None where a call has no target or no source.
    """

    name: str
    target_kind: str | None = None
    source_kind: str | None = None
    bytes: int = 0
    waits: bool = False

    @property
    def is_copy(self) -> bool:
        return self.target_kind is not None and self.source_kind is not None


class Runtime:
    """The stub runtime in a library."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        self._library.nosync_stub_calls.restype = ctypes.c_char_p
        self._library.nosync_stub_waits.restype = ctypes.c_ulong
        self._library.nosync_stub_lost.restype = ctypes.c_ulong

    def reads_give(self, value: int) -> None:
        """What reads of up to eight bytes of device memory give from now on, as no kernel has computed anything.

        -1: what is there, which is zero unless something was copied.
        """
        self._library.nosync_stub_reads_give(ctypes.c_long(value))

    def forget(self, all_threads: bool) -> None:
        self._library.nosync_stub_forget(all_threads)

    def waits(self, all_threads: bool) -> int:
        return int(self._library.nosync_stub_waits(all_threads))

    def calls(self, all_threads: bool) -> tuple[Call, ...]:
        if lost := int(self._library.nosync_stub_lost(all_threads)):
            raise StubError(f"the record is full, {lost:,} calls are not in it: call `forget` more often")
        return tuple(map(_call, self._library.nosync_stub_calls(all_threads).decode().splitlines()))


class Recorder:
    """What the thread that asks has called, or all threads: the backward of autograd runs in threads of its own."""

    def __init__(self, runtime: Runtime, *, all_threads: bool = False) -> None:
        self._runtime = runtime
        self._all_threads = all_threads

    def forget(self) -> None:
        """Start over."""
        self._runtime.forget(self._all_threads)

    def calls(self) -> tuple[Call, ...]:
        """What was called since, in order. Raises `StubError` where that is more than is kept."""
        return self._runtime.calls(self._all_threads)

    @property
    def waits(self) -> int:
        """How many of the calls made the host wait."""
        return self._runtime.waits(self._all_threads)


def pageable_copies(calls: Sequence[Call]) -> list[Call]:
    """Copies marked asynchronous from or to pageable memory, unless the very next call waits: torch copies so where
    it is to block."""
    after = [*(call.name for call in calls[1:]), ""]
    return [
        call
        for call, following in zip(calls, after, strict=False)  # without calls there is nothing to pair
        if call.is_copy
        and not call.waits
        and "pageable" in (call.target_kind, call.source_kind)
        and following != "cudaStreamSynchronize"
    ]


def _call(line: str) -> Call:
    name, target, source, size, waits = line.split()
    return Call(name, _kind(target), _kind(source), int(size), waits == "1")


def _kind(word: str) -> str | None:
    return None if word == "-" else word
