"""Operations of extensions: those with a kernel for the host are looked into, for the others a function stands in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch


class StandIn(NamedTuple):
    """A function over tensors of the host for an operation, and whether its real kernel makes the host wait."""

    kernel: Callable[..., Any]
    syncs: bool


_STAND_INS: dict[str, StandIn] = {}


def register(name: str, kernel: Callable[..., Any], syncs: bool) -> None:
    """See `nosync_lint.guard.register_kernel`."""
    if name.count("::") != 1 or name.startswith("aten::"):
        raise ValueError(f"`{name}` names no operation of an extension: write `library::operation`")
    _STAND_INS[name.removesuffix(".default")] = StandIn(kernel, syncs)


def stand_in_for(func: Any) -> StandIn | None:
    """What was registered for an operation, by its name or by that of the overload."""
    name = func._schema.name
    return _STAND_INS.get(f"{name}.{func._overloadname}") or _STAND_INS.get(name)


def on_host(func: Any) -> Callable[..., Any]:
    """The kernel of an operation for tensors of the host. Raises `NotImplementedError` where it has none."""
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    if not torch._C._dispatch_has_computed_kernel_for_dispatch_key(func.name(), "CPU"):
        raise NotImplementedError(
            f"`{func.name()}` has no kernel for the CPU: tell the guard what it computes, "
            f"`register_kernel({func._schema.name!r}, function)`"
        )
    found: Any = torch._C._dispatch_get_computed_kernel_for_dispatch_key(func.name(), "CPU")
    return lambda *args, **kwargs: found.call_boxed(keys, *args, **kwargs)
