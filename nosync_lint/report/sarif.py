"""SARIF 2.1.0, the format of code scanning services: results with their chains, fixes, suppressions and fingerprints.

Where GitHub has limits, they are kept: what is too much for it is left out, and a notification says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from nosync_lint import __version__
from nosync_lint.finding import Applicability, Finding, Fix, Hop, RuleFacts, Severity, Suppressed
from nosync_lint.report import Report
from nosync_lint.report.formats import Style
from nosync_lint.report.json import dump
from nosync_lint.report.places import Repository, without_cells
from nosync_lint.report.text import flow_label, visible
from nosync_lint.source import Span

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
PROBLEMS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "recommendation"}
MOST_RESULTS = 25_000
MOST_HOPS = 30
MOST_RELATED = 100
MOST_LINKS = 3
"""Related places that the message links to."""
LONGEST = 1024
"""Characters of a description."""

_LINK = re.compile(r"\[(?=[^\]]*\]\()")
_BRACKET = re.compile(r"[\[\]\\]")
Object = dict[str, Any]


def write(report: Report, out: TextIO, style: Style) -> None:
    """Write a report as one SARIF log, on one line: it is for programs, and long. Suppressed findings are marked so."""
    dump({"$schema": SCHEMA, "version": "2.1.0", "runs": [_Run(without_cells(report)).as_json()]}, out, indent=None)


class _Run:
    """One run of the linter, as SARIF has it."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._repository = Repository()
        self._rules = {rule.code: (number, rule) for number, rule in enumerate(_rules(report))}

    def as_json(self) -> Object:
        results, left = self._results()
        driver: Object = {"name": "nosync-lint", "version": __version__, "semanticVersion": __version__}
        driver["rules"] = [_rule(rule) for _, rule in self._rules.values()]
        return {
            "tool": {"driver": driver},
            "automationDetails": {"id": "nosync-lint/"},
            "originalUriBaseIds": {ROOT: {"uri": self._repository.root_uri}},
            "columnKind": "unicodeCodePoints",
            "invocations": [self._invocation(left)],
            "results": results,
        }

    def _results(self) -> tuple[list[Object], int]:
        """The results, and how many there is no room for: suppressed and less severe ones go first."""
        shown, suppressed = self._report.findings, self._report.suppressed
        left = max(len(shown) - MOST_RESULTS, 0)
        if left:
            worst = sorted(shown, key=lambda finding: list(Severity).index(finding.severity))[:MOST_RESULTS]
            shown = tuple(sorted(worst, key=lambda finding: finding.order))
        kept = suppressed[: MOST_RESULTS - len(shown)]
        has_baseline = any(one.form == "baseline" for one in suppressed)
        results = [self._result(finding, has_baseline) for finding in shown]
        results += [self._suppressed(one, has_baseline) for one in kept]
        return results, left + len(suppressed) - len(kept)

    def _suppressed(self, one: Suppressed, has_baseline: bool) -> Object:
        result, known = self._result(one.finding, has_baseline), one.form == "baseline"
        suppression: Object = {"kind": "external" if known else "inSource", "status": "accepted"}
        if one.reason:
            suppression["justification"] = visible(one.reason)
        if one.row:
            suppression["location"] = self._location(one.finding.filename, {"startLine": one.row})
        told = {"form": one.form, "owner": one.owner, "until": one.until}
        suppression["properties"] = {key: visible(value) for key, value in told.items() if value}
        result["suppressions"] = [suppression]
        if known:
            result["baselineState"] = "unchanged"
        return result

    def _result(self, finding: Finding, has_baseline: bool) -> Object:
        related = (*finding.related, *finding.evidence)[:MOST_RELATED]
        index, _ = self._rules[finding.code]
        place = self._location(finding.filename, _region(finding.span))
        if finding.scope:
            place["logicalLocations"] = [{"fullyQualifiedName": visible(finding.scope)}]
        result: Object = {
            "ruleId": finding.code,
            "ruleIndex": index,
            "level": LEVELS[finding.severity],
            "message": {"text": _message(finding.message, related)},
            "locations": [place],
        }
        if finding.fingerprint:
            result["partialFingerprints"] = {"nosyncLint/v1": finding.fingerprint}
        if finding.flow:
            result["codeFlows"] = [self._code_flow(finding)]
        if related:
            result["relatedLocations"] = [{"id": number, **self._hop(hop)} for number, hop in enumerate(related, 1)]
        if finding.fix is not None and finding.fix.applicability is not Applicability.DISPLAY:
            result["fixes"] = [self._fix(finding.fix, finding.filename)]
        if has_baseline:
            result["baselineState"] = "new"
        result["properties"] = _properties(finding)
        return result

    def _code_flow(self, finding: Finding) -> Object:
        """The chain of a finding, its middle left out where it is very long."""
        hops = list(enumerate(finding.flow))
        left = len(hops) - MOST_HOPS
        if left > 0:
            hops = [*hops[: MOST_HOPS // 2], *hops[MOST_HOPS // 2 + left :]]
        steps = []
        for number, hop in hops:
            is_last = number == len(finding.flow) - 1
            note = hop.note
            if left > 0 and number == MOST_HOPS // 2 + left:
                note = f"{note} ({left} calls before this one are left out)"
            step: Object = {"location": self._hop(Hop(hop.filename, hop.row, note))}
            if finding.heat is not None:
                step |= {"kinds": ["sink" if is_last else "call"], "nestingLevel": number, "executionOrder": number + 1}
            step["importance"] = "essential" if is_last or number == 0 else "important"
            steps.append(step)
        return {"message": {"text": _text(flow_label(finding))}, "threadFlows": [{"locations": steps}]}

    def _fix(self, fix: Fix, filename: str) -> Object:
        replacements = []
        for edit in fix.edits:
            replacement: Object = {"deletedRegion": _region(edit.span)}
            if edit.content:
                replacement["insertedContent"] = {"text": edit.content}
            replacements.append(replacement)
        return {
            "description": {"text": _text(fix.message)},
            "artifactChanges": [{"artifactLocation": self._artifact(filename), "replacements": replacements}],
            "properties": {"applicability": fix.applicability.value, "recipe": fix.recipe},
        }

    def _hop(self, hop: Hop) -> Object:
        return {**self._location(hop.filename, {"startLine": hop.row}), "message": {"text": _text(hop.note)}}

    def _location(self, filename: str, region: Object) -> Object:
        return {"physicalLocation": {"artifactLocation": self._artifact(filename), "region": region}}

    def _artifact(self, filename: str) -> Object:
        uri = self._repository.uri(filename)
        return {"uri": uri, "uriBaseId": ROOT} if self._repository.is_inside(filename) else {"uri": uri}

    def _invocation(self, left: int) -> Object:
        """What the run could not do: rules that crashed, files it could not use, names that name nothing."""
        report = self._report
        execution = [_notification("error", text) for text in report.failures]
        execution += self._notifications("bad-file")
        execution += [_notification("note", text) for text in report.notes]
        if left:
            execution.append(_notification("warning", f"{left:,} results are left out: a run holds {MOST_RESULTS:,}"))
        return {
            "executionSuccessful": not report.failures,
            "toolExecutionNotifications": execution,
            "toolConfigurationNotifications": self._notifications("configured-name"),
        }

    def _notifications(self, site: str) -> list[Object]:
        """The findings that are about the run itself, as notifications."""
        notifications = []
        for finding in self._report.findings:
            number, rule = self._rules[finding.code]
            if site in rule.sites:
                told = _notification(LEVELS[finding.severity], finding.message)
                told["locations"] = [self._location(finding.filename, _region(finding.span))]
                told["associatedRule"] = {"id": finding.code, "index": number}
                notifications.append(told)
        return notifications


def _rules(report: Report) -> Sequence[RuleFacts]:
    """The rules of a report, by code: those that were asked, and those that findings name besides."""
    found: Mapping[str, RuleFacts] = {
        finding.code: RuleFacts(finding.code, finding.name, finding.severity, finding.name, finding.name)
        for finding in (*report.findings, *(one.finding for one in report.suppressed))
    }
    return sorted({**found, **{rule.code: rule for rule in report.rules}}.values(), key=lambda rule: rule.code)


def _rule(rule: RuleFacts) -> Object:
    described: Object = {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": _cut(rule.summary)},
        "fullDescription": {"text": _cut(_reason(rule.documentation))},
        "help": {"text": rule.documentation, "markdown": _markdown(rule.documentation)},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": {"problem.severity": PROBLEMS[rule.severity], "tags": ["cuda", "pytorch"]},
    }
    if rule.url:
        described["helpUri"] = rule.url
    return described


def _reason(documentation: str) -> str:
    """The summary of a rule and its first section, which says why it matters, as one paragraph."""
    paragraphs = documentation.split("\n\n")
    reason = [line.strip() for line in "".join(paragraphs[1:2]).splitlines()[1:]]
    return " ".join([paragraphs[0], *reason])


def _markdown(documentation: str) -> str:
    """The documentation of a rule with headings: a line that others are indented below is one."""
    lines, texts = documentation.splitlines(), []
    for number, line in enumerate(lines):
        below = lines[number + 1] if number + 1 < len(lines) else ""
        is_heading = line and not line.startswith(" ") and below.startswith("    ")
        texts.append(f"## {line}\n" if is_heading else line.removeprefix("    "))
    return "\n".join(texts)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _message(text: str, related: Sequence[Hop]) -> str:
    """The message of a finding, with links to related places."""
    links = []
    for number, hop in enumerate(related[:MOST_LINKS], 1):
        note = _BRACKET.sub(r"\\\g<0>", visible(hop.note))
        links.append(f"[{note}]({number})")
    return f"{_text(text)} (see {', '.join(links)})" if links else _text(text)


def _text(text: str) -> str:
    """Text in which nothing is taken for a link."""
    return _LINK.sub(r"\\\g<0>", visible(text))


def _properties(finding: Finding) -> Object:
    told = {
        "confidence": finding.confidence.value,
        "heat": finding.heat.value if finding.heat else "",
        "root": finding.root or "",
        "group": finding.group or "",
    }
    properties = {key: visible(value) for key, value in told.items() if value}
    return {**properties, "cure": "\n".join(map(visible, finding.cure.splitlines()))}


def _notification(level: str, text: str) -> Object:
    return {"level": level, "message": {"text": _text(text)}}


def _region(span: Span) -> Object:
    return {
        "startLine": span.row,
        "startColumn": span.column,
        "endLine": span.end_row,
        "endColumn": span.end_column,
    }
