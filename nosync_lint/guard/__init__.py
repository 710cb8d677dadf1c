"""The linter's rules while code runs: tests that fail where the host would wait for a device, without one.

    with guard(level="disallow") as report:
        step(model, batch)

Importing this imports no torch; opening a guard does.
"""

from nosync_lint.guard.device import register_kernel, to_device, to_host
from nosync_lint.guard.events import Event, GuardReport, SyncError
from nosync_lint.guard.levels import Direction, Level
from nosync_lint.guard.sessions import allow_sync, guard

__all__ = [
    "Direction",
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
