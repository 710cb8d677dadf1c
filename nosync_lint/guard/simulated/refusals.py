"""What cannot run on the simulated device, refused with the reason, before torch fails without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch.utils._pytree import tree_leaves

from nosync_lint.guard.patches import Patches
from nosync_lint.guard.simulated.tensor import SimulatedTensor

_MAKERS = ("grad", "grad_and_value", "jacrev", "jacfwd", "hessian")
"""Transforms that give a function back."""
_CALLS = ("vjp", "jvp", "linearize")
"""Transforms that run the function themselves."""
_DIFFERENTIATES = (
    "it differentiates in C++, where there is none: use backward or torch.autograd.grad, or tensors of the host"
)
_NESTED = ("nested_tensor", "as_nested_tensor", "nested_tensor_from_jagged")
_CAPTURES = "nothing is launched that could be captured"


def refuse(patches: Patches) -> None:
    """Replaces functions of torch. Those that take tensors work as ever on tensors of the host."""
    for name in _MAKERS:
        patches.set(torch.func, name, _made(name, getattr(torch.func, name)))
    for name in _CALLS:
        patches.set(torch.func, name, _checked(f"torch.func.{name}", _DIFFERENTIATES, getattr(torch.func, name)))
    for name in _NESTED:
        function = getattr(torch.nested, name)
        patches.set(
            torch.nested, name, _checked(f"torch.nested.{name}", "nested tensors are none that hold another", function)
        )
    for kind in (torch.cuda.CUDAGraph, torch.cuda.graph):
        patches.set(torch.cuda, kind.__name__, _not_made(f"torch.cuda.{kind.__name__}", _CAPTURES, kind))
    graphed = "make_graphed_callables"
    patches.set(torch.cuda, graphed, _never(f"torch.cuda.{graphed}", _CAPTURES))
    patches.set(torch.jit, "trace", _checked("torch.jit.trace", "the tracer sees the tensors inside", torch.jit.trace))


def _refusal(name: str, reason: str) -> NotImplementedError:
    return NotImplementedError(f"{name} cannot run on the simulated device: {reason}")


def _made(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: _checked(f"torch.func.{name}", _DIFFERENTIATES, original(*args, **kwargs))


def _checked(name: str, reason: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(one, SimulatedTensor) for one in tree_leaves((args, kwargs))):
            raise _refusal(name, reason)
        return function(*args, **kwargs)

    return call


def _never(name: str, reason: str) -> Callable[..., NoReturn]:
    def call(*_: Any, **__: Any) -> NoReturn:
        raise _refusal(name, reason)

    return call


def _not_made(name: str, reason: str, kind: type) -> type:
    """A class that is not made. It stays a class: annotations and tests of types that name it are read by Python."""
    return type(kind.__name__, (kind,), {"__new__": _never(name, reason), "__module__": kind.__module__})
