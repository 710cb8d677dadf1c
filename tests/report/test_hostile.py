"""Whatever the linted files hold, a report stays what it is: valid for its readers, and no command to anybody."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from markdown_it import MarkdownIt

from nosync_lint.finding import Severity
from nosync_lint.report import Report
from tests.report.reports import FORMS, reports, written
from tests.report.schemas import is_valid

some = settings(deadline=None, max_examples=40)
MARKUP = {"h2", "p", "strong", "code", "pre", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"}
OURS = {
    "github": re.compile(r"::(error|warning|notice) [^:]*::[^\n]*"),
    "azure": re.compile(r"##vso\[task\.logissue [^\]]*\][^\n]*"),
}


@pytest.fixture(autouse=True, scope="module")
def a_folder_that_no_repository_is_above(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("hostile"))
        yield


def is_command(line: str) -> bool:
    """Whether GitHub or Azure Pipelines would obey a line of a log."""
    return line.lstrip().startswith("::") or "##[" in line or "##vso[" in line


@pytest.mark.parametrize("form", FORMS)
@some
@given(report=reports())
def test_no_line_of_a_report_is_a_command_but_ours(form: str, report: Report) -> None:
    for line in re.split(r"[\n\r]", written(report, form)):
        if is_command(line):
            assert form in OURS, line
            assert OURS[form].fullmatch(line), line
            assert not is_command(line[2:]), line


@pytest.mark.parametrize("form", FORMS)
@some
@given(report=reports())
def test_every_output_can_hold_every_report(form: str, report: Report) -> None:
    for encoding in ("ascii", "latin-1", "utf-8"):
        written(report, form, encoding)


@pytest.mark.parametrize("form", ["full", "concise", "grouped", "pylint", "github", "azure", "markdown"])
@some
@given(report=reports())
def test_lines_hold_no_control_characters(form: str, report: Report) -> None:
    assert re.findall(r"[^\n\x20-\x7e\xa0-\U0010ffff]|[\u202e\u2028\ufffe\uffff]", written(report, form)) == []


@pytest.mark.parametrize("form", ["sarif", "gitlab", "rdjson"])
@some
@given(report=reports())
def test_json_for_services_is_valid_and_has_no_half_characters(form: str, report: Report) -> None:
    data = json.loads(written(report, form))
    json.dumps(data, ensure_ascii=False).encode("utf-8")
    is_valid(form, data)


@some
@given(report=reports())
def test_json_keeps_every_text(report: Report) -> None:
    data = json.loads(written(report, "json"))
    assert [one["message"] for one in data["findings"]] == [one.message for one in report.findings]
    assert [one["suppression"]["justification"] for one in data["suppressed"]] == [
        one.reason for one in report.suppressed
    ]
    lines = written(report, "json-lines").splitlines()
    assert [json.loads(line) for line in lines] == data["findings"]


@some
@given(report=reports())
def test_xml_is_valid_and_counts_what_fails(report: Report) -> None:
    text = written(report, "junit")
    is_valid("junit", text)
    root = ElementTree.fromstring(text)
    failing = [finding for finding in report.findings if finding.severity is not Severity.INFO]
    assert len(root.findall(".//failure")) == len(failing) == int(root.attrib["failures"])
    assert len(root.findall(".//error")) == len(report.failures) == int(root.attrib["errors"])
    assert len(root.findall(".//testcase")) == int(root.attrib["tests"]) > 0


@some
@given(report=reports())
def test_markdown_holds_no_markup_but_ours(report: Report) -> None:
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(written(report, "markdown"))
    assert set(re.findall(r"<(\w+)", html)) <= MARKUP, html
    assert html.count("<li>") >= len(report.findings)
    assert html.count("<h2>") == 1


@some
@given(report=reports())
def test_annotations_say_what_was_meant(report: Report) -> None:
    unescaped = [("%2C", ","), ("%3A", ":"), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")]
    for line in written(report, "github").split("\n"):
        if not line.startswith("::"):
            continue
        level, properties, text = re.fullmatch(r"::(\w+) (.*?)::(.*)", line).groups()  # type: ignore[union-attr]
        told = dict(part.split("=", 1) for part in properties.split(","))
        assert set(told) <= {"title", "file", "line", "endLine", "col", "endColumn"}
        for code, character in unescaped:
            text = text.replace(code, character)
        assert level != "debug"
        assert "\r" not in text


def test_the_working_directory_of_these_tests_is_no_repository() -> None:
    assert not any((folder / ".git").exists() for folder in (Path.cwd(), *Path.cwd().parents))
