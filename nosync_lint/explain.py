"""Says why a line is or is not reported: judges its file with nothing hidden, and asks the program for the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from nosync_lint.answers import Explanation, LineFacts, Outcome, SiteAnswer
from nosync_lint.config import Settings
from nosync_lint.finding import Confidence, Finding, Heat, Hop
from nosync_lint.index.records import Pragma
from nosync_lint.judge import HEATS, Judged, Texts, judge
from nosync_lint.link.explanation import Explanations
from nosync_lint.link.program import Program, place_of
from nosync_lint.registry import rules
from nosync_lint.rule import BadFile, ConfiguredName, Rule
from nosync_lint.selection import FileIgnores
from nosync_lint.suppression import Suppressions


@dataclass(frozen=True, slots=True)
class Case:
    """What a run knows when it is asked for a line: as `judge` takes it."""

    program: Program
    selected: Sequence[Rule]
    settings: Settings
    pragmas: Mapping[str, Sequence[Pragma]]
    bad_files: Sequence[BadFile]
    names: Sequence[ConfiguredName]
    texts: Texts
    accepted: Callable[[Judged], frozenset[Finding]]
    """Those of the findings that the baseline accepts."""


def explain(case: Case, filename: str, row: int, reported: bool) -> Explanation:
    """Why a row of a file, under the name that findings have, is or is not reported."""
    program = case.program
    module = next((one for one in program.project.modules if one.file.name == filename), None)
    lines = case.texts.lines(filename)
    facts = Explanations(program).line(module, row, lines) if module is not None else None
    outcomes, notes = _outcomes(case, filename, row, facts)
    if facts is not None:
        facts = replace(facts, sites=tuple(_beside(site, outcomes) for site in facts.sites))
    first, last = facts.sites[0].statement if facts is not None and facts.sites else (row, row)
    comments = Suppressions(case.pragmas.get(filename, ()), lambda: lines, case.settings.today).reaching(first, last)
    return Explanation(
        filename,
        row,
        lines[row - 1].strip() if row <= len(lines) else "",
        _answer(outcomes, facts, reported),
        outcomes,
        facts,
        tuple(_comment(filename, one) for one in comments),
        notes,
    )


def _beside(site: SiteAnswer, outcomes: Sequence[Outcome]) -> SiteAnswer:
    """A site of which no row of the model tells and a rule does."""
    codes = dict.fromkeys(one.finding.code for one in outcomes if one.finding.span == site.span)
    if site.waits or not codes:
        return site
    return replace(site, silent=f"see {', '.join(codes)}", undecided=False)


def _outcomes(
    case: Case, filename: str, row: int, facts: LineFacts | None
) -> tuple[tuple[Outcome, ...], tuple[str, ...]]:
    """The findings of a row, each with why it is hidden, and the rules that crashed."""
    pragmas = {filename: case.pragmas[filename]} if filename in case.pragmas else {}
    everything = replace(case.settings, heat="any", min_confidence="possible", per_file_ignores=())

    @cache
    def sites(kind: str) -> Sequence[object]:
        found = ((one, place_of(one)) for one in case.program.sites(kind))
        return [one for one, place in found if place is not None and place.filename == filename]

    def judged(chosen: Sequence[Rule], settings: Settings, comments: Mapping[str, Sequence[Pragma]]) -> Judged:
        bad = [one for one in case.bad_files if one.filename == filename]
        names = [one for one in case.names if one.filename == filename]
        return judge(case.program, chosen, settings, comments, bad, names, case.texts, sites)

    loose, covered = judged(rules(), everything, {}), judged(rules(), everything, pragmas)
    told = judged(case.selected, case.settings, pragmas)
    known = {_key(one) for one in case.accepted(told)}
    shown = {_key(one) for one in told.findings} - known
    kept = {_key(one) for one in covered.findings}
    selected = {rule.code: rule for rule in case.selected}
    ignores = FileIgnores(case.settings)
    outcomes = []
    for finding in _on_row(dict.fromkeys((*loose.findings, *covered.findings)), row, filename):
        reasons: list[str] = []
        if _key(finding) not in shown:
            doubt, rule = _doubt(finding, facts), selected.get(finding.code)
            reasons = _reasons(finding, case.settings, rule is not None, _key(finding) in kept, doubt)
            if rule is not None and ignores.cover(rule, filename):
                reasons.append("`per-file-ignores` names its rule for this file")
            if _key(finding) in known:
                reasons.append("the baseline accepts it")
            if not reasons and rule is not None and rule.given:
                reasons.append("the options of its rule leave it out")
        outcomes.append(Outcome(finding, " and ".join(reasons)))
    return tuple(outcomes), loose.failures


def _doubt(finding: Finding, facts: LineFacts | None) -> str:
    """The operands that leave a finding possible."""
    sites = facts.sites if facts is not None else ()
    unknown = [part.text for site in sites if site.span == finding.span for part in site.operands if not part.known]
    return f", since it is not known what {' and '.join(f'`{text}`' for text in unknown)} is" if unknown else ""


def _reasons(finding: Finding, settings: Settings, selected: bool, kept: bool, doubt: str) -> list[str]:
    """Why a finding is not shown."""
    reasons = []
    if not selected:
        reasons.append(f"its rule is not selected (`--select {finding.code}`)")
    if not kept:
        reasons.append("a comment suppresses it")
    if finding.confidence.rank < Confidence(settings.min_confidence).rank:
        rank = finding.confidence.value
        reasons.append(f"it is only {rank}{doubt} (`--min-confidence {rank}`)")
    if finding.heat is not None and finding.heat not in HEATS[settings.heat]:
        reasons.append(f"the line is {finding.heat.value} (`--heat {'warm' if finding.heat is Heat.WARM else 'any'}`)")
    return reasons


def _key(finding: Finding) -> tuple[object, ...]:
    return (finding.code, finding.filename, finding.span, finding.message)


def _on_row(findings: Mapping[Finding, None], row: int, filename: str) -> list[Finding]:
    """The findings that begin in a row; where none does, those that reach over it. Each once."""
    unique = {_key(one): one for one in findings if one.filename == filename}
    found = sorted(unique.values(), key=lambda one: one.order)
    return [one for one in found if one.span.row == row] or [
        one for one in found if one.span.row <= row <= one.span.end_row
    ]


def _answer(outcomes: Sequence[Outcome], facts: LineFacts | None, reported: bool) -> str:
    """The answer in one sentence."""
    if not reported:
        waiting = facts is not None and any(site.waits and not site.silent for site in facts.sites)
        return "not reported: the file is not among the given paths" + (
            "; what waits here is told below" if waiting else ""
        )
    shown = [one.finding for one in outcomes if not one.hidden]
    if shown:
        return "reported: " + "; ".join(_named(one) for one in shown)
    if outcomes:
        return "not reported: " + "; ".join(f"{_named(one.finding)} is hidden: {one.hidden}" for one in outcomes)
    if facts is None:
        return "not reported: no rule finds anything here"
    besides = "" if facts.heat.heat is Heat.HOT else f"; the line is {facts.heat.heat.value} besides"
    if not facts.sites:
        return "not reported: nothing on this line could wait"
    undecided = [site for site in facts.sites if site.undecided]
    if undecided:
        count = len(facts.sites)
        share = (
            "the only site is"
            if count == 1
            else f"{len(undecided)} of {count} sites {'is' if len(undecided) == 1 else 'are'}"
        )
        return f"not reported: {share} undecided: {undecided[0].silent}{besides}"
    if any(site.waits and site.silent for site in facts.sites):
        return f"not reported: what waits here does so in no torch release that is targeted{besides}"
    if any(site.waits for site in facts.sites):
        return f"not reported: what waits here has no rule that reports it in this form{besides}"
    calls = sum(site.unresolved for site in facts.sites)
    open_calls = f", and {calls} call{' of it is' if calls == 1 else 's of it are'} not resolved" if calls else ""
    return f"not reported: nothing on this line is known to wait{open_calls}{besides}"


def _named(finding: Finding) -> str:
    ranks = [finding.confidence.value, *([finding.heat.value] if finding.heat else [])]
    return f"{finding.code} {finding.name} ({', '.join(ranks)})"


def _comment(filename: str, pragma: Pragma) -> Hop:
    names = f"[{', '.join(pragma.names)}]" if pragma.names else ""
    return Hop(filename, pragma.row, f"{pragma.form}{names}" + (f": {pragma.reason}" if pragma.reason else ""))
