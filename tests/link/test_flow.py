"""Which assignments reach a use, and which tests hold there. Rows count from the line after `def`."""

from __future__ import annotations

import textwrap

import pytest

from nosync_lint.index.python import index_python
from nosync_lint.index.records import CallSite, FunctionRecord
from nosync_lint.link.flow import holding, reaching


def probe(text: str) -> tuple[FunctionRecord, CallSite]:
    """A function around some statements, and its call of `use(x)`."""
    index = index_python("def f(x, a=0, b=0):\n" + textwrap.indent(textwrap.dedent(text).lstrip("\n"), "    "))
    record = index.functions[1]
    (site,) = [site for site in record.calls if site.call[1] == ("name", "use")]
    return record, site


def rows(text: str) -> set[int]:
    """The rows of the definitions of `x` that reach `use(x)`; 0 for its value on entry."""
    record, site = probe(text)
    found, entry = reaching(record, "x", site.seq, site.block)
    return {definition.row - 1 for definition in found} | ({0} if entry else set())


CASES = {
    "the parameter": ("use(x)", {0}),
    "the last assignment": ("x = 1\nx = 2\nuse(x)", {2}),
    "a later assignment does not reach": ("use(x)\nx = 1", {0}),
    "an assignment reads the one before it": ("x = 1\nx = use(x)", {1}),
    "one branch may be taken": ("if a:\n    x = 1\nuse(x)", {0, 2}),
    "one of two branches is taken": ("if a:\n    x = 1\nelse:\n    x = 2\nuse(x)", {2, 4}),
    "three branches without else": ("if a:\n    x = 1\nelif b:\n    x = 2\nuse(x)", {0, 2, 4}),
    "the other branch does not reach": ("if a:\n    x = 1\nelse:\n    use(x)", {0}),
    "a branch that returns does not reach": ("if a:\n    x = 1\n    return\nuse(x)", {0}),
    "a branch that raises does not reach": ("x = 1\nif a:\n    x = 2\n    raise E\nuse(x)", {1}),
    "where the other branch returns": ("if a:\n    return\nelse:\n    x = 1\nuse(x)", {4}),
    "inside its own branch": ("x = 1\nif a:\n    x = 2\n    use(x)", {3}),
    "a loop may not run": ("for i in a:\n    x = 1\nuse(x)", {0, 2}),
    "a loop comes round": ("for i in a:\n    use(x)\n    x = 1", {0, 3}),
    "a loop that assigns first": ("for i in a:\n    x = 1\n    use(x)\n    y = 2", {2}),
    "a while loop comes round": ("x = 1\nwhile a:\n    use(x)\n    x = 2", {1, 4}),
    "the loop variable": ("for x in a:\n    use(x)", {1}),
    "with always runs": ("with a:\n    x = 1\nuse(x)", {2}),
    "a try may fail before": ("try:\n    x = 1\nexcept E:\n    pass\nuse(x)", {0, 2}),
    "finally always runs": ("try:\n    a()\nfinally:\n    x = 1\nuse(x)", {4}),
    "a walrus in the same statement": ("if (x := a) and use(x):\n    pass", {1}),
    "unpacking": ("x, y = a\nuse(x)", {1}),
    "a deeper condition is uncertain": ("if a:\n    if b:\n        x = 1\nelse:\n    x = 2\nuse(x)", {0, 3, 5}),
}


CASES |= {
    "one case excludes another": ("match a:\n    case 1:\n        x = 1\n    case 2:\n        use(x)", {0}),
    "a case may have been taken": ("match a:\n    case 1:\n        x = 1\n    case _:\n        pass\nuse(x)", {0, 3}),
    "an assignment reads what was before it": ("x = use(x)", {0}),
    "an augmented assignment too": ("x += use(x)", {0}),
    "one of three branches is taken": ("if a:\n    x = 1\nelif b:\n    x = 2\nelse:\n    x = 3\nuse(x)", {2, 4, 6}),
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [pytest.param(*case, id=name) for name, case in CASES.items()],
)
def test_the_assignments_that_reach_a_use(text: str, expected: set[int]) -> None:
    assert rows(text) == expected


def held(text: str) -> set[tuple[str, bool]]:
    """The simple tests on names that hold at `use(x)`, with their outcomes."""
    record, site = probe(text)
    return {(test[1], outcome) for test, outcome in holding(record, site.seq, site.block) if test[0] == "name"}


HELD = {
    "inside": ("if a:\n    use(x)", {("a", True)}),
    "in the else": ("if a:\n    pass\nelse:\n    use(x)", {("a", False)}),
    "not": ("if not a:\n    use(x)", {("a", False)}),
    "both of and": ("if a and b:\n    use(x)", {("a", True), ("b", True)}),
    "neither of or in the else": ("if a or b:\n    pass\nelse:\n    use(x)", {("a", False), ("b", False)}),
    "nothing of or": ("if a or b:\n    use(x)", set()),
    "after an early return": ("if a:\n    return\nuse(x)", {("a", False)}),
    "after an early raise in the else": ("if a:\n    pass\nelse:\n    raise E\nuse(x)", {("a", True)}),
    "after an assertion": ("assert a\nuse(x)", {("a", True)}),
    "not before an assertion": ("use(x)\nassert a", set()),
    "not before a return": ("use(x)\nif a:\n    return", set()),
    "not after a branch that goes on": ("if a:\n    y = 1\nuse(x)", set()),
    "an early return in another branch": ("if b:\n    if a:\n        return\nuse(x)", set()),
    "continue in a loop": ("for i in z:\n    if a:\n        continue\n    use(x)", {("a", False)}),
    "while": ("while a:\n    use(x)", {("a", True)}),
}


@pytest.mark.parametrize(("text", "expected"), HELD.values(), ids=HELD.keys())
def test_the_tests_that_hold_at_a_use(text: str, expected: set[tuple[str, bool]]) -> None:
    assert held(text) == expected
