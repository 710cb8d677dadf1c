"""The mode that sees the operations of a thread, and what torch remembers of modes for the whole process.

A mode that is left puts back what it found. Where threads enter and leave in turns, that is not what was there before
all of them, and Dynamo would believe for good that a mode is on: so that is put back when the last guard is left.
"""

from __future__ import annotations

from typing import Any, Self

import torch
import torch.utils._python_dispatch as modes

_C: Any = torch._C
_NAMES = (
    "_is_in_torch_dispatch_mode",
    "_is_in_non_infra_torch_dispatch_mode",
    "_is_in_any_mode_without_ignore_compile_internals",
)
Flags = dict[str, bool]


class DeviceMode(modes.TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Python data for the device comes to it as well: for a thread, torch copies that to the device only afterwards."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._lifts_only_host: list[bool] = []

    def __enter__(self) -> Self:
        self._lifts_only_host.append(_C._only_lift_cpu_tensors())
        _C._set_only_lift_cpu_tensors(True)
        found: Self = super().__enter__()  # type: ignore[no-untyped-call]
        return found

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)  # type: ignore[no-untyped-call]
        _C._set_only_lift_cpu_tensors(self._lifts_only_host.pop())

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing here is for Dynamo: without this, each operation would go through one more wrapper


def flags() -> Flags:
    """The flags as they are; later releases have more of them."""
    return {name: getattr(modes, name) for name in _NAMES if hasattr(modes, name)}


def put_back(found: Flags) -> None:
    """Sets them, where C++ keeps one of them as well."""
    for name, value in found.items():
        setattr(modes, name, value)
    tell: Any = getattr(modes, "set_is_in_mode_without_ignore_compile_internals", None)
    if tell is not None:
        tell(found[_NAMES[-1]])
