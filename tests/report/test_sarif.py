"""What the SARIF log says of findings, chains, fixes, suppressions and the run itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nosync_lint import __version__
from nosync_lint.finding import Applicability, Edit, Finding, Fix, Hop, RuleFacts, Severity, Suppressed
from nosync_lint.report import Report, sarif
from nosync_lint.source import Span
from tests.report.reports import FINDING, RULE, written
from tests.report.schemas import is_valid


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory is `inner` in a repository."""
    root = tmp_path / "a repository"
    (root / ".git").mkdir(parents=True)
    (root / "inner").mkdir()
    monkeypatch.chdir(root / "inner")
    return root


def run_of(report: Report) -> dict[str, Any]:
    log = json.loads(written(report, "sarif"))
    is_valid("sarif", log)
    assert (log["$schema"], log["version"]) == (sarif.SCHEMA, "2.1.0")
    (run,) = log["runs"]
    return run  # type: ignore[no-any-return]


def result_of(finding: Finding, *rules: RuleFacts) -> dict[str, Any]:
    (result,) = run_of(Report((finding,), rules=rules))["results"]
    return result  # type: ignore[no-any-return]


def place(path: str, **region: int) -> dict[str, Any]:
    location = {"uri": path, "uriBaseId": "%SRCROOT%"}
    return {"physicalLocation": {"artifactLocation": location, "region": region}}


SPAN = {"startLine": 4, "startColumn": 9, "endLine": 4, "endColumn": 26}


def test_a_result_has_everything_that_services_ask_for() -> None:
    assert result_of(FINDING) == {
        "ruleId": "NSL101",
        "ruleIndex": 0,
        "level": "error",
        "message": {
            "text": "storing -1 through `größe` stops the host (see [declared here](1), [made on the device](2))"
        },
        "locations": [
            place("inner/serve/pool.py", **SPAN) | {"logicalLocations": [{"fullyQualifiedName": "Pool.free"}]}
        ],
        "partialFingerprints": {"nosyncLint/v1": "0123abcd"},
        "codeFlows": [
            {
                "message": {"text": "chain from `Loop.step`"},
                "threadFlows": [
                    {
                        "locations": [
                            {
                                "location": place("inner/serve/loop.py", startLine=12)
                                | {"message": {"text": "`Loop.step` calls `free`"}},
                                "kinds": ["call"], "nestingLevel": 0, "executionOrder": 1, "importance": "essential",
                            },
                            {
                                "location": place("inner/serve/pool.py", startLine=4)
                                | {"message": {"text": "synchronises here"}},
                                "kinds": ["sink"], "nestingLevel": 1, "executionOrder": 2, "importance": "essential",
                            },
                        ]
                    }
                ],
            }
        ],
        "relatedLocations": [
            {"id": 1} | place("inner/serve/base.py", startLine=2) | {"message": {"text": "declared here"}},
            {"id": 2} | place("inner/serve/pool.py", startLine=9) | {"message": {"text": "made on the device"}},
        ],
        "properties": {
            "confidence": "certain", "heat": "hot", "root": "Loop.step", "cure": "x.index_fill_(0, i, -1)"
        },
    }  # fmt: skip


def test_the_run_says_where_its_names_begin_and_how_it_counts_columns(repository: Path) -> None:
    run = run_of(Report((FINDING,)))
    assert run["originalUriBaseIds"] == {"%SRCROOT%": {"uri": f"file://{repository.parent}/a%20repository/"}}
    assert run["columnKind"] == "unicodeCodePoints"
    assert run["automationDetails"] == {"id": "nosync-lint/"}
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"], driver["semanticVersion"]) == ("nosync-lint", __version__, __version__)
    assert re.fullmatch(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?", __version__)


def test_without_a_repository_names_begin_in_the_working_directory(repository: Path) -> None:
    (repository / ".git").rmdir()
    run = run_of(Report((FINDING,)))
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"].endswith("/a%20repository/inner/")
    location = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": "serve/pool.py", "uriBaseId": "%SRCROOT%"}


@pytest.mark.parametrize(
    ("name", "uri"),
    [
        ("größe/a b.py", "inner/gr%C3%B6%C3%9Fe/a%20b.py"),
        ("b\udcff.py", "inner/b%FF.py"),
        ("a#b?c%d:e.py", "inner/a%23b%3Fc%25d%3Ae.py"),
        ("../other/a.py", "other/a.py"),
        ("/elsewhere/a b.py", "file:///elsewhere/a%20b.py"),
    ],
)
def test_names_of_files_become_uris(name: str, uri: str) -> None:
    location = result_of(replace(FINDING, filename=name))["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location["uri"] == uri
    assert ("uriBaseId" in location) == (not uri.startswith("file:"))


def test_rules_are_described_for_people_and_sorted() -> None:
    other = RuleFacts("NSL001", "unused-suppression", Severity.INFO, "s", "s", url="https://example.org/NSL001")
    run = run_of(Report((FINDING,), rules=(RULE, other)))
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["NSL001", "NSL101"]
    assert run["results"][0]["ruleIndex"] == 1
    assert run["tool"]["driver"]["rules"][0]["helpUri"] == "https://example.org/NSL001"
    assert run["tool"]["driver"]["rules"][1] == {
        "id": "NSL101",
        "name": "scalar-index-write",
        "shortDescription": {"text": "A scalar stops the host."},
        "fullDescription": {
            "text": "A scalar stops the host. It is copied from pageable memory, and that waits."
        },
        "help": {
            "text": RULE.documentation,
            "markdown": "A scalar stops the host.\n\n## Why it matters\n\nIt is copied from pageable memory,\n"
            "and that waits.\n\n## Instead\n\n`index_fill_`:\n\n    x.index_fill_(0, i, -1)",
        },
        "defaultConfiguration": {"level": "error"},
        "properties": {"problem.severity": "error", "tags": ["cuda", "pytorch"]},
    }  # fmt: skip


def test_a_long_description_is_cut_where_github_cuts_it() -> None:
    rule = replace(RULE, summary="s" * 2000, documentation="d" * 2000)
    (described,) = run_of(Report((), rules=(rule,)))["tool"]["driver"]["rules"]
    assert len(described["shortDescription"]["text"]) == len(described["fullDescription"]["text"]) == 1024
    assert described["help"]["text"] == "d" * 2000


def test_a_rule_that_was_not_asked_is_listed_where_a_finding_names_it() -> None:
    assert [rule["name"] for rule in run_of(Report((FINDING,)))["tool"]["driver"]["rules"]] == ["scalar-index-write"]


def hops(finding: Finding) -> Iterator[tuple[int, str]]:
    (flow,) = result_of(finding)["codeFlows"]
    for step in flow["threadFlows"][0]["locations"]:
        yield step["location"]["physicalLocation"]["region"]["startLine"], step["location"]["message"]["text"]


def test_a_long_chain_keeps_its_ends_and_says_what_is_left_out() -> None:
    chain = tuple(Hop("a.py", row, f"step {row}") for row in range(1, 101))
    told = list(hops(replace(FINDING, flow=chain)))
    assert [row for row, _ in told] == [*range(1, 16), *range(86, 101)]
    assert told[15] == (86, "step 86 (70 calls before this one are left out)")
    assert [note for _, note in told if "left out" in note] == [told[15][1]]


def test_a_chain_at_the_limit_is_whole() -> None:
    chain = tuple(Hop("a.py", row, "n") for row in range(1, sarif.MOST_HOPS + 1))
    assert [row for row, _ in hops(replace(FINDING, flow=chain))] == list(range(1, sarif.MOST_HOPS + 1))


def test_the_evidence_of_a_contract_is_a_flow_without_calls() -> None:
    (flow,) = result_of(replace(FINDING, heat=None, root=None))["codeFlows"]
    assert flow["message"]["text"] == "shown by"
    assert all(set(step) == {"location", "importance"} for step in flow["threadFlows"][0]["locations"])


def test_what_looks_like_a_link_is_none() -> None:
    finding = replace(
        FINDING, message="`fns[0](1)` and x[i]", related=(Hop("a.py", 1, "made by `f[0](2)`"),), evidence=()
    )
    result = result_of(finding)
    assert result["message"]["text"] == r"`fns\[0](1)` and x[i] (see [made by `f\[0\](2)`](1))"
    assert result["relatedLocations"][0]["message"]["text"] == r"made by `f\[0](2)`"


def test_the_message_links_to_a_few_related_places_and_all_are_there() -> None:
    result = result_of(replace(FINDING, related=tuple(Hop("a.py", row, f"n{row}") for row in range(1, 200))))
    assert result["message"]["text"].endswith("(see [n1](1), [n2](2), [n3](3))")
    assert [one["id"] for one in result["relatedLocations"]] == list(range(1, sarif.MOST_RELATED + 1))


EDITS = (Edit(Span(4, 9, 4, 12), "x"), Edit(Span(5, 1, 6, 1), ""))


def test_a_fix_is_given_with_what_it_may_change() -> None:
    fix = Fix("index-fill", Applicability.UNSAFE, "use `index_fill_`", EDITS)
    assert result_of(replace(FINDING, fix=fix))["fixes"] == [
        {
            "description": {"text": "use `index_fill_`"},
            "artifactChanges": [
                {
                    "artifactLocation": {"uri": "inner/serve/pool.py", "uriBaseId": "%SRCROOT%"},
                    "replacements": [
                        {
                            "deletedRegion": {"startLine": 4, "startColumn": 9, "endLine": 4, "endColumn": 12},
                            "insertedContent": {"text": "x"},
                        },
                        {"deletedRegion": {"startLine": 5, "startColumn": 1, "endLine": 6, "endColumn": 1}},
                    ],
                }
            ],
            "properties": {"applicability": "unsafe", "recipe": "index-fill"},
        }
    ]


def test_a_fix_for_display_is_not_offered() -> None:
    fix = Fix("index-fill", Applicability.DISPLAY, "look", EDITS)
    assert "fixes" not in result_of(replace(FINDING, fix=fix))


def test_a_comment_is_a_suppression_in_the_source_with_its_reason() -> None:
    report = Report((), suppressed=(Suppressed(FINDING, "ignore", "one write at start-up", 3),), rules=(RULE,))
    (result,) = run_of(report)["results"]
    assert result["suppressions"] == [
        {
            "kind": "inSource",
            "status": "accepted",
            "justification": "one write at start-up",
            "location": place("inner/serve/pool.py", startLine=3),
            "properties": {"form": "ignore"},
        }
    ]
    assert "baselineState" not in result


def test_an_entry_of_the_baseline_is_external_and_the_rest_is_new() -> None:
    known = Suppressed(FINDING, "baseline", "", 0, "kv-team", "2027-01-31")
    new, old = run_of(Report((FINDING,), suppressed=(known,)))["results"]
    assert (new["baselineState"], old["baselineState"]) == ("new", "unchanged")
    assert "suppressions" not in new
    assert old["suppressions"] == [
        {
            "kind": "external",
            "status": "accepted",
            "properties": {"form": "baseline", "owner": "kv-team", "until": "2027-01-31"},
        }
    ]


def test_the_invocation_tells_crashes_files_that_cannot_be_used_and_wrong_configuration() -> None:
    bad = replace(FINDING, code="NSL000", name="unreadable-file", message="this file cannot be parsed")
    wrong = replace(bad, code="NSL003", name="unknown-root", message="names nothing", severity=Severity.WARNING)
    rules = (
        RuleFacts("NSL000", "unreadable-file", Severity.ERROR, "s", "s", ("bad-file",)),
        RuleFacts("NSL003", "unknown-root", Severity.WARNING, "s", "s", ("configured-name",)),
        RULE,
    )
    report = Report((bad, wrong, FINDING), failures=("rule NSL301 crashed",), notes=("no hot root",), rules=rules)
    run = run_of(report)
    (invocation,) = run["invocations"]
    location = [place("inner/serve/pool.py", **SPAN)]
    assert invocation == {
        "executionSuccessful": False,
        "toolExecutionNotifications": [
            {"level": "error", "message": {"text": "rule NSL301 crashed"}},
            {
                "level": "error", "message": {"text": "this file cannot be parsed"}, "locations": location,
                "associatedRule": {"id": "NSL000", "index": 0},
            },
            {"level": "note", "message": {"text": "no hot root"}},
        ],
        "toolConfigurationNotifications": [
            {
                "level": "warning", "message": {"text": "names nothing"}, "locations": location,
                "associatedRule": {"id": "NSL003", "index": 1},
            }
        ],
    }  # fmt: skip
    assert [result["ruleId"] for result in run["results"]] == ["NSL000", "NSL003", "NSL101"]


def test_a_clean_run_succeeded() -> None:
    run = run_of(Report(()))
    assert run["results"] == []
    assert run["invocations"][0]["executionSuccessful"] is True


def test_more_results_than_a_run_holds_are_left_out_the_least_severe_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "MOST_RESULTS", 3)
    severities = (Severity.INFO, Severity.ERROR, Severity.WARNING, Severity.INFO, Severity.ERROR)
    found = tuple(
        replace(FINDING, severity=severity, span=Span(row, 1, row, 2)) for row, severity in enumerate(severities, 1)
    )
    run = run_of(Report(found, suppressed=(Suppressed(FINDING, "ignore", "r", 1),)))
    rows = [one["locations"][0]["physicalLocation"]["region"]["startLine"] for one in run["results"]]
    assert rows == [2, 3, 5]
    (told,) = run["invocations"][0]["toolExecutionNotifications"]
    assert told == {"level": "warning", "message": {"text": "3 results are left out: a run holds 3"}}


def test_as_many_results_as_a_run_holds_are_all_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "MOST_RESULTS", 2)
    run = run_of(Report((FINDING,), suppressed=(Suppressed(FINDING, "ignore", "r", 1),)))
    assert len(run["results"]) == 2
    assert run["invocations"][0]["toolExecutionNotifications"] == []
