"""What tests ask of the simulated device besides guarding. Importing this imports no torch, calling it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Moved = TypeVar("Moved")


def to_device(value: Moved) -> Moved:
    """The same on the device, to set up a test: a copy of a tensor, or of all in tuples, lists and dicts; a module
    itself, moved. Blocks nothing and counts nothing."""
    from nosync_lint.guard.simulated.moves import moved, onto_device

    found: Moved = moved(value, onto_device)
    return found


def to_host(value: Moved) -> Moved:
    """The same on the host, to compare in a test: a copy of a tensor, or of all in tuples, lists and dicts; a module
    itself, moved. Blocks nothing and counts nothing."""
    from nosync_lint.guard.simulated.moves import moved, onto_host

    found: Moved = moved(value, onto_host)
    return found


def register_kernel(name: str, kernel: Callable[..., Any], *, syncs: bool = False) -> None:
    """Runs an operation that has a kernel for CUDA alone by a function over tensors of the host.

    `name` is that of the operation, `"library::operation"`, with its overload where it has several. The function gets
    the arguments with tensors of the host in place of those on the device, and what it does is not watched; `syncs`
    says whether the real kernel makes the host wait. Registering again replaces. Raises `ValueError` for other names.
    """
    from nosync_lint.guard.simulated.kernels import register

    register(name, kernel, syncs)
