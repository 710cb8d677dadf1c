"""Python that this one cannot parse is told as what it is: newer, Python 2, or wrong."""

from __future__ import annotations

import ast
import sys

import pytest

from nosync_lint.index.syntax import complaint

NEWER = {
    "def f[T](x: T) -> T: ...": ("parameters of types", "3.12"),
    "class Box[T]: ...": ("parameters of types", "3.12"),
    "type Pair = tuple[int, int]": ("the statement `type`", "3.12"),
    'x = f"{d["k"]}"': ("an f-string with its own quotes inside", "3.12"),
    'x = t"{name}"': ("a template string", "3.14"),
    "try: pass\nexcept OSError, ValueError: pass": ("`except` without parentheses", "3.14"),
    "lazy import torch": ("a lazy import", "3.15"),
    "lazy from torch import nn": ("a lazy import", "3.15"),
    "x = [*row for row in rows]": ("unpacking in a comprehension", "3.15"),
    "x = {**d for d in dicts}": ("unpacking in a comprehension", "3.15"),
}
PYTHON_2 = [
    "print 'x'",
    "print x, y",
    "exec 'x = 1'",
    "try: pass\nexcept OSError, error:\n    pass",
    "raise ValueError, 'x'",
    "if a <> b: pass",
    "x = `y`",
    "mode = 0777",
    "x = ur'a'",
    "x = 10L",
]
WRONG = ["this is no python", "def f(:", "x = = 1", "if True:\nx = 1", "print('x'", "f(a, b"]


def said(text: str, running: tuple[int, int] = (3, 11)) -> str:
    with pytest.raises(SyntaxError) as raised:
        ast.parse(text)
    return complaint(raised.value, running)


@pytest.mark.parametrize("text", NEWER)
def test_a_newer_python_is_named(text: str) -> None:
    what, needed = NEWER[text]
    if sys.version_info >= tuple(int(part) for part in needed.split(".")):
        ast.parse(text)
        return
    told = said(text)
    assert told.startswith("cannot be parsed as Python 3.11: ")
    assert f"{what} needs Python {needed}; run nosync-lint with Python {needed} or newer" in told


@pytest.mark.parametrize("text", PYTHON_2)
def test_python_2_is_named(text: str) -> None:
    if "OSError, error" in text and sys.version_info >= (3, 14):
        return  # it is Python again, and means something else
    assert "this looks like Python 2; convert it to Python 3" in said(text, (3, 14))


@pytest.mark.parametrize("text", WRONG)
def test_what_is_only_wrong_is_not_called_anything(text: str) -> None:
    told = said(text)
    assert told.endswith("; correct it, or exclude the file")
    assert "needs Python" not in told
    assert "Python 2" not in told


def test_what_the_running_python_has_is_not_called_newer() -> None:
    error = SyntaxError("invalid syntax", ("x", 1, 1, 'x = t"{a}" = 1'))
    assert "needs Python" not in complaint(error, (3, 14))
    assert "needs Python 3.14" in complaint(error, (3, 13))
