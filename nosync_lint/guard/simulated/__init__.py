"""A device that is not there: tensors that say `cuda`, with real values, on any build of torch."""

from __future__ import annotations

import threading
from typing import Any

import torch

from nosync_lint.guard.causes import UnknownRelease
from nosync_lint.guard.events import CannotSimulate
from nosync_lint.guard.scopes import leave as leave_scope
from nosync_lint.guard.scopes import silence
from nosync_lint.guard.simulated.canary import sing
from nosync_lint.guard.simulated.compiling import EagerOnly
from nosync_lint.guard.simulated.device_api import stand_in
from nosync_lint.guard.simulated.device_guard import install
from nosync_lint.guard.simulated.dispatch import SimulatedDevice, causes
from nosync_lint.guard.simulated.files import load_through_host
from nosync_lint.guard.simulated.from_data import read_elements
from nosync_lint.guard.simulated.gradients import bridge
from nosync_lint.guard.simulated.lazy import make_later
from nosync_lint.guard.simulated.patches import Patches
from nosync_lint.guard.simulated.refusals import refuse


class _Thread(threading.local):
    """The mode of this thread, and how many guards hold it."""

    mode: Any = None
    guards: int = 0


class Simulation:
    """The device while any guard is open: attributes of torch are replaced once, each thread has its own mode."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._guards = 0
        self._patches = Patches()
        self._eager = EagerOnly()
        self._lifts_only_host = self._cudnn = True
        self._thread = _Thread()
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
        if not self._thread.guards:
            mode: Any = SimulatedDevice
            self._thread.mode = mode()
            self._thread.mode.__enter__()
        self._thread.guards += 1
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
        self._thread.guards -= 1
        if not self._thread.guards:
            self._thread.mode.__exit__(None, None, None)
            self._thread.mode = None
        with self._lock:
            self._guards -= 1
            if not self._guards:
                self._end()

    def _begin(self) -> None:
        if torch.cuda.is_available():
            raise CannotSimulate(
                "there is a real device, and the guard cannot watch one yet: hide it with CUDA_VISIBLE_DEVICES="
            )
        self._lifts_only_host = torch._C._only_lift_cpu_tensors()
        self._cudnn = torch._C._get_cudnn_enabled()
        try:
            stand_in(self._patches)
            bridge(self._patches)
            refuse(self._patches)
            read_elements(self._patches)
            load_through_host(self._patches)
            make_later(self._patches)
            self._eager.begin(self._patches)
            torch._C._set_only_lift_cpu_tensors(True)
            torch._C._set_cudnn_enabled(False)
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        torch._C._set_only_lift_cpu_tensors(self._lifts_only_host)
        torch._C._set_cudnn_enabled(self._cudnn)
        self._eager.end()
        self._patches.undo()


SIMULATION = Simulation()

__all__ = ["SIMULATION", "Simulation"]
