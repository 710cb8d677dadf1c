"""What builtin functions and the methods of containers give back."""

from __future__ import annotations

from collections.abc import Callable

from nosync_lint.link.operations import Operations
from nosync_lint.link.values import BOTTOM, NONE, UNKNOWN, Value, vote

_CONTAINERS = frozenset({"list", "tuple", "set", "iter", "dict"})


def _items(value: Value) -> Value:
    if value.kind == "tensor":
        return value._replace(rank=None if value.rank is None else max(value.rank - 1, 0))
    if value.kind in ("bottom", "unknown"):
        return value
    items = value.items
    if isinstance(items, Value):
        return items
    return vote(items) if items else UNKNOWN


Arguments = Callable[[], list[Value]]


def builtin_call(name: str, arguments: Arguments, operations: Operations) -> Value:
    """The result of a builtin by the model file. `arguments` evaluates them, where the result depends on them."""
    form = operations.builtins.get(name)
    if form is None:
        return Value("object", ref=(f"builtins.{name}",), trust=1) if name == "slice" else UNKNOWN
    if form == "ints":
        return Value("iter", items=Value("int"))
    if form == "none":
        return NONE
    if form in ("int", "float", "bool", "str"):
        return Value(form)
    args = arguments()
    first = args[0] if args else UNKNOWN
    if form in ("list", "tuple", "set"):
        return Value(form, items=_items(first) if args else None)
    if form == "dict":
        return Value("dict", items=first.items if first.kind == "dict" else None)
    if form == "enumerate":
        return Value("iter", items=Value("tuple", items=(Value("int"), _items(first))))
    if form == "zip":
        return Value("iter", items=Value("tuple", items=tuple(_items(arg) for arg in args)))
    if form == "same":
        return first._replace(ref=None)
    if form == "element":
        found = vote(args) if len(args) > 1 and name != "sum" else _items(first)
        return found._replace(ref=None) if found.kind in ("int", "float", "number") else found
    return Value(form)


def container_call(base: Value, name: str, arguments: Arguments) -> Value | None:
    """The result of a method of a list, dictionary, set or string; None where the base is something else."""
    kind = base.kind
    if kind == "bottom":
        return BOTTOM
    if kind == "dict":
        if name in ("get", "pop", "setdefault"):
            values = [base.items if isinstance(base.items, Value) else UNKNOWN]
            return vote([*values, *(v for v in arguments()[1:] if v.kind not in ("unknown",))])
        if name == "values":
            return Value("iter", items=_items(base))
        if name == "items":
            return Value("iter", items=Value("tuple", items=(UNKNOWN, _items(base))))
        if name == "keys":
            return Value("iter")
    if kind in _CONTAINERS:
        if name in ("pop", "popleft"):
            return _items(base)
        if name in ("copy", "union", "difference", "intersection"):
            return base
        if name in ("index", "count"):
            return Value("int")
        return NONE if name in ("append", "extend", "clear", "sort", "add", "remove", "update", "insert") else UNKNOWN
    if kind == "str":
        return Value("list", items=Value("str")) if name in ("split", "rsplit", "splitlines") else Value("str")
    if kind in ("int", "float", "bool", "none"):
        return UNKNOWN
    return None
