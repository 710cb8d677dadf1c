"""How messages and cures spell what stands in the code."""

from __future__ import annotations

import pytest

from nosync_lint.index.python import index_python
from nosync_lint.index.records import Expr
from nosync_lint.link.wording import receiver, spelled, wording


def lowered(text: str) -> Expr:
    (definition,) = index_python(f"value = {text}\n").functions[0].definitions["value"]
    return definition.value


@pytest.mark.parametrize(
    "text",
    [
        "scores[scores > 0.9]",
        "low < x < high",
        "t[mask & (t > 0)]",
        "a or (b and c)",
        "torch.zeros((n,), device=device)",
        "f([], (a, b), *rest, **more)",
        "rows[1:, ::2, ...]",
        "x if y else z",
        "(a or b).c",
    ],
)
def test_an_expression_is_spelled_as_it_is_written(text: str) -> None:
    assert spelled(lowered(text)) == wording(lowered(text)) == text


def test_what_has_no_words_is_not_spelled() -> None:
    assert spelled(lowered("f(lambda x: x)")) is None
    assert wording(lowered("f(lambda x: x)")) == "f(lambda: ...)"


@pytest.mark.parametrize(
    ("text", "before_a_dot"),
    [("self.rows[i]", "self.rows[i]"), ("f(x)", "f(x)"), ("a + b", "(a + b)"), ("~mask", "(~mask)")],
)
def test_an_operation_is_put_in_brackets_before_a_dot(text: str, before_a_dot: str) -> None:
    assert receiver(text) == before_a_dot
