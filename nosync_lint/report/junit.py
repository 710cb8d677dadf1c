"""JUnit's XML, which nearly every CI service shows: a suite for each file, a failed test case for each finding."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TextIO
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from nosync_lint.finding import Finding, Severity
from nosync_lint.report import Report
from nosync_lint.report.formats import Style
from nosync_lint.report.text import printable, story, summary


def write(report: Report, out: TextIO, style: Style) -> None:
    """Write the findings of a report as XML in pure ASCII. What failed is an error; without either a test passes, so
    that a clean run does not look like one that tested nothing."""
    suites = Element("testsuites", name="nosync-lint")
    _add_run(suites, report)
    for filename, group in groupby(report.findings, key=lambda finding: finding.filename):
        _add_suite(suites, _clean(filename), list(group), report.fail_on)
    for count in ("tests", "failures", "errors"):
        suites.set(count, str(sum(int(suite.get(count, "0")) for suite in suites)))
    indent(suites)
    text = tostring(suites, encoding="us-ascii", xml_declaration=True).decode("ascii")
    out.write(text.replace("##", "#&#35;") + "\n")  # CI services take `##[` for a command in their logs


def _add_suite(suites: Element, filename: str, findings: list[Finding], fail_on: Severity) -> None:
    failing = sum(finding.severity.reaches(fail_on) for finding in findings)
    suite = SubElement(
        suites, "testsuite", name=filename, tests=str(len(findings)), failures=str(failing), errors="0", file=filename
    )
    seen: Counter[str] = Counter()
    for finding in findings:
        cell = "" if finding.cell is None else f"cell {finding.cell}:"
        name = f"{finding.code} {finding.name} at {cell}{finding.span.row}:{finding.span.column}"
        seen[name] += 1
        if seen[name] > 1:  # services keep one of several test cases of the same name
            name += f" ({seen[name]})"
        case = SubElement(suite, "testcase", name=name, classname=filename)
        lines = [f"{finding.file}:{finding.span.row}:{finding.span.column}: {finding.message}", *story(finding)]
        text = "\n".join(map(_clean, lines))
        if finding.severity.reaches(fail_on):
            failure = SubElement(case, "failure", type=finding.severity.value, message=_clean(finding.message))
            failure.text = text
        else:
            SubElement(case, "system-out").text = text


def _add_run(suites: Element, report: Report) -> None:
    """The run itself: what failed in it, or that nothing was found, and how it ended."""
    failed = len(report.failures)
    tests = failed or int(not report.findings)
    suite = SubElement(suites, "testsuite", name="nosync-lint", tests=str(tests), failures="0", errors=str(failed))
    for number, text in enumerate(report.failures, 1):
        case = SubElement(suite, "testcase", name=f"failure {number}", classname="nosync-lint")
        SubElement(case, "error", message=_clean(text))
    if tests and not failed:
        SubElement(suite, "testcase", name="no findings", classname="nosync-lint")
    notes = (f"note: {text}" for text in report.notes)
    SubElement(suite, "system-out").text = "\n".join(map(_clean, (*notes, *summary(report))))


def _clean(text: str) -> str:
    """Text that XML can hold: it knows no control characters and no half characters."""
    return printable(text, "utf-8")
