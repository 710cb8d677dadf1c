"""Loading from a file to the device: the file is read to the host, and what is in it is copied up."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from nosync_lint.guard.operations.constructs import LOADED
from nosync_lint.guard.operations.moves import moved
from nosync_lint.guard.operations.sightings import saw_read
from nosync_lint.guard.patches import Patches
from nosync_lint.guard.simulated.moves import onto_device


def load_through_host(patches: Patches) -> None:
    """Replaces `torch.load` where `map_location` names the device. Everything else is loaded as ever."""
    patches.set(torch, "load", _load(torch.load))


@cache
def _load(original: Callable[..., Any]) -> Callable[..., Any]:
    def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(map_location, str | torch.device) or torch.device(map_location).type != "cuda":
            return original(f, map_location, *args, **kwargs)
        loaded = original(f, "cpu", *args, **kwargs)
        saw_read(*LOADED)
        return moved(loaded, onto_device)

    return load
