"""While a guard is open nothing is compiled: what is compiled runs eagerly, so that its operations are seen."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.jit._builtins
from torch._higher_order_ops.flex_attention import FlexAttentionHOP, sdpa_dense

from nosync_lint.guard.operations.constructs import within
from nosync_lint.guard.patches import Patches
from nosync_lint.guard.scopes import unseen
from nosync_lint.guard.simulated.tensor import SimulatedTensor


class EagerOnly:
    """Dynamo's stance is put back. Dynamo imported inside a guard has stand-ins in its tables: these are made anew."""

    def __init__(self) -> None:
        self._stance: Any = None
        self._was_loaded = False

    def begin(self, patches: Patches) -> None:
        """From here on `torch.compile` gives back what it is given, and what was compiled before runs eagerly."""
        self._was_loaded = "torch._dynamo" in sys.modules
        self._stance = torch.compiler.set_stance("force_eager") if self._was_loaded else None
        patches.set(torch, "compile", _not_compiled)
        patches.set(torch, "cond", _cond)
        patches.set(FlexAttentionHOP, "__call__", _attention(FlexAttentionHOP.__call__))

    def end(self) -> None:
        """Compiling works as before."""
        if self._stance is not None:
            self._stance.__exit__(None, None, None)
            self._stance = None
        rules: Any = sys.modules.get("torch._dynamo.trace_rules")
        if rules is not None and not self._was_loaded:
            rules.get_torch_obj_rule_map.cache_clear()


def script_what_is_replaced(patches: Patches) -> None:
    """`torch.jit.script` knows the functions of torch by what they are: stand-ins count as what they stand for.

    To be called before anything is replaced: what torch knows it finds once, by looking.
    """
    torch.jit._builtins._get_builtin_table()  # type: ignore[no-untyped-call]
    find: Any = torch.jit._builtins._find_builtin
    patches.set(torch.jit._builtins, "_find_builtin", lambda function: find(_original(function)))


def _original(function: Any) -> Any:
    while str(getattr(function, "__module__", "")).startswith(_GUARD) and hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


_GUARD = __name__.rpartition(".")[0]


def _cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: tuple[Any, ...] | list[Any] = ()
) -> Any:
    """`torch.cond` as it runs eagerly: the predicate is read, and one branch runs."""
    with within("cond", "torch.cond"):
        taken = bool(pred)
    return (true_fn if taken else false_fn)(*operands)


@cache
def _attention(original: Callable[..., Any]) -> Callable[..., Any]:
    """`flex_attention` is meant to be compiled, and traces its backward: what it computes runs instead, and as the
    kernel waits for nothing, nothing of that is seen."""

    def attention(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(query, SimulatedTensor):
            return original(self, query, *args, **kwargs)
        with unseen():
            return sdpa_dense(query, *args, **kwargs)

    return attention


def _not_compiled(model: Callable[..., Any] | None = None, **_: Any) -> Any:
    return (lambda function: function) if model is None else model
