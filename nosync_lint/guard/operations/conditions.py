"""When an operation waits, where that depends on its arguments: the conditions that `models/dispatch.toml` names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nosync_lint.guard.levels import Direction
from nosync_lint.guard.operations.constructs import THREAD
from nosync_lint.guard.operations.pinning import is_pinned

Parameters = dict[str, tuple[int, Any]]
"""The parameters of an overload: where each stands among the arguments, and its default."""


def parameters(schema: Any) -> Parameters:
    """Those of a schema."""
    return {
        one.name: (at, one.default_value if one.has_default_value() else None)
        for at, one in enumerate(schema.arguments)
    }


class Call:
    """One operation with its arguments by name. `copied` is what `_copied` found, for the next condition to ask."""

    __slots__ = ("_args", "_kwargs", "_parameters", "copied")

    def __init__(self, known: Parameters, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._parameters, self._args, self._kwargs = known, args, kwargs
        self.copied: tuple[Tensor, Direction | None] | None = None

    def __getitem__(self, name: str) -> Any:
        """The argument of this name, or its default; None where the overload has none such."""
        if name in self._kwargs:
            return self._kwargs[name]
        at, default = self._parameters.get(name, (len(self._args), None))
        return self._args[at] if at < len(self._args) else default


def on_device(value: Any) -> bool:
    """Whether a value is a tensor on the device. While the simulated backward runs, every tensor stands for one."""
    return isinstance(value, Tensor) and (THREAD.as_device or value.is_cuda)


def on_host(value: Any) -> bool:
    return isinstance(value, Tensor) and not on_device(value)


def _dense(tensor: Tensor) -> bool:
    """Whether the elements lie beside each other, in any order."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def _indices(call: Call) -> list[Tensor]:
    return [index for index in call["indices"] if index is not None]


def _masks(call: Call) -> list[Tensor]:
    return [index for index in _indices(call) if index.dtype in (torch.bool, torch.uint8)]


# -- copies --


def _copied(call: Call) -> tuple[Tensor, Direction | None]:
    """The source of a copy, and its direction; None within the host, within the device, and of nothing.

    The backward of a change of type names the device of the inner tensors: it stays where it is.
    """
    if call.copied is None:
        source, target = call["src"], call["self"]
        if source is None:
            source, device = target, call["device"]
            stays = device is None or (on_device(source) and not source.is_cuda)
            kind = ("cuda" if on_device(source) else "cpu") if stays else torch.device(device).type
        else:
            kind = "cuda" if on_device(target) else target.device.type
        way = {(False, "cuda"): Direction.H2D, (True, "cpu"): Direction.D2H}.get((on_device(source), kind))
        call.copied = source, way if source.numel() else None
    return call.copied


def _uploads(call: Call) -> Tensor | None:
    source, way = _copied(call)
    return source if way is Direction.H2D else None


def _staged(call: Call) -> bool:
    """Whether an asynchronous copy goes through memory that is not pinned: between elements in different orders."""
    source, target = _copied(call)[0], call["self"]
    if call["src"] is None:
        return not _dense(source)
    return (
        not _dense(source) or not _dense(target) or (source.shape == target.shape and not _same_order(source, target))
    )


def _same_order(one: Tensor, other: Tensor) -> bool:
    sizes = zip(one.shape, one.stride(), other.stride(), strict=True)
    return all(size == 1 or mine == theirs for size, mine, theirs in sizes)


def uploads(call: Call) -> bool:
    """A blocking copy from the host. A 0-dim value for more than one element becomes a fill, which is no copy."""
    source = _uploads(call)
    if source is None or call["non_blocking"]:
        return False
    target = call["self"]
    return call["src"] is None or source.dim() > 0 or target.dim() == 0


def uploads_from_pageable(call: Call) -> bool:
    source = _uploads(call)
    return source is not None and bool(call["non_blocking"]) and not is_pinned(source)


def uploads_with_gaps(call: Call) -> bool:
    source = _uploads(call)
    return source is not None and bool(call["non_blocking"]) and is_pinned(source) and _staged(call)


def uploads_any(call: Call) -> bool:
    pairs = zip(call["self"], call["src"], strict=False)
    return not call["non_blocking"] and any(on_device(to) and on_host(source) for to, source in pairs)


def downloads(call: Call) -> bool:
    return _copied(call)[1] is Direction.D2H and not call["non_blocking"]


def downloads_later(call: Call) -> bool:
    """A copy to the host that is under way when the call returns, if its target is pinned."""
    return bool(call["non_blocking"]) and _copied(call)[1] is Direction.D2H and not _staged(call)


def downloads_to_pageable(call: Call) -> bool:
    return _copied(call)[1] is Direction.D2H and bool(call["non_blocking"]) and not is_pinned(call["self"])


def downloads_with_gaps(call: Call) -> bool:
    asked = _copied(call)[1] is Direction.D2H and bool(call["non_blocking"])
    return asked and is_pinned(call["self"]) and _staged(call)


def downloads_reordered(call: Call) -> bool:
    """A copy to memory of the host that is pinned for it, with the channels moved to the end."""
    order = call["memory_format"]
    asked = _copied(call)[1] is Direction.D2H and bool(call["non_blocking"])
    last = order in (torch.channels_last, torch.channels_last_3d)
    return asked and last and not call["self"].is_contiguous(memory_format=order)


# -- index reads and writes --


def device_mask(call: Call) -> bool:
    return on_device(call["self"]) and any(on_device(mask) for mask in _masks(call))


def device_mask_not_fill(call: Call) -> bool:
    """A mask that is counted: one mask and one value on the host becomes a masked fill, which counts nothing."""
    return device_mask(call) and not _fills(call)


def _fills(call: Call) -> bool:
    """Whether one device mask takes one value of the host."""
    masks, values = _masks(call), call["values"]
    alone = len(masks) == 1 and len(_indices(call)) == 1
    return alone and on_device(masks[0]) and on_host(values) and values.numel() == 1 and not call["accumulate"]


def host_index(call: Call) -> bool:
    """An index of integers on the host, beside a target on the device."""
    masks = _masks(call)
    return on_device(call["self"]) and any(
        on_host(index) and index.dim() and not any(index is mask for mask in masks) for index in _indices(call)
    )


def host_mask(call: Call) -> bool:
    return on_device(call["self"]) and any(on_host(mask) for mask in _masks(call))


def host_target(call: Call) -> bool:
    return on_host(call["self"]) and any(on_device(index) for index in _indices(call))


def host_value(call: Call) -> bool:
    """One value of the host, moved to the device before it is written."""
    return _moves_value(call) and not any(on_host(mask) for mask in _masks(call))


def host_value_by_host_mask(call: Call) -> bool:
    return _moves_value(call) and any(on_host(mask) for mask in _masks(call))


def _moves_value(call: Call) -> bool:
    values = call["values"]
    return on_device(call["self"]) and on_host(values) and values.numel() == 1 and not _fills(call)


def host_operand(call: Call) -> bool:
    return on_device(call["condition"]) and any(
        on_host(call[side]) and call[side].dim() == 0 for side in ("self", "other")
    )


def device_value(call: Call) -> bool:
    return on_device(call["value"])


# -- shapes that depend on data, hidden checks --


def equal_shapes(call: Call) -> bool:
    """Shapes that differ, and one tensor twice, are compared without reading."""
    mine, other = call["self"], call["other"]
    return mine.shape == other.shape and mine is not other


def device_ends(call: Call) -> bool:
    return on_device(call["start"]) or on_device(call["end"])


def no_dim(call: Call) -> bool:
    return call["dim"] is None


def dim(call: Call) -> bool:
    return call["dim"] is not None


def no_output_size(call: Call) -> bool:
    return call["output_size"] is None


def no_range(call: Call) -> bool:
    return bool(call["min"] == call["max"])


def sorts(call: Call) -> bool:
    """Whether the test elements are so many that torch sorts both, and counts."""
    many = float(call["test_elements"].numel()) >= 10.0 * float(call["elements"].numel()) ** 0.145
    return many and not call["assume_unique"]


def long_dimension(call: Call) -> bool:
    tensor = call["self"]
    return bool(tensor.dim() and tensor.shape[call["dim"]] > 2048)


def simple_draw(call: Call) -> bool:
    return not call["replacement"] or call["num_samples"] == 1


def device_deviation(call: Call) -> bool:
    return on_device(call["std"])


def sorter(call: Call) -> bool:
    return call["sorter"] is not None and bool(call["sorter"].numel())


def checked_lengths(call: Call) -> bool:
    return call["lengths"] is not None and not call["unsafe"]


def check_errors(call: Call) -> bool:
    return bool(call["check_errors"])


def _matrix(call: Call) -> Tensor:
    """The matrix that a function of linear algebra is about, under whatever name."""
    found: Tensor = next(call[name] for name in ("A", "self", "LD") if call[name] is not None)
    return found


def not_empty(call: Call) -> bool:
    return bool(_matrix(call).numel())


def empty(call: Call) -> bool:
    return not call["self"].numel()


def complex_hermitian(call: Call) -> bool:
    return bool(call["hermitian"]) and call["self"].is_complex() and not_empty(call)


def beyond_cublas(call: Call) -> bool:
    """Whether a matrix is factored by MAGMA: torch's choice between it, cuBLAS and cuSOLVER goes by size."""
    matrix = _matrix(call)
    rows, columns = matrix.shape[-2:]
    if not matrix.numel():
        return False
    batch = matrix.numel() // (rows * columns)
    return rows != columns or (batch > 1 and rows > 16 and (rows > 128 or batch > 16))


def named(name: str) -> Callable[[Call], bool]:
    """The condition of this name. Raises `KeyError`."""
    found: Callable[[Call], bool] = _CONDITIONS[name]
    return found


# fmt: off
_CONDITIONS = {
    function.__name__: function
    for function in (
        uploads, uploads_from_pageable, uploads_with_gaps, uploads_any, downloads, downloads_to_pageable,
        downloads_with_gaps, downloads_reordered, device_mask,
        device_mask_not_fill, host_index, host_mask, host_target, host_value, host_value_by_host_mask, host_operand,
        device_value, equal_shapes, device_ends, no_dim, dim, no_output_size, no_range, sorts, long_dimension,
        simple_draw, device_deviation, sorter, checked_lengths, check_errors, not_empty, empty,
        complex_hermitian, beyond_cublas,
    )
}
# fmt: on
