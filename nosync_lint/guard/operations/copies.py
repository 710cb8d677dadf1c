"""Copies to the host that nothing has waited for yet: what they write must not be read before.

A copy marked asynchronous into pinned memory returns at once, and the host sees the old values until it has waited. The
simulated device copies at once, so the values are right there; that a device would not have them yet is remembered.
Any wait ends all copies before it, of whatever stream: a wait for the wrong stream goes unseen.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from nosync_lint.guard.operations.conditions import Call, downloads_later, on_device
from nosync_lint.guard.operations.pinning import is_pinned
from nosync_lint.guard.operations.table import Operation
from nosync_lint.guard.patches import Patches
from nosync_lint.guard.places import Place, here
from nosync_lint.guard.scopes import watching
from nosync_lint.guard.witness import saw_early_read

_MARK = "_nosync_copy"


class _Copy(NamedTuple):
    """Which copy it is, counted over the process, and where it was asked for."""

    number: int
    place: Place


class Copies:
    """How many copies were started, and how many of them something has waited for."""

    started = ended = 0

    @property
    def pending(self) -> bool:
        return self.ended < self.started

    def waited(self, number: int | None = None) -> None:
        """The host waited: for all copies, or for those up to a number."""
        self.ended = max(self.ended, self.started if number is None else number)


COPIES = Copies()


def note_copy(operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
    """Remembers what an operation leaves to be waited for, if it is such a copy."""
    call, rules = Call(operation.parameters, args, kwargs), watching()
    if rules is not None and downloads_later(call) and (call["src"] is None or is_pinned(out)):
        COPIES.started += 1
        setattr(out.untyped_storage(), _MARK, _Copy(COPIES.started, here(rules.blame)))


def note_read(operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Tells the guards if an operation reads or writes what a copy may still be writing. Raises `EarlyReadError`.

    A copy back to the device comes after it in the order of the device.
    """
    tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
    up = operation.copies and (any(map(on_device, tensors)) or "cuda" in str(kwargs.get("device")))
    if not (operation.looks_only or up):
        for one in tensors:
            note_read_of(one, f"`{operation.name.removeprefix('aten.')}`")


def note_read_of(tensor: Tensor, what: str) -> None:
    """Tells the guards, once, if the memory of a tensor of the host may still be written. Raises `EarlyReadError`."""
    if not COPIES.pending or tensor.is_cuda or tensor.layout is not torch.strided:
        return
    storage = tensor.untyped_storage()
    copy: _Copy | None = getattr(storage, _MARK, None)
    if copy is not None and copy.number > COPIES.ended:
        delattr(storage, _MARK)
        saw_early_read(what, copy.place)


def read_early(patches: Patches) -> None:
    """Replaces the methods by which Python reads a tensor of the host without an operation."""
    for name in ("tolist", "numpy", "__array__"):
        patches.set(Tensor, name, _noted(getattr(Tensor, name), name))


@cache
def _noted(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        note_read_of(self, f"tensor.{name}()")
        return original(self, *args, **kwargs)

    return call
