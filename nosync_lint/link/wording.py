"""Expressions and values in words, for messages."""

from __future__ import annotations

import re

from nosync_lint.index.records import Expr
from nosync_lint.link.values import Value

MAX_LENGTH = 60
MAX_SPELLED = 100
_CUT = "\u2026"


def wording(expr: Expr) -> str:
    """An expression as source text, shortened where it is long."""
    text = _text(expr).replace(_CUT, "...")
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 3] + "..."


def spelled(expr: Expr) -> str | None:
    """An expression as source text, or None where it is too long or has parts that have no words."""
    text = _text(expr)
    return text if len(text) <= MAX_SPELLED and _CUT not in text else None


def receiver(text: str) -> str:
    """Source text before a `.`: in brackets where it is no name, call or subscript."""
    return text if re.fullmatch(r"[\w.]+([\[(].*[\])])?", text) else f"({text})"


def _text(expr: Expr) -> str:
    form = expr[0]
    if form == "name":
        return str(expr[1]).partition("~")[0]
    if form == "attr":
        return f"{_inner(expr[1])}.{expr[2]}"
    if form == "const":
        return repr(expr[1])
    if form == "call":
        given = [_text(arg) for arg in expr[2]] + [
            f"{name}={_text(value)}" if name else f"**{_text(value)}" for name, value in expr[3]
        ]
        return f"{_text(expr[1])}({', '.join(given)})"
    if form == "sub":
        return f"{_text(expr[1])}[{_index(expr[2])}]"
    if form == "slice":
        low, high, step = ("" if part == ("const", None) else _text(part) for part in expr[1:4])
        return f"{low}:{high}" + (f":{step}" if step else "")
    if form in ("tuple", "list"):
        inner = ", ".join(_text(part) for part in expr[1])
        return f"({inner})" if form == "tuple" else f"[{inner}]"
    if form == "bin":
        return f"{_inner(expr[2])} {expr[1]} {_inner(expr[3])}"
    if form == "unary":
        return f"{expr[1]}{' ' if expr[1] == 'not' else ''}{_inner(expr[2])}"
    if form == "ellipsis":
        return "..."
    if form == "elem":
        return f"each of {_text(expr[1])}"
    if form == "item":
        return f"{_text(expr[1])}[{expr[2]}]"
    if form == "ifexp":
        return f"{_text(expr[2])} if {_text(expr[1])} else {_text(expr[3])}"
    if form == "star":
        return f"*{_text(expr[1])}"
    return _CUT


def _inner(expr: Expr) -> str:
    """A part of an operation: in brackets where it is one itself."""
    text = _text(expr)
    return f"({text})" if expr[0] in ("bin", "unary", "ifexp", "bool", "cmp") else text


def _index(expr: Expr) -> str:
    return ", ".join(_text(part) for part in expr[1]) if expr[0] == "tuple" else _text(expr)


def describe(value: Value) -> str:
    """A tensor in words, with its article: "a 1-dim int tensor on the device"."""
    rank = "" if value.rank is None else f"{value.rank}-dim "
    dtype = "" if value.dtype in (None, "number") else f"{value.dtype} "
    where = {
        "device": " on the device",
        "parametrised": " on a device that is given as parameter",
        "host": " on the host",
        "pinned": " in pinned host memory",
        "meta": " on meta",
        None: "",
    }[value.where]
    text = f"{rank}{dtype}tensor{where}"
    return f"an {text}" if text.startswith(("int", "8")) else f"a {text}"


def releases(names: tuple[str, ...], all_names: tuple[str, ...]) -> str:
    """Target releases in words: "in every targeted torch", "in torch 2.13", "in torch 2.9 to 2.14"."""
    if names == all_names and len(all_names) > 1:
        return "in every targeted torch"
    return f"in torch {names[0]}" + (f" to {names[-1]}" if len(names) > 1 else "")
