"""Calls the compiled kernels through their C ABI with torch tensors.

Tensors are described by address, shape, strides, type and device; nothing is copied and no device value is read. A
tensor that a kernel cannot take comes back as `MatchError`, before anything is launched.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Protocol

import torch

from reference_allocator.build import build, cuda_recipe, host_recipe

Argument = torch.Tensor | int | float | bool | None


class Call(Protocol):
    """A way to run an entry: `call` here, or the one of `ffi`."""

    def __call__(self, entry: str, state: torch.Tensor, *arguments: Argument) -> None:
        """See `call`."""


_TYPES = {
    torch.int8: (0, 8),
    torch.int16: (0, 16),
    torch.int32: (0, 32),
    torch.int64: (0, 64),
    torch.uint8: (1, 8),
    torch.float16: (2, 16),
    torch.float32: (2, 32),
    torch.float64: (2, 64),
    torch.bfloat16: (4, 16),
    torch.bool: (6, 8),
}
"""DLPack's type codes and bits; any other type is refused by every matcher."""

_UNKNOWN_TYPE = (255, 0)
_DEVICES = {"cpu": 1, "cuda": 2}  # DLPack's device codes; 0 is none
DONE, MISMATCH, BAD_ARGUMENT = 0, 1, 2  # `Outcome` of abi.hpp; any other is a failed launch


class MatchError(ValueError):
    """A tensor does not meet what a kernel needs; nothing was launched or written.

    `kind` is rank, shape, stride, dtype, device, align or overlap; `dim` counts from 0 and is None where the failure
    has no dimension; `symbol` is the size that disagrees, or None; `expected` and `got` are texts; `name` is the
    operand.
    """

    def __init__(
        self, text: str, *, name: str, kind: str, dim: int | None, symbol: str | None, expected: str, got: str
    ) -> None:
        super().__init__(text)
        self.name = name
        self.kind = kind
        self.dim = dim
        self.symbol = symbol
        self.expected = expected
        self.got = got


class LaunchError(RuntimeError):
    """The device refused a launch."""


class View(ctypes.Structure):
    """`TensorView` of match.hpp: a tensor as the C ABI takes it."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("ndim", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("device_type", ctypes.c_int32),
        ("device_index", ctypes.c_int32),
        ("byte_offset", ctypes.c_uint64),
    )


class Failure(ctypes.Structure):
    """`Failure` of abi.hpp, filled in by an entry that failed."""

    _fields_ = (
        ("dim", ctypes.c_int32),
        ("kind", ctypes.c_char * 16),
        ("name", ctypes.c_char * 32),
        ("symbol", ctypes.c_char * 32),
        ("expected", ctypes.c_char * 160),
        ("got", ctypes.c_char * 160),
        ("text", ctypes.c_char * 640),
    )


def describe(tensor: torch.Tensor) -> View:
    """The record of a tensor; it is valid as long as the tensor is. Reads metadata only."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"a kernel takes tensors, not {type(tensor).__name__}")
    ndim = tensor.dim()
    extents = ctypes.c_int64 * max(ndim, 1)
    code, bits = _TYPES.get(tensor.dtype, _UNKNOWN_TYPE)
    index = tensor.device.index if tensor.device.index is not None else 0
    return View(
        tensor.data_ptr(),
        ndim,
        extents(*tensor.shape),
        extents(*tensor.stride()),
        code,
        bits,
        1,
        _DEVICES.get(tensor.device.type, 0),
        index,
        0,
    )


@functools.cache
def load(device_type: str, capability: tuple[int, int] = (0, 0)) -> ctypes.CDLL:
    """The library for host memory or for one compute capability, compiled where it is not in the cache yet."""
    return ctypes.CDLL(str(build(cuda_recipe(capability) if device_type == "cuda" else host_recipe())))


def call(entry: str, state: torch.Tensor, *arguments: Argument) -> None:
    """Runs an entry of the C ABI where `state` lies: on the current stream of its device, or on the host at once.

    Queues one kernel and returns; it does not wait for the device. The first call compiles. Raises MatchError,
    ValueError for operands that are missing or do not go together, TypeError, LaunchError and BuildError.
    """
    if not isinstance(state, torch.Tensor):
        raise TypeError(f"a conv state is a tensor, not {type(state).__name__}")
    device, failure = state.device, Failure()
    passed = [_passed(argument) for argument in arguments]
    if device.type == "cuda":
        library = load("cuda", torch.cuda.get_device_capability(device))
        with torch.cuda.device(device):
            stream = ctypes.c_void_p(torch.cuda.current_stream(device).cuda_stream)
            outcome = getattr(library, entry)(ctypes.byref(failure), stream, *passed)
    else:
        outcome = getattr(load("cpu"), entry)(ctypes.byref(failure), None, *passed)
    if outcome != DONE:
        raise failure_error(outcome, failure)


def _passed(argument: Argument) -> object:
    if argument is None:
        return None
    if isinstance(argument, bool):
        return ctypes.c_int32(argument)
    if isinstance(argument, int):
        return ctypes.c_int64(argument)
    if isinstance(argument, float):
        return ctypes.c_float(argument)
    return ctypes.pointer(describe(argument))


def failure_error(outcome: int, failure: Failure) -> Exception:
    """The exception for an outcome other than DONE."""
    text = failure.text.decode()
    if outcome == BAD_ARGUMENT:
        return ValueError(text)
    if outcome != MISMATCH:
        return LaunchError(text)
    return MatchError(
        text,
        name=failure.name.decode(),
        kind=failure.kind.decode(),
        dim=failure.dim if failure.dim >= 0 else None,
        symbol=failure.symbol.decode() or None,
        expected=failure.expected.decode(),
        got=failure.got.decode(),
    )
