"""A CUDA device guard that does nothing, for builds of torch that have none.

Every tensor that says it lies on `cuda` makes torch look for the guard of that device type. In a CPU build there is
none, and building an autograd node then ends the process; that of a CUDA build asks a driver that is not there. Torch
brings a guard that does nothing, and installs it only where a registered guard counts zero devices. So one is put there
for the length of that call. Torch 2.9 brings none for CUDA: there, one that answers every question with `cuda:0` stays.

Nothing of this is undone: the slot belongs to the process, and nothing reads it before a tensor says `cuda`.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
import threading
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from nosync_lint.guard.causes import release_of
from nosync_lint.guard.events import CannotSimulate

_REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"
_CUDA = 1  # the place of CUDA among c10::DeviceType
_KEEPING_IT_PER_THREAD = ("2.10", "2.11")  # the guard is memory of the thread that asks, and freed with it
_SLOTS = 64  # more virtual functions than the interface has


@cache
def install() -> None:
    """Gives torch its guard that does nothing, once per process. Raises `CannotSimulate`."""
    ensure: Any = getattr(torch._C, "_ensureCUDADeviceGuardSet", None)
    if release_of(torch.__version__) in _KEEPING_IT_PER_THREAD and ensure is not None:
        ensure = partial(_ask_for_good, ensure)
    if ensure is None:
        if not torch.cuda.is_available():
            _registry()[_CUDA] = _answering_one()
    elif torch.version.cuda is None:
        _through_stand_in(_registry(), ensure)
    else:
        ensure()


def _ask_for_good(ensure: Callable[[], None]) -> None:
    """Has a thread ask that never ends, where this one may."""
    if threading.current_thread() is threading.main_thread():
        ensure()
        return
    done = threading.Event()

    def ask() -> None:
        try:
            ensure()
        finally:
            done.set()
        threading.Event().wait()

    threading.Thread(target=ask, name="nosync device guard", daemon=True).start()
    done.wait()


def _answering_one() -> int:
    """The address of a device guard of CUDA that answers 1 to every question: the type CUDA, the device `cuda:0` as two
    bytes, one device. It is machine code, because torch asks in places where Python cannot run."""
    code = _ONE.get(platform.machine())
    if code is None:
        raise CannotSimulate(f"torch {torch.__version__} on {platform.machine()}: torch 2.10 or newer is needed")
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError as error:
        raise CannotSimulate(f"torch {torch.__version__} needs memory that can be run: {error}") from error
    page.write(code)
    function = ctypes.addressof(ctypes.c_char.from_buffer(page))
    functions = (ctypes.c_void_p * _SLOTS)(*[function] * _SLOTS)
    guard = (ctypes.c_void_p * 1)(ctypes.addressof(functions))
    _KEPT.extend((page, functions, guard))
    return ctypes.addressof(guard)


_ONE = {
    "x86_64": bytes.fromhex("b801000000 31d2 c3"),  # mov eax, 1; xor edx, edx; ret
    "aarch64": bytes.fromhex("20008052 010080d2 c0035fd6"),  # mov w0, 1; mov x1, 0; ret
}
_KEPT: list[Any] = []
"""What has to live as long as the process."""


def _registry() -> Any:
    """The guards of all device types, as torch keeps them."""
    if not sys.platform.startswith("linux"):
        raise CannotSimulate(f"a CPU build of torch on {sys.platform}: the simulated device needs Linux")
    library = Path(torch.__file__).parent / "lib" / "libc10.so"
    try:
        return (ctypes.c_void_p * (_CUDA + 1)).in_dll(ctypes.CDLL(str(library)), _REGISTRY)
    except (OSError, ValueError) as error:
        raise CannotSimulate(f"torch {torch.__version__} keeps its device guards elsewhere: {error}") from error


def _through_stand_in(registry: Any, ensure: Any) -> None:
    if registry[_CUDA]:
        return
    count = ctypes.CFUNCTYPE(ctypes.c_int8, ctypes.c_void_p)(lambda _: 0)
    address = ctypes.cast(count, ctypes.c_void_p).value
    functions = (ctypes.c_void_p * _SLOTS)(*[address] * _SLOTS)
    stand_in = (ctypes.c_void_p * 1)(ctypes.addressof(functions))
    registry[_CUDA] = ctypes.addressof(stand_in)
    try:
        ensure()
    finally:
        if registry[_CUDA] == ctypes.addressof(stand_in):
            registry[_CUDA] = None
    if not registry[_CUDA]:
        raise CannotSimulate(f"torch {torch.__version__} did not install its device guard")
