"""Devices named by a number, and tensors made in threads that have no guard.

A number is a device of the accelerator, and a build of torch without one cannot tell which that is. A mode belongs to a
thread: what makes tensors on the device, moves them there, or pins memory opens one where there is none, unwatched.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.utils._device

from nosync_lint.guard.backend import THREAD
from nosync_lint.guard.patches import Patches
from nosync_lint.guard.simulated.dispatch import SimulatedDevice
from nosync_lint.guard.simulated.tensor import SimulatedTensor, adopt

_LIKE = ("empty_like", "full_like", "ones_like", "rand_like", "randint_like", "randn_like", "zeros_like")
_FROM_DATA = ("tensor", "as_tensor", "asarray")
"""Those that have another stand-in by now."""


def name_devices(patches: Patches) -> None:
    """Replaces the factories of torch, `Tensor.to`, `Tensor.cuda`, what they use in modules, and pinning."""
    for name in _factories():
        patches.set(torch, name, _made(getattr(torch, name)))
    for name in ("to", "cuda"):
        patches.set(torch.Tensor, name, _moved(getattr(torch.Tensor, name)))
    for name in ("pin_memory", "is_pinned"):
        patches.set(torch.Tensor, name, _anywhere(getattr(torch.Tensor, name)))
    patches.set(torch._C._nn, "_parse_to", _parsed(torch._C._nn._parse_to))


@cache
def _factories() -> tuple[str, ...]:
    """The functions of torch that take a device, by name."""
    known = torch.utils._device._device_constructors()
    names = {name for name, value in vars(torch).items() if callable(value) and value in known}
    return tuple(sorted(names.union(_LIKE, _FROM_DATA)))


def _named(device: Any) -> Any:
    """A device that is named by a number, in words; anything else as it is."""
    return torch.device("cuda", device) if type(device) is int else device


def _run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Runs a function with a mode in this thread: that of its guard, or one of its own."""
    if THREAD.guards:
        return function(*args, **kwargs)
    mode: Any = SimulatedDevice
    with mode():
        return function(*args, **kwargs)


@cache
def _made(original: Callable[..., Any]) -> Callable[..., Any]:
    def made(*args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device")
        if device is None:
            found = original(*args, **kwargs)
        else:
            found = _run(original, *args, **{**kwargs, "device": _named(device)})
        if kwargs.get("requires_grad") and isinstance(found, SimulatedTensor):
            adopt(found)
        return found

    made.__wrapped__ = original  # type: ignore[attr-defined]
    return made


@cache
def _moved(original: Callable[..., Any]) -> Callable[..., Any]:
    def moved(self: Any, *args: Any, **kwargs: Any) -> Any:
        if args and type(args[0]) is int:
            args = (_named(args[0]), *args[1:])
        elif type(kwargs.get("device")) is int:
            kwargs["device"] = _named(kwargs["device"])
        return _run(original, self, *args, **kwargs)

    return moved


@cache
def _anywhere(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: _run(original, self, *args, **kwargs)


@cache
def _parsed(original: Callable[..., Any]) -> Callable[..., Any]:
    def parsed(*args: Any, **kwargs: Any) -> Any:
        """What `Module.to` was asked for."""
        if type(kwargs.get("device")) is int:
            kwargs["device"] = _named(kwargs["device"])
        return original(*(map(_named, args[:1])), *args[1:], **kwargs)

    return parsed
