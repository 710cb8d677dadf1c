"""The linter's rules while code runs: tests that fail where the host would wait for a device, without one.

    with guard(level="disallow") as report:
        step(model, batch)

Importing this imports no torch; opening a guard does. Names are imported when they are first asked for: the pytest
plugin is part of runs that use none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nosync_lint.guard.device import register_kernel, to_device, to_host
    from nosync_lint.guard.events import (
        CannotGuard,
        CannotSimulate,
        EarlyRead,
        EarlyReadError,
        Event,
        GuardReport,
        SyncError,
    )
    from nosync_lint.guard.levels import Direction, Level
    from nosync_lint.guard.sessions import allow_sync, guard

_MODULES = {
    "CannotGuard": "events",
    "CannotSimulate": "events",
    "EarlyRead": "events",
    "EarlyReadError": "events",
    "Direction": "levels",
    "Event": "events",
    "GuardReport": "events",
    "Level": "levels",
    "SyncError": "events",
    "allow_sync": "sessions",
    "guard": "sessions",
    "register_kernel": "device",
    "to_device": "device",
    "to_host": "device",
}

__all__ = [
    "CannotGuard",
    "CannotSimulate",
    "Direction",
    "EarlyRead",
    "EarlyReadError",
    "Event",
    "GuardReport",
    "Level",
    "SyncError",
    "allow_sync",
    "guard",
    "register_kernel",
    "to_device",
    "to_host",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
