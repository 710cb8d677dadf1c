"""Hooks of the user that autograd calls: its graph is one of inner tensors, and they are shown those of the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
import torch.autograd.graph
import torch.utils.hooks

from nosync_lint.guard.operations.constructs import THREAD, users_code
from nosync_lint.guard.patches import Patches
from nosync_lint.guard.simulated.dispatch import SimulatedDevice
from nosync_lint.guard.simulated.gradients import inner, outer
from nosync_lint.guard.simulated.tensor import unwrapped, wrap


def show_the_device(patches: Patches) -> None:
    """Replaces how hooks on saved tensors are installed, and how modules keep their backward hooks."""
    patches.set(torch.autograd.graph.saved_tensors_hooks, "__enter__", _enter)
    patches.set(torch.utils.hooks.BackwardHook, "__init__", _init(torch.utils.hooks.BackwardHook.__init__))


# -- saved tensors --


def _enter(self: Any) -> None:
    push: Any = torch._C._autograd._push_saved_tensors_default_hooks
    push(_pack(self.pack_hook), _unpack(self.unpack_hook))


def _pack(hook: Callable[..., Any]) -> Callable[..., Any]:
    def pack(tensor: Any) -> tuple[bool, Any]:
        if not THREAD.inside:
            return False, hook(tensor)
        mode: Any = SimulatedDevice
        with users_code(), mode():
            return True, hook(wrap(tensor))

    return pack


def _unpack(hook: Callable[..., Any]) -> Callable[..., Any]:
    def unpack(packed: tuple[bool, Any]) -> Any:
        of_device, kept = packed
        if not of_device:
            return hook(kept)
        with users_code():
            return unwrapped(hook(kept))

    return unpack


# -- modules --


@cache
def _init(original: Callable[..., None]) -> Callable[..., None]:
    def init(self: Any, module: Any, user_hooks: Sequence[Any], user_pre_hooks: Sequence[Any]) -> None:
        original(self, module, [*map(_shown, user_hooks)], [*map(_shown, user_pre_hooks)])

    return init


def _shown(hook: Callable[..., Any]) -> Callable[..., Any]:
    """A backward hook of a module, with gradients of the device where the engine goes back over it."""

    def call(module: Any, *gradients: Any) -> Any:
        if not THREAD.backward:
            return hook(module, *gradients)
        with users_code():
            return inner(hook(module, *(tuple(map(outer, given)) for given in gradients)))

    return call
