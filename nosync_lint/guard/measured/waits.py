"""Whether a thread has waited for the device, told by a recorder of the CUDA runtime where one was put in its place.

Torch's own trace of the runtime would tell as well, but while it is on, errors get lost: freeing a tensor imports a
module of Python, and that fails where an exception is under way.
"""

from __future__ import annotations

import threading

from nosync_lint.guard.stub import Recorder


class _Thread(threading.local):
    told: int | None = None


class Waits:
    """The waits of each thread. Without a recorder nothing is measured."""

    def __init__(self, recorder: Recorder | None) -> None:
        self._thread = _Thread()
        self._recorder = recorder

    @property
    def are_measured(self) -> bool:
        return self._recorder is not None

    def count(self) -> int:
        """The waits of this thread so far; 0 where nothing is measured."""
        return 0 if self._recorder is None else self._recorder.waits

    def since(self) -> bool:
        """Whether this thread waited since it last asked; not so when it asks for the first time."""
        now, before = self.count(), self._thread.told
        self._thread.told = now
        return before is not None and now > before
