"""Where guarded code runs: what is replaced in torch while a guard is open, and the mode that sees operations.

The names are `BACKENDS` of `levels`. `simulated` runs on any build of torch, `cuda` and `stub` need one for CUDA.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any

from nosync_lint.guard.events import CannotGuard


class _Thread(threading.local):
    """The mode of this thread, and how many guards hold it. Guards of one process are over one backend."""

    mode: Any = None
    guards: int = 0


THREAD = _Thread()


class Backend(ABC):
    """Attributes of torch are replaced once while any guard is open, and each thread has a mode of its own."""

    name: str

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._guards = 0

    def enter(self) -> str:
        """One guard more. Gives the release of torch that is judged for. Raises `CannotGuard`."""
        release = self._release()
        with self._lock:
            if not self._guards:
                self._begin()
            self._guards += 1
        if not THREAD.guards:
            THREAD.mode = self._mode()
            THREAD.mode.__enter__()
        THREAD.guards += 1
        return release

    def leave(self) -> None:
        """One guard less, in the thread that entered it."""
        THREAD.guards -= 1
        if not THREAD.guards:
            THREAD.mode.__exit__(None, None, None)
            THREAD.mode = None
        with self._lock:
            self._guards -= 1
            if not self._guards:
                self._end()

    @property
    def is_open(self) -> bool:
        """Whether some guard runs on it, in any thread."""
        return self._guards > 0

    @abstractmethod
    def works(self) -> bool:
        """Whether it is the one for this process."""

    @abstractmethod
    def onto_device(self, tensor: Any) -> Any:
        """A copy of a tensor on the device, or the tensor where it is there; no guard sees this."""

    @abstractmethod
    def onto_host(self, tensor: Any) -> Any:
        """A copy of a tensor on the host; no guard sees this."""

    @abstractmethod
    def _release(self) -> str:
        """The release of torch that runs. Raises `CannotGuard` where this backend cannot work with it."""

    @abstractmethod
    def _begin(self) -> None:
        """Replaces attributes of torch. Raises `CannotGuard`, with everything put back."""

    @abstractmethod
    def _end(self) -> None:
        """Puts everything back."""

    @abstractmethod
    def _mode(self) -> Any:
        """A mode that sees the operations of this thread."""


def backend_named(name: str) -> Backend:
    """The backend of this name; `auto` is the one that is open, else the one that works here. Imports torch.

    Raises `CannotGuard` where there is no torch, where the process is not what the backend needs, and where guards over
    another backend are open.
    """
    try:
        from nosync_lint.guard.measured import CUDA, STUB
        from nosync_lint.guard.simulated import SIMULATION
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise CannotGuard("there is no torch to watch: pip install nosync-lint[guard]") from error

    known: tuple[Backend, ...] = (SIMULATION, CUDA, STUB)
    opened = next((one for one in known if one.is_open), None)
    if name == "auto":
        return opened or next(one for one in (STUB, CUDA, SIMULATION) if one.works())
    chosen = next(one for one in known if one.name == name)
    if opened is not None and opened is not chosen:
        raise CannotGuard(f"a guard over `{opened.name}` is open: one over `{name}` has to wait")
    return chosen
