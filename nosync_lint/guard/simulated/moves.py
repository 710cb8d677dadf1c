"""Copies between the host and the simulated device that no guard sees."""

from __future__ import annotations

from torch import Tensor

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
