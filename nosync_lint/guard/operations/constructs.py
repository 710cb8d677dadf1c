"""Which construct of Python is under way in this thread: what an operation of torch is part of."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Construct(NamedTuple):
    """`kind` as in `models/dispatch.toml`, `text` for people. Of a store by index, the index and the value."""

    kind: str
    text: str
    index: Any = None
    value: Any = None


class _Thread(threading.local):
    """`as_device`: every tensor stands for one on the device. `backward`: the engine runs, for the thread `caller`.
    `inside`: an operation runs on inner tensors."""

    inside: bool = False
    construct: Construct | None = None
    as_device: bool = False
    backward: bool = False
    caller: int | None = None


THREAD = _Thread()


@contextmanager
def as_device(*, backward: bool = False) -> Iterator[None]:
    """Says that every tensor stands for one on the device: operations run on inner tensors, and are judged."""
    before = THREAD.as_device, THREAD.backward
    THREAD.as_device, THREAD.backward = True, backward or THREAD.backward
    try:
        yield
    finally:
        THREAD.as_device, THREAD.backward = before


@contextmanager
def in_backward(caller: int | None = None) -> Iterator[None]:
    """Says that the engine runs in this thread, for another one where that is named."""
    before = THREAD.backward, THREAD.caller
    THREAD.backward, THREAD.caller = True, caller
    try:
        yield
    finally:
        THREAD.backward, THREAD.caller = before


@contextmanager
def users_code() -> Iterator[None]:
    """Says that autograd calls code of the user, which is shown tensors of the device: others lie on the host."""
    before = THREAD.as_device, THREAD.inside
    THREAD.as_device = THREAD.inside = False
    try:
        yield
    finally:
        THREAD.as_device, THREAD.inside = before


@contextmanager
def within(kind: str, text: str, index: Any = None, value: Any = None) -> Iterator[None]:
    """Says that a construct is under way. What is part of another construct is not told."""
    if THREAD.construct is not None:
        yield
        return
    THREAD.construct = Construct(kind, text, index, value)
    try:
        yield
    finally:
        THREAD.construct = None


LABELS = {
    "__bool__": ("truth", "the truth of a tensor"),
    "__int__": ("number", "int(tensor)"),
    "__float__": ("number", "float(tensor)"),
    "__complex__": ("number", "complex(tensor)"),
    "__index__": ("number", "a tensor where Python needs an integer"),
    "__contains__": ("contains", "`in` a tensor"),
    "item": ("item", "tensor.item()"),
}
"""Methods of tensors by which Python reads them: the construct that each is, and its text."""


WHOLE = {
    "tolist": ("d2h.tolist", "tensor.tolist()"),
    "numpy": ("d2h.cpu", "tensor.numpy(force=True)"),
    "__repr__": ("d2h.print", "a tensor as text"),
    "__format__": ("d2h.print", "a tensor as text"),
}
"""Methods of tensors that read all of one: the row of the model, and the text."""
LOADED = ("h2d.to_blocking", "torch.load(map_location=...)")
WAITS = {
    "device": ("exp.device", "torch.cuda.synchronize()"),
    "accelerator": ("exp.device", "torch.accelerator.synchronize()"),
    "stream": ("exp.stream", "stream.synchronize()"),
    "event": ("exp.event", "event.synchronize()"),
    "cache": ("exp.empty_cache", "torch.cuda.empty_cache()"),
}
"""Waits that are written out, in the same way."""


def labelled(method: Callable[..., Any], kind: str, text: str) -> Callable[..., Any]:
    """The method as a construct."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        with within(kind, text):
            return method(self, *args, **kwargs)

    return call


def stored(method: Callable[..., Any]) -> Callable[..., Any]:
    """`__setitem__` as a construct."""

    @functools.wraps(method)
    def call(self: Any, index: Any, value: Any) -> None:
        with within("store", "a store by index", index, value):
            method(self, index, value)

    return call


def kind() -> str | None:
    """The kind of the construct under way; for a store by index, by the index and what is stored."""
    construct = THREAD.construct
    if construct is None:
        return "backward" if THREAD.backward else None
    if construct.kind != "store":
        return construct.kind
    items = construct.index if isinstance(construct.index, tuple) else (construct.index,)
    if any(isinstance(item, slice) and _tensors((item.start, item.stop, item.step)) for item in items):
        return "store-slice"
    if any(isinstance(item, Tensor) and item.dim() == 0 and item.dtype == torch.bool for item in items):
        return "store-mask-0d"
    if isinstance(construct.value, bool | int | float | complex):
        return "store-number"
    host = isinstance(construct.value, Tensor) and construct.value.device.type == "cpu"
    return "store-host-0d" if host and construct.value.dim() == 0 else "store"


def _tensors(values: Sequence[Any]) -> bool:
    return any(isinstance(value, Tensor) for value in values)
