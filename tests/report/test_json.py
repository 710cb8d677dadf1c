"""What the JSON report holds."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

from nosync_lint import __version__
from nosync_lint.finding import Applicability, Confidence, Edit, Finding, Fix, Heat, Hop, Severity, Suppressed
from nosync_lint.report import Hidden, Report
from nosync_lint.report import json as report_json
from nosync_lint.report.formats import Style
from nosync_lint.source import Span

FINDING = Finding(
    code="NSL101",
    name="scalar-index-write",
    message="storing -1 through `größe`",
    filename="serve/pool.py",
    span=Span(4, 9, 4, 26),
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    heat=Heat.HOT,
    cure="x.index_fill_(0, i, -1)",
    flow=(Hop("serve/loop.py", 12, "root"), Hop("serve/pool.py", 4, "here")),
    evidence=(Hop("serve/pool.py", 9, "made on the device"),),
    related=(Hop("serve/base.py", 2, "declared here"),),
    root="Loop.step",
    group="a sink",
    fingerprint="0123abcd",
    url="https://example.org/scalar-index-write",
)


def written(report: Report) -> Any:
    out = io.StringIO()
    report_json.write(report, out, Style())
    text = out.getvalue()
    assert text.isascii()
    assert text.endswith("}\n")
    return json.loads(text)


def test_a_finding_keeps_every_field() -> None:
    (finding,) = written(Report((FINDING,)))["findings"]
    assert finding == {
        "code": "NSL101",
        "name": "scalar-index-write",
        "message": "storing -1 through `größe`",
        "filename": "serve/pool.py",
        "cell": None,
        "location": {"row": 4, "column": 9},
        "end_location": {"row": 4, "column": 26},
        "severity": "error",
        "confidence": "certain",
        "scope": None,
        "heat": "hot",
        "group": "a sink",
        "fingerprint": "0123abcd",
        "root": "Loop.step",
        "flow": [
            {"filename": "serve/loop.py", "row": 12, "note": "root"},
            {"filename": "serve/pool.py", "row": 4, "note": "here"},
        ],
        "evidence": [{"filename": "serve/pool.py", "row": 9, "note": "made on the device"}],
        "related": [{"filename": "serve/base.py", "row": 2, "note": "declared here"}],
        "cure": "x.index_fill_(0, i, -1)",
        "fix": None,
        "url": "https://example.org/scalar-index-write",
    }


def test_a_fix_is_given_as_ruff_gives_it_with_its_recipe() -> None:
    fix = Fix("index-fill", Applicability.UNSAFE, "use `index_fill_`", (Edit(Span(4, 9, 4, 26), "x.fill_(0)"),))
    (finding,) = written(Report((replace(FINDING, fix=fix, scope="Pool.free"),)))["findings"]
    assert finding["scope"] == "Pool.free"
    assert finding["fix"] == {
        "applicability": "unsafe",
        "message": "use `index_fill_`",
        "recipe": "index-fill",
        "edits": [
            {"content": "x.fill_(0)", "location": {"row": 4, "column": 9}, "end_location": {"row": 4, "column": 26}}
        ],
    }


def test_what_is_suppressed_stands_beside_the_findings_with_its_reason() -> None:
    comment = Suppressed(FINDING, "ignore", "one write at start-up", 3)
    entry = Suppressed(FINDING, "baseline", "known", 0, "kv-team", "2027-01-31")
    data = written(Report((), suppressed=(comment, entry)))
    assert data["findings"] == []
    finding = written(Report((FINDING,)))["findings"][0]
    none = {"owner": None, "until": None}
    assert data["suppressed"] == [
        {**finding, "suppression": {"kind": "ignore", "justification": "one write at start-up", "row": 3, **none}},
        {
            **finding,
            "suppression": {
                "kind": "baseline", "justification": "known", "row": None, "owner": "kv-team", "until": "2027-01-31"
            },
        },
    ]  # fmt: skip


def test_a_log_takes_nothing_in_it_for_a_command() -> None:
    out = io.StringIO()
    report_json.write(Report((replace(FINDING, message="##vso[task.complete] ###["),)), out, Style())
    assert "##" not in out.getvalue()
    assert json.loads(out.getvalue())["findings"][0]["message"] == "##vso[task.complete] ###["


def test_what_a_contract_rule_does_not_have_is_null() -> None:
    bare = Finding("NSL604", "matcher-census", "m", "a.toml", Span(1, 1, 1, 2), Severity.ERROR, Confidence.CERTAIN, "c")
    (finding,) = written(Report((bare,)))["findings"]
    assert finding["heat"] is finding["root"] is finding["group"] is finding["url"] is None
    assert finding["flow"] == finding["evidence"] == finding["related"] == []


def test_the_summary_says_what_was_hidden_and_never_the_time() -> None:
    report = Report(
        (FINDING,),
        Hidden(warm=1, cold=2, unreached=3, possible=4, suppressed=5),
        files_reported=6,
        files_linked=7,
        calls_resolved=8,
        calls_unresolved=9,
        target_torch=("2.9", "2.10"),
        seconds=1.5,
        failures=("rule NSL301 crashed",),
        notes=("no hot root",),
    )
    assert written(report)["summary"] == {
        "shown": 1,
        "hidden": {
            "warm": 1,
            "cold": 2,
            "unreached": 3,
            "possible": 4,
            "likely": 0,
            "suppressed": 5,
            "ignored": 0,
            "baselined": 0,
            "unchanged": 0,
            "cured": 0,
        },
        "files_reported": 6,
        "files_linked": 7,
        "calls_resolved": 8,
        "calls_unresolved": 9,
        "target_torch": ["2.9", "2.10"],
        "failures": ["rule NSL301 crashed"],
        "notes": ["no hot root"],
    }


def test_an_empty_report_has_the_whole_envelope() -> None:
    data = written(Report(()))
    assert list(data) == ["schema_version", "tool", "findings", "suppressed", "summary"]
    assert data["schema_version"] == 1
    assert data["tool"] == {"name": "nosync-lint", "version": __version__}
    assert data["findings"] == []


def test_a_file_name_that_is_not_text_comes_back_unchanged() -> None:
    name = "b\udcff.py"
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    finding = Finding("NSL000", "unreadable-file", "m", name, Span(1, 1, 1, 1), Severity.ERROR, Confidence.CERTAIN, "c")
    report_json.write(Report((finding,)), out, Style())
    out.seek(0)
    assert json.loads(out.read())["findings"][0]["filename"] == name
