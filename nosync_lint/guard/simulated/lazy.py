"""Parameters and buffers whose shape is not known yet: they stay where they are, and are made on the device later."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import parameter
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

from nosync_lint.guard.patches import Patches
from nosync_lint.guard.simulated.tensor import DEVICE, SimulatedTensor

_AWAITED = "_nosync_awaited"
"""Marks those that are asked for on the device."""


def make_later(patches: Patches) -> None:
    """Replaces how such tensors are made, and what they become. `moving` is for the moves of modules.

    They know the methods that they allow by what these are: to be called when those have their stand-ins.
    """
    mixin: Any = vars(parameter)["UninitializedTensorMixin"]
    moves = [getattr(Tensor, name) for name in ("to", "cuda")]
    patches.set(mixin, "_allowed_methods", [*mixin._allowed_methods, *moves])
    patches.set(mixin, "materialize", _materialize(mixin.materialize))
    for kind in (UninitializedParameter, UninitializedBuffer):
        patches.set(kind, "__new__", _new(kind.__new__))


def moving(move: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A move of the tensors of a module that leaves such tensors what they are."""

    def moved(tensor: Tensor) -> Tensor:
        if not is_lazy(tensor):
            return move(tensor)
        probe = move(torch.empty(0, dtype=tensor.data.dtype))
        setattr(tensor, _AWAITED, isinstance(probe, SimulatedTensor))
        tensor.data = tensor.data.to(probe.dtype)
        return tensor

    return moved


@cache
def _new(original: Callable[..., Any]) -> Callable[..., Any]:
    def made(cls: Any, *args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(("requires_grad", "device", "dtype"), args, strict=False)), **kwargs}
        device = given.pop("device", None)
        awaited = device is not None and torch.device(device).type == DEVICE.type
        found = original(cls, device="cpu" if awaited else device, **given)
        setattr(found, _AWAITED, awaited)
        return found

    return made


@cache
def _materialize(original: Callable[..., None]) -> Callable[..., None]:
    def materialize(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        awaited = getattr(self, _AWAITED, False) if device is None else torch.device(device).type == DEVICE.type
        if awaited:
            made: Tensor = torch.empty(shape, device=DEVICE, dtype=dtype or self.data.dtype)
            if isinstance(self, UninitializedParameter):
                made = nn.Parameter(made, self.requires_grad)
            torch.utils.swap_tensors(self, made)  # type: ignore[no-untyped-call]
        else:
            original(self, shape, device, dtype)

    return materialize
