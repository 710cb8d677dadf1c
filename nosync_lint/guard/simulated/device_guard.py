"""A CUDA device guard that does nothing, for builds of torch that have none.

Every tensor that says it lies on `cuda` makes torch look for the guard of that device type. In a CPU build there is
none, and building an autograd node then ends the process. Torch brings a guard that does nothing, and installs it only
where a registered guard counts zero devices. So one is put there for the length of that call.

Nothing of this is undone: the slot belongs to the process, and nothing reads it before a tensor says `cuda`.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path
from typing import Any

import torch

from nosync_lint.guard.events import CannotSimulate

_REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"
_CUDA = 1  # the place of CUDA among c10::DeviceType
_SLOTS = 64  # more virtual functions than the interface has


@cache
def install() -> None:
    """Gives torch its guard that does nothing, once per process. Raises `CannotSimulate`."""
    ensure: Any = getattr(torch._C, "_ensureCUDADeviceGuardSet", None)
    if ensure is None:
        raise CannotSimulate(f"torch {torch.__version__} has no device guard that does nothing; torch 2.9 or newer has")
    if torch.version.cuda is None:
        _through_stand_in(ensure)
    else:
        ensure()


def _through_stand_in(ensure: Any) -> None:
    if not sys.platform.startswith("linux"):
        raise CannotSimulate(f"a CPU build of torch on {sys.platform}: the simulated device needs Linux")
    library = Path(torch.__file__).parent / "lib" / "libc10.so"
    try:
        registry = (ctypes.c_void_p * (_CUDA + 1)).in_dll(ctypes.CDLL(str(library)), _REGISTRY)
    except (OSError, ValueError) as error:
        raise CannotSimulate(f"torch {torch.__version__} keeps its device guards elsewhere: {error}") from error
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
