"""The operations that wait, by overload: `models/dispatch.toml` for the release of torch that runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import torch

from nosync_lint.guard.causes import Causes, release_of
from nosync_lint.guard.operations.conditions import Call, Parameters, named, parameters
from nosync_lint.models import load

_C: Any = torch._C
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
    may_block: bool
    """Some row says that the host may wait inside the driver."""
    copies: bool
    """It may copy from the device to the host."""
    looks_only: bool
    """It looks at shapes and kinds, not at values."""


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


OPERATIONS: dict[Any, Operation] = {}
"""What `operation_of` has found: whoever asks for every operation that runs looks here first."""


def operation_of(func: Any) -> Operation:
    """What is known of an overload; looked up once."""
    return OPERATIONS.get(func) or _learn(func)


def _learn(func: Any) -> Operation:
    namespace, _, name = func._schema.name.partition("::")
    full = f"{name}.{func._overloadname}"
    known = namespace == "aten" and not _named().isdisjoint((name, full))
    tags = {str(tag).rpartition(".")[2] for tag in func.tags}
    tag = next(((one["rule"], one["name"]) for one in load("dispatch")["tag"] if one["name"] in tags), None)
    writes = [argument for argument in func._schema.arguments if argument.alias_info and argument.alias_info.is_write]
    waits = _table().get(name, ()) + _table().get(full, ()) if namespace == "aten" else ()
    operation = OPERATIONS[func] = Operation(
        f"{namespace}.{full}".removesuffix(".default"),
        waits,
        parameters(func._schema),
        None if known else tag,
        bool(writes),
        name in _RESHAPING or any(argument.kwarg_only for argument in writes),
        torch.Tag.pointwise in func.tags or (namespace == "aten" and name in _MISMATCHING),
        namespace == "aten" and name in ("index", "index_put", "index_put_", "_index_put_impl_"),
        namespace in ("aten", "prim", "prims"),
        namespace == "aten" and _C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"),
        any(causes().cause(entry.row).hidden for entry in waits),
        namespace == "aten" and name in ("_to_copy", "copy_"),
        name.startswith(("empty", "new_", "sym_"))
        or name.endswith("_like")
        or name == "is_pinned"
        or any(one.alias_info is not None and not one.alias_info.is_write for one in func._schema.returns),
    )
    return operation
