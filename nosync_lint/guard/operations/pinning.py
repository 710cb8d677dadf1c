"""Which memory of the host counts as pinned. Without a device torch pins none, so what was asked for is remembered."""

from __future__ import annotations

import torch
from torch import Tensor

_MARK = "_nosync_pinned"


def pin(tensor: Tensor) -> Tensor:
    """Marks the memory of a tensor of the host. Returns the tensor."""
    setattr(tensor.untyped_storage(), _MARK, True)
    return tensor


def is_pinned(tensor: Tensor) -> bool:
    """Whether the memory of a tensor was marked, or is pinned indeed; views share it."""
    return getattr(tensor.untyped_storage(), _MARK, False) or (torch.version.cuda is not None and tensor.is_pinned())
