"""What CI services and editors are told: GitHub, GitLab, Azure Pipelines, JUnit readers, reviewdog, pylint's readers."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nosync_lint.finding import Applicability, Edit, Finding, Fix, Hop, Severity, Suppressed
from nosync_lint.report import Report, github
from nosync_lint.source import Span
from tests.report.reports import FINDING, SOURCE, written
from tests.report.schemas import is_valid

WARNING = replace(FINDING, severity=Severity.WARNING)
INFO = replace(FINDING, severity=Severity.INFO)


@pytest.fixture(autouse=True, scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The working directory is `inner` in a repository."""
    root = tmp_path_factory.mktemp("repository")
    (root / ".git").touch()
    (root / "inner").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root / "inner")
        yield root


def annotations(*found: Finding, **given: Any) -> list[str]:
    return [line for line in written(Report(found, **given), "github").splitlines() if line.startswith("::")]


def test_an_annotation_tells_the_place_in_the_repository_and_the_story() -> None:
    assert written(Report((FINDING,), files_reported=1, files_linked=2), "github") == (
        "::error title=NSL101 scalar-index-write,file=inner/serve/pool.py,line=4,endLine=4,col=9,endColumn=26::"
        "storing -1 through `größe` stops the host%0A"
        "error, certain, hot%0A"
        "chain from `Loop.step`:%0A"
        "  serve/loop.py:12 `Loop.step` calls `free`%0A"
        "  -> serve/pool.py:4 synchronises here%0A"
        "believed because:%0A"
        "  serve/pool.py:9 made on the device%0A"
        "related:%0A"
        "  serve/base.py:2 declared here%0A"
        "instead: x.index_fill_(0, i, -1)\n"
        "1 shown; nothing hidden\n"
        "1 file reported, 2 linked\n"
    )


def test_an_annotation_of_several_lines_has_no_columns() -> None:
    (line,) = annotations(replace(FINDING, span=Span(4, 9, 6, 2)))
    assert ",line=4,endLine=6::" in line


def test_what_would_end_a_property_or_a_command_is_escaped() -> None:
    (line,) = annotations(replace(FINDING, filename="a,b:c%.py", message="100 %\nof it", flow=(), cure=""))
    assert ",file=inner/a%2Cb%3Ac%25.py,line=" in line
    assert "::100 %25 of it%0A" in line


def levels(lines: list[str]) -> list[str]:
    return [line.split(" ")[0].strip(":") for line in lines]


def test_github_gets_ten_of_each_level_and_the_number_of_the_rest() -> None:
    lines = annotations(*[INFO] * 30, *[WARNING] * 20, *[FINDING] * 12)
    assert levels(lines) == ["error"] * 10 + ["warning"] * 10 + ["notice"] * 10
    assert lines[-1] == "::notice title=nosync-lint::33 more findings are not annotated"


@pytest.mark.parametrize("severity", Severity)
def test_ten_of_a_level_are_all_there(severity: Severity) -> None:
    lines = annotations(*[replace(FINDING, severity=severity)] * github.MOST)
    assert len(lines) == 10
    assert "more findings" not in lines[-1]


def test_what_failed_is_an_error_that_counts() -> None:
    lines = annotations(*[FINDING] * 12, failures=("rule NSL301 crashed: 100 %",))
    assert lines[0] == "::error title=nosync-lint failed::rule NSL301 crashed: 100 %25"
    assert levels(lines) == ["error"] * 10 + ["notice"]
    assert lines[-1].endswith("::3 more findings are not annotated")


def test_azure_gets_issues_with_their_places() -> None:
    text = written(Report((FINDING, INFO), failures=("rule NSL301 crashed",), notes=("no hot root",)), "azure")
    place = "sourcepath=inner/serve/pool.py;linenumber=4;columnnumber=9;code=NSL101;"
    told = "NSL101 scalar-index-write: storing -1 through `größe` stops the host"
    assert text.splitlines() == [
        "##vso[task.logissue type=error;]rule NSL301 crashed",
        f"##vso[task.logissue type=error;{place}]{told}",
        f"##vso[task.logissue type=warning;{place}]{told}",
        "failed: rule NSL301 crashed",
        "note: no hot root",
        "2 shown; nothing hidden",
        "0 files reported, 0 linked",
    ]


def test_azure_properties_are_escaped() -> None:
    text = written(Report((replace(FINDING, filename="a;b]c%.py", message="100 %"),)), "azure")
    assert "sourcepath=inner/a%3Bb%5Dc%AZP25.py;" in text
    assert text.splitlines()[0].endswith("scalar-index-write: 100 %AZP25")


def test_gitlab_gets_one_issue_for_each_finding() -> None:
    told = json.loads(written(Report((FINDING,)), "gitlab"))
    is_valid("gitlab", told)
    assert told == [
        {
            "description": "scalar-index-write: storing -1 through `größe` stops the host",
            "check_name": "NSL101",
            "fingerprint": "0123abcd",
            "severity": "major",
            "location": {
                "path": "inner/serve/pool.py",
                "positions": {"begin": {"line": 4, "column": 9}, "end": {"line": 4, "column": 26}},
            },
        }
    ]


def test_gitlab_gets_an_empty_list_from_a_clean_run() -> None:
    assert written(Report(()), "gitlab") == "[]\n"


def test_gitlab_severities_follow_ours() -> None:
    told = json.loads(written(Report((FINDING, WARNING, INFO)), "gitlab"))
    assert [issue["severity"] for issue in told] == ["major", "minor", "info"]


def test_gitlab_fingerprints_differ_and_the_first_of_equal_ones_stays() -> None:
    nameless = replace(FINDING, fingerprint="")
    told = json.loads(written(Report((FINDING, FINDING, nameless, nameless, FINDING)), "gitlab"))
    prints = [issue["fingerprint"] for issue in told]
    assert prints[0] == "0123abcd"
    assert len(set(prints)) == 5
    assert prints == [issue["fingerprint"] for issue in json.loads(written(Report((FINDING, FINDING, nameless, nameless, FINDING)), "gitlab"))]  # fmt: skip


def junit(report: Report) -> ElementTree.Element:
    text = written(report, "junit")
    assert text.isascii()
    is_valid("junit", text)
    return ElementTree.fromstring(text)


def test_junit_has_a_suite_for_each_file_and_a_failure_for_each_finding() -> None:
    other = replace(FINDING, filename="serve/tail.py")
    root = junit(Report((FINDING, FINDING, other)))
    assert (root.attrib["tests"], root.attrib["failures"], root.attrib["errors"]) == ("3", "3", "0")
    run, pool, tail = root
    assert [suite.attrib["name"] for suite in root] == ["nosync-lint", "serve/pool.py", "serve/tail.py"]
    assert run.attrib["tests"] == "0"
    assert (pool.attrib["tests"], pool.attrib["failures"], pool.attrib["file"]) == ("2", "2", "serve/pool.py")
    assert len(tail) == 1
    names = [case.attrib["name"] for case in pool]
    assert names == ["NSL101 scalar-index-write at 4:9", "NSL101 scalar-index-write at 4:9 (2)"]
    failure = pool[0][0]
    assert failure.attrib == {"type": "error", "message": FINDING.message}
    assert (failure.text or "").splitlines()[:3] == [
        "serve/pool.py:4:9: storing -1 through `größe` stops the host", "error, certain, hot", "chain from `Loop.step`:"
    ]  # fmt: skip


def test_junit_lets_one_test_pass_in_a_clean_run() -> None:
    root = junit(Report((), notes=("no hot root",)))
    assert root.attrib == {"name": "nosync-lint", "tests": "1", "failures": "0", "errors": "0"}
    case, out = root[0]
    assert case.attrib == {"name": "no findings", "classname": "nosync-lint"}
    assert len(case) == 0
    assert (out.text or "").splitlines()[0] == "note: no hot root"


def test_what_does_not_fail_the_run_fails_no_test() -> None:
    root = junit(Report((INFO,)))
    assert (root.attrib["tests"], root.attrib["failures"]) == ("1", "0")
    assert root.find(".//testcase/system-out") is not None


def test_a_test_fails_where_the_run_does() -> None:
    assert junit(Report((WARNING, INFO), fail_on=Severity.ERROR)).attrib["failures"] == "0"
    assert junit(Report((WARNING, INFO), fail_on=Severity.INFO)).attrib["failures"] == "2"


def test_what_failed_is_an_error_of_the_run() -> None:
    root = junit(Report((), failures=("rule NSL301 crashed", "rule NSL302 crashed")))
    assert (root.attrib["tests"], root.attrib["failures"], root.attrib["errors"]) == ("2", "0", "2")
    assert [error.attrib["message"] for error in root.iter("error")] == ["rule NSL301 crashed", "rule NSL302 crashed"]


def diagnostic(finding: Finding, *lines: str) -> dict[str, Any]:
    told = json.loads(written(Report((finding,), sources={finding.filename: lines}), "rdjson"))
    is_valid("rdjson", told)
    assert told["source"] == {"name": "nosync-lint"}
    (found,) = told["diagnostics"]
    return found  # type: ignore[no-any-return]


def test_rdjson_counts_columns_in_bytes() -> None:
    found = diagnostic(replace(FINDING, span=Span(1, 3, 1, 8)), "é = größe[i]")
    assert found["location"]["range"] == {"start": {"line": 1, "column": 4}, "end": {"line": 1, "column": 10}}
    found = diagnostic(replace(FINDING, span=Span(1, 5, 2, 2)), "é = größe[", "é]")
    assert found["location"]["range"] == {"start": {"line": 1, "column": 6}, "end": {"line": 2, "column": 3}}


def test_rdjson_names_lines_of_a_file_that_is_not_at_hand() -> None:
    found = diagnostic(replace(FINDING, fix=Fix("r", Applicability.SAFE, "m", (Edit(Span(4, 1, 4, 2), ""),))))
    assert found["location"] == {"path": "inner/serve/pool.py", "range": {"start": {"line": 4}, "end": {"line": 4}}}
    assert found["suggestions"] == []


def test_rdjson_tells_message_rule_and_related_places() -> None:
    found = diagnostic(replace(FINDING, url="https://example.org/NSL101"))
    assert found["message"] == "storing -1 through `größe` stops the host\ninstead: x.index_fill_(0, i, -1)"
    assert found["severity"] == "ERROR"
    assert found["code"] == {"value": "NSL101", "url": "https://example.org/NSL101"}
    assert [(one["location"]["path"], one["location"]["range"]["start"]["line"]) for one in found["related_locations"]] == [
        ("inner/serve/loop.py", 12), ("inner/serve/pool.py", 4), ("inner/serve/pool.py", 9), ("inner/serve/base.py", 2)
    ]  # fmt: skip
    assert found["related_locations"][2]["message"] == "made on the device"


def test_rdjson_offers_no_fix_that_is_for_display() -> None:
    fix = Fix("r", Applicability.DISPLAY, "m", (Edit(Span(1, 1, 1, 2), "y"),))
    assert diagnostic(replace(FINDING, span=Span(1, 1, 1, 2), fix=fix), "x = 1")["suggestions"] == []


PLACES = [(row, column) for row, line in enumerate(SOURCE, 1) for column in range(1, len(line) + 2)]


@settings(deadline=None)
@given(
    chosen=st.lists(st.sampled_from(PLACES), min_size=2, max_size=6, unique=True).map(sorted),
    content=st.sampled_from(("", "a", "größe", "a\nb")),
)
def test_a_suggestion_does_what_the_edits_of_the_fix_do(chosen: list[tuple[int, int]], content: str) -> None:
    pairs = list(zip(chosen[::2], chosen[1::2], strict=False))
    fix = Fix("r", Applicability.SAFE, "m", tuple(Edit(Span(*start, *end), content) for start, end in pairs))
    (one,) = diagnostic(replace(FINDING, span=Span(1, 1, 1, 2), fix=fix), *SOURCE)["suggestions"]

    starts = [sum(len(line) + 1 for line in SOURCE[:row]) for row in range(len(SOURCE))]
    wanted = "\n".join(SOURCE)
    for start, end in reversed(pairs):
        wanted = wanted[: starts[start[0] - 1] + start[1] - 1] + content + wanted[starts[end[0] - 1] + end[1] - 1 :]

    raw = [line.encode() for line in SOURCE]
    start, end = one["range"]["start"], one["range"]["end"]
    before = b"\n".join([*raw[: start["line"] - 1], raw[start["line"] - 1][: start["column"] - 1]])
    after = b"\n".join([raw[end["line"] - 1][end["column"] - 1 :], *raw[end["line"] :]])
    assert before.decode() + one["text"] + after.decode() == wanted


def test_the_lines_of_pylint_name_row_and_code() -> None:
    assert written(Report((FINDING,)), "pylint") == (
        "serve/pool.py:4: [NSL101] scalar-index-write storing -1 through `größe` stops the host\n"
    )
    assert written(Report(()), "pylint") == ""


NOTEBOOK = replace(
    FINDING,
    filename="a.ipynb",
    cell=3,
    flow=(Hop("a.ipynb", 2, "root", 1), Hop("a.ipynb", 4, "here", 3)),
    evidence=(),
    related=(),
)


@pytest.mark.parametrize("form", ["github", "azure", "pylint", "gitlab", "rdjson", "sarif"])
def test_a_row_of_a_cell_is_told_in_words_to_services_that_know_rows_of_files(form: str) -> None:
    told = written(Report((NOTEBOOK,), sources={"a.ipynb:cell 3": SOURCE}), form)
    assert "cell 3, row 4: storing -1" in told
    assert not re.search(r"""(line|linenumber|startLine|begin|py)"?[=:] ?[2-9]""", told)


def test_people_are_told_cell_and_row() -> None:
    report = Report((NOTEBOOK,), suppressed=(Suppressed(NOTEBOOK, "ignore", "r", 2),))
    for form in ("full", "concise", "markdown", "junit"):
        assert "a.ipynb:cell 3:4:9" in written(report, form)
    assert written(report, "grouped").startswith("a.ipynb:cell 3:\n  4:9  NSL101 ")
    assert "NSL101 scalar-index-write at cell 3:4:9" in written(report, "junit")
    suppressed = json.loads(written(report, "sarif"))["runs"][0]["results"][1]
    assert "location" not in suppressed["suppressions"][0]


def test_the_repository_is_that_around_the_working_directory() -> None:
    assert (Path.cwd().parent / ".git").exists()
