"""Methods and functions of torch that are replaced while the device is measured: they say what is asked for, and where
waits reach no operation, they tell of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from nosync_lint.guard.backend import THREAD
from nosync_lint.guard.measured.waits import Waits
from nosync_lint.guard.operations.constructs import LABELS, LOADED, WAITS, WHOLE, labelled, stored, within
from nosync_lint.guard.operations.copies import COPIES
from nosync_lint.guard.operations.sightings import saw_read, saw_wait
from nosync_lint.guard.patches import Patches

_READ: dict[tuple[Any, str], tuple[str, str]] = {
    **{(torch.Tensor, name): known for name, known in WHOLE.items()},
    (torch, "save"): ("d2h.serialise", "torch.save"),
    (torch, "load"): LOADED,
}
"""What reads or writes all of a tensor, with operations of its own or none: it counts once."""
_MAKE = ((torch, "tensor"), (torch, "as_tensor"), (torch, "asarray"), (torch.Tensor, "new_tensor"))
"""What makes a tensor of Python data: torch asks no mode when it reads the tensors in it."""
_WAIT: dict[tuple[Any, str], tuple[str, str]] = {
    (torch.cuda, "synchronize"): WAITS["device"],
    (torch.accelerator, "synchronize"): WAITS["accelerator"],
    (torch.cuda.Stream, "synchronize"): WAITS["stream"],
    (torch.cuda.Event, "synchronize"): WAITS["event"],
    (torch.cuda, "empty_cache"): WAITS["cache"],
    (torch.cuda.memory, "empty_cache"): WAITS["cache"],
}
"""Waits that are written out."""


def replace_calls(patches: Patches, waits: Waits) -> None:
    """Replaces them."""
    for name, (kind, text) in LABELS.items():
        patches.set(torch.Tensor, name, labelled(getattr(torch.Tensor, name), kind, text))
    patches.set(torch.Tensor, "__setitem__", stored(torch.Tensor.__setitem__))
    patches.set(torch.nn.Module, "_apply", labelled(torch.nn.Module._apply, "module", "a module that is moved"))
    for (owner, name), (row, text) in _READ.items():
        patches.set(owner, name, _as_a_whole(getattr(owner, name), row, text, waits))
    for owner, name in _MAKE:
        patches.set(owner, name, _of_elements(getattr(owner, name), waits))
    for (owner, name), (row, text) in _WAIT.items():
        patches.set(owner, name, _written_out(getattr(owner, name), row, text, waits))
    event = torch.cuda.Event
    patches.set(event, "record", _recorded(event.record))
    patches.set(event, "query", _asked(event.query))
    engine: Any = torch.autograd._engine_run_backward  # type: ignore[attr-defined]
    patches.set(torch.autograd, "_engine_run_backward", _going_back(engine))


def _as_a_whole(original: Callable[..., Any], row: str, text: str, waits: Waits) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        before = waits.count()
        with within("python", text):
            out = original(*args, **kwargs)
        waits.since()
        if waits.count() > before if waits.are_measured else _about_device(tree_leaves((args, kwargs))):
            saw_read(row, text)
        return out

    return call


def _of_elements(original: Callable[..., Any], waits: Waits) -> Callable[..., Any]:
    whole = _as_a_whole(original, "d2h.tensor_from_tensors", "a tensor made of tensors", waits)

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        listed = [one for one in (*args, *kwargs.values()) if isinstance(one, list | tuple)]
        return (whole if any(map(_on_device, tree_leaves(listed))) else original)(*args, **kwargs)

    return call


def _on_device(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_cuda


def _about_device(leaves: list[Any]) -> bool:
    """Whether a call is about tensors on the device, or names it."""
    names = (str(one) for one in leaves if isinstance(one, str | torch.device))
    return any(map(_on_device, leaves)) or any(name.partition(":")[0] == "cuda" for name in names)


_RECORDED = "_nosync_copies"
"""Of an event: how many copies to the host were started before it."""


def _written_out(original: Callable[..., Any], row: str, text: str, waits: Waits) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        out = original(*args, **kwargs)
        waits.since()
        saw_wait(row, text, getattr(args[0], _RECORDED, None) if args else None)
        return out

    return call


def _recorded(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def record(self: Any, *args: Any, **kwargs: Any) -> Any:
        setattr(self, _RECORDED, COPIES.started)
        return original(self, *args, **kwargs)

    return record


def _asked(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def query(self: Any) -> Any:
        done = original(self)
        if done:
            COPIES.waited(getattr(self, _RECORDED, None))
        return done

    return query


def _going_back(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        if THREAD.mode is None:
            return original(*args, **kwargs)
        with THREAD.mode.engine():
            return original(*args, **kwargs)

    return run
