"""Copies between host and device on the way back: the gradient takes the other direction, and the host waits for it.

The graph is one of tensors of the host, so its nodes do not know of the device. A copy that crosses tells its node.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from nosync_lint.guard.simulated.tensor import SimulatedTensor, asks_for_grad

_NODES = frozenset({"ToCopyBackward0", "CopyBackwards", "CopySlices"})
_ROW = "nosync_row"


def remember(out: Tensor, source: Tensor, target_on_device: bool) -> None:
    """Tell the node of a copy, if it crosses. `out` is its result on the host, or the tensor inside of that.

    A copy into a view is a node of what it is a view of. A source without a gradient gets none.
    """
    on_device = isinstance(source, SimulatedTensor)
    inner = source._inner if isinstance(source, SimulatedTensor) else source
    if on_device is target_on_device or not asks_for_grad(inner):
        return
    node: Any = (out if out._base is None else out._base).grad_fn
    if node is not None:
        node.metadata[_ROW] = "h2d.to_blocking" if on_device else "d2h.cpu"


def row_of(node: Any) -> str | None:
    """The row of the wait that a node makes on the way back; None of one that does not cross."""
    return node.metadata.get(_ROW) if node.name().rpartition("::")[2] in _NODES else None
