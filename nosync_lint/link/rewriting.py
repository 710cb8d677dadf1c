"""What a rewrite may rest on: how far a value is proven, and what changes where expressions change their order."""

from __future__ import annotations

from collections.abc import Collection
from math import isfinite
from struct import pack, unpack

from nosync_lint.index.records import Expr, FunctionRecord, rows_of
from nosync_lint.link.flow import enclosing
from nosync_lint.link.parts import within
from nosync_lint.link.values import HOST, NUMBERS, Value

_RUNS_CODE = frozenset({"call", "await", "comp", "opaque", "lambda", "star"})
_FIXED = frozenset({"name", "const"})
WHOLE = ("slice", ("const", None), ("const", None), ("const", None))
"""The index item `:`."""


def is_proven(value: Value) -> bool:
    """Whether a value is a tensor whose exact dtype nothing leaves a doubt about: all its writers are known."""
    return value.kind == "tensor" and value.ref is not None and value.trust > 0


def is_number(value: Value) -> bool:
    """Whether a value is a Python number, certainly."""
    return value.kind in NUMBERS and value.trust == 2


def is_host_scalar(value: Value) -> bool:
    """Whether a value is a number, or a 0-dim tensor of the host, certainly."""
    return is_number(value) or (is_proven(value) and value.rank == 0 and value.where in HOST)


def is_integer(value: Value) -> bool:
    """Whether an index item is one integer, certainly: then it selects a view, and not a copy."""
    return (value.kind == "int" and value.trust == 2) or (is_host_scalar(value) and value.dtype == "int")


def fits(number: Expr, target: Value) -> bool:
    """Whether a number that is filled into a tensor is surely one of its dtype: fills refuse what is too large for a
    short float, where a store makes it infinite."""
    largest = _LARGEST.get(target.ref)
    if largest is None:
        return not str(target.ref).startswith("float8")
    value = number[1] if number[0] == "const" and isinstance(number[1], int | float) else None
    return value is not None and (abs(value) <= largest or not isfinite(value))


_LARGEST = {"float16": 65504.0, "bfloat16": 3.38e38}


def same_in_float32(number: float) -> bool:
    """Whether a number is the same after it has been one of single precision."""
    try:
        return bool(unpack("f", pack("f", number))[0] == number)
    except OverflowError:
        return False


def runs_code(*exprs: Expr) -> bool:
    """Whether evaluating expressions runs code that could be noticed: reading names, fields and elements is not."""
    return any(part[0] in _RUNS_CODE for expr in exprs for part in within(expr))


def may_trade_places(one: Expr, others: Collection[Expr]) -> bool:
    """Whether an expression can be evaluated after others as well as before them."""
    parts = within(one)
    return all(part[0] in _FIXED for part in parts) or not runs_code(one, *others)


def argument_parts(call: Expr, without: Collection[str | int] = ()) -> list[str] | None:
    """The arguments of a call as parts of a template, without some; None where it has a starred one."""
    if any(one[0] == "star" for one in call[2]) or any(name is None for name, _ in call[3]):
        return None
    return [
        *(f"{{args[{number}]}}" for number in range(len(call[2])) if number not in without),
        *(f"{name}={{args[{name}]}}" for name, _ in call[3] if name not in without),
    ]


def bound_name(record: FunctionRecord, call: Expr) -> str | None:
    """The name that a call is assigned to."""
    found = (name for name, held in record.definitions.items() if any(one.value is call for one in held))
    return next((name for name in found if "~" not in name), None)


def repeats(record: FunctionRecord, block: int, expr: Expr) -> bool:
    """Whether an expression stands in the body of a loop, and reads no name that is bound in it."""
    if record.blocks[block].form != "loop":
        return False
    names = {part[1] for part in within(expr) if part[0] == "name"}
    bound = (one for name in names for one in record.definitions.get(name, ()))
    return not any(block in enclosing(record.blocks, one.block) for one in bound)


def follows(statement: int, other: int) -> bool:
    """Whether one statement starts in the line after another one."""
    return rows_of(statement)[0] == rows_of(other)[1] + 1
