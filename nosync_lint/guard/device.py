"""What tests ask of the device besides guarding. Importing this imports no torch, calling it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from nosync_lint.guard.backend import backend_named

Moved = TypeVar("Moved")


def to_device(value: Moved) -> Moved:
    """The same on the device, to set up a test: a copy of a tensor, or of all in tuples, lists and dicts; a module
    itself, moved. Blocks nothing and counts nothing."""
    backend = backend_named("auto")
    from nosync_lint.guard.operations.moves import moved

    found: Moved = moved(value, backend.onto_device)
    return found


def to_host(value: Moved) -> Moved:
    """The same on the host, to compare in a test: a copy of a tensor, or of all in tuples, lists and dicts; a module
    itself, moved. Blocks nothing and counts nothing."""
    backend = backend_named("auto")
    from nosync_lint.guard.operations.moves import moved

    found: Moved = moved(value, backend.onto_host)
    return found


def register_kernel(name: str, kernel: Callable[..., Any], *, syncs: bool = False) -> None:
    """Runs an operation that has a kernel for CUDA alone by a function over tensors of the host.

    `name` is that of the operation, `"library::operation"`, with its overload where it has several. The function gets
    the arguments with tensors of the host in place of those on the device, and what it does is not watched; `syncs`
    says whether the real kernel makes the host wait. A device that is there runs the real one. Registering again
    replaces. Raises `ValueError` for other names.
    """
    from nosync_lint.guard.simulated.kernels import register

    register(name, kernel, syncs)
