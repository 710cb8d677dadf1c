"""What torch remembers of modes for the whole process, although each belongs to a thread.

A mode that is left puts back what it found. Where threads enter and leave in turns, that is not what was there before
all of them, and Dynamo would believe for good that a mode is on.
"""

from __future__ import annotations

from typing import Any

import torch.utils._python_dispatch as modes

_NAMES = (
    "_is_in_torch_dispatch_mode",
    "_is_in_non_infra_torch_dispatch_mode",
    "_is_in_any_mode_without_ignore_compile_internals",
)
Flags = dict[str, bool]


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
