"""Tensors made of Python data: torch asks no mode when it reads those in it and when it pins memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.utils._device

from nosync_lint.guard.operations.constructs import within
from nosync_lint.guard.operations.pinning import pin
from nosync_lint.guard.patches import Patches
from nosync_lint.guard.simulated.tensor import SimulatedTensor


def read_elements(patches: Patches) -> None:
    """Replaces `torch.tensor`, `torch.as_tensor`, `torch.asarray` and `Tensor.new_tensor`."""
    torch.utils._device._device_constructors()  # remembers these functions, and not what stands in for them
    for name in ("tensor", "as_tensor", "asarray"):
        patches.set(torch, name, _reading(getattr(torch, name)))
    patches.set(SimulatedTensor, "new_tensor", _reading_method(SimulatedTensor.new_tensor))


@cache
def _reading(original: Callable[..., Any]) -> Callable[..., Any]:
    def made(data: Any, *args: Any, pin_memory: bool = False, **kwargs: Any) -> Any:
        found = original(_read(data) if _holds(data) else data, *args, **kwargs)
        return pin(found) if pin_memory else found

    made.__wrapped__ = original  # type: ignore[attr-defined]
    return made


@cache
def _reading_method(original: Callable[..., Any]) -> Callable[..., Any]:
    def made(self: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        return original(self, _read(data) if _holds(data) else data, *args, **kwargs)

    return made


def _holds(data: Any) -> bool:
    if not isinstance(data, list | tuple):
        return False
    return any(isinstance(one, SimulatedTensor) or _holds(one) for one in data)


def _read(data: Any) -> Any:
    if isinstance(data, list | tuple):
        return [_read(one) for one in data]
    if isinstance(data, SimulatedTensor):
        with within("elements", "a tensor made of tensors"):
            return data.item() if data.dim() == 0 else data.tolist()
    return data
