"""Reads matcher chains in lowered expressions, by their shape and not by a class name.

`X({shape})` followed by calls and ended by `.verify(tensor)`, also through a variable, or
`X(tensor, ..)` followed by `.shape({..})`. What each link demands is told by its name and its arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

from nosync_lint.index.cuda_records import Expr, Matched, Matcher

Link = tuple[str, tuple[str, ...], tuple[Expr, ...], int]
"""One call of a chain: its name, template arguments, arguments and row."""


def chain_of(expr: Expr) -> tuple[Expr, list[Link]] | None:
    """The base of a chain of member calls and its links in order; None where `expr` is no call."""
    links: list[Link] = []
    while expr[0] == "call" and expr[1][0] == "field":
        _, base, name, targs = expr[1]
        links.append((name, targs, expr[2], expr[3]))
        expr = base
    return (expr, links[::-1]) if expr[0] in ("call", "name", "list") else None


def is_base(base: Expr) -> bool:
    """Whether a chain starts like a matcher: a capitalised class given a brace list or a tensor."""
    if base[0] == "list":
        return bool(base[1])
    return base[0] == "call" and base[1][0] == "name" and base[1][1].split("::")[-1][:1].isupper() and bool(base[2])


def matcher_of(base: Expr, links: Sequence[Link], pos: int) -> Matcher | None:
    """What a chain demands of which tensors, or None where it is no matcher, or not a whole one."""
    if not is_base(base):
        return None
    names = {name for name, *_ in links}
    items = base[2][0] if base[0] == "call" else base
    if "verify" in names and items[0] == "list":
        shape = _texts(items)
        verified = [(arguments[0], row) for name, _, arguments, row in links if name == "verify" and arguments]
    elif "shape" in names and base[0] == "call":
        shape, verified = (), [(items, base[3])]
    else:
        return None
    strides: tuple[str, ...] | None = None
    dtypes: tuple[str, ...] | None = None
    for name, targs, arguments, _ in links:
        listed = _texts(arguments[0]) if arguments and arguments[0][0] == "list" else ()
        if name == "shape":
            shape = listed
        elif "stride" in name:
            strides = listed
        elif "dtype" in name or "type" in name:
            dtypes = targs or listed
    matched = tuple(
        Matched(root_name(argument), spell(argument), row) for argument, row in verified if root_name(argument)
    )
    class_name = base[1][1] if base[0] == "call" else base[1]
    device = any("device" in name for name in names)
    return Matcher(class_name.split("::")[-1], pos, shape, strides, dtypes, device, matched) if matched else None


def _texts(items: Expr) -> tuple[str, ...]:
    return tuple(spell(value) for _, value, _ in items[2])


def root_name(expr: Expr) -> str:
    """The variable that an argument is read from: `k` in `k.value()`, `*k` and `k[0]`."""
    while expr[0] in ("call", "field", "index", "unary", "cast"):
        if expr[0] == "call" and expr[1][0] == "name" and expr[2]:
            expr = expr[2][0]
        else:
            expr = expr[2] if expr[0] in ("unary", "cast") else expr[1]
    return expr[1] if expr[0] == "name" else ""


def spell(expr: Expr) -> str:
    """An expression as compact text, for messages and for comparing one size with another."""
    form = expr[0]
    if form == "name":
        return f"{expr[1]}<{', '.join(expr[2])}>" if expr[2] else str(expr[1])
    if form == "lit":
        return str(expr[1])
    if form == "field":
        return f"{spell(expr[1])}.{expr[2]}"
    if form == "unary":
        return f"{expr[1]}{spell(expr[2])}"
    if form == "bin":
        return f"{spell(expr[2])} {expr[1]} {spell(expr[3])}"
    if form == "cast":
        return spell(expr[2])
    if form == "index":
        return f"{spell(expr[1])}[{', '.join(spell(item) for item in expr[2])}]"
    if form == "call":
        return f"{spell(expr[1])}({', '.join(spell(item) for item in expr[2])})"
    if form == "list":
        return f"{expr[1]}{{{', '.join(spell(value) for _, value, _ in expr[2])}}}"
    return "..."
