"""The one place that talks to torch and to the stub libraries' recorder. Importable in a runner's environment only."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

torch: Any = importlib.import_module("torch")
numpy: Any = importlib.import_module("numpy")
_harness: Any = importlib.import_module("harness")
_library: Any = _harness.m

SYNCHRONISATIONS = ("stream", "device", "event", "msync")
"""Waits for a stream, the device or an event, and blocking copies, as the harness counts them."""
AS_IT_IS = -1
"""For `reads_give`: small reads give what the memory holds, as all others do."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What torch asked of the CUDA runtime: waits, and copies marked asynchronous from or to pageable memory."""

    syncs: int
    pageable: int


def start() -> None:
    """Forget what is recorded and go on recording."""
    _library.mock_start()


def take() -> Recorded | None:
    """What was recorded since `start`, None if nothing was. Recording goes on."""
    text = _library.mock_stop().decode()
    _library.mock_start()
    if not text:
        return None
    counted = _harness.summ(text)
    return Recorded(sum(counted[kind] for kind in SYNCHRONISATIONS), len(counted["pageable_async"]))


def reads_give(value: int) -> None:
    """What small reads of device memory give, as no kernel has computed anything."""
    _library.mock_smallfill(value)


def version() -> str:
    return str(torch.__version__)
