"""The stub runtime without torch: memory and its kinds, copies that copy, and what is recorded for which thread."""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nosync_lint.guard.stub import Call, Recorder, StubError, pageable_copies
from nosync_lint.guard.stub.build import compile_runtime, link_runtime
from nosync_lint.guard.stub.recorder import Runtime

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="gcc is missing, with which the stub runtime is built"
)
PAGEABLE, PINNED, DEVICE = 0, 1, 2
INVALID, NO_MEMORY, REGISTERED, NOT_REGISTERED, CAPTURE = 1, 2, 712, 713, 900
STREAM = ctypes.c_void_p(7)


class Attributes(ctypes.Structure):
    """How cudaPointerAttributes begins."""

    _fields_ = (
        ("kind", ctypes.c_int),
        ("device", ctypes.c_int),
        ("on_device", ctypes.c_void_p),
        ("on_host", ctypes.c_void_p),
    )


class Cuda:
    """The functions of the runtime, with sizes and addresses as numbers."""

    def __init__(self, library: Path) -> None:
        self.runtime = Runtime(library)
        self.recorder = Recorder(self.runtime)
        self.everyone = Recorder(self.runtime, all_threads=True)
        self._library = ctypes.CDLL(str(library))

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._library, name)
        return lambda *given: function(*(ctypes.c_size_t(one) if isinstance(one, int) else one for one in given))

    def made(self, name: str, size: int) -> int:
        pointer = ctypes.c_void_p()
        assert getattr(self, name)(ctypes.byref(pointer), size, 0) == 0
        assert pointer.value
        return pointer.value

    def device(self, size: int = 64) -> int:
        return self.made("cudaMalloc", size)

    def pinned(self, size: int = 64) -> int:
        return self.made("cudaHostAlloc", size)

    def kind(self, pointer: int) -> int:
        found = Attributes()
        assert self.cudaPointerGetAttributes(ctypes.byref(found), pointer) == 0
        return found.kind

    def left(self) -> int:
        left, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.cudaMemGetInfo(ctypes.byref(left), ctypes.byref(total))
        return left.value


def host(data: bytes) -> tuple[int, Any]:
    """The address of pageable memory that holds `data`, and what keeps it."""
    buffer = ctypes.create_string_buffer(data, len(data))
    return ctypes.addressof(buffer), buffer


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("stub")
    link_runtime(compile_runtime(work, None), work / "cudart.so", "libcudart.so.0")
    return work / "cudart.so"


@pytest.fixture
def cuda(library: Path) -> Iterator[Cuda]:
    made = Cuda(library)
    made.everyone.forget()
    yield made
    made.runtime.reads_give(-1)


def test_memory_is_known_by_kind_from_its_first_byte_to_its_last(cuda: Cuda) -> None:
    device, pinned = cuda.device(4096), cuda.pinned(4096)
    pageable, _kept = host(b"x" * 16)
    assert [cuda.kind(device), cuda.kind(device + 4095), cuda.kind(pinned + 8)] == [DEVICE, DEVICE, PINNED]
    assert cuda.kind(pageable) == PAGEABLE
    cuda.cudaFree(device)
    cuda.cudaFreeHost(pinned)
    assert [cuda.kind(device), cuda.kind(pinned)] == [PAGEABLE, PAGEABLE]


def test_a_range_ends_where_it_ends(cuda: Cuda) -> None:
    """Memory of the caller that is registered in part shows both ends exactly."""
    start, _kept = host(bytes(64))
    assert cuda.cudaHostRegister(start + 16, 32, 0) == 0
    assert [cuda.kind(start + at) for at in (15, 16, 47, 48)] == [PAGEABLE, PINNED, PINNED, PAGEABLE]
    assert cuda.cudaHostRegister(start, 64, 0) == REGISTERED
    assert cuda.cudaHostRegister(start + 20, 4, 0) == REGISTERED
    assert cuda.cudaHostUnregister(start + 16) == 0
    assert cuda.kind(start + 16) == PAGEABLE
    assert cuda.cudaHostUnregister(start + 16) == NOT_REGISTERED


def test_thousands_of_ranges_come_and_go_in_any_order(cuda: Cuda) -> None:
    chance, before = random.Random(0), cuda.left()
    live = {(cuda.device(4096), DEVICE) if number % 2 else (cuda.pinned(4096), PINNED) for number in range(3000)}
    gone = set(chance.sample(sorted(live), 2000))
    for pointer, kind in gone:
        assert (cuda.cudaFree if kind == DEVICE else cuda.cudaFreeHost)(pointer) == 0
    assert all(cuda.kind(pointer + 4095) == kind for pointer, kind in live - gone)
    assert all(cuda.kind(pointer) == PAGEABLE for pointer, _ in gone)
    for pointer, kind in live - gone:
        assert (cuda.cudaFree if kind == DEVICE else cuda.cudaFreeHost)(pointer) == 0
    assert cuda.left() == before


def test_the_device_runs_out_of_memory_and_gets_it_back(cuda: Cuda) -> None:
    left, pointer = cuda.left(), ctypes.c_void_p()
    assert cuda.cudaMalloc(ctypes.byref(pointer), left + 1) == NO_MEMORY
    assert pointer.value is None
    most = cuda.device(left)
    assert cuda.cudaMalloc(ctypes.byref(pointer), 1) == NO_MEMORY
    cuda.cudaFree(most)
    assert cuda.left() == left


def test_memory_is_freed_once_and_by_its_own_function(cuda: Cuda) -> None:
    device = cuda.device()
    assert cuda.cudaFreeHost(device) == INVALID
    assert cuda.cudaFree(device + 1) == INVALID
    assert cuda.cudaFree(device) == 0
    assert cuda.cudaFree(device) == INVALID
    assert cuda.cudaFree(0) == 0


def test_copies_copy_and_fills_fill(cuda: Cuda) -> None:
    device, other = cuda.device(16), cuda.device(16)
    source, _kept = host(b"0123456789abcdef")
    target, read = host(bytes(16))
    cuda.cudaMemcpyAsync(device, source, 16, 1, STREAM)
    cuda.cudaMemcpyAsync(other, device, 16, 3, STREAM)
    cuda.cudaMemsetAsync(other, ord("-"), 4, STREAM)
    cuda.cudaMemcpy(target, other, 16, 2)
    assert read.raw == b"----456789abcdef"
    cuda.cudaMemcpy2DAsync(target, 8, device, 4, 2, 2, 2, STREAM)
    assert read.raw == b"01--456745abcdef"


def test_fresh_memory_of_the_device_reads_as_zero(cuda: Cuda) -> None:
    target, read = host(b"x" * 16)
    cuda.cudaMemcpy(target, cuda.device(16), 16, 2)
    assert read.raw == bytes(16)


def test_a_copy_without_a_stream_waits_unless_it_stays_on_the_device(cuda: Cuda) -> None:
    device, pinned, (pageable, _kept) = cuda.device(), cuda.pinned(), host(bytes(64))
    for target, source, waits in ((device, pageable, 1), (pinned, device, 1), (device, device, 0)):
        cuda.recorder.forget()
        cuda.cudaMemcpy(target, source, 32, 4)
        assert cuda.recorder.waits == waits
        assert [call.waits for call in cuda.recorder.calls()] == [bool(waits)]


def test_a_fill_waits_only_in_memory_of_the_host(cuda: Cuda) -> None:
    device, pinned = cuda.device(), cuda.pinned()
    cuda.recorder.forget()
    cuda.cudaMemset(device, 1, 64)
    assert cuda.recorder.waits == 0
    cuda.cudaMemset(pinned, 1, 64)
    assert cuda.recorder.waits == 1
    assert cuda.recorder.calls()[1] == Call("cudaMemset", "pinned", None, 64, True)


def test_an_asynchronous_copy_is_recorded_with_kinds_and_bytes(cuda: Cuda) -> None:
    device, pinned, (pageable, _kept) = cuda.device(), cuda.pinned(), host(bytes(64))
    cuda.recorder.forget()
    cuda.cudaMemcpyAsync(device, pageable, 48, 1, STREAM)
    cuda.cudaMemcpyAsync(pinned, device, 8, 2, STREAM)
    assert cuda.recorder.calls() == (
        Call("cudaMemcpyAsync", "device", "pageable", 48),
        Call("cudaMemcpyAsync", "pinned", "device", 8),
    )
    assert cuda.recorder.waits == 0


@pytest.mark.parametrize("name", ["cudaStreamSynchronize", "cudaEventSynchronize", "cudaDeviceSynchronize"])
def test_synchronising_waits(cuda: Cuda, name: str) -> None:
    cuda.recorder.forget()
    assert getattr(cuda, name)(STREAM) == 0
    assert cuda.recorder.calls() == (Call(name, waits=True),)
    assert cuda.recorder.waits == 1


def test_kernels_allocations_and_queries_are_recorded_and_do_not_wait(cuda: Cuda) -> None:
    cuda.recorder.forget()
    cuda.cudaLaunchKernelExC(0, 0, 0)
    cuda.cudaFree(cuda.device())
    cuda.cudaEventQuery(STREAM)
    cuda.cudaStreamQuery(STREAM)
    names = [call.name for call in cuda.recorder.calls()]
    assert names == ["cudaLaunchKernel", "cudaMalloc", "cudaFree", "cudaEventQuery", "cudaStreamQuery"]
    assert cuda.recorder.waits == 0


def in_thread(*calls: Any) -> None:
    thread = threading.Thread(target=lambda: [call() for call in calls])
    thread.start()
    thread.join()


def test_a_thread_sees_its_own_calls_and_the_total_those_of_all_in_order(cuda: Cuda) -> None:
    seen = []
    cuda.cudaEventQuery(STREAM)
    in_thread(
        lambda: cuda.cudaStreamSynchronize(STREAM),
        lambda: seen.append((cuda.recorder.waits, [call.name for call in cuda.recorder.calls()])),
    )
    cuda.cudaDeviceSynchronize()
    assert seen == [(1, ["cudaStreamSynchronize"])]
    assert cuda.recorder.waits == 1
    assert [call.name for call in cuda.recorder.calls()] == ["cudaEventQuery", "cudaDeviceSynchronize"]
    assert cuda.everyone.waits == 2
    names = [call.name for call in cuda.everyone.calls()]
    assert names == ["cudaEventQuery", "cudaStreamSynchronize", "cudaDeviceSynchronize"]


def test_a_thread_forgets_for_itself_and_everyone_for_all(cuda: Cuda) -> None:
    cuda.cudaDeviceSynchronize()
    in_thread(lambda: cuda.cudaDeviceSynchronize())
    cuda.recorder.forget()
    assert (cuda.recorder.waits, cuda.everyone.waits) == (0, 1)
    cuda.everyone.forget()
    assert (cuda.everyone.waits, cuda.everyone.calls()) == (0, ())


def test_a_full_record_counts_on_and_says_that_it_is_full(cuda: Cuda) -> None:
    function = ctypes.CDLL(cuda.runtime._library._name).cudaDeviceSynchronize
    for _ in range((1 << 20) + 3):
        function()
    assert cuda.recorder.waits == (1 << 20) + 3
    with pytest.raises(StubError, match="3 calls are not in it: call `forget` more often"):
        cuda.recorder.calls()
    cuda.recorder.forget()
    assert cuda.recorder.calls() == ()


def test_a_forked_process_goes_on_recording(cuda: Cuda) -> None:
    cuda.cudaDeviceSynchronize()
    child = os.fork()
    if child == 0:
        cuda.cudaDeviceSynchronize()
        os._exit(cuda.recorder.waits)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert cuda.recorder.waits == 1


def test_small_reads_of_the_device_give_what_they_are_told_to(cuda: Cuda) -> None:
    device, (target, read) = cuda.device(), host(b"x" * 16)
    cuda.runtime.reads_give(3)
    cuda.cudaMemcpyAsync(target, device, 8, 2, STREAM)
    assert read.raw == b"\3" + bytes(7) + b"x" * 8
    cuda.cudaMemcpyAsync(target, device, 16, 2, STREAM)
    assert read.raw == bytes(16)
    cuda.runtime.reads_give(-1)
    cuda.cudaMemcpyAsync(target, device, 8, 2, STREAM)
    assert read.raw == bytes(16)


def test_waits_fail_while_a_stream_is_captured(cuda: Cuda) -> None:
    graph, active, number = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_ulonglong()
    assert cuda.cudaStreamBeginCapture(STREAM, 0) == 0
    cuda.cudaStreamGetCaptureInfo(STREAM, ctypes.byref(active), ctypes.byref(number))
    assert active.value == 1
    assert cuda.cudaStreamSynchronize(STREAM) == CAPTURE
    assert cuda.cudaDeviceSynchronize() == CAPTURE
    assert cuda.cudaStreamSynchronize(ctypes.c_void_p(8)) == 0
    assert cuda.cudaStreamEndCapture(STREAM, ctypes.byref(graph)) == 0
    assert graph.value
    assert cuda.cudaStreamSynchronize(STREAM) == 0


def test_a_pageable_copy_counts_as_such_unless_torch_waits_for_it() -> None:
    up = Call("cudaMemcpyAsync", "device", "pageable", 8)
    pinned = Call("cudaMemcpyAsync", "device", "pinned", 8)
    blocking = Call("cudaMemcpy", "device", "pageable", 8, True)
    fill = Call("cudaMemsetAsync", "pageable", None, 8)
    wait, kernel = Call("cudaStreamSynchronize", waits=True), Call("cudaLaunchKernel")
    assert pageable_copies([up, wait, up, kernel, wait, pinned, blocking, fill, up]) == [up, up]
    assert pageable_copies([]) == []
