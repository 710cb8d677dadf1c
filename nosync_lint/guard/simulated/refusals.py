"""What cannot run on the simulated device, refused with the reason, before torch fails without one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

import torch
import torch.autograd.forward_ad
import torch.export
from torch import Tensor
from torch._functorch import eager_transforms
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.parallel import DistributedDataParallel
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
_FAKES = "fake tensors cannot be made of those that hold another: use modules and inputs of the host"
_NESTED = ("nested_tensor", "as_nested_tensor", "nested_tensor_from_jagged")
_CAPTURES = "nothing is launched that could be captured"

_INSIDE = {
    "grad_impl": "grad",
    "grad_and_value_impl": "grad_and_value",
    "_vjp_with_argnums": "vjp",
    "_jvp_with_argnums": "jvp",
}
"""What the transforms run, for those whose names were imported before the guard."""
_WITH_TENSORS: tuple[tuple[Any, str, str, str], ...] = (
    (torch.jit, "trace", "torch.jit.trace", "the tracer sees the tensors inside"),
    (torch.export, "export", "torch.export.export", _FAKES),
    (FakeTensorMode, "from_tensor", "FakeTensorMode.from_tensor", _FAKES),
    (torch.autograd.forward_ad, "make_dual", "torch.autograd.forward_ad.make_dual", _DIFFERENTIATES),
)
"""Functions by owner and name, how they are called, and why they take no tensor of the device."""


def refuse(patches: Patches) -> None:
    """Replaces functions of torch. Those that take tensors work as ever on tensors of the host."""
    for name in _MAKERS:
        patches.set(torch.func, name, _made(name, getattr(torch.func, name)))
    for name in _CALLS:
        patches.set(torch.func, name, _checked(f"torch.func.{name}", _DIFFERENTIATES, getattr(torch.func, name)))
    for inside, name in _INSIDE.items():
        if hasattr(eager_transforms, inside):
            function = getattr(eager_transforms, inside)
            patches.set(eager_transforms, inside, _checked(f"torch.func.{name}", _DIFFERENTIATES, function))
    for name in _NESTED:
        function = getattr(torch.nested, name)
        patches.set(
            torch.nested, name, _checked(f"torch.nested.{name}", "nested tensors are none that hold another", function)
        )
    for kind in (torch.cuda.CUDAGraph, torch.cuda.graph):
        patches.set(torch.cuda, kind.__name__, _not_made(f"torch.cuda.{kind.__name__}", _CAPTURES, kind))
    graphed = "make_graphed_callables"
    patches.set(torch.cuda, graphed, _never(f"torch.cuda.{graphed}", _CAPTURES))
    for owner, name, shown, reason in _WITH_TENSORS:
        patches.set(owner, name, _checked(shown, reason, getattr(owner, name)))
    patches.set(SimulatedTensor, "as_subclass", _never("A subclass of Tensor", "a tensor has one class, the device's"))
    patches.set(torch.nn.DataParallel, "__init__", _never("DataParallel", "it is for several devices, and C++ copies"))
    patches.set(DistributedDataParallel, "__init__", _over_host(DistributedDataParallel.__init__))
    patches.set(torch._C, "__getattr__", _missing)


def _refusal(name: str, reason: str) -> NotImplementedError:
    return NotImplementedError(f"{name} cannot run on the simulated device: {reason}")


@cache
def _made(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: _checked(f"torch.func.{name}", _DIFFERENTIATES, original(*args, **kwargs))


@cache
def _checked(name: str, reason: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(map(_on_device, tree_leaves((args, kwargs)))) or _is_device(kwargs.get("device")):
            raise _refusal(name, reason)
        return function(*args, **kwargs)

    return call


def _on_device(value: Any) -> bool:
    """Whether a value is a tensor on the device, also inside a transform, or a module that has one."""
    if isinstance(value, torch.nn.Module):
        return any(map(_on_device, (*value.parameters(), *value.buffers())))
    while isinstance(value, Tensor) and torch._C._functorch.is_functorch_wrapped_tensor(value):
        value = torch._C._functorch.get_unwrapped(value)
    return isinstance(value, SimulatedTensor)


def _is_device(value: Any) -> bool:
    return isinstance(value, str | torch.device) and torch.device(value).type == "cuda"


@cache
def _over_host(original: Callable[..., None]) -> Callable[..., None]:
    def init(self: Any, module: Any, *args: Any, **kwargs: Any) -> None:
        if _on_device(module):
            raise _refusal("DistributedDataParallel", "its reducer is C++, and asks the device: test what it wraps")
        original(self, module, *args, **kwargs)

    return init


@cache
def _never(name: str, reason: str) -> Callable[..., NoReturn]:
    def call(*_: Any, **__: Any) -> NoReturn:
        raise _refusal(name, reason)

    return call


@cache
def _not_made(name: str, reason: str, kind: type) -> type:
    """A class that is not made. It stays a class: annotations and tests of types that name it are read by Python."""
    return type(kind.__name__, (kind,), {"__new__": _never(name, reason), "__module__": kind.__module__})


def _missing(name: str) -> NoReturn:
    """As a module answers for a name that it lacks; functions of torch stumble over those that a CUDA build has."""
    text = f"module 'torch._C' has no attribute '{name}'"
    if name.startswith(("_cuda_", "_scatter", "_gather", "_broadcast")):
        text += ": this needs CUDA, and cannot run on the simulated device"
    raise AttributeError(text, name=name, obj=torch._C)
