"""Comments that suppress findings: how they are read, and what they reach."""

from __future__ import annotations

from datetime import date

import pytest

from nosync_lint.index.pragmas import python_pragmas, read_pragmas
from nosync_lint.suppression import Suppressions

TODAY = date(2027, 3, 1)

READ = {
    "# nosync-lint: ignore[NSL101] one write": ("ignore", ("NSL101",), "one write"),
    "# nosync-lint: ignore[scalar-index-write, NSL301]": ("ignore", ("scalar-index-write", "NSL301"), ""),
    "#nosync-lint:ignore: because": ("ignore", (), "because"),
    "# NoSync-Lint: Ignore[nsl101] why": ("ignore", ("nsl101",), "why"),
    "// nosync-lint: ignore[NSL601] pinned on purpose": ("ignore", ("NSL601",), "pinned on purpose"),
    "# type: ignore  # nosync-lint: ignore[NSL101] why": ("ignore", ("NSL101",), "why"),
    "# nosync-lint: hot": ("hot", (), ""),
    "# nosync-lint: skip-file generated": ("skip-file", (), "generated"),
    "# nosync-lint: off[NSL101] loading": ("off", ("NSL101",), "loading"),
    "# noqa: NSL101": ("noqa", ("NSL101",), ""),
    "# noqa: E501, NSL101 - once": ("noqa", ("NSL101",), "once"),
    "# noqa:nsl101,nsl301": ("noqa", ("NSL101", "NSL301"), ""),
}


@pytest.mark.parametrize("comment", READ)
def test_a_comment_is_read(comment: str) -> None:
    (pragma,) = read_pragmas(comment, 3, alone=False)
    assert (pragma.form, pragma.names, pragma.reason) == READ[comment]
    assert (pragma.row, pragma.alone) == (3, False)


@pytest.mark.parametrize(
    "comment", ["# noqa", "# noqa: E501", "# nosync: later", "# see nosync-lint", "# type: ignore"]
)
def test_other_comments_are_not_ours(comment: str) -> None:
    assert list(read_pragmas(comment, 1, alone=True)) == []


def test_an_unknown_word_is_kept_to_be_reported() -> None:
    (pragma,) = read_pragmas("# nosync-lint: silence", 1, alone=True)
    assert pragma.form == "unknown"


def test_text_that_looks_like_a_comment_is_none() -> None:
    assert python_pragmas('x = "# nosync-lint: ignore[NSL101]"\n"""\n# noqa: NSL101\n"""\n') == ()


def test_a_comment_knows_whether_it_stands_alone() -> None:
    found = python_pragmas("if x:\n    # nosync-lint: hot\n    y = 1  # nosync-lint: cold\n")
    assert [(pragma.row, pragma.form, pragma.alone) for pragma in found] == [(2, "hot", True), (3, "cold", False)]


def suppressions(text: str) -> Suppressions:
    return Suppressions(python_pragmas(text), text.split("\n").copy, TODAY)


def covers(
    text: str, first: int, last: int | None = None, code: str = "NSL101", slug: str = "scalar-index-write"
) -> bool:
    return suppressions(text).cover(code, slug, first, last or first) is not None


@pytest.mark.parametrize(
    "name", ["[NSL101]", "[nsl101]", "[scalar-index-write]", "[Scalar-Index-Write]", "", "[NSL301, NSL101]"]
)
def test_a_comment_covers_the_rules_it_names(name: str) -> None:
    assert covers(f"x  # nosync-lint: ignore{name} why", 1)


@pytest.mark.parametrize("name", ["[NSL102]", "[NSL10]", "[dedup-on-device]"])
def test_a_comment_covers_no_other_rule(name: str) -> None:
    assert not covers(f"x  # nosync-lint: ignore{name} why", 1)


def test_a_comment_covers_the_statement_it_stands_in() -> None:
    text = "f(\n    a,  # nosync-lint: ignore[NSL101] why\n)\ng()\n"
    assert covers(text, 1, 3)
    assert not covers(text, 4)


def test_a_comment_alone_on_its_line_covers_the_statement_below() -> None:
    text = "# nosync-lint: ignore[NSL101] why\n# and more of it\nx\ny\n"
    assert covers(text, 3)
    assert not covers(text, 4)


def test_a_comment_behind_code_does_not_reach_the_next_line() -> None:
    assert not covers("x  # nosync-lint: ignore[NSL101] why\ny\n", 2)


def test_blank_lines_end_the_reach_of_a_comment() -> None:
    assert not covers("# nosync-lint: ignore[NSL101] why\n\nx\n", 3)


def test_a_region_lasts_until_it_is_ended() -> None:
    text = "a\n# nosync-lint: off[NSL101] why\nb\nc\n# nosync-lint: on[NSL101]\nd\n"
    assert [covers(text, row) for row in (1, 3, 4, 6)] == [False, True, True, False]


def test_a_region_is_not_ended_for_another_rule() -> None:
    text = "# nosync-lint: off[NSL101] why\n# nosync-lint: on[NSL301]\nx\n"
    assert covers(text, 3)
    assert not covers(text.replace("on[NSL301]", "on"), 3)


def test_a_region_without_an_end_lasts_to_the_end_of_the_file() -> None:
    assert covers("# nosync-lint: off why\n" + "x\n" * 50, 50)


def test_a_skipped_file_is_covered_above_and_below() -> None:
    assert covers("x\ny\n# nosync-lint: skip-file generated\n", 1)


def test_heat_markers_cover_nothing() -> None:
    assert not covers("x  # nosync-lint: cold why\n", 1)


def test_what_covered_nothing_is_told() -> None:
    text = "a  # nosync-lint: ignore[NSL101] why\nb  # nosync-lint: ignore[NSL301] why\n"
    text += "# nosync-lint: on\n# nosync-lint: huh\n"
    one = suppressions(text)
    assert one.cover("NSL101", "scalar-index-write", 1, 1)
    sites = list(one.sites("m.py", known={"NSL101", "NSL301"}, judged={"NSL101", "NSL301"}))
    assert [(site.span.row, site.used) for site in sites] == [(1, True), (2, False), (3, False), (4, False)]


def test_a_comment_about_a_rule_that_was_not_asked_counts_as_used() -> None:
    one = suppressions("a  # nosync-lint: ignore[NSL301] why\nb  # nosync-lint: ignore[NSL999] why\n")
    first, second = one.sites("m.py", known={"NSL101", "NSL301"}, judged={"NSL101"})
    assert (first.used, first.unknown) == (True, ())
    assert (second.used, second.unknown) == (False, ("NSL999",))
