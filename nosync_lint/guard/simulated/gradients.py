"""Autograd over simulated tensors: the graph is one of inner tensors, so what starts it is given those."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from nosync_lint.guard.operations.constructs import as_device, users_code
from nosync_lint.guard.operations.table import causes
from nosync_lint.guard.patches import Patches
from nosync_lint.guard.simulated import crossings
from nosync_lint.guard.simulated.tensor import HELD, SimulatedTensor, unwrapped, wrap
from nosync_lint.guard.witness import Sight, saw
from nosync_lint.models import load


def bridge(patches: Patches) -> None:
    """Replaces `torch.autograd.backward`, `torch.autograd.grad` and `Function.apply`."""
    patches.set(torch.autograd, "backward", _backward(torch.autograd.backward))
    patches.set(torch.autograd, "grad", _grad(torch.autograd.grad))
    patches.set(torch.autograd.Function, "apply", _apply(vars(torch.autograd.Function)["apply"]))


def inner(value: Any) -> Any:
    """Tensors of the device, alone or in a list, tuple or dict, as those inside."""
    if isinstance(value, dict):
        return {name: unwrapped(one) for name, one in value.items()}
    return tuple(unwrapped(one) for one in value) if isinstance(value, list | tuple) else unwrapped(value)


def _simulated(value: Any) -> bool:
    listed = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else (value,)
    return any(isinstance(one, SimulatedTensor) for one in listed)


@contextmanager
def _engine(roots: Any) -> Iterator[None]:
    """While the engine goes back over the device, every tensor stands for one there; over the host, none does."""
    nodes = list(_nodes(roots))
    if not _simulated(roots) and not any(hasattr(getattr(node, "variable", None), HELD) for node in nodes):
        yield
        return
    waiting = [(node, row) for node in nodes if (row := _row_of(node)) is not None]
    hooks = [node.register_prehook(partial(_waits, row, _name(node))) for node, row in waiting]
    try:
        with as_device(backward=True):
            yield
    finally:
        for hook in hooks:
            hook.remove()


def _nodes(roots: Any) -> Iterator[Any]:
    """Every node of the graph that ends in these tensors."""
    listed = roots if isinstance(roots, list | tuple) else (roots,)
    left, seen = [getattr(root, "grad_fn", None) for root in listed], set()
    while left:
        node = left.pop()
        if node is not None and node not in seen:
            seen.add(node)
            left += [following for following, _ in node.next_functions]
            yield node


@cache
def _rows() -> dict[str, dict[str, Any]]:
    return {name: entry for entry in load("dispatch")["backward"] for name in entry["names"]}


def _name(node: Any) -> str:
    """The name of a node: some carry their namespace."""
    return str(node.name()).rpartition("::")[2]


def _has_dimensions(node: Any) -> bool:
    return bool(node._saved_self.dim())


def _several_along_dim(node: Any) -> bool:
    tensor, dim = node._saved_self, node._saved_dim
    if dim >= 1 << 63:  # a negative number, which torch shows without its sign
        dim -= 1 << 64
    return bool(tensor.dim() and tensor.numel() and tensor.shape[dim] > 1)


_CONDITIONS = {"has_dimensions": _has_dimensions, "several_along_dim": _several_along_dim}


def _row_of(node: Any) -> str | None:
    """The row of a node that waits on a device where it does not here: torch runs another formula, or copies across."""
    entry = _rows().get(_name(node))
    if entry is None:
        return crossings.row_of(node)
    if not causes().holds(entry["row"]) or ("when" in entry and not _CONDITIONS[entry["when"]](node)):
        return None
    followed = [following for following, _ in node.next_functions]
    wanted = entry.get("gradient", 0)
    return str(entry["row"]) if wanted < len(followed) and followed[wanted] is not None else None


def _waits(row: str, name: str, _: Any) -> None:
    saw(causes(), Sight(row, name, f"`{name}`", backward=True))


@cache
def _backward(original: Callable[..., None]) -> Callable[..., None]:
    def backward(tensors: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> None:
        if "inputs" in kwargs:
            kwargs["inputs"] = inner(kwargs["inputs"])
        with _engine(tensors):
            original(inner(tensors), inner(grad_tensors), *args, **kwargs)

    return backward


@cache
def _grad(original: Callable[..., Any]) -> Callable[..., Any]:
    def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, *args: Any, **kwargs: Any) -> Any:
        asked = tuple(inputs) if isinstance(inputs, list | tuple) else (inputs,)
        with _engine(outputs):
            found = original(inner(outputs), inner(inputs), inner(grad_outputs), *args, **kwargs)
        return tuple(
            wrap(one) if isinstance(one, Tensor) and isinstance(given, SimulatedTensor) else one
            for one, given in zip(found, asked, strict=True)
        )

    return grad


# -- functions of the user --

_TWINS: WeakKeyDictionary[type, type] = WeakKeyDictionary()


@cache
def _apply(original: Any) -> Any:
    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        bound = original.__get__(None, cls)
        if kwargs or not _simulated(args) or torch._C._functorch.peek_interpreter_stack() is not None:
            return bound(*args, **kwargs)  # `vmap` comes back when it has taken its own dimension away
        twin: Any = _TWINS.get(cls) or _TWINS.setdefault(cls, _twin(cls))
        which = tuple(isinstance(arg, SimulatedTensor) for arg in args)
        out = twin.apply(*inner(args), which)
        return tuple(_result(one, args) for one in out) if isinstance(out, tuple) else _result(out, args)

    return classmethod(apply)


def outer(value: Any) -> Any:
    """A tensor that stands for one on the device as that; anything else as it is."""
    return wrap(value) if isinstance(value, Tensor) and not isinstance(value, SimulatedTensor) else value


def _result(value: Any, args: tuple[Any, ...]) -> Any:
    """A result as the user sees it: an argument that was written is handed back itself."""
    return next((arg for arg in args if isinstance(arg, SimulatedTensor) and arg._inner is value), outer(value))


def _twin(cls: Any) -> type:
    """The user's function over inner tensors. Its last argument says which of them were simulated."""
    split = cls.setup_context is not torch.autograd.Function.setup_context

    def forward(ctx: Any, *given: Any) -> Any:
        *args, which = given
        shown = [wrap(arg) if simulated else arg for arg, simulated in zip(args, which, strict=True)]
        out = cls.forward(*shown) if split else cls.forward(ctx, *shown)
        if split:
            cls.setup_context(ctx, tuple(shown), out)
        for marked, mark in (
            (ctx.dirty_tensors, ctx.mark_dirty),
            (ctx.non_differentiable, ctx.mark_non_differentiable),
        ):
            if marked:
                mark(*inner(marked))
        return inner(out)

    def backward(ctx: Any, *grads: Any) -> Any:
        with users_code():
            found = cls.backward(ctx, *(outer(grad) for grad in grads))
        gradients = inner(found)
        return (*gradients, None) if isinstance(gradients, tuple) else (gradients, None)

    functions = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type(cls.__name__, (torch.autograd.Function,), functions)  # by its name torch knows its own
