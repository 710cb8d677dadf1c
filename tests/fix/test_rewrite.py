"""Edits of a statement: what a rule does not change keeps every character, and what cannot be kept is not offered."""

from __future__ import annotations

import ast

import pytest

from nosync_lint.finding import Applicability, Finding, Fix
from nosync_lint.fix.apply import applied
from nosync_lint.fix.rewrite import fix_of
from nosync_lint.index.records import pack
from nosync_lint.rule import Rewrite
from tests.fix.findings import finding_with

FILL = "{target}.index_fill_(0, {index}, {value})"


def fixed(
    source: str, template: str, *, statement: bool = True, removed: tuple[int, ...] = (), hoisted: bool = False
) -> str:
    """A source whose last statement is rewritten: the first subscript or call in it, or all of it."""
    tree = ast.parse(source)
    last = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)][-1]
    inner = next(node for node in ast.walk(last) if isinstance(node, ast.Subscript | ast.Call))
    places = [
        pack(node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0) for node in (inner, last)
    ]
    rewrite = Rewrite("recipe", Applicability.SAFE, "message", template, statement, removed, hoisted)
    lines = source.replace("\r\n", "\n").split("\n")
    fix = fix_of(rewrite, lines, places[0], places[1])
    return applied(source, [finding_with(fix)]) if fix is not None else ""


STORES = {
    "plain": ("t[i] = -1", "t.index_fill_(0, i, -1)"),
    "indented, with a comment": ("if x:\n    t[i] = -1  # gone", "if x:\n    t.index_fill_(0, i, -1)  # gone"),
    "spaces inside the parts": ("t [ f( i ,j ) ] = - 1", "t.index_fill_(0, f( i ,j ), - 1)"),
    "a tuple as index needs brackets": ("t[i, j] = 1", "t.index_fill_(0, (i, j), 1)"),
    "a tuple as value needs brackets": ("t[i] = 1, 2", "t.index_fill_(0, i, (1, 2))"),
    "an assignment as index needs brackets": ("t[(j := i)] = 1", "t.index_fill_(0, (j := i), 1)"),
    "a sum as target needs brackets": ("(t + u)[i] = 1", "(t + u).index_fill_(0, i, 1)"),
    "an attribute": ("self.a.b[i.c] = self.d", "self.a.b.index_fill_(0, i.c, self.d)"),
    "brackets of the value stay": ("t[i] = (\n    -1  # gone\n)", "t.index_fill_(0, i, (\n    -1  # gone\n))"),
    "comments between the parts stay": (
        "t[  # one\n    i  # two\n] = -1",
        "t.index_fill_(0,  # one\n    i,  # two\n  -1)",
    ),
    "a broken line": ("t[i] = \\\n    -1", "t.index_fill_(0, i, -1)"),
    "no spaces": ("t[i]=-1", "t.index_fill_(0, i, -1)"),
    "not ASCII": ("é['ü'] = ñ", "é.index_fill_(0, 'ü', ñ)"),
    "two statements in a line": ("x = 1; t[i] = 2", "x = 1; t.index_fill_(0, i, 2)"),
    "two targets are left alone": ("a = t[i] = 1", ""),
    "an augmented one is left alone": ("t[i] += 1", ""),
    "unpacking is left alone": ("t[i], u = 1, 2", ""),
}


@pytest.mark.parametrize("name", STORES)
def test_a_store_becomes_a_call(name: str) -> None:
    before, after = STORES[name]
    assert fixed(before, FILL) == after


AGAIN = "{target}[{index}] = {target}.new_full((), {value})"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("t[i, j] = 1", "t[i, j] = t.new_full((), 1)"),
        ("t[i, j]=1", "t[i, j]=t.new_full((), 1)"),
        ("t[i, j]  =  1", "t[i, j]  =  t.new_full((), 1)"),
        ("t[i, j] = \\\n    1", "t[i, j] = \\\n    t.new_full((), 1)"),
    ],
)
def test_the_spaces_around_what_is_added_are_those_of_the_source(before: str, after: str) -> None:
    assert fixed(before, AGAIN) == after


CALLS = {
    "an argument more": ("{function}({args[0]}, flag=True)", "f( x )", "f( x, flag=True )"),
    "an argument more in lines of its own": (
        "{function}({args[0]}, flag=True)",
        "y = f(\n    x,  # here\n)",
        "y = f(\n    x, flag=True,  # here\n)",
    ),
    "a call more": (
        "{function}({args[0]}, flag=True).to({args[d]}, late=True)",
        "y = f(\n    x,\n    d=d,\n)",
        "y = f(\n    x, flag=True).to(d, late=True)",
    ),
    "an argument less": ("{receiver}.g({args[0]})", "a.f(x, flag=False)", "a.g(x)"),
    "in the middle of an expression": ("{receiver}.g({args[0]})", "z = [1 + a.f(x) , 2]", "z = [1 + a.g(x) , 2]"),
    "parts that trade places": ("where({args[0]}, {receiver})", "t.fill(m)", "where(m, t)"),
    "a part that stands there twice": ("{receiver}.c(w({args[0]}, {receiver}))", "t.fill(m)", "t.c(w(m, t))"),
    "a part of a part": ("{function}({args[0].args[0]})", "w(torch.tensor( 0.5 ))", "w(0.5)"),
    "an element": ("full((1,), {args[0].item[0]}, {args[1]})", "make([ n ], d)", "full((1,), n, d)"),
    "a receiver that needs brackets": ("{args[0]}.max()", "max(a + b)", "(a + b).max()"),
    "a comment of what goes": ("{receiver}.g()", "y = a.f(\n    x  # why\n) + 1", "y = a.g(\n      # why\n) + 1"),
    "a comment that would be lost": ("{args[0]}.g", "f(\n    x  # why\n)", ""),
    "a part that is not there": ("{args[1]}", "f(x)", ""),
    "what would not parse": ("{args[0]} +", "f(x)", ""),
    "nothing new": ("{function}({args[0]})", "f(x)", ""),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_rewritten(name: str) -> None:
    template, before, after = CALLS[name]
    assert fixed(before, template, statement=False) == after


def test_lines_that_go_hold_nothing_else() -> None:
    source = "b = g(y)\na = f(x)"
    gone = pack(1, 0, 1, 8)
    assert fixed(source, "{name}, b = h({value})", removed=(gone,)) == "a, b = h(f(x))"
    assert fixed("b = g(y)  # why\na = f(x)", "{name}, b = h({value})", removed=(gone,)) == ""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("for a in b:\n    c = f(1)", "c = f(1)\nfor a in b:\n"),
        ("if x:\n\twhile y:\n\t\tz()\n\t\tc = f(1)", "if x:\n\tc = f(1)\n\twhile y:\n\t\tz()\n"),
        ("for a in b:\n    if a:\n        c = f(1)", ""),
        ("for a in b:\n    c = f(1)  # why", ""),
        ("for a in b:\n    c = f(\n        1)", ""),
    ],
    ids=["for", "while", "a condition between", "a comment", "several lines"],
)
def test_a_line_moves_before_its_loop(before: str, after: str) -> None:
    assert fixed(before, "", hoisted=True) == after


def test_new_lines_end_like_those_of_the_file() -> None:
    assert fixed("for a in b:\r\n    c = f(1)\r\n", "", hoisted=True) == "c = f(1)\r\nfor a in b:\r\n"


def test_a_finding_without_a_fix_changes_nothing() -> None:
    assert applied("x = 1\n", [finding_with(None)]) == "x = 1\n"
    assert isinstance(finding_with(Fix("recipe", Applicability.SAFE, "", ())), Finding)
