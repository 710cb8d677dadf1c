"""Records where the host waits on a real GPU: a library that stands before the CUDA runtime and hands its calls on.

    from nosync_lint.guard import listener

    listener.load()  # before torch is imported
    import torch

`pytest -o nosync_backend=cuda` does this for a whole run. Needs Linux, gcc and binutils. What torch calls the runtime
for is seen, also by thrust inside it; libraries that bring a runtime of their own (cuBLAS, cuDNN, NCCL) are not.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from nosync_lint.guard.stub.build import SOURCES, cache_folder, compiled, finished, link_runtime, runtime_needed
from nosync_lint.guard.stub.errors import StubError
from nosync_lint.guard.stub.recorder import Recorder, Runtime
from nosync_lint.guard.stub.release import torch_to_come

_FORWARD = Path(__file__).with_name("forward.c")
_RECORD = SOURCES / "record.c"
_LIBRARY = "nosync_listener.so"
"""Not the name of the runtime: what is loaded under that is taken for it."""

_runtime: Runtime | None = None


def load() -> None:
    """Puts the listener before the CUDA runtime that torch will load, building it at the first time.

    Raises `StubError`, which names the cure; a second call does nothing.
    """
    global _runtime
    if _runtime is not None:
        return
    soname = runtime_needed(torch_to_come("the listener"))
    folder = cache_folder("listener", soname, (_FORWARD, *sorted(SOURCES.glob("*.[ch]"))))
    if not folder.is_dir():
        build(soname, folder)
    _runtime = Runtime(folder / _LIBRARY)


def build(soname: str, into: Path) -> None:
    """Builds the listener for a CUDA runtime of this name in a new folder. Raises `StubError`."""
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent, prefix="building-") as temporary:
        work, done = Path(temporary) / "work", Path(temporary) / "done"
        work.mkdir()
        done.mkdir()
        objects = [compiled(_RECORD, work), compiled(_FORWARD, work, f'-DRUNTIME="{soname}"')]
        link_runtime(objects, done / _LIBRARY, soname, _LIBRARY)
        finished(done, into)


def is_loaded() -> bool:
    """Whether the CUDA runtime of this process is listened to."""
    return _runtime is not None


def recorder() -> Recorder:
    """What the thread that asks has waited for. Raises `StubError` before `load`."""
    if _runtime is None:
        raise StubError("the listener is not loaded: call nosync_lint.guard.listener.load() before importing torch")
    return Recorder(_runtime)
