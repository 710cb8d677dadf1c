"""What the HTML page holds: everything of the report, nothing that could become more than text."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from nosync_lint.finding import Applicability, Confidence, Edit, Finding, Fix, Heat, Hop, Severity, Suppressed
from nosync_lint.report import Hidden, Report
from nosync_lint.report.formats import Style, write
from nosync_lint.report.html.frames import CUT, MAX_LINE, MAX_MARKED, difference, frame
from nosync_lint.report.text import printable
from nosync_lint.source import Span

LINES = ("import torch", "", "def step(x):", "    while x.item():", "        x[i] = -1", "    return x", "")
FINDING = Finding(
    code="NSL101",
    name="scalar-index-write",
    message="storing -1 through `x`",
    filename="serve/pool.py",
    span=Span(5, 9, 5, 13),
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    heat=Heat.HOT,
    cure="x.index_fill_(0, i, -1)",
    flow=(Hop("serve/loop.py", 12, "hot root `Loop.step`"), Hop("serve/pool.py", 5, "synchronises here")),
    evidence=(Hop("serve/pool.py", 9, "made on the device"),),
    related=(Hop("serve/base.py", 2, "declared here"),),
    root="Loop.step",
    group="a sink",
    fingerprint="0123abcd",
    url="https://example.org/scalar-index-write",
    scope="Pool.step",
    fix=Fix(
        "index-fill", Applicability.SAFE, "use `index_fill_`", (Edit(Span(5, 9, 5, 18), "x.index_fill_(0, i, -1)"),)
    ),
)
REPORT = Report((FINDING,), sources={"serve/pool.py": LINES}, owners={"serve/pool.py": "@us"}, target_torch=("2.13",))


class Page(HTMLParser):
    """The elements of a page with their attributes, and the texts of its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.rawdata == ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(attributes)))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem is not None:
            self.texts.append(data)

    @property
    def content(self) -> Any:
        return json.loads(self.texts[1])


def page(report: Report) -> Page:
    out = io.StringIO()
    write(report, "html", out, Style())
    assert out.getvalue().isascii()
    return Page(out.getvalue())


def test_a_finding_is_told_whole() -> None:
    told = page(REPORT).content
    (finding,) = told["findings"]
    assert finding == {
        "id": "0123abcd",
        "code": "NSL101",
        "name": "scalar-index-write",
        "message": "storing -1 through `x`",
        "file": "serve/pool.py",
        "row": 5,
        "column": 9,
        "severity": "error",
        "confidence": "certain",
        "heat": "hot",
        "scope": "Pool.step",
        "root": "Loop.step",
        "group": "a sink",
        "owner": "@us",
        "cure": "x.index_fill_(0, i, -1)",
        "frame": {
            "row": 3,
            "lines": [
                ["def step(x):"],
                ["    while x.item():"],
                ["        ", "x[i]", " = -1"],
                ["    return x"],
                [""],
            ],
        },
        "flow": [0, 1],
        "evidence": [2],
        "related": [3],
        "url": "https://example.org/scalar-index-write",
        "fix": {
            "message": "use `index_fill_`",
            "applicability": "safe",
            "lines": [["@", "5"], ["-", "        x[i] = -1"], ["+", "        x.index_fill_(0, i, -1)"]],
        },
    }
    assert told["places"][:2] == [
        ["serve/loop.py", 12, "hot root `Loop.step`", ""],
        ["serve/pool.py", 5, "synchronises here", "x[i] = -1"],
    ]


def test_accepted_findings_keep_their_reason_and_belong_to_who_accepted_them() -> None:
    accepted = Suppressed(FINDING, "waiver", "known, `#12`", 4, "@ops", "2027-01-31")
    (told,) = page(replace(REPORT, findings=(), suppressed=(accepted,))).content["accepted"]
    assert told["accepted"] == {
        "form": "waiver", "reason": "known, `#12`", "row": 4, "owner": "@ops", "until": "2027-01-31",
    }  # fmt: skip
    assert told["owner"] == "@ops"
    (told,) = page(replace(REPORT, suppressed=(replace(accepted, owner=""),))).content["accepted"]
    assert told["owner"] == "@us"


def test_cells_of_a_notebook_have_their_own_lines() -> None:
    hop = Hop("a.ipynb", 1, "synchronises here", cell=3)
    finding = replace(FINDING, filename="a.ipynb", cell=3, span=Span(1, 1, 1, 2), flow=(hop,), evidence=(), related=())
    report = replace(REPORT, findings=(finding,), sources={"a.ipynb:cell 3": ("x.item()",)}, owners={"a.ipynb": "@us"})
    told = page(report).content
    (one,) = told["findings"]
    assert (one["file"], one["frame"]["lines"], one["owner"]) == ("a.ipynb:cell 3", [["", "x", ".item()"]], "@us")
    assert told["places"] == [["a.ipynb:cell 3", 1, "synchronises here", "x.item()"]]


def test_the_rest_of_the_report_is_told() -> None:
    report = Report(
        (), Hidden(warm=2, suppressed=3), 4, 5, 6, 7, ("2.12", "2.13"), 1.5, ("rule NSL101 crashed",), ("why",)
    )
    assert page(report).content == {
        "torch": "2.12, 2.13", "hidden": {"warm": 2}, "files": [4, 5], "calls": [6, 7], "places": [],
        "failures": ["rule NSL101 crashed"], "notes": ["why"], "findings": [], "accepted": [],
        "version": page(REPORT).content["version"],
    }  # fmt: skip


def test_places_that_several_findings_name_stand_there_once() -> None:
    told = page(replace(REPORT, findings=(FINDING, replace(FINDING, fingerprint="1")))).content
    assert len(told["places"]) == 4
    assert [one["flow"] for one in told["findings"]] == [[0, 1]] * 2


def test_the_page_is_the_same_whatever_time_the_run_took() -> None:
    assert page(REPORT).texts == page(replace(REPORT, seconds=7.0)).texts


# -- nothing leaves its place --


def test_the_policy_lets_only_the_script_and_the_style_of_the_page_run() -> None:
    told = page(REPORT)
    (policy,) = [dict(one)["content"] for _, one in told.tags if dict(one).get("http-equiv")]
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    style, _, script = told.texts
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    for kind, text in (("style-src", style), ("script-src", script)):
        assert rules[kind] == f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_nothing_is_loaded_from_elsewhere() -> None:
    for tag, attributes in page(REPORT).tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base")
        assert not {"src", "href", "style"} & dict(attributes).keys()
        assert not [name for name, _ in attributes if name.startswith("on")]


def test_the_script_parses_no_text_as_html_or_code() -> None:
    script = page(REPORT).texts[2]
    for sink in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "DOMParser"):
        assert sink not in script


def test_only_web_addresses_become_links() -> None:
    (told,) = page(replace(REPORT, findings=(replace(FINDING, url="javascript:alert(1)"),))).content["findings"]
    assert "url" not in told


TEXT = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        [
            "</script><script>alert(1)</script>",
            "<!--<script>",
            "]]>",
            "&lt;b&gt;",
            "@script@",
            "\u2028",
            "\udc80",
            "\x1b[2J",
        ]
    ),
)


@settings(deadline=None)
@given(TEXT, TEXT, TEXT, TEXT, TEXT, st.lists(TEXT, min_size=1, max_size=4))
def test_no_text_leaves_its_place(message: str, name: str, file: str, note: str, reason: str, lines: list[str]) -> None:
    """Whatever the texts are, the page has the same elements, and its content is these texts and nothing else."""
    lines = [line.replace("\n", "") for line in lines]
    fix = replace(FINDING.fix, edits=(Edit(Span(1, 1, 1, 1), name),)) if FINDING.fix else None
    finding = replace(
        FINDING, message=message, cure=name, filename=file, scope=name, root=name, flow=(Hop(file, 1, note),),
        evidence=(), related=(), span=Span(1, 1, 1, len(lines[0]) + 1), fix=fix,
    )  # fmt: skip
    report = Report(
        (finding,), sources={file: tuple(lines)}, suppressed=(Suppressed(finding, "ignore", reason),),
        owners={file: name}, failures=(message,), notes=(note,),
    )  # fmt: skip
    told, plain = page(report), page(REPORT)
    assert told.tags == plain.tags
    assert len(told.texts) == len(plain.texts) == 3
    assert (told.texts[0], told.texts[2]) == (plain.texts[0], plain.texts[2])
    content = told.content
    (one,), (accepted,) = content["findings"], content["accepted"]
    line = [printable(text, "utf-8") for text in (message, name, file, note, reason)]
    shown = [one.get(key, "") for key in ("message", "scope", "file")]
    assert [*shown, content["places"][0][2], accepted["accepted"]["reason"]] == line
    assert [content["failures"], content["notes"]] == [[line[0]], [line[3]]]
    assert one.get("owner", "") == line[1]
    sources = [printable(text.expandtabs(4), "utf-8") for text in lines[:3]]
    assert ["".join(pieces) for pieces in one["frame"]["lines"]] == sources


# -- frames and differences --


def test_a_place_over_several_rows_is_marked_in_each() -> None:
    assert frame(LINES, Span(3, 5, 5, 10)) == {
        "row": 1,
        "lines": [
            ["import torch"],
            [""],
            ["def ", "step(x):", ""],
            ["    ", "while x.item():", ""],
            ["        ", "x", "[i] = -1"],
            ["    return x"],
            [""],
        ],
    }


def test_a_very_long_place_is_cut() -> None:
    told = frame(["x"] * 100, Span(10, 1, 90, 2))
    assert told["row"] == 8
    assert sum(len(pieces) == 3 for pieces in told["lines"]) == MAX_MARKED


def test_a_very_long_line_shows_what_is_around_the_mark() -> None:
    told = frame(["a" * 5000 + "mark" + "b" * 5000, "c" * 5000], Span(1, 5001, 1, 5005))
    before, marked, behind = told["lines"][0]
    assert (before[0], before[-1], marked, behind[0], behind[-1]) == (CUT, "a", "mark", "b", CUT)
    assert max(len("".join(pieces)) for pieces in told["lines"]) <= MAX_LINE + 1


def test_columns_are_counted_in_characters() -> None:
    (line,) = frame(["größe = '😀'; x.item()"], Span(1, 14, 1, 22))["lines"]
    assert line == ["größe = '😀'; ", "x.item()", ""]


def test_a_file_that_is_gone_or_has_changed_has_no_frame() -> None:
    assert frame([], Span(1, 1, 1, 2)) == {}
    assert frame(["x"], Span(2, 1, 2, 2)) == {}
    assert difference(["x"], [Edit(Span(2, 1, 2, 2), "y")]) == []


def test_a_fix_of_several_places_is_shown_as_one_change_where_they_touch() -> None:
    lines = ["import a", "", "", "one = a.b(", "    c,", ")", "two = a.d"]
    edits = [
        Edit(Span(1, 1, 2, 1), ""),
        Edit(Span(4, 7, 4, 10), "f"),
        Edit(Span(5, 5, 6, 1), "e,\n    g\n"),
        Edit(Span(7, 7, 7, 10), "h"),
    ]
    assert difference(lines, edits) == [
        ["@", "1"],
        ["-", "import a"],
        [" ", ""],
        ["@", "4"],
        ["-", "one = a.b("],
        ["-", "    c,"],
        ["+", "one = f("],
        ["+", "    e,"],
        ["+", "    g"],
        [" ", ")"],
        ["-", "two = a.d"],
        ["+", "two = h"],
    ]
