"""The compiled table kernels: loading, and launches that are counted.

A call passes addresses, steps and counts as they are; whoever calls has checked the tensors. Nothing here reads a
device value or waits for a device.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from dataclasses import replace

import torch

from reference_allocator.abi import LaunchError
from reference_allocator.build import KERNELS, build, cuda_recipe, host_recipe

_A, _N = ctypes.c_void_p, ctypes.c_int64  # an address, a number
_MINTING = (_A, _A, _A, _N)  # tables, ids, physical pages, count
_ENTRIES: dict[str, tuple[type, ...]] = {
    "free_unbind": (_A, _A, *(_N,) * 5, _A, _N, _N, _A, _N, _N),
    "hand_out": (*_MINTING, _A),
    "extend": (*_MINTING, _A, _N, _A, _N, _A, _N, _N, _A, _N, _N),
    "decode": (*_MINTING, _A, _N, _A, _N, _N, _A, _N),
    "translate": (_A, _A, _N, _A, _N, _N),
    "rebind": (_A, _A, _A, _A, _N),
    "report_bound": (_A, _A, _N),
    "pack_plan": (_A, _A, _A, _N, _N, _N),
    "copy_pages": (_A, _A, _N, _N, _N),
    "pack_commit": (_A, _A, _A, _A, _N),
    "shift_pages": (_A, _N, _N, _N, _A, _N, _N, _N),
    "zero_pages": (_A, _N, _A, _N, _N, _N),
}
"""Arguments of the entries of tables.cpp behind the stream."""

LARGEST_TEAM = 256
"""Threads of a block whose threads work together; `LARGEST_TEAM` of pages.h. On the host one thread is the fastest."""

Entry = Callable[..., int]


class TablesRecord(ctypes.Structure):
    """`PageTables` of pages.h."""

    _fields_ = (
        ("v2p", _A),
        ("p2v", _A),
        ("v_last", _N),
        ("p_last", _N),
        ("page_size", _N),
        ("cells", _A),
        ("free_cell", _N),
    )


class SourceRecord(ctypes.Structure):
    """`PageSource` of pages.h."""

    _fields_ = (("values", _A), ("at", _N), ("capacity", _N), ("step", _N), ("page_size", _N))


class PhysicalRecord(ctypes.Structure):
    """`PhysicalSource` of pages.h."""

    _fields_ = (
        ("values", _A),
        ("at", _N),
        ("capacity", _N),
        ("drained", _N),
        ("start", _N),
        ("first", _N),
        ("next", _N),
    )


class MovesRecord(ctypes.Structure):
    """`Moves` of pack_pages.cuh."""

    _fields_ = (("source", _A), ("target", _A), ("pages", _A), ("live", _A), ("count", _N))


class TableKernels:
    """The library for one device. `launches` counts the kernels that were queued, over all allocators on it.

    threads: of a block whose threads work together, a power of two.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.launches = 0
        on_device = device.type == "cuda"
        self.threads = LARGEST_TEAM if on_device else 1
        if on_device:
            recipe = replace(cuda_recipe(torch.cuda.get_device_capability(device)), source=KERNELS / "tables.cu")
        else:
            recipe = replace(host_recipe(), source=KERNELS / "tables.cpp")
        library = ctypes.CDLL(str(build(recipe)))
        self._error = library.nosync_table_error
        self._error.restype = ctypes.c_char_p
        self._entries: dict[str, Entry] = {}
        for name, arguments in _ENTRIES.items():
            entry = getattr(library, f"nosync_{name}")
            entry.argtypes = (_A, *arguments)
            entry.restype = ctypes.c_int32
            self._entries[name] = entry

    def launch(self, name: str, *arguments: object, kernels: int = 1) -> None:
        """Queues an entry of `kernels` kernels on the current stream of the device, or runs it at once on the host.

        Raises `LaunchError` where the device refuses. Does not block the host.
        """
        self.launches += kernels
        if self.device.type == "cpu":
            outcome = self._entries[name](None, *arguments)
        else:
            with torch.cuda.device(self.device):
                stream = torch.cuda.current_stream(self.device).cuda_stream
                outcome = self._entries[name](stream, *arguments)
        if outcome:
            raise LaunchError(f"{name}: {self._error(outcome).decode()}")


@functools.cache
def load_tables(device_type: str, index: int | None) -> TableKernels:
    """The kernels for a device, compiled where they are not in the cache yet: the first call runs a compiler.

    Raises `BuildError`. Never blocks for a device.
    """
    return TableKernels(torch.device(device_type) if index is None else torch.device(device_type, index))
