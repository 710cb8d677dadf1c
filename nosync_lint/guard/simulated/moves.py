"""Copies between the host and the simulated device that no guard sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from nosync_lint.guard.simulated.device_guard import install
from nosync_lint.guard.simulated.tensor import SimulatedTensor, unwrapped, wrap


def onto_device(tensor: Tensor) -> Tensor:
    """A copy on the device; one that is there already is handed back."""
    if isinstance(tensor, SimulatedTensor):
        return tensor
    install()
    copied = wrap(tensor.detach().clone())
    return copied.requires_grad_() if tensor.requires_grad else copied


def onto_host(tensor: Tensor) -> Tensor:
    """A copy on the host."""
    inner: Tensor = unwrapped(tensor)
    return inner.detach().clone()


def moved(value: Any, move: Callable[[Tensor], Tensor]) -> Any:
    """A tensor, a module, or tensors in tuples, lists and dicts, moved. Anything else is handed back."""
    if isinstance(value, Tensor):
        return move(value)
    if isinstance(value, nn.Module):
        with torch.no_grad():
            return value._apply(move)  # type: ignore[no-untyped-call]
    if isinstance(value, dict):
        return type(value)((key, moved(one, move)) for key, one in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(moved(one, move) for one in value))
    if isinstance(value, list | tuple):
        return type(value)(moved(one, move) for one in value)
    return value
