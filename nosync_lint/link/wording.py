"""Expressions and values in words, for messages."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from string import Formatter

from nosync_lint.index.records import Expr
from nosync_lint.link.values import Value

MAX_LENGTH = 60
MAX_SPELLED = 100
_CUT = "\u2026"


def wording(expr: Expr) -> str:
    """An expression as source text, shortened where it is long."""
    text = _text(expr).replace(_CUT, "...")
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 3] + "..."


def outline(expr: Expr) -> str:
    """An expression as source text; where that is long, without arguments and indices: `torch.tensor(...).to(...)`."""
    text = _text(expr).replace(_CUT, "...")
    return text if len(text) <= MAX_LENGTH else _outline(expr)


def _outline(expr: Expr) -> str:
    if expr[0] == "call":
        return f"{_outline(expr[1])}({'...' if expr[2] or expr[3] else ''})"
    if expr[0] == "attr":
        return f"{_outline(expr[1])}.{expr[2]}"
    if expr[0] == "sub":
        return f"{_outline(expr[1])}[...]"
    return wording(expr)


def spelled(expr: Expr) -> str | None:
    """An expression as source text, or None where it is too long or has parts that have no words."""
    text = _text(expr)
    return text if len(text) <= MAX_SPELLED and _CUT not in text else None


def filled(template: str, parts: Mapping[str, Expr]) -> str | None:
    """A template of a rewrite with its parts spelled out, or None where one has no words."""
    text = ""
    listed = list(Formatter().parse(template))
    for number, (literal, name, _, _) in enumerate(listed):
        text += literal
        if name is None:
            continue
        part = spelled(parts[name])
        if part is None:
            return None
        before_dot = number + 1 < len(listed) and listed[number + 1][0].startswith((".", "["))
        inner = part[1:-1] if name == "index" and parts[name][0] == "tuple" and text.endswith("[") else part
        text += receiver(part) if before_dot else inner.removesuffix(",")
    return text


def arguments(call: Expr, without: Collection[str] = (), extra: str = "") -> str | None:
    """The arguments of a call as source text, without some keywords and with more; None where one has no words."""
    parts = [spelled(one) for one in call[2]]
    for name, value in call[3]:
        text = spelled(value)
        if name not in without:
            parts.append(f"{name}={text}" if name and text else None)
    told = [part for part in parts if part is not None]
    return ", ".join([*told, extra] if extra else told) if len(told) == len(parts) else None


def listed(names: Sequence[str]) -> str:
    """Names in words: "`a`, `b` and `c`"."""
    told = [f"`{name}`" for name in names]
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"


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
        if form == "list":
            return f"[{inner}]"
        return f"({inner},)" if len(expr[1]) == 1 else f"({inner})"
    if form in ("bin", "aug"):
        return f"{_inner(expr[2])} {expr[1]} {_inner(expr[3])}"
    if form == "unary":
        return f"{expr[1]}{' ' if expr[1] == 'not' else ''}{_inner(expr[2])}"
    if form == "ellipsis":
        return "..."
    if form == "elem":
        return f"each of {_text(expr[1])}"
    if form == "item":
        return f"{_text(expr[1])}[{expr[2]}]"
    if form == "rest":
        return f"{_text(expr[1])}[{expr[2]}:{expr[3] or ''}]"
    if form == "ifexp":
        return f"{_text(expr[2])} if {_text(expr[1])} else {_text(expr[3])}"
    if form == "cmp":
        return " ".join(
            [_inner(expr[2]), *(f"{op} {_inner(right)}" for op, right in zip(expr[1], expr[3], strict=True))]
        )
    if form == "bool":
        return f" {expr[1]} ".join(_inner(part) for part in expr[2])
    if form == "star":
        return f"*{_text(expr[1])}"
    if form == "await":
        return f"await {_inner(expr[1])}"
    if form == "comp":
        inner = f"{_text(expr[2])} for {_CUT}"
        return f"[{inner}]" if expr[1] == "list" else f"({inner})" if expr[1] == "iter" else f"{{{inner}}}"
    if form == "fstr":
        return f'f"{_CUT}{_CUT.join(f"{{{_text(part)}}}" for part in expr[1])}{_CUT}"'
    if form == "lambda":
        return f"lambda: {_CUT}"
    if form == "set":
        return f"{{{', '.join(_text(part) for part in expr[1])}}}"
    if form == "dict":
        return f"{{{_CUT}}}"
    return _CUT


def _inner(expr: Expr) -> str:
    """A part of an operation: in brackets where it is one itself."""
    text = _text(expr)
    return f"({text})" if expr[0] in ("bin", "unary", "ifexp", "bool", "cmp") else text


def _index(expr: Expr) -> str:
    return ", ".join(_text(part) for part in expr[1]) if expr[0] == "tuple" else _text(expr)


def describe(value: Value) -> str:
    """A tensor or Python data in words, with its article: "a 1-dim int tensor on the device"."""
    if value.kind in _DATA:
        return _DATA[value.kind]
    rank = "" if value.rank is None else f"{value.rank}-dim "
    dtype = "" if value.dtype in (None, "number") else f"{value.dtype} "
    where = {
        "device": " on the device",
        "parametrised": " on a device that is given as parameter",
        "host": " on the host",
        "pinned": " in pinned host memory",
        "loaded": " on the host",
        "meta": " on meta",
        None: "",
    }[value.where]
    text = f"{rank}{dtype}tensor{where}"
    return f"an {text}" if text.startswith(("int", "8")) else f"a {text}"


_DATA = {"list": "a list", "tuple": "a tuple", "iter": "a range or iterator", "numpy": "a numpy array"}


def releases(names: tuple[str, ...], all_names: tuple[str, ...]) -> str:
    """Target releases in words: "in every targeted torch", "in torch 2.13", "in torch 2.9 to 2.14"."""
    if names == all_names and len(all_names) > 1:
        return "in every targeted torch"
    return f"in torch {names[0]}" + (f" to {names[-1]}" if len(names) > 1 else "")
