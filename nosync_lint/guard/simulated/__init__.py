"""A device that is not there: tensors that say `cuda`, with real values, on any build of torch."""

from __future__ import annotations

from typing import Any

import torch

from nosync_lint.guard.backend import Backend
from nosync_lint.guard.causes import UnknownRelease
from nosync_lint.guard.events import CannotSimulate
from nosync_lint.guard.operations.copies import read_early
from nosync_lint.guard.operations.modes import Flags, flags, put_back
from nosync_lint.guard.operations.table import causes
from nosync_lint.guard.patches import Patches
from nosync_lint.guard.scopes import unseen
from nosync_lint.guard.simulated.attention import attend_by_parts
from nosync_lint.guard.simulated.canary import sing
from nosync_lint.guard.simulated.compiling import EagerOnly, script_what_is_replaced
from nosync_lint.guard.simulated.device_api import stand_in
from nosync_lint.guard.simulated.device_guard import install
from nosync_lint.guard.simulated.dispatch import SimulatedDevice
from nosync_lint.guard.simulated.files import load_through_host
from nosync_lint.guard.simulated.from_data import read_elements
from nosync_lint.guard.simulated.gradients import bridge
from nosync_lint.guard.simulated.hooks import show_the_device
from nosync_lint.guard.simulated.lazy import make_later
from nosync_lint.guard.simulated.moves import onto_device, onto_host
from nosync_lint.guard.simulated.named_devices import name_devices
from nosync_lint.guard.simulated.refusals import refuse


class Simulation(Backend):
    """Guards over a device that is not there."""

    name = "simulated"

    def __init__(self) -> None:
        super().__init__()
        self._patches = Patches()
        self._eager = EagerOnly()
        self._cudnn = True
        self._flags: Flags = {}
        self._works = False

    def works(self) -> bool:
        """It is what is left where there is no device."""
        return True

    def enter(self) -> str:
        release = super().enter()
        if not self._works:
            self._try()
        return release

    def _try(self) -> None:
        try:
            with unseen():
                sing()
        except BaseException:
            self.leave()
            raise
        self._works = True

    def onto_device(self, tensor: torch.Tensor) -> torch.Tensor:
        return onto_device(tensor)

    def onto_host(self, tensor: torch.Tensor) -> torch.Tensor:
        return onto_host(tensor)

    def _release(self) -> str:
        try:
            release = causes().release
        except UnknownRelease as error:
            raise CannotSimulate(str(error)) from error
        install()
        return release

    def _mode(self) -> Any:
        mode: Any = SimulatedDevice
        return mode()

    def _begin(self) -> None:
        if torch.cuda.is_available():
            raise CannotSimulate(
                'there is a real device: guard it with backend="cuda", or hide it with CUDA_VISIBLE_DEVICES='
            )
        self._flags = flags()
        self._cudnn = torch._C._get_cudnn_enabled()
        try:
            script_what_is_replaced(self._patches)
            stand_in(self._patches)
            bridge(self._patches)
            refuse(self._patches)
            read_elements(self._patches)
            load_through_host(self._patches)
            read_early(self._patches)
            name_devices(self._patches)
            show_the_device(self._patches)
            attend_by_parts(self._patches)
            make_later(self._patches)
            self._eager.begin(self._patches)
            torch._C._set_cudnn_enabled(False)
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        torch._C._set_cudnn_enabled(self._cudnn)
        self._eager.end()
        self._patches.undo()
        put_back(self._flags)


SIMULATION = Simulation()

__all__ = ["SIMULATION", "Simulation"]
