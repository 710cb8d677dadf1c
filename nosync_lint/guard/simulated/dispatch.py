"""Runs every operation on the inner tensors, and tells the guards which of them wait.

What an operation waits for is looked up once per overload. The table is `models/dispatch.toml`; its rows are those of
`models/torch.toml`, for the torch that runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from nosync_lint.guard.causes import Causes, release_of
from nosync_lint.guard.simulated.conditions import Call, Parameters, named, parameters
from nosync_lint.guard.simulated.constructs import THREAD, as_device, kind, within
from nosync_lint.guard.simulated.crossings import COPIES, remember
from nosync_lint.guard.simulated.kernels import on_host, stand_in_for
from nosync_lint.guard.simulated.leaves import LEAVES
from nosync_lint.guard.simulated.pinning import is_pinned, pin
from nosync_lint.guard.simulated.tensor import SimulatedTensor, adopt, asks_for_grad, refresh, wrap
from nosync_lint.guard.witness import Sight, saw, saw_tagged
from nosync_lint.models import load

_C: Any = torch._C
_exclude: Callable[[Any, bool], None] = _C._dispatch_tls_set_dispatch_key_excluded
_AUTOGRAD, _IN_PLACE_OR_VIEW = _C.DispatchKey.AutogradFunctionality, _C.DispatchKey.ADInplaceOrView
_RESHAPING = frozenset(
    {
        "resize_", "resize_as_", "t_", "transpose_", "squeeze_", "unsqueeze_", "swapaxes_", "swapdims_", "as_strided_",
        "set_", "sparse_resize_", "resize_output_",
    }
)  # fmt: skip
_MISMATCHING = frozenset(
    {"mm", "addmm", "bmm", "baddbmm", "cat", "gather", "index_select", "dot", "mv", "addmv", "stack"}
)
"""Operations besides the pointwise ones that take no tensor of the host beside one of the device."""


class Waits(NamedTuple):
    """One entry of the table: when an operation waits, and by which row."""

    row: str
    condition: Callable[[Call], bool] | None
    inside: Mapping[str, str]
    called: bool


@dataclass(frozen=True, slots=True)
class Operation:
    """What is known of one overload."""

    name: str
    waits: tuple[Waits, ...]
    parameters: Parameters
    tag: tuple[str, str] | None
    mutates: bool
    reshapes: bool
    together: bool
    """Takes tensors of one device only."""
    by_self: bool
    """Its result lies where its first tensor does."""
    ours: bool
    """An operation of torch, not of somebody's extension."""
    composite: bool
    """Made of others. Where autograd is off, the dispatcher asks us before it takes it apart."""


@cache
def causes() -> Causes:
    """The rows that hold for the torch that runs. Raises `UnknownRelease` for one that the model does not reach."""
    return Causes(release_of(torch.__version__))


@cache
def _table() -> dict[str, tuple[Waits, ...]]:
    """The entries of the table by the operations that they name, those that hold in the running release."""
    found: dict[str, list[Waits]] = {}
    for entry in load("dispatch")["operation"]:
        inside = {word: row for word, row in entry.get("inside", {}).items() if causes().holds(row)}
        if not inside and not causes().holds(entry["row"]):
            continue
        condition = named(entry["when"]) if "when" in entry else None
        for name in entry["names"]:
            found.setdefault(name, []).append(Waits(entry["row"], condition, inside, entry.get("called", False)))
    return {name: tuple(entries) for name, entries in found.items()}


@cache
def _named() -> frozenset[str]:
    return frozenset(name for entry in load("dispatch")["operation"] for name in entry["names"])


_OPERATIONS: dict[Any, Operation] = {}


def _learn(func: Any) -> Operation:
    namespace, _, name = func._schema.name.partition("::")
    full = f"{name}.{func._overloadname}"
    known = namespace == "aten" and not _named().isdisjoint((name, full))
    tags = {str(tag).rpartition(".")[2] for tag in func.tags}
    tag = next(((one["rule"], one["name"]) for one in load("dispatch")["tag"] if one["name"] in tags), None)
    writes = [argument for argument in func._schema.arguments if argument.alias_info and argument.alias_info.is_write]
    operation = _OPERATIONS[func] = Operation(
        f"{namespace}.{full}".removesuffix(".default"),
        _table().get(name, ()) + _table().get(full, ()) if namespace == "aten" else (),
        parameters(func._schema),
        None if known else tag,
        bool(writes),
        name in _RESHAPING or any(argument.kwarg_only for argument in writes),
        torch.Tag.pointwise in func.tags or (namespace == "aten" and name in _MISMATCHING),
        namespace == "aten" and name in ("index", "index_put", "index_put_", "_index_put_impl_"),
        namespace in ("aten", "prim", "prims"),
        namespace == "aten" and _C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"),
    )
    return operation


class SimulatedDevice(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every operation of its thread: factories for the device, copies to it, and those on its tensors."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing here is compiled: without this, each operation would go through one more wrapper

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return execute(func, args, kwargs or {})


def execute(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs one operation where its tensors really are, and tells the guards if it would wait."""
    operation = _OPERATIONS.get(func) or _learn(func)
    simulated: list[SimulatedTensor] = []
    inner_args: list[Any] = []
    for arg in args:  # the loop is what most operations cost: `_inner` for what is usual
        kind_of = type(arg)
        if kind_of is SimulatedTensor:
            simulated.append(arg)
            if asks_for_grad(arg):
                adopt(arg)
            inner_args.append(arg._inner)
        else:
            inner_args.append(arg if kind_of in _PLAIN else _inner(arg, simulated))
    inner_kwargs = {name: _inner(arg, simulated) for name, arg in kwargs.items()} if kwargs else kwargs
    to_device = bool(simulated)
    if kwargs:
        device = kwargs.get("device")
        if device is not None:
            to_device = _is_simulated(device)
            if to_device:
                inner_kwargs["device"] = "cpu"
    if not (simulated or to_device or THREAD.as_device):
        return _on_host(func, args, kwargs)
    if not operation.ours:
        return _of_extension(operation, func, inner_args, inner_kwargs, to_device)
    if operation.composite:
        mode: Any = SimulatedDevice
        with mode():
            return func.decompose(*args, **kwargs)
    if operation.waits or operation.tag is not None:
        _judge(operation, args, kwargs)
    if func is _PINNED:
        return False
    if operation.together and simulated:
        _same_device(args)
    if operation.by_self and not isinstance(args[0], SimulatedTensor):
        to_device = False
    if simulated or to_device:
        inner_kwargs.pop("pin_memory", None)
        out = _with_autograd(LEAVES.get(func, func), inner_args, inner_kwargs)
        if func in COPIES:
            target, source = (args[0], args[1]) if operation.mutates else (None, args[0])
            remember(out, source, to_device if target is None else isinstance(target, SimulatedTensor))
    else:
        out = func(*args, **kwargs)
    if operation.reshapes:
        for one in simulated:
            refresh(one)
    if operation.name == _LENGTHS:  # the sizes of the batches are for the host
        return wrap(out[0]), out[1]
    if type(out) is Tensor and to_device and not operation.mutates:
        return wrap(out)
    return _outer(out, simulated if operation.mutates else (), to_device)


_LENGTHS = "aten._pack_padded_sequence"
_PLAIN = frozenset({Tensor, torch.nn.Parameter, int, float, bool, str, type(None), torch.dtype, torch.device})


def _inner(value: Any, simulated: list[SimulatedTensor]) -> Any:
    if isinstance(value, SimulatedTensor):
        simulated.append(value)
        adopt(value)
        return value._inner
    if isinstance(value, list | tuple) and not isinstance(value, torch.Size):
        return [_inner(one, simulated) for one in value]
    return value


def _outer(value: Any, arguments: list[SimulatedTensor] | tuple[()], to_device: bool) -> Any:
    """The result as the user sees it: arguments that were written are handed back themselves."""
    if isinstance(value, Tensor):
        for one in arguments:
            if one._inner is value:
                return one
        return wrap(value) if to_device and value.device.type == "cpu" else value
    if isinstance(value, list | tuple):
        return type(value)(_outer(one, arguments, to_device) for one in value)
    return value


def _is_simulated(device: Any) -> bool:
    asked = torch.device(device)
    if asked.type == "cuda" and asked.index not in (None, 0):
        raise RuntimeError(f"the simulated device is cuda:0, there is no {asked}")
    return asked.type == "cuda"


def _with_autograd(func: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Runs on inner tensors with the keys of autograd, which the dispatcher has taken away by the time we are asked."""
    if torch.is_inference_mode_enabled():
        return func(*args, **kwargs)
    _exclude(_AUTOGRAD, False)
    _exclude(_IN_PLACE_OR_VIEW, False)
    try:
        return func(*args, **kwargs)
    finally:
        _exclude(_AUTOGRAD, True)
        _exclude(_IN_PLACE_OR_VIEW, True)


# -- operations of extensions --


def _of_extension(operation: Operation, func: Any, args: list[Any], kwargs: dict[str, Any], to_device: bool) -> Any:
    """Runs a function that stands in, or the kernel for the host, with an eye on what it does."""
    known = stand_in_for(func)
    if known is not None:
        if known.syncs:
            saw(causes(), Sight(load("dispatch")["rows"]["stand_in"], operation.name, f"`{operation.name}`"))
        return _outer(known.kernel(*args, **kwargs), (), True)
    if operation.tag is not None:
        saw_tagged(operation.tag[0], operation.name, operation.tag[1])
    kernel = on_host(func)
    mode: Any = SimulatedDevice
    with as_device(), mode():
        if not to_device:  # autograd has been asked: what remains is the kernel
            return kernel(*args, **kwargs)
        out = _with_autograd(func, args, kwargs)
    return _outer(out, (), True)


# -- tensors of the host --

_PIN, _PINNED = torch.ops.aten._pin_memory.default, torch.ops.aten.is_pinned.default


def _on_host(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An operation that the device has no part in: only pinning is not what it is without one."""
    if func is _PIN:
        return pin(args[0].clone())
    if func is _PINNED:
        return is_pinned(args[0])
    if kwargs.get("pin_memory"):
        return pin(func(*args, **{**kwargs, "pin_memory": False}))
    return func(*args, **kwargs)


def _same_device(args: tuple[Any, ...]) -> None:
    tensors = [
        one for arg in args for one in (arg if isinstance(arg, list | tuple) else (arg,)) if isinstance(one, Tensor)
    ]
    if any(not isinstance(one, SimulatedTensor) and one.dim() for one in tensors):
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
        )


# -- what waits --


def _judge(operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if operation.tag is not None:
        saw_tagged(operation.tag[0], operation.name, operation.tag[1])
    call = Call(operation.parameters, args, kwargs)
    for entry in operation.waits:
        if entry.condition is None or entry.condition(call):
            _meet(operation, entry)


def _meet(operation: Operation, entry: Waits) -> None:
    construct = THREAD.construct
    what = construct.text if construct is not None else f"`{operation.name.partition('.')[2]}`"
    saw(causes(), Sight(entry.row, operation.name, what, entry.inside, kind(), entry.called, THREAD.backward))


def saw_read(row: str, what: str) -> None:
    """A wait that reaches no dispatcher, because Python asks for all of a tensor."""
    if THREAD.construct is None or THREAD.construct.kind == "module":
        with within("python", what):
            saw(causes(), Sight(row, "python", what, backward=THREAD.backward))


def saw_wait(row: str, call: str) -> None:
    """A wait that is written out: of the device, a stream or an event."""
    saw(causes(), Sight(row, call.removesuffix("()"), call))
