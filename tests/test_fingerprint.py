"""What makes a finding the same one: the flagged expression in its plain form, and where it stands."""

from __future__ import annotations

import pytest

from nosync_lint.fingerprint import LONGEST, MOST_BRACKETS, Identity, normalised, scope_of, snippet
from nosync_lint.source import Span

LAYOUTS = {
    "self.cells[rows]": ["self.cells[ rows ]", "self.cells[\n    rows  # why\n]", "self . cells \\\n [rows]", "(self.cells)[(rows)]"],
    'f(a, "x")': ["f(a,'x')", "f(\n  a,\n  'x',\n)", "f((a), ('x'))", 'f(a, u"x")', "f(a, '''x''')", 'f(a, "" "x")'],
    "torch.tensor(x if y else z)": ["torch.tensor((x if y else z))", "torch.tensor(\n    (\n        x if y\n        else z\n    )\n)"],
    "not x in y": ["not (x in y)", "(not  x in y)"],
    'f"{x!r}b"': ["f'{ x!r }b'", 'F"{x!r}b"'],
    "x[0xff, 1e5]": ["x[0XFF, 1E5]", "x[0xFF,1e5]"],
    "x[a,]": ["x[(a,)]", "x[ (a), ]"],
    "(a + b).sum().item()": ["((a + b)).sum().item()", "(\n    (a + b)\n    .sum()\n    .item()\n)", "((a) + b).sum().item()"],
    "(a + b.sum()).item()": ["((a + (b.sum()))).item()", "(a + b\n.sum()).item()"],
    "f((a, b), (c,))": ["f(((a), b,), (c,),)"],
    "(x for x in y)": ["x for x in y", "((x for x in y))"],
    "return x": ["return (x)"],
    "if a and b:": ["if (a and b):", "if ((a) and (b)):"],
    "f()": ["f( )", "f(\n)"],
    "f(())": ["f( () )"],
    "f(a, ())": ["f(a, (),)"],
    'f(\'"\', "it\'s")': ["""f("\\"", 'it\\'s')"""],
}  # fmt: skip


@pytest.mark.parametrize(("plain", "laid_out"), [(plain, one) for plain, found in LAYOUTS.items() for one in found])
def test_layout_is_no_part_of_an_expression(plain: str, laid_out: str) -> None:
    assert normalised(laid_out, True) == normalised(plain, True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x[a]", "x[b]"),
        ("f(a)", "f(a, b)"),
        ("f()", "f(())"),
        ("a // b", "a / b"),
        ("not x", "notx"),
        ("'a'", "a"),
        ("b'a'", "'a'"),
        ("'a' + 'b'", "'ab'"),
        ("a if b else c", "a if c else b"),
        ("x.item()", "x.item"),
        ("(a + b).sum().item()", "(a + b.sum()).item()"),
        ("(a + b).sum().item()", "a + b.sum().item()"),
        ("(t == 0).all()", "t == 0 .all()"),
        ("(-1) ** n", "-1 ** n"),
        ("a * (b + c)", "a * b + c"),
        ("a - (b - c)", "a - b - c"),
        ("not (a and b)", "not a and b"),
        ("(a, b)[i]", "a, b[i]"),
        ("f((a, b))", "f(a, b)"),
        ("f((a,))", "f(a)"),
        ("x[a]", "x[a,]"),
        ("(lambda: x)()", "lambda: x()"),
        ("(await x).item()", "await x.item()"),
        ("if (a or b) and c:", "if a or b and c:"),
    ],
)
def test_other_expressions_are_not_the_same(one: str, other: str) -> None:
    assert normalised(one, True) != normalised(other, True)


def test_comments_of_each_language_are_left_out() -> None:
    assert normalised("a // b", True) == "a//b"
    assert normalised("f(x, // y\n /* z */ 1)", False) == "f(x, 1)"
    assert normalised("a # b", False) == "a#b"


def test_a_plain_form_is_plain_already() -> None:
    for plain in (one for one in LAYOUTS if "\\" not in one and '"it' not in one):
        once = normalised(plain, True)
        assert normalised(once, True) == once


@pytest.mark.parametrize(
    "grouped",
    [
        *("not (x)", "x in (y)", "a and (b)", "a is (b)", "await (x)", "yield (x)", "lambda: (x)", "x if (y) else (z)"),
        *("return (x)", "assert (x)", "del (x)", "raise (x)", "if (x):", "while (x):", "for x in (y):", "with (x):"),
    ],
)
def test_brackets_behind_keywords_group(grouped: str) -> None:
    assert normalised(grouped, True) == grouped.replace("(", "").replace(")", "").replace(": ", ":")


def test_brackets_that_change_the_meaning_are_read_as_they_were_written() -> None:
    assert normalised("(temperature == 0).all()", True) == "(temperature==0).all()"
    assert normalised("t[(rows + 1) * 2]", True) == "t[(rows+1)*2]"


def test_in_another_language_or_a_text_that_is_none_all_brackets_stay() -> None:
    assert normalised("(a + b).sum()", False) == "(a+b).sum()"
    assert normalised("if (a) {", False) == "if(a){"
    assert normalised("f((a)", True) == "f((a)"


def test_an_expression_of_many_brackets_keeps_them() -> None:
    pairs = ", ".join(f"({number}, {number})" for number in range(MOST_BRACKETS))
    assert normalised(f"f([{pairs}])", True) == f"f([{pairs}])"
    assert normalised(f"f([{pairs}], (x))", True) == f"f([{pairs}], (x))"


def test_a_snippet_is_cut_out_of_its_rows() -> None:
    lines = ["y = t[", "    rows", "] + 1"]
    assert snippet(lines, Span(1, 5, 3, 2), True) == "t[rows]"
    assert snippet(lines, Span(3, 1, 3, 1), True) == "]+1"  # no extent: the row
    assert snippet(lines, Span(9, 1, 9, 1), True, "a  message") == "a message"


def test_a_long_snippet_is_cut_and_stays_apart_from_its_like() -> None:
    long = "f(" + ", ".join(f"argument{number}" for number in range(40))
    one, other = (snippet([long + end], Span(1, 1, 1, len(long) + 3), True) for end in ("+1)", "+2)"))
    assert len(one) == len(other) == LONGEST
    assert one != other


def test_scopes_of_running_functions_are_those_of_the_linter() -> None:
    assert scope_of("Grid.step") == "Grid.step"
    assert scope_of("Grid.step.<locals>.inner.<locals>.<listcomp>") == "Grid.step.inner"
    assert scope_of("step.<locals>.<lambda>") == "step.<lambda>"
    assert scope_of("<module>") == ""


def test_every_part_of_an_identity_counts_and_equals_are_numbered() -> None:
    identity = Identity("a.py", "f", "NSL101", "x[i]")
    others = [identity._replace(**{name: "other"}).fingerprint() for name in Identity._fields]
    assert len({identity.fingerprint(), identity.fingerprint(2), *others}) == 6
