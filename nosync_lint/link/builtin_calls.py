"""What builtin functions and the methods of containers give back."""

from __future__ import annotations

from collections.abc import Callable

from nosync_lint.index.records import Expr
from nosync_lint.link.operations import Operations
from nosync_lint.link.values import BOTTOM, NONE, UNKNOWN, Value, element, field, vote

_CONTAINERS = frozenset({"list", "tuple", "set", "iter", "dict"})


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
    if form == first.kind == "tuple":
        return first
    if form in ("list", "tuple", "set", "iter"):
        return Value(form, items=element(first) if args else None)
    if form == "dict":
        return Value("dict", items=first.items if first.kind == "dict" else None)
    if form == "enumerate":
        return Value("iter", items=Value("tuple", items=(Value("int"), element(first))))
    if form == "zip" and len(args) == 1:  # zip(*rows): the rows became columns
        return Value("iter", items=Value("tuple", items=element(first)))
    if form == "zip":
        return Value("iter", items=Value("tuple", items=tuple(element(arg) for arg in args)))
    if form == "same":
        return first._replace(ref=None)
    if form == "element":
        found = vote(args) if len(args) > 1 and name in ("min", "max") else element(first)
        return found._replace(ref=None) if found.kind in ("int", "float", "number") else found
    return Value(form)


def container_call(base: Value, name: str, arguments: Arguments) -> Value | None:
    """The result of a method of a list, dictionary, set or string; None where the base is something else."""
    kind = base.kind
    held = element(base._replace(kind="list")) if kind in _CONTAINERS else UNKNOWN
    if kind == "bottom":
        return BOTTOM
    if kind == "dict":
        if name in ("get", "pop", "setdefault"):
            key, *default = arguments() or [UNKNOWN]
            if base.ref is not None and key.kind == "str" and isinstance(key.ref, str):
                held = field(base, key.ref)
            return vote([held, *(v for v in default if v.kind != "unknown")])
        if name == "values":
            return Value("iter", items=held)
        if name == "items":
            return Value("iter", items=Value("tuple", items=(UNKNOWN, held)))
        if name == "keys":
            return Value("iter")
    if kind in _CONTAINERS:
        if name in ("pop", "popleft"):
            return held
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


def container_item(base: Value, index: Expr) -> Value:
    """`base[index]` of a list, tuple, dictionary or set, and of an array."""
    kind, items = base.kind, base.items
    if kind == "dict" and index[0] == "const" and base.ref is not None:
        return field(base, index[1])
    if kind not in _CONTAINERS:
        return Value("numpy") if kind == "numpy" else BOTTOM if kind == "bottom" else UNKNOWN
    if index[0] == "slice":
        bounds = [bound[1] for bound in index[1:] if bound[0] == "const"]
        if kind == "tuple" and isinstance(items, tuple) and not isinstance(items, Value) and len(bounds) == 3:
            return base._replace(items=items[slice(*bounds)])
        return base._replace(items=items if isinstance(items, Value) else vote(items or ()))
    if isinstance(items, Value):
        return items
    if items and index[0] == "const" and isinstance(index[1], int) and -len(items) <= index[1] < len(items):
        return items[index[1]]  # type: ignore[no-any-return]
    return vote(items) if items else UNKNOWN
