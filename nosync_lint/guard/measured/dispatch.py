"""Watches every operation of torch while it runs on a device: whether the host waited is measured where it can be, why
is looked up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import Any

from nosync_lint.guard.measured.waits import Waits
from nosync_lint.guard.operations.constructs import THREAD, in_backward
from nosync_lint.guard.operations.copies import COPIES, note_copy, note_read
from nosync_lint.guard.operations.modes import DeviceMode
from nosync_lint.guard.operations.sightings import entries, judge, meet, saw_elsewhere, saw_measured
from nosync_lint.guard.operations.table import Operation, causes, operation_of


class MeasuredDevice(DeviceMode):  # type: ignore[no-untyped-call]
    """Sees every operation of its thread, and those of the engine's threads that go back for it.

    `calling` is the context of the thread while it waits for the engine: guards belong to a thread, and the engine has
    others for the device.
    """

    def __init__(self, waits: Waits) -> None:
        super().__init__()
        self._waits = waits
        waits.since()  # what was before is nobody's
        self._thread = threading.get_ident()
        self.calling: Context | None = None

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Code is compiled as without a guard; what it calls is seen when it runs."""
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        operation = operation_of(func)
        if operation.composite:
            with self:
                return func.decompose(*args, **kwargs)
        if self._waits.since() and not _in_whole() and threading.get_ident() == self._thread:
            saw_elsewhere()
        if COPIES.pending:
            note_read(operation, args, kwargs)
        try:
            out = func(*args, **kwargs)
        except Exception:
            if self._waits.since():
                self._tell(told, operation, args, kwargs, True)
            raise
        if operation.copies:
            note_copy(operation, args, kwargs, out)
        waited = self._waits.since() if self._waits.are_measured else None
        if waited is not False or operation.may_block:
            self._tell(told, operation, args, kwargs, waited)
        return out

    def _tell(self, tell: Callable[..., None], *what: Any) -> None:
        """Tells the guards of the thread that all this is for."""
        if threading.get_ident() == self._thread:
            tell(*what)
        elif self.calling is not None:
            with in_backward(self._thread):
                self.calling.copy().run(tell, *what)

    @contextmanager
    def engine(self) -> Iterator[None]:
        """While the engine goes back for this thread."""
        outer, self.calling = self.calling, copy_context()
        try:
            with in_backward(None):
                yield
        finally:
            self.calling = outer


def told(operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any], waited: bool | None) -> None:
    """Tells the guards of an operation that waited, or may have inside the driver, which nothing shows.

    Where it is not known whether it waited, the table alone says so.
    """
    if _in_whole():
        return
    if waited is None:
        judge(operation, args, kwargs)
        return
    if waited:
        COPIES.waited()
    explained = False
    for entry in entries(operation, args, kwargs):
        hidden = causes().cause(entry.row).hidden
        if hidden or waited:
            explained = meet(operation, entry) or explained
    if waited and not explained:
        saw_measured(operation)


def _in_whole() -> bool:
    """Whether this is part of what is told of as a whole."""
    return THREAD.construct is not None and THREAD.construct.kind == "python"
