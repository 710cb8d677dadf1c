"""Stand-ins for `torch.cuda`, `torch.accelerator` and the types that go with a device, while a guard is open."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from nosync_lint.guard.operations.constructs import WAITS, within
from nosync_lint.guard.operations.sightings import saw_wait
from nosync_lint.guard.patches import Patches
from nosync_lint.guard.simulated.lazy import moving
from nosync_lint.guard.simulated.streams import Current, Event, Stream, StreamContext
from nosync_lint.guard.simulated.tensor import DEVICE

CAPABILITY = (9, 0)
MEMORY = 80 << 30
"""Bytes that the simulated device claims to have; nothing counts what is used."""
NAME = "simulated CUDA device"

_PROPERTIES = SimpleNamespace(
    name=NAME, major=CAPABILITY[0], minor=CAPABILITY[1], total_memory=MEMORY, multi_processor_count=132, warp_size=32,
    max_threads_per_multi_processor=2048, regs_per_multiprocessor=65536, shared_memory_per_block=49152,
    shared_memory_per_block_optin=232448, shared_memory_per_multiprocessor=233472, L2_cache_size=50 << 20,
    is_integrated=0, is_multi_gpu_board=0,
)  # fmt: skip


def stand_in(patches: Patches) -> None:
    """Replaces what asks for a device, and what waits for it."""
    for name, value in _CUDA.items():
        if hasattr(torch.cuda, name):
            patches.set(torch.cuda, name, value)
    for name, value in _MEMORY.items():
        for owner in (torch.cuda.memory, torch.cuda):
            if hasattr(owner, name):
                patches.set(owner, name, value)
    for name, value in _RANDOM.items():
        patches.set(torch.cuda.random, name, value)
        patches.set(torch.cuda, name, value)
    for name, value in _ACCELERATOR.items():
        if hasattr(torch.accelerator, name):
            patches.set(torch.accelerator, name, value)
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        patches.set(torch.cuda.nvtx, name, _nothing())
    patches.set(torch, "Stream", Stream)
    patches.set(torch, "Event", Event)
    patches.set(torch, "Generator", Generator)
    patches.set(torch.nn.Module, "_apply", _apply(torch.nn.Module._apply))
    profile = torch.autograd.profiler.profile
    patches.set(profile, "__init__", _profiling_the_host(profile.__init__))


@cache
def _apply(original: Callable[..., Any]) -> Callable[..., Any]:
    def apply(self: Any, fn: Any, recurse: bool = True) -> Any:
        with within("module", "a module that is moved"):
            return original(self, moving(fn), recurse)

    return apply


@cache
def _profiling_the_host(original: Callable[..., None]) -> Callable[..., None]:
    """The profiler, which has no device to profile."""

    def init(self: Any, enabled: bool = True, *, use_device: str | None = None, **kwargs: Any) -> None:
        original(self, enabled, use_device=None if use_device == "cuda" else use_device, **kwargs)

    return init


class _Device:
    """As `torch.cuda.device(...)`: there is one device."""

    def __init__(self, device: Any = None) -> None:
        self.idx = 0

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


class _Generators(type(torch._C.Generator)):  # type: ignore[misc]
    """Generators that were made before the guard are generators, too."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch._C.Generator)


class Generator(torch._C.Generator, metaclass=_Generators):
    """A generator of the host that says which device it was asked for."""

    def __new__(cls, device: Any = "cpu") -> Generator:
        made: Generator = torch._C.Generator.__new__(cls, "cpu")  # type: ignore[call-arg]
        made._asked = DEVICE if torch.device(device).type == "cuda" else torch.device(device)
        return made

    def __init__(self, device: Any = "cpu") -> None:
        pass

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return self._asked

    _asked: torch.device


def _always(value: Any) -> Callable[..., Any]:
    """A function of its own for each name: Dynamo, imported while a guard is open, wants no two that are the same."""
    return lambda *_, **__: value


def _nothing() -> Callable[..., Any]:
    return _always(None)


def _synchronize(device: Any = None) -> None:
    saw_wait(*WAITS["device"])


def _accelerator_synchronize(device: Any = None, /) -> None:
    saw_wait(*WAITS["accelerator"])


def _empty_cache() -> None:
    saw_wait(*WAITS["cache"])


def _current_stream(device: Any = None) -> Stream:
    return Current.stream


def _default_stream(device: Any = None) -> Stream:
    return Current.default


def _set_stream(stream: Stream) -> None:
    Current.stream = stream


def _rng_state(device: Any = None) -> Tensor:
    return torch.get_rng_state()


def _set_rng_state(new_state: Tensor, device: Any = None) -> None:
    torch.set_rng_state(new_state)


class DebugMode:
    """The debug mode of torch, for tools that set it and put it back: nothing here can set it off."""

    level = 0

    @classmethod
    def set(cls, debug_mode: int | str) -> None:
        cls.level = debug_mode if isinstance(debug_mode, int) else ("default", "warn", "error").index(debug_mode)

    @classmethod
    def get(cls) -> int:
        return cls.level


_CUDA: dict[str, Any] = {
    "_lazy_init": _nothing(),
    "_lazy_call": _nothing(),
    "init": _nothing(),
    "is_available": _always(True),
    "is_initialized": _always(True),
    "is_bf16_supported": _always(True),
    "device_count": _always(1),
    "current_device": _always(0),
    "set_device": _nothing(),
    "device": _Device,
    "device_of": _Device,
    "get_device_name": _always(NAME),
    "get_device_capability": _always(CAPABILITY),
    "get_device_properties": _always(_PROPERTIES),
    "get_arch_list": _always([f"sm_{CAPABILITY[0]}{CAPABILITY[1]}"]),
    "can_device_access_peer": _always(False),
    "is_current_stream_capturing": _always(False),
    "synchronize": _synchronize,
    "ipc_collect": _nothing(),
    "Stream": Stream,
    "ExternalStream": Stream,
    "Event": Event,
    "StreamContext": StreamContext,
    "stream": StreamContext,
    "current_stream": _current_stream,
    "default_stream": _default_stream,
    "set_stream": _set_stream,
    "default_generators": (torch.default_generator,),
    "set_sync_debug_mode": DebugMode.set,
    "get_sync_debug_mode": DebugMode.get,
}
_MEMORY: dict[str, Any] = {
    "empty_cache": _empty_cache,
    "memory_allocated": _always(0),
    "max_memory_allocated": _always(0),
    "memory_reserved": _always(0),
    "max_memory_reserved": _always(0),
    "reset_peak_memory_stats": _nothing(),
    "reset_accumulated_memory_stats": _nothing(),
    "memory_stats": lambda *_: OrderedDict(),
    "memory_summary": _always(""),
    "memory_snapshot": lambda *_, **__: [],
    "_record_memory_history": _nothing(),
    "get_allocator_backend": _always("native"),
    "get_per_process_memory_fraction": _always(1.0),
    "mem_get_info": _always((MEMORY, MEMORY)),
    "set_per_process_memory_fraction": _nothing(),
}
_RANDOM: dict[str, Any] = {
    "manual_seed": _nothing(),
    "manual_seed_all": _nothing(),
    "seed": _nothing(),
    "seed_all": _nothing(),
    "initial_seed": torch.initial_seed,
    "get_rng_state": _rng_state,
    "get_rng_state_all": lambda: [torch.get_rng_state()],
    "set_rng_state": _set_rng_state,
    "set_rng_state_all": lambda new_states: torch.set_rng_state(next(iter(new_states))),
}
_ACCELERATOR: dict[str, Any] = {
    "device_count": _always(1),
    "is_available": _always(True),
    "current_accelerator": _always(torch.device("cuda")),
    "current_device_index": _always(0),
    "set_device_index": _nothing(),
    "current_stream": _current_stream,
    "set_stream": _set_stream,
    "synchronize": _accelerator_synchronize,
    "empty_cache": _empty_cache,
    "memory_allocated": _always(0),
    "max_memory_allocated": _always(0),
    "memory_reserved": _always(0),
    "max_memory_reserved": _always(0),
    "reset_peak_memory_stats": _nothing(),
    "get_memory_info": _always((MEMORY, MEMORY)),
}
