"""What cannot run on the simulated device, refused with the reason, before torch fails without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from nosync_lint.guard.simulated.patches import Patches
from nosync_lint.guard.simulated.tensor import SimulatedTensor

_MAKERS = ("grad", "grad_and_value", "jacrev", "jacfwd", "hessian")
"""Transforms that give a function back."""
_CALLS = ("vjp", "jvp", "linearize")
"""Transforms that run the function themselves."""


def refuse(patches: Patches) -> None:
    """Replaces the transforms of `torch.func` that differentiate; `vmap` works."""
    for name in _MAKERS:
        patches.set(torch.func, name, _made(name, getattr(torch.func, name)))
    for name in _CALLS:
        patches.set(torch.func, name, _checked(name, getattr(torch.func, name)))


def _made(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: _checked(name, original(*args, **kwargs))


def _checked(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(one, SimulatedTensor) for one in tree_leaves((args, kwargs))):
            raise NotImplementedError(
                f"torch.func.{name} cannot run on the simulated device: it differentiates in C++, where there is none. "
                "Use backward or torch.autograd.grad, or tensors of the host"
            )
        return function(*args, **kwargs)

    return call
