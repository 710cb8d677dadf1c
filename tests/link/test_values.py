"""How several values become one."""

from __future__ import annotations

from nosync_lint.link.values import MAX_CLASSES, UNKNOWN, Value, vote


def instance(*refs: int) -> Value:
    return Value("object", ref=refs, exact=True)


def test_instances_of_several_classes_are_of_one_of_them() -> None:
    assert vote([instance(1), instance(2)]) == instance(1, 2)


def test_instances_of_too_many_classes_are_of_no_known_one() -> None:
    many = [instance(number) for number in range(MAX_CLASSES + 3)]
    assert sorted(vote(many[:MAX_CLASSES]).ref) == list(range(MAX_CLASSES))
    assert vote(many) == UNKNOWN


def test_symbols_that_disagree_are_no_number() -> None:
    assert vote([Value("extern", ref="a.x"), Value("extern", ref="a.y"), Value("extern", ref="a.z")]) == UNKNOWN


def test_what_is_not_known_may_be_a_subclass() -> None:
    found = vote([instance(1), UNKNOWN])
    assert (found.ref, found.exact, found.trust) == ((1,), False, 1)
