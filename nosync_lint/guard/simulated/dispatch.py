"""Runs every operation on the inner tensors, and tells the guards which of them wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nosync_lint.guard.operations.constructs import THREAD, as_device
from nosync_lint.guard.operations.copies import COPIES, note_copy, note_read
from nosync_lint.guard.operations.modes import DeviceMode
from nosync_lint.guard.operations.pinning import is_pinned, pin
from nosync_lint.guard.operations.sightings import judge, saw_tagged
from nosync_lint.guard.operations.table import OPERATIONS, Operation, causes, operation_of
from nosync_lint.guard.simulated.crossings import remember
from nosync_lint.guard.simulated.kernels import on_host, stand_in_for
from nosync_lint.guard.simulated.leaves import LEAVES
from nosync_lint.guard.simulated.tensor import SimulatedTensor, adopt, asks_for_grad, refresh, wrap
from nosync_lint.guard.witness import Sight, saw
from nosync_lint.models import load

_C: Any = torch._C
_exclude: Callable[[Any, bool], None] = _C._dispatch_tls_set_dispatch_key_excluded
_excluded: Callable[[Any], bool] = _C._dispatch_tls_is_dispatch_key_excluded
_AUTOGRAD, _IN_PLACE_OR_VIEW = _C.DispatchKey.AutogradFunctionality, _C.DispatchKey.ADInplaceOrView


class SimulatedDevice(DeviceMode):  # type: ignore[no-untyped-call]
    """Sees every operation of its thread: factories for the device, copies to it, and those on its tensors."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return execute(func, args, kwargs or {})


def execute(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs one operation where its tensors really are, and tells the guards if it would wait."""
    operation = OPERATIONS.get(func) or operation_of(func)
    simulated: list[SimulatedTensor] = []
    inner_args: list[Any] = []
    for arg in args:  # the loop is what most operations cost: `_inner` for what is usual
        kind_of = type(arg)
        if kind_of is SimulatedTensor:
            simulated.append(arg)
            if asks_for_grad(arg):
                adopt(arg)
            inner_args.append(arg._inner)
        else:
            inner_args.append(arg if kind_of in _PLAIN else _inner(arg, simulated))
    inner_kwargs = {name: _inner(arg, simulated) for name, arg in kwargs.items()} if kwargs else kwargs
    to_device = bool(simulated)
    if kwargs:
        device = kwargs.get("device")
        if device is not None:
            to_device = _is_simulated(device)
            if to_device:
                inner_kwargs["device"] = "cpu"
    if operation.composite and not to_device:  # `to` takes the device by position
        to_device = any(isinstance(arg, torch.device) and _is_simulated(arg) for arg in args)
    if not (simulated or to_device or THREAD.as_device):
        return _on_host(func, args, kwargs)
    if not operation.ours:
        return _of_extension(operation, func, inner_args, inner_kwargs, to_device)
    if operation.composite:
        mode: Any = SimulatedDevice
        with mode():
            return func.decompose(*args, **kwargs)
    if operation.waits or operation.tag is not None:
        judge(operation, args, kwargs)
    if COPIES.pending:
        note_read(operation, args, kwargs)
    if func is _PINNED:
        return False
    if operation.together and simulated:
        _same_device(args)
    if operation.by_self and not isinstance(args[0], SimulatedTensor):
        to_device = False
    if simulated or to_device:
        inner_kwargs.pop("pin_memory", None)
        out = _with_autograd(LEAVES.get(func, func), inner_args, inner_kwargs)
        if operation.copies:
            target, source = (args[0], args[1]) if operation.mutates else (None, args[0])
            remember(out, source, to_device if target is None else isinstance(target, SimulatedTensor))
    else:
        out = func(*args, **kwargs)
    if operation.copies:
        note_copy(operation, args, kwargs, out)
    if operation.reshapes:
        for one in simulated:
            refresh(one)
    if operation.name == _LENGTHS:  # the sizes of the batches are for the host
        return wrap(out[0]), out[1]
    if type(out) is Tensor and to_device and not operation.mutates:
        return wrap(out)
    return _outer(out, simulated if operation.mutates else (), to_device)


_LENGTHS = "aten._pack_padded_sequence"
_PLAIN = frozenset({Tensor, torch.nn.Parameter, int, float, bool, str, type(None), torch.dtype, torch.device})


def _inner(value: Any, simulated: list[SimulatedTensor]) -> Any:
    if isinstance(value, SimulatedTensor):
        simulated.append(value)
        adopt(value)
        return value._inner
    if isinstance(value, list | tuple) and not isinstance(value, torch.Size):
        return [_inner(one, simulated) for one in value]
    return value


def _outer(value: Any, arguments: list[SimulatedTensor] | tuple[()], to_device: bool) -> Any:
    """The result as the user sees it: arguments that were written are handed back themselves."""
    if isinstance(value, Tensor):
        for one in arguments:
            if one._inner is value:
                return one
        return wrap(value) if to_device and value.device.type == "cpu" else value
    if isinstance(value, list | tuple):
        return type(value)(_outer(one, arguments, to_device) for one in value)
    return value


def _is_simulated(device: Any) -> bool:
    asked = torch.device(device)
    if asked.type == "cuda" and asked.index not in (None, 0):
        raise RuntimeError(f"the simulated device is cuda:0, there is no {asked}")
    return asked.type == "cuda"


def _with_autograd(func: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Runs on inner tensors with the keys of autograd, which the dispatcher has taken away by the time we are asked."""
    if torch.is_inference_mode_enabled():
        return func(*args, **kwargs)
    before = _excluded(_AUTOGRAD), _excluded(_IN_PLACE_OR_VIEW)  # not where a node of the outer tensors saves a result
    _exclude(_AUTOGRAD, False)
    _exclude(_IN_PLACE_OR_VIEW, False)
    inside, THREAD.inside = THREAD.inside, True
    try:
        return func(*args, **kwargs)
    finally:
        THREAD.inside = inside
        _exclude(_AUTOGRAD, before[0])
        _exclude(_IN_PLACE_OR_VIEW, before[1])


# -- operations of extensions --


def _of_extension(operation: Operation, func: Any, args: list[Any], kwargs: dict[str, Any], to_device: bool) -> Any:
    """Runs a function that stands in, or the kernel for the host, with an eye on what it does."""
    known = stand_in_for(func)
    if known is not None:
        if known.syncs:
            saw(causes(), Sight(load("dispatch")["rows"]["stand_in"], operation.name, f"`{operation.name}`"))
        return _outer(known.kernel(*args, **kwargs), (), True)
    if operation.tag is not None:
        saw_tagged(operation)
    kernel = on_host(func)
    mode: Any = SimulatedDevice
    with as_device(), mode():
        if not to_device:  # autograd has been asked: what remains is the kernel
            return kernel(*args, **kwargs)
        out = _with_autograd(func, args, kwargs)
    return _outer(out, (), True)


# -- tensors of the host --

_PIN, _PINNED = torch.ops.aten._pin_memory.default, torch.ops.aten.is_pinned.default


def _on_host(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An operation that the device has no part in: only pinning is not what it is without one."""
    if COPIES.pending:
        note_read(operation_of(func), args, kwargs)
    if func is _PIN:
        return pin(args[0].clone())
    if func is _PINNED:
        return is_pinned(args[0])
    if kwargs.get("pin_memory"):
        return pin(func(*args, **{**kwargs, "pin_memory": False}))
    return func(*args, **kwargs)


def _same_device(args: tuple[Any, ...]) -> None:
    tensors = [
        one for arg in args for one in (arg if isinstance(arg, list | tuple) else (arg,)) if isinstance(one, Tensor)
    ]
    if any(not isinstance(one, SimulatedTensor) and one.dim() for one in tensors):
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
        )
