"""Comments that suppress findings: how they are read, and what they reach."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from nosync_lint.index.pragmas import python_pragmas, read_pragmas
from nosync_lint.report import Report
from nosync_lint.rule import Suppression
from nosync_lint.suppression import Suppressions

Lint = Callable[..., Report]

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


KEYS = {
    "# nosync-lint: ignore[NSL101] until=2027-03-01 owner=@kv-team one write": ("2027-03-01", "@kv-team", "one write"),
    "# nosync-lint: ignore until=2027-03-01": ("2027-03-01", "", ""),
    "# nosync-lint: off[NSL101] owner=me: why": ("", "me:", "why"),
    "# noqa: NSL101 OWNER=@me Until=2028-01-01 why": ("2028-01-01", "@me", "why"),
    "# gpu-sync-ok: until=2028-01-01 why": ("2028-01-01", "", "why"),
    "# nosync-lint: ignore[NSL101] until 2027 it waits": ("", "", "until 2027 it waits"),
    "# nosync-lint: ignore[NSL101] dtype=int64 is needed": ("", "", "dtype=int64 is needed"),
}


@pytest.mark.parametrize("comment", KEYS)
def test_keys_stand_before_the_reason(comment: str) -> None:
    (pragma,) = read_pragmas(comment, 1, alone=False)
    assert (pragma.until, pragma.owner, pragma.reason) == KEYS[comment]
    assert pragma.form != "unknown"


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ("until=2027-02-29", "`2027-02-29` is no day: write until=YYYY-MM-DD"),
        ("until=soon", "`soon` is no day"),
        ("until=2027-1-1", "is no day"),
        ("until=20270101", "is no day"),
        ("until=", "`until=` has no value"),
        ("owner=", "`owner=` has no value"),
        ("until=2027-01-01 until=2028-01-01", "it gives `until` twice"),
        ("expires=2027-01-01", "`expires` is no key: known are until=YYYY-MM-DD and owner=NAME"),
        ("owner=me by=@you", "`by` is no key"),
    ],
)
def test_keys_that_are_none_make_a_comment_useless_and_are_reported(keys: str, why: str) -> None:
    (pragma,) = read_pragmas(f"# nosync-lint: ignore[NSL101] {keys} reason", 1, alone=False)
    assert pragma.form == "unknown"
    assert why in pragma.reason


@pytest.mark.parametrize(
    ("reason", "read"),
    [
        ("see #12 and https://a/b", "see #12 and https://a/b"),
        ("a // b", "a // b"),
        ("why # more", "why"),
        ("why  # noqa: E501", "why"),
        ("why# noqa: E501", "why"),
    ],
)
def test_a_reason_ends_where_another_comment_begins(reason: str, read: str) -> None:
    first = next(read_pragmas(f"# nosync-lint: ignore[NSL101] {reason}", 1, alone=False))
    assert first.reason == read


def test_a_reason_in_c_ends_at_its_own_kind_of_comment() -> None:
    (pragma,) = read_pragmas("// nosync-lint: ignore[NSL611] see #12 # here // more", 1, alone=False)
    assert pragma.reason == "see #12 # here"


def test_several_comments_in_one_are_all_read() -> None:
    text = "x  # type: ignore  # nosync-lint: ignore[NSL101] a  # noqa: E501, NSL301 b  # nosync-lint: hot\n"
    found = python_pragmas(text)
    assert [(one.form, one.names, one.reason) for one in found] == [
        ("ignore", ("NSL101",), "a"),
        ("noqa", ("NSL301",), "b"),
        ("hot", (), ""),
    ]
    assert [text[one.columns[0] - 1 : one.columns[1] - 1] for one in found] == [
        "# nosync-lint: ignore[NSL101] a",
        "# noqa: E501, NSL301 b",
        "# nosync-lint: hot",
    ]


@pytest.mark.parametrize(("until", "covered"), [("2027-02-28", False), ("2027-03-01", True), ("2027-03-02", True)])
@pytest.mark.parametrize("form", ["ignore[NSL101]", "off[NSL101]", "skip-file"])
def test_a_comment_covers_up_to_its_last_day(form: str, until: str, covered: bool) -> None:
    assert covers(f"# nosync-lint: {form} until={until} why\nx\n", 2) == covered


def test_an_expired_comment_is_told_where_it_would_be_needed() -> None:
    text = (
        "a  # nosync-lint: ignore[NSL101] until=2020-01-01 why\nb  # nosync-lint: ignore[NSL101] until=2020-01-01 why\n"
    )
    one = suppressions(text)
    assert one.cover("NSL101", "scalar-index-write", 1, 1) is None
    first, second = one.sites("m.py", known={"NSL101"}, judged={"NSL101"})
    assert (first.expired, first.used, first.until) == (True, True, "2020-01-01")
    assert (second.expired, second.used) == (False, False)


HEADER = "if (\n    a  # nosync-lint: ignore[NSL101] why\n    and b\n):\n    c\n"


def test_a_comment_anywhere_in_the_header_covers_it() -> None:
    """A formatter moves comments within a logical line, to rows that the flagged expression does not have."""
    moved = "if (\n    a\n    and b\n):  # nosync-lint: ignore[NSL101] why\n    c\n"
    for text in (HEADER, moved):
        assert covers(text, 2, 3)
        assert not covers(text, 5)


def test_off_behind_a_header_covers_its_block() -> None:
    text = "x\ndef f(\n    a,\n):  # nosync-lint: off[NSL101] why\n    b\n    if c:\n        d\n\n# end\ne\n"
    assert [covers(text, row) for row in (1, 2, 5, 7, 10)] == [False, True, True, True, False]
    assert covers("class A:  # nosync-lint: off[NSL101] why\n    def f():\n        b", 3)


def test_off_behind_a_statement_opens_a_region() -> None:
    assert [covers("f(\n  1)  # nosync-lint: off[NSL101] why\nb\nc\n", row) for row in (1, 3, 4)] == [False, True, True]


def test_on_that_ends_nothing_is_told() -> None:
    text = "# nosync-lint: off why\na\n# nosync-lint: on\n# nosync-lint: on\n"
    one = suppressions(text)
    assert one.cover("NSL101", "scalar-index-write", 2, 2)
    assert [(site.span.row, site.used) for site in one.sites("m.py", {"NSL101"}, {"NSL101"})] == [
        (1, True),
        (3, True),
        (4, False),
    ]


REMOVED = {
    "x = 1  # nosync-lint: ignore[NSL101] why\ny\n": "x = 1\ny\n",
    "x  # type: ignore  # nosync-lint: ignore[NSL101] why\n": "x  # type: ignore\n",
    "x  # nosync-lint: ignore[NSL101] why  # type: ignore\n": "x  # type: ignore\n",
    "x\n  # nosync-lint: ignore[NSL101] why\ny\n": "x\ny\n",
    "x\n# nosync-lint: ignore[NSL101] why": "x\n",
    "x  # noqa: E501, NSL101 why\n": "x  # noqa: E501 why\n",
    "x  # noqa: NSL101, E501\n": "x  # noqa: E501\n",
    "x  # noqa: NSL101 why\n": "x\n",
    "x  # nosync-lint: ignore why\n": "x\n",
    "# nosync-lint: off[NSL101] why\nx\n# nosync-lint: on[NSL101]\ny\n": "x\ny\n",
    "# nosync-lint: on\nx\n": "x\n",
    "é = 'ü'  # nosync-lint: ignore[NSL101] ö\n": "é = 'ü'\n",
    "f(\n    a,  # nosync-lint: ignore[NSL101] why\n)\n": "f(\n    a,\n)\n",
}


def applied(text: str, sites: list[Suppression]) -> str:
    """A text without what covers nothing in it."""
    lines = text.split("\n")
    edits = {edit for site in sites if site.removal and (not site.used or site.unused) for edit in site.removal.edits}
    for edit in sorted(edits, reverse=True, key=lambda edit: edit.span):
        row, column, end_row, end_column = edit.span
        whole = lines[row - 1][: column - 1] + edit.content + lines[end_row - 1][end_column - 1 :]
        lines[row - 1 : end_row] = [whole]
    return "\n".join(lines)


@pytest.mark.parametrize("text", REMOVED)
def test_what_covers_nothing_is_removed_and_nothing_else(text: str) -> None:
    known = {"NSL101", "NSL301"}
    sites = list(suppressions(text).sites("m.py", known, known))
    assert applied(text, sites) == REMOVED[text]
    assert applied(REMOVED[text], list(suppressions(REMOVED[text]).sites("m.py", known, known))) == REMOVED[text]


@pytest.mark.parametrize(
    ("names", "kept"),
    [("NSL101, NSL301", "NSL301"), ("NSL301,scalar-index-write", "NSL301"), ("NSL301 , NSL302, NSL101", "NSL301")],
)
def test_rules_that_match_nothing_are_taken_out_of_a_comment(names: str, kept: str) -> None:
    text = f"x  # nosync-lint: ignore[{names}] why\n"
    one = suppressions(text)
    known = {"NSL101", "scalar-index-write", "NSL301", "NSL302"}
    assert one.cover("NSL301", "dedup-on-device", 1, 1)
    (site,) = one.sites("m.py", known, known)
    assert site.used
    assert kept not in site.unused
    assert applied(text, [site]) == f"x  # nosync-lint: ignore[{kept}] why\n"


def test_a_rule_that_was_not_asked_stays_in_its_comment() -> None:
    one = suppressions("x  # nosync-lint: ignore[NSL101, NSL301] why\n")
    (site,) = one.sites("m.py", known={"NSL101", "NSL301"}, judged={"NSL101"})
    assert site.unused == ("NSL101",)


def test_a_typing_mistake_is_not_removed() -> None:
    for comment in ("# nosync-lint: ignore[NSL999] why", "# nosync-lint: ingore[NSL101] why"):
        (site,) = suppressions(f"x  {comment}\n").sites("m.py", {"NSL101"}, {"NSL101"})
        assert site.removal is None


WAITING = """
import torch

def step(t: torch.Tensor):  # nosync-lint: hot
    t.cuda().item()  # {}
"""


@pytest.mark.parametrize(
    ("comment", "options", "form"),
    [
        ("gpu-sync-ok: once", {}, "waiver"),
        ("we-wait: once", {}, None),
        ("we-wait: once", {"waivers": ("we-wait",)}, "waiver"),
        ("we-wait:", {"waivers": ("we-wait",)}, None),
        ("noqa", {}, None),
        ("noqa", {"respect_blanket_noqa": True}, "noqa"),
        ("noqa: E501", {"respect_blanket_noqa": True}, None),
        ("noqa: NSL203", {"respect_blanket_noqa": True}, None),
    ],
)
def test_comments_of_other_tools_are_honoured_as_configured(
    comment: str, options: dict[str, Any], form: str | None, lint: Lint
) -> None:
    report = lint({"main.py": WAITING.format(comment)}, select=("NSL201",), **options)
    assert [one.form for one in report.suppressed] == ([form] if form else [])
    assert [one.code for one in report.findings] == ([] if form else ["NSL201"])


@pytest.mark.parametrize(
    ("before", "reason", "row"),
    [
        ("    with allow_sync(reason='once'):\n        ", "once", 5),
        ("    with gpu_sync_allowed('twice'):\n        ", "twice", 5),
        ("    with gpu_sync_allowed:\n        ", "", 4),
        ("    ", None, 0),
    ],
)
def test_what_stands_in_a_block_that_allows_it_is_accepted(
    before: str, reason: str | None, row: int, lint: Lint
) -> None:
    text = f"\nimport torch\n\ndef step(t: torch.Tensor):  # nosync-lint: hot\n{before}t.cuda().item()\n"
    report = lint({"main.py": text}, select=("NSL201",), heat="any")
    assert [(one.form, one.reason, one.row) for one in report.suppressed] == (
        [] if reason is None else [("block", reason, row)]
    )
    assert len(report.findings) == (reason is None)


def test_a_decorator_that_allows_waits_covers_its_function(lint: Lint) -> None:
    text = "\nimport torch\n\n@allow_sync(reason='at the end')\ndef step(t: torch.Tensor):  # nosync-lint: hot\n    t.cuda().item()\n"
    (one,) = lint({"main.py": text}, select=("NSL201",), heat="any").suppressed
    assert (one.form, one.reason) == ("block", "at the end")


def test_a_suppressed_finding_has_its_owner_and_last_day(lint: Lint) -> None:
    comment = "nosync-lint: ignore[NSL201] until=2030-01-01 owner=@me why"
    (one,) = lint({"main.py": WAITING.format(comment)}, select=("NSL201",), today=TODAY).suppressed
    assert (one.reason, one.owner, one.until, one.row) == ("why", "@me", "2030-01-01", 5)
    assert one.finding.fingerprint


def test_the_day_is_what_the_run_is_told(lint: Lint) -> None:
    text = WAITING.format("nosync-lint: ignore[NSL201] until=2027-03-01 why")
    for today, codes in ((TODAY, []), (date(2027, 3, 2), ["NSL004", "NSL201"])):
        report = lint({"main.py": text}, select=("NSL201", "NSL0"), today=today)
        assert sorted(one.code for one in report.findings) == codes
