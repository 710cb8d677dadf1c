"""Attention in builds of torch with CUDA: C++ asks the driver which kernel suits, before anybody can answer for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from nosync_lint.guard.patches import Patches
from nosync_lint.guard.simulated.tensor import SimulatedTensor


def attend_by_parts(patches: Patches) -> None:
    """Replaces `scaled_dot_product_attention` where it would ask: it is made of operations that every device has."""
    if torch.version.cuda is not None:
        functional = torch.nn.functional
        patches.set(functional, "scaled_dot_product_attention", _attend(functional.scaled_dot_product_attention))


@cache
def _attend(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def attend(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        **options: Any,
    ) -> Tensor:
        if not isinstance(query, SimulatedTensor):
            return original(query, key, value, attn_mask, dropout_p, is_causal, **options)
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            weights = torch.zeros_like(attn_mask, dtype=query.dtype)
            attn_mask = weights.masked_fill(attn_mask.logical_not(), float("-inf"))
        attention: Any = torch.ops.aten._scaled_dot_product_attention_math
        found: tuple[Tensor, Tensor] = attention(query, key, value, attn_mask, dropout_p, is_causal, **options)
        return found[0]

    return attend
