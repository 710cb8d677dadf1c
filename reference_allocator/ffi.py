"""Calls the compiled kernels through tvm-ffi: `via=ffi.call` in the functions of `sconv`. Needs the extra `tvm-ffi`.

The same bodies, matchers and errors as the C ABI, and the same cache of libraries; compiled code describes the tensors,
as DLPack views, which costs the host less than ctypes does. Importing this module imports no tvm-ffi and runs nothing.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import replace
from typing import Any

import torch

from reference_allocator.abi import Argument, Failure, failure_error
from reference_allocator.build import KERNELS, Recipe, build, cuda_recipe, host_recipe


def recipe(device_type: str, capability: tuple[int, int]) -> Recipe:
    """The kernels with entries for tvm-ffi, for host memory or for one compute capability.

    Raises `ImportError` where tvm-ffi is not installed.
    """
    tvm_ffi = importlib.import_module("tvm_ffi")
    libinfo = importlib.import_module("tvm_ffi.libinfo")
    library = libinfo.find_libtvm_ffi().rpartition("/")[0]
    includes = [f"-I{folder}" for folder in libinfo.include_paths()]
    # The version is in the flags so that libraries for another one have another name.
    flags = (*includes, f"-DNOSYNC_TVM_FFI_{tvm_ffi.__version__.replace('.', '_')}", f"-L{library}", "-ltvm_ffi")
    source = KERNELS / "ffi.cpp"
    if device_type == "cuda":
        plain = cuda_recipe(capability)
        return replace(plain, flags=(*plain.flags, "-x", "cu", "-Xlinker", "--no-as-needed", *flags), source=source)
    plain = host_recipe()
    return replace(plain, flags=(*plain.flags, "-Wl,--no-as-needed", *flags), source=source)


@functools.cache
def load(device_type: str, capability: tuple[int, int] = (0, 0)) -> Any:
    """The module of the library, compiled where it is not in the cache yet. Raises `ImportError` and `BuildError`."""
    library = build(recipe(device_type, capability))
    return importlib.import_module("tvm_ffi").load_module(str(library))


@functools.cache
def _entry(name: str, device_type: str, capability: tuple[int, int] = (0, 0)) -> Any:
    return load(device_type, capability)[name]


def call(entry: str, state: torch.Tensor, *arguments: Argument) -> None:
    """As `abi.call`, and with its errors; tensors that require a gradient are refused (`BufferError`).

    Queues one kernel on the current stream of the device of `state` and does not wait for it. The first call compiles.
    """
    if not isinstance(state, torch.Tensor):
        raise TypeError(f"a conv state is a tensor, not {type(state).__name__}")
    device = state.device
    if device.type == "cuda":
        with torch.cuda.device(device):
            told = _entry(entry, "cuda", torch.cuda.get_device_capability(device))(*arguments)
    else:
        told = _entry(entry, "cpu")(*arguments)
    if told is not None:
        outcome, dim, *texts = told
        raise failure_error(outcome, Failure(dim, *(text.encode() for text in texts)))
