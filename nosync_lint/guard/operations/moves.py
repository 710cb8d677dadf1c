"""Tensors in containers and modules, moved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


def moved(value: Any, move: Callable[[Tensor], Tensor]) -> Any:
    """A tensor, a module, or tensors in tuples, lists and dicts, moved. Anything else is handed back."""
    if isinstance(value, Tensor):
        return move(value)
    if isinstance(value, nn.Module):
        with torch.no_grad():
            return value._apply(move)  # type: ignore[no-untyped-call]
    if isinstance(value, dict):
        return type(value)((key, moved(one, move)) for key, one in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(moved(one, move) for one in value))
    if isinstance(value, list | tuple):
        return type(value)(moved(one, move) for one in value)
    return value
