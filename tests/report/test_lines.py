"""The short formats for people, JSON Lines, and Markdown."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from markdown_it import MarkdownIt

from nosync_lint.finding import Applicability, Edit, Fix, Severity
from nosync_lint.report import Hidden, Report, markdown
from nosync_lint.source import Span
from tests.report.reports import FINDING, written

WARNING = replace(FINDING, severity=Severity.WARNING, span=Span(12, 1, 12, 4), name="host-copy", code="NSL203")
ELSEWHERE = replace(FINDING, filename="serve/tail.py")
TWO = Report((FINDING, WARNING, ELSEWHERE), Hidden(cold=2), notes=("no hot root",), failures=("rule NSL301 crashed",))
END = (
    "failed: rule NSL301 crashed\nnote: no hot root\n3 shown; hidden: 2 cold (--heat any)\n0 files reported, 0 linked\n"
)
MESSAGE = "storing -1 through `größe` stops the host"


def test_concise_is_a_line_for_each_finding() -> None:
    assert written(TWO, "concise") == (
        f"serve/pool.py:4:9: NSL101 scalar-index-write {MESSAGE}\n"
        f"serve/pool.py:12:1: NSL203 host-copy {MESSAGE}\n"
        f"serve/tail.py:4:9: NSL101 scalar-index-write {MESSAGE}\n{END}"
    )


def test_grouped_puts_findings_below_their_file() -> None:
    assert written(TWO, "grouped") == (
        "serve/pool.py:\n"
        f"  4:9   NSL101 scalar-index-write {MESSAGE}\n"
        f"  12:1  NSL203 host-copy {MESSAGE}\n"
        "\n"
        "serve/tail.py:\n"
        f"  4:9  NSL101 scalar-index-write {MESSAGE}\n"
        f"\n{END}"
    )


def test_a_safe_fix_is_marked() -> None:
    edits = (Edit(Span(4, 9, 4, 26), "x"),)
    for form in ("concise", "grouped"):
        for applicability, marked in ((Applicability.SAFE, 1), (Applicability.UNSAFE, 0), (Applicability.DISPLAY, 0)):
            finding = replace(FINDING, fix=Fix("r", applicability, "m", edits))
            assert written(Report((finding,)), form).count("NSL101 scalar-index-write [*] ") == marked


def test_statistics_take_the_place_of_the_findings() -> None:
    for form in ("full", "concise", "grouped"):
        assert written(TWO, form, statistics=True) == f"2  NSL101  scalar-index-write\n1  NSL203  host-copy\n{END}"


def test_colour_is_for_those_who_ask() -> None:
    for form in ("concise", "grouped"):
        assert re.search(r"\x1b\[1;31m +NSL101", written(TWO, form, color=True))
        assert "\x1b" not in written(TWO, form)


def test_a_long_line_is_not_wrapped_in_colour() -> None:
    text = written(Report((replace(FINDING, message="word " * 100),)), "concise", color=True)
    assert text.splitlines()[0].count("word") == 100


def test_json_lines_is_an_object_for_each_finding() -> None:
    lines = [json.loads(line) for line in written(TWO, "json-lines").splitlines()]
    assert [(line["filename"], line["code"]) for line in lines] == [
        ("serve/pool.py", "NSL101"), ("serve/pool.py", "NSL203"), ("serve/tail.py", "NSL101")
    ]  # fmt: skip
    assert written(Report(()), "json-lines") == ""


def test_markdown_tells_everything() -> None:
    assert written(replace(TWO, findings=(replace(FINDING, cure="with a:\n    b()"),)), "markdown") == (
        "## nosync-lint: 1 finding\n"
        "\n"
        "**failed:** rule NSL301 crashed\n"
        "\n"
        "note: no hot root\n"
        "\n"
        "1 shown; hidden: 2 cold (--heat any)\n"
        "\n"
        "0 files reported, 0 linked\n"
        "\n"
        "| findings | rule |\n"
        "| ---: | --- |\n"
        "| 1 | NSL101 scalar-index-write |\n"
        "\n"
        f"- `serve/pool.py:4:9` **NSL101 scalar-index-write** (error, certain, hot): {MESSAGE}\n"
        "  - chain from `Loop.step`:\n"
        "    - `serve/loop.py:12` `Loop.step` calls `free`\n"
        "    - `serve/pool.py:4` synchronises here\n"
        "  - believed because:\n"
        "    - `serve/pool.py:9` made on the device\n"
        "  - related:\n"
        "    - `serve/base.py:2` declared here\n"
        "  - instead:\n"
        "    ```\n"
        "    with a:\n"
        "        b()\n"
        "    ```\n"
    )


def test_markdown_of_a_clean_run_has_no_table() -> None:
    assert written(Report(()), "markdown") == (
        "## nosync-lint: 0 findings\n\n0 shown; nothing hidden\n\n0 files reported, 0 linked\n\n"
    )


def rendered(text: str) -> str:
    return MarkdownIt("commonmark", {"html": True}).enable("table").render(text)


def test_markdown_renders_as_lists_with_code() -> None:
    html = rendered(written(TWO, "markdown"))
    assert "<code>größe</code>" in html
    assert html.count("<pre><code>x.index_fill_(0, i, -1)\n</code></pre>") == 3
    assert html.count("<table>") == 1


def test_what_is_written_in_the_source_is_no_markup() -> None:
    finding = replace(FINDING, message="a <b> *c* `x|y` [d](e) _f_ `", filename="a`b``.py", cure="```\nx", flow=())
    html = rendered(written(Report((finding,)), "markdown"))
    assert "a &lt;b&gt; *c* `x|y` [d](e) _f_ `" in html
    assert "<code>a`b``.py:4:9</code>" in html
    assert "<pre><code>```\nx\n</code></pre>" in html


def test_a_summary_holds_what_there_is_room_for() -> None:
    report = Report((FINDING,) * 100)
    whole = markdown.within(report, 1 << 20)
    assert whole == written(report, "markdown")
    for limit in (len(whole.encode()) - 1, 5000, 1000):
        text = markdown.within(report, limit)
        shown = text.count("\n- ")
        assert len(text.encode()) <= limit
        assert 0 < shown < 100
        assert text.endswith(f"\n{100 - shown} more findings have no room here.\n")
    assert markdown.within(report, 100) == ""
    assert markdown.within(report, -5) == ""
