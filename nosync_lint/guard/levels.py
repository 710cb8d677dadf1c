"""How strict a guard is: the levels, and the directions in which a wait goes."""

from __future__ import annotations

import os
from enum import StrEnum

ENVIRONMENT = "NOSYNC_GUARD_LEVEL"
BACKENDS = ("auto", "simulated", "cuda", "stub")
"""Where guarded code may run; `auto` takes the one that works here."""


class Direction(StrEnum):
    """Which way what is waited for goes: to the host, to the device, or nothing goes and the wait is written out."""

    D2H = "d2h"
    H2D = "h2d"
    WAIT = "wait"


class Reaction(StrEnum):
    """What a guard does about an event: every event is recorded."""

    RECORD = "record"
    LOG = "log"
    REFUSE = "refuse"


class Level(StrEnum):
    """How strict a guard is. A wait is explicit where the code spells it out: `.item()`, `.cpu()`, `synchronize()`.

    `log` and `disallow` are about implicit waits, `log_explicit` and `disallow_explicit` about all of them.
    """

    ALLOW = "allow"
    LOG = "log"
    DISALLOW = "disallow"
    LOG_EXPLICIT = "log_explicit"
    DISALLOW_EXPLICIT = "disallow_explicit"

    def reaction(self, explicit: bool) -> Reaction:
        """What this level does about a wait."""
        if self is Level.ALLOW or (explicit and not self.value.endswith("_explicit")):
            return Reaction.RECORD
        return Reaction.LOG if self.value.startswith("log") else Reaction.REFUSE


def level_named(name: str) -> Level:
    """The level of this name. Raises `ValueError`, which lists the names."""
    try:
        return Level(name)
    except ValueError:
        raise ValueError(f"unknown level `{name}`: one of {', '.join(Level)}") from None


def default_level() -> Level:
    """The level of a guard that names none: from the environment, else `disallow`."""
    return level_named(os.environ.get(ENVIRONMENT) or Level.DISALLOW)
