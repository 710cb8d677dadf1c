"""The CUDA build of torch on a machine without a GPU: stub libraries keep device memory on the host, run no kernel, and
record every call of the CUDA runtime, so that torch's own dispatcher decides where the host waits.

    from nosync_lint.guard import stub

    stub.load()  # before torch is imported
    import torch

    recorder = stub.recorder()
    recorder.forget()
    torch.zeros(3, device="cuda").tolist()
    assert recorder.waits == 1

Needs Linux, gcc, binutils and nothing but the standard library. See docs/stub_runtime.md for what it cannot see.
"""

from __future__ import annotations

import ctypes
import os

from nosync_lint.guard.stub.build import RUNTIME, cached
from nosync_lint.guard.stub.errors import StubError
from nosync_lint.guard.stub.recorder import Call, Recorder, Runtime, pageable_copies
from nosync_lint.guard.stub.release import torch_to_come

__all__ = ["Call", "Recorder", "StubError", "is_loaded", "load", "pageable_copies", "reads_give", "recorder"]

LAST = ("TORCH_CUDNN_SDPA_DEPRIORITIZED", "1")
"""The stub cuDNN has no plan for attention: torch is to try its own kernels first. It reads this as it is loaded."""

_runtime: Runtime | None = None


def load() -> None:
    """Puts the stubs in the place of the libraries that torch will ask for, building them at the first time.

    A library that is loaded already satisfies every later request for its soname, so neither the search path nor the
    real libraries beside torch come into play. Raises `StubError`, which names the cure; a second call does nothing.
    """
    global _runtime
    if _runtime is not None:
        return
    folder = cached(torch_to_come("the stub runtime"))
    os.environ.setdefault("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")  # memory is new for each tensor, and so reads as zero
    (runtime,) = folder.glob(f"{RUNTIME.removeprefix('lib')}.so*")
    loaded = Runtime(runtime)
    for library in sorted(folder.iterdir()):
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL | os.RTLD_NOW)
    os.environ.setdefault(*LAST)
    _runtime = loaded


def is_loaded() -> bool:
    """Whether torch runs, or would run, against the stubs in this process."""
    return _runtime is not None


def recorder(*, all_threads: bool = False) -> Recorder:
    """A view of what this thread, or all threads, ask of CUDA. Raises `StubError` before `load`."""
    return Recorder(_loaded(), all_threads=all_threads)


def reads_give(value: int) -> None:
    """What small reads of device memory give, in all threads; -1: what is there. Raises `StubError` before `load`."""
    _loaded().reads_give(value)


def _loaded() -> Runtime:
    if _runtime is None:
        raise StubError("the stub runtime is not loaded: call nosync_lint.guard.stub.load() before importing torch")
    return _runtime
