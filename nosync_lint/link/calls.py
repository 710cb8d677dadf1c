"""Calls: which function a call may run, and which argument binds which parameter."""

from __future__ import annotations

from typing import NamedTuple

from nosync_lint.index.records import CallSite, Expr
from nosync_lint.link.project import Function


class Target(NamedTuple):
    """A function that a call may run; `bound` says that its first parameter is filled by the receiver, which is
    of exactly the class `receiver` where that is known."""

    function: int
    bound: bool
    receiver: int | None = None


class Binding(NamedTuple):
    """A call of a known function."""

    caller: Function
    site: CallSite
    bound: bool


def bind(function: Function, binding: Binding, index: int) -> Expr | None:
    """The argument expression that a call gives to a parameter, or None (a default, or behind `*` or `**`)."""
    parameter = function.record.parameters[index]
    call = binding.site.call
    for name, value in call[3]:
        if name == parameter.name:
            return value  # type: ignore[no-any-return]
    if parameter.form not in ("positional", "only"):
        return None
    position = index - (1 if binding.bound else 0)
    args = call[2]
    if position < 0 or position >= len(args) or any(arg[0] == "star" for arg in args[: position + 1]):
        return None
    return args[position]  # type: ignore[no-any-return]
