"""The dtype of what an operation gives back: its class, and where nothing leaves a doubt the exact one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nosync_lint.link.values import UNKNOWN, Value, vote

DEFAULT = "default"
"""The exact dtype of what is made without one: the default one, whichever that is."""

Keywords = Mapping[str, Value]


class Dtypes:
    """The rows of the model file about dtypes, ready to be asked."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        module = data["modules"]["tensors"]
        self._classes = {f"{module}.{name}": kind for kind, names in data["dtypes"].items() for name in names}
        exact = data["exact"]
        self._aliases: dict[str, str] = exact["aliases"]
        self._kept, self._indices = frozenset(exact["kept"]), frozenset(exact["indices"])
        self._of_builtins: dict[str, tuple[str, str]] = {
            "builtins.int": ("int", "int64"),
            "builtins.float": ("float", "float64"),
            "builtins.bool": ("bool", "bool"),
        }

    def names(self, value: Value) -> bool:
        """Whether a value is a dtype that is known as one."""
        return value.kind == "dtype" or (value.kind == "extern" and value.ref in self._classes)

    def named(self, value: Value) -> str | None:
        """The class of the dtype that a value is, or None."""
        if value.kind == "extern" and isinstance(value.ref, str):
            return self._classes.get(value.ref) or self._of_builtins.get(value.ref, (None,))[0]
        return value.dtype if value.kind == "dtype" else None

    def exact(
        self, name: str, row: Mapping[str, Any], operand: Value, args: Sequence[Value], kwargs: Keywords
    ) -> str | None:
        """The exact dtype of the result of an operation."""
        given = kwargs.get("dtype")
        if given is not None and given.kind != "none":
            return self._exactly(given)
        form = row.get("dtype")
        if form == "bool":
            return "bool"
        if form == "move":
            return self._moved(operand, args[1:])
        if name in self._indices:
            return "int64"
        if name in self._aliases:
            return self._aliases[name]
        if name in self._kept:
            if any(self.names(value) for value in args[1:]):
                return None  # the same bytes, read as another dtype
            held = operand if operand.kind == "tensor" else element_of(operand)
            return held.ref if held.kind == "tensor" else None
        kind, _, default = str(form).partition(":")
        return self._default(default, args, kwargs) if kind == "argument" else None

    def binary(self, op: str, left: Value, right: Value) -> str | None:
        """The exact dtype of `left op right`: that of two tensors alike, or of an integer tensor beside an integer."""
        if op not in _KEEPING:
            return None
        refs = [value.ref for value in (left, right) if value.kind == "tensor"]
        if len(refs) == 2:
            return refs[0] if refs[0] == refs[1] and refs[0] != "bool" else None
        other, held = (right if left.kind == "tensor" else left), str(refs[0])
        if other.trust < 2 or other.kind not in ("int", "bool", "float") or isinstance(other.ref, complex):
            return None
        floating = held == DEFAULT or held.startswith(("float", "bfloat"))
        return refs[0] if floating or (held.startswith(("int", "uint")) and other.kind != "float") else None

    def _exactly(self, value: Value) -> str | None:
        if value.kind == "extern" and isinstance(value.ref, str):
            if value.ref in self._classes:
                name = value.ref.rpartition(".")[2]
                return self._aliases.get(name, name)
            return self._of_builtins.get(value.ref, (None, None))[1]
        return value.ref if value.kind == "dtype" else None

    def _moved(self, operand: Value, args: Sequence[Value]) -> str | None:
        """Of `t.to(...)`: the dtype among its arguments, that of another tensor, or its own where there is neither."""
        for value in args:
            if self.names(value):
                return self._exactly(value)
            if value.kind not in ("device", "bool", "none", "str", "int"):
                return value.ref if value.kind == "tensor" else None
        return operand.ref  # type: ignore[no-any-return]

    def _default(self, default: str, args: Sequence[Value], kwargs: Keywords) -> str | None:
        if default == "data":
            return _of_data(args[0] if args else UNKNOWN)
        if default == "fill":
            return _of_data(args[1] if len(args) > 1 else kwargs.get("fill_value", UNKNOWN))
        if default == "numbers":
            return "int64" if {value.kind for value in args} <= {"int"} else None
        return {"float": DEFAULT, "int": "int64"}.get(default)


_KEEPING = frozenset({"+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>"})


def _of_data(value: Value) -> str | None:
    """The exact dtype that Python data give a tensor. What only may be a number of Python may be one of numpy."""
    if value.kind == "tensor":
        return value.ref  # type: ignore[no-any-return]
    if value.kind in ("bool", "int", "float") and value.trust == 2:
        return {"bool": "bool", "int": "int64", "float": DEFAULT}[value.kind]
    return _of_data(element_of(value)) if value.kind in ("list", "tuple", "iter") else None


def element_of(value: Value) -> Value:
    """What a container holds, by all of its elements."""
    items = value.items
    if isinstance(items, Value):
        return items
    return vote(items) if items else UNKNOWN


def promoted(values: Sequence[Value]) -> str | None:
    """The dtype class of a mixed operation; a Python number only raises the class of a tensor."""
    order = ("bool", "int", "number", "float")
    kinds = [value.dtype if value.kind == "tensor" else value.kind for value in values]
    known = [kind for kind in kinds if kind in order]
    if "float" in known:
        return "float"
    if len(known) < len(kinds) and not any(v.kind == "tensor" and v.dtype == "int" for v in values):
        return None
    return max(known, key=order.index) if known else None


def of_data(value: Value) -> str | None:
    """The dtype class that Python data give a tensor."""
    if value.kind in ("bool", "int", "float"):
        return value.kind
    if value.kind in ("tensor", "numpy"):
        return value.dtype
    return of_data(element_of(value)) if value.kind in ("list", "tuple", "iter") else None
