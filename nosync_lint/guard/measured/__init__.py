"""A device that is there: torch on its CUDA runtime says where the host waits. The runtime may be the stub runtime."""

from __future__ import annotations

from typing import Any

import torch

from nosync_lint.guard import listener, stub
from nosync_lint.guard.backend import Backend
from nosync_lint.guard.causes import UnknownRelease
from nosync_lint.guard.events import CannotGuard
from nosync_lint.guard.measured.calls import replace_calls
from nosync_lint.guard.measured.dispatch import MeasuredDevice
from nosync_lint.guard.measured.waits import Waits
from nosync_lint.guard.operations.copies import read_early
from nosync_lint.guard.operations.modes import Flags, flags, put_back
from nosync_lint.guard.operations.table import causes
from nosync_lint.guard.patches import Patches
from nosync_lint.guard.scopes import unseen
from nosync_lint.guard.stub import Recorder


class Measurement(Backend):
    """Guards over a CUDA runtime: that of a GPU, or the stubs."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self._patches = Patches()
        self._waits = Waits(_recorder())
        self._flags: Flags = {}

    def works(self) -> bool:
        return stub.is_loaded() == (self.name == "stub") and torch.cuda.is_available()

    def onto_device(self, tensor: torch.Tensor) -> torch.Tensor:
        with unseen():
            return tensor if tensor.is_cuda else tensor.detach().cuda().requires_grad_(tensor.requires_grad)

    def onto_host(self, tensor: torch.Tensor) -> torch.Tensor:
        with unseen():
            # nosync-lint: ignore[NSL203] what is asked for, and no part of what is guarded
            return tensor.detach().to("cpu", copy=True)

    def _release(self) -> str:
        if self.name == "stub" and not stub.is_loaded():
            raise CannotGuard(
                "the stub runtime is not there: start with `pytest -o nosync_backend=stub`, or with "
                "`python -m nosync_lint.guard.stub program.py`, on Linux, with a CUDA build of torch"
            )
        if self.name == "cuda" and stub.is_loaded():
            raise CannotGuard('this process runs on the stub runtime: guard with backend="stub"')
        if not torch.cuda.is_available():
            raise CannotGuard(f'torch {torch.__version__} finds no CUDA device: guard with backend="simulated"')
        try:
            return causes().release
        except UnknownRelease as error:
            raise CannotGuard(str(error)) from error

    def _begin(self) -> None:
        torch.cuda.init()  # type: ignore[no-untyped-call]
        self._flags = flags()
        replace_calls(self._patches, self._waits)
        read_early(self._patches)

    def _end(self) -> None:
        self._patches.undo()
        put_back(self._flags)

    def _mode(self) -> Any:
        mode: Any = MeasuredDevice
        return mode(self._waits)


def _recorder() -> Recorder | None:
    if stub.is_loaded():
        return stub.recorder()
    return listener.recorder() if listener.is_loaded() else None


CUDA, STUB = Measurement("cuda"), Measurement("stub")

__all__ = ["CUDA", "STUB", "Measurement"]
