"""Operations that torch chooses on a device and that do something else, or nothing, on the host: what runs instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_aten = torch.ops.aten


def _lstm_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    cx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    gates = _with_bias(input_gates, input_bias) + _with_bias(hidden_gates, hidden_bias)
    enter, forget, cell, out = gates.chunk(4, 1)
    cy = forget.sigmoid() * cx + enter.sigmoid() * cell.tanh()
    return out.sigmoid() * cy.tanh(), cy, gates


def _gru_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    hx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    reset, update, new = _with_bias(input_gates, input_bias).chunk(3, 1)
    hidden_reset, hidden_update, hidden_new = _with_bias(hidden_gates, hidden_bias).chunk(3, 1)
    fresh = (new + (reset + hidden_reset).sigmoid() * hidden_new).tanh()
    return fresh + (update + hidden_update).sigmoid() * (hx - fresh), fresh


def _with_bias(gates: Tensor, bias: Tensor | None) -> Tensor:
    return gates if bias is None else gates + bias


def _histogram(values: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """The host counts numbers with a fraction only; the device counts integers as well, as models with experts do."""
    if values.is_floating_point():
        return values.histc(bins, min, max)
    return values.double().histc(bins, min, max).to(values.dtype)


def _product(left: Tensor, right: Tensor, out_dtype: torch.dtype) -> Tensor:
    """A product that is summed in a wider type, which only the device has."""
    return left.to(out_dtype) @ right.to(out_dtype)


def _added_product(
    added: Tensor, left: Tensor, right: Tensor, out_dtype: torch.dtype, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    return beta * added.to(out_dtype) + alpha * _product(left, right, out_dtype)


def _plain_attention(*_: Any, **__: Any) -> int:
    return 0  # SDPBackend.MATH: made of operations that every device has


def _no(*_: Any, **__: Any) -> bool:
    return False


_NOT_CHOSEN = [getattr(_aten, name) for name in ("_use_cudnn_ctc_loss", "_use_miopen_ctc_loss") if hasattr(_aten, name)]
"""Questions whether a library of the device is to be used; not every release asks all of them."""

LEAVES: dict[Any, Callable[..., Any]] = {
    _aten._thnn_fused_lstm_cell.default: _lstm_cell,
    _aten._thnn_fused_gru_cell.default: _gru_cell,
    _aten.histc.default: _histogram,
    _aten.mm.dtype: _product,
    _aten.bmm.dtype: _product,
    _aten.addmm.dtype: _added_product,
    _aten.baddbmm.dtype: _added_product,
    _aten._fused_sdp_choice.default: _plain_attention,
    _aten._embedding_bag_forward_only.default: _aten._embedding_bag.default,
    _aten._conj.default: torch.conj_physical,
    _aten._neg_view.default: torch.neg,
    **{getattr(packet, name): _no for packet in _NOT_CHOSEN for name in packet.overloads()},
}
"""By overload, over inner tensors. Whether a gradient is wanted or a view conjugates cannot be told from outside."""
