"""A device that is not there: tensors that say `cuda`, with real values, on any build of torch."""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch.utils import _python_dispatch

from nosync_lint.guard.causes import UnknownRelease
from nosync_lint.guard.events import CannotSimulate
from nosync_lint.guard.scopes import leave as leave_scope
from nosync_lint.guard.scopes import silence
from nosync_lint.guard.simulated.attention import attend_by_parts
from nosync_lint.guard.simulated.canary import sing
from nosync_lint.guard.simulated.compiling import EagerOnly, script_what_is_replaced
from nosync_lint.guard.simulated.constructs import THREAD
from nosync_lint.guard.simulated.device_api import stand_in
from nosync_lint.guard.simulated.device_guard import install
from nosync_lint.guard.simulated.dispatch import SimulatedDevice, causes
from nosync_lint.guard.simulated.files import load_through_host
from nosync_lint.guard.simulated.from_data import read_elements
from nosync_lint.guard.simulated.gradients import bridge
from nosync_lint.guard.simulated.hooks import show_the_device
from nosync_lint.guard.simulated.named_devices import name_devices
from nosync_lint.guard.simulated.patches import Patches
from nosync_lint.guard.simulated.refusals import refuse

_FLAGS = [name for name, value in vars(_python_dispatch).items() if name.startswith("_is_in_") and type(value) is bool]
"""What torch remembers of modes for the whole process: those of threads that cross leave it wrong."""


class Simulation:
    """The device while any guard is open: attributes of torch are replaced once, each thread has its own mode."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._guards = 0
        self._patches = Patches()
        self._eager = EagerOnly()
        self._cudnn = True
        self._works = False

    def enter(self) -> str:
        """One guard more. Gives the release of torch that is judged for. Raises `CannotSimulate`."""
        try:
            release = causes().release
        except UnknownRelease as error:
            raise CannotSimulate(str(error)) from error
        install()
        with self._lock:
            if not self._guards:
                self._begin()
            self._guards += 1
        if not THREAD.guards:
            mode: Any = SimulatedDevice
            THREAD.mode = mode()
            THREAD.mode.__enter__()
        THREAD.guards += 1
        if not self._works:
            self._try()
        return release

    def _try(self) -> None:
        token = silence()
        try:
            sing()
            self._works = True
        except BaseException:
            self.leave()
            raise
        finally:
            leave_scope(token)

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

    def _begin(self) -> None:
        if torch.cuda.is_available():
            raise CannotSimulate(
                "there is a real device, and the guard cannot watch one yet: hide it with CUDA_VISIBLE_DEVICES="
            )
        self._cudnn = torch._C._get_cudnn_enabled()
        try:
            for name in _FLAGS:
                self._patches.set(_python_dispatch, name, getattr(_python_dispatch, name))
            script_what_is_replaced(self._patches)
            stand_in(self._patches)
            bridge(self._patches)
            refuse(self._patches)
            read_elements(self._patches)
            load_through_host(self._patches)
            name_devices(self._patches)
            show_the_device(self._patches)
            attend_by_parts(self._patches)
            self._eager.begin(self._patches)
            torch._C._set_cudnn_enabled(False)
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        torch._C._set_cudnn_enabled(self._cudnn)
        self._eager.end()
        self._patches.undo()


SIMULATION = Simulation()

__all__ = ["SIMULATION", "Simulation"]
