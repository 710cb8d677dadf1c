"""Which memory of the host counts as pinned. A build of torch without a device has none, so it is remembered."""

from __future__ import annotations

from torch import Tensor

_MARK = "_nosync_pinned"


def pin(tensor: Tensor) -> Tensor:
    """Marks the memory of a tensor of the host. Returns the tensor."""
    setattr(tensor.untyped_storage(), _MARK, True)
    return tensor


def is_pinned(tensor: Tensor) -> bool:
    """Whether the memory of a tensor was marked; views share it."""
    return getattr(tensor.untyped_storage(), _MARK, False)
