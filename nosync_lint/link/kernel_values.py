"""The abstract values of C++ code and what is kept of their use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

Path = tuple[str, ...]
Origin = tuple[Path, int]
DEEPEST_MEMBER = 8
MOST_MEMBERS = 512


class Passage(NamedTuple):
    """One hop of a use: file, row and what happens there."""

    path: str
    row: int
    note: str


class Use(NamedTuple):
    """What happens to a path of a parameter. `row` is where the path was read (a `.stride(1)`), or 0.

    `kind`: "address" (an address is computed from it), "deref" (read or written through), "read" (pointed at
    as `detail`), "launch" (handed to a kernel), "escape" (given to code that is not known), "matched", or a
    check: "equal" (`detail` is the other side), "contiguous", "dtype", "shape", "device". `device` says that
    it happens in a launched kernel or in what that calls.
    """

    origin: Path
    row: int
    kind: str
    detail: str
    hops: tuple[Passage, ...]
    device: bool = False


class Value(NamedTuple):
    """An abstract value: where it comes from, what its members are, which functions it may name."""

    origins: frozenset[Origin] = frozenset()
    pointer: bool = False
    symbols: frozenset[str] = frozenset()
    fields: Mapping[str, Value] = {}
    closure: int = -1


EMPTY = Value()


class Summary(NamedTuple):
    """What a function does with its parameters, and what it returns in their terms."""

    uses: tuple[Use, ...]
    returned: Value
    names: Mapping[str, Value]


def join(left: Value, right: Value) -> Value:
    """Either value."""
    if left is right or right == EMPTY:
        return left
    if left == EMPTY:
        return right
    fields = left.fields
    if right.fields:
        fields = {**left.fields, **{k: join(left.fields.get(k, EMPTY), v) for k, v in right.fields.items()}}
    return Value(
        left.origins | right.origins, left.pointer or right.pointer, left.symbols | right.symbols, fields,
        max(left.closure, right.closure),
    )  # fmt: skip


def deep_origins(value: Value) -> frozenset[Origin]:
    """The origins of a value and of all its members."""
    return value.origins.union(*(deep_origins(item) for item in value.fields.values()))


def bounded(value: Value) -> Value:
    """The value without the members that make it too deep or too wide to carry around."""
    if not value.fields or _members(value, DEEPEST_MEMBER) <= MOST_MEMBERS:
        return value
    fields = {key: item._replace(fields={}) for key, item in list(value.fields.items())[:MOST_MEMBERS]}
    return value._replace(fields=fields)


def _members(value: Value, deepest: int) -> int:
    """How many members a value has, those of members included; too many where they nest too deeply."""
    if deepest == 0:
        return MOST_MEMBERS + 1
    count = len(value.fields)
    for item in value.fields.values():
        if item.fields:
            count += _members(item, deepest - 1)
        if count > MOST_MEMBERS:
            break
    return count
