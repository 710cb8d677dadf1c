"""Asks the rules about the sites of a program, and makes findings of what they say.

The program is asked first. libcst confirms the shape of what is left to be shown, and is imported only then.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nosync_lint.config import Settings
from nosync_lint.finding import Confidence, Finding, Fix, Heat, Suppressed
from nosync_lint.fingerprint import Identity, snippet
from nosync_lint.fix.rewrite import fix_of
from nosync_lint.index.records import Pragma, span_of, unpack
from nosync_lint.link.program import Place, Program, place_of
from nosync_lint.notebook import joined, read_cells
from nosync_lint.report import Hidden
from nosync_lint.rule import BadFile, ConfiguredName, Judgement, Rule
from nosync_lint.selection import FileIgnores
from nosync_lint.source import (
    NOTEBOOK_SUFFIXES,
    SourceFile,
    Span,
    UnreadableFile,
    decode,
    is_python,
    lines_of,
    read_source,
)
from nosync_lint.suppression import Suppressions
from nosync_lint.touching import touches

HEATS = {"hot": {Heat.HOT}, "warm": {Heat.HOT, Heat.WARM}, "any": set(Heat)}


@dataclass(frozen=True, slots=True)
class Judged:
    """The findings to show, how many are not shown, the rules that crashed, and the findings that comments cover.

    `unshown` are those that heat, confidence or `per-file-ignores` hide; they have no fingerprint.
    """

    findings: tuple[Finding, ...]
    hidden: Hidden
    failures: tuple[str, ...]
    suppressed: tuple[Suppressed, ...]
    unshown: tuple[Finding, ...] = ()


class Texts:
    """The lines of files by their names, read when first asked for. What stands for a file on disk is taken for it."""

    def __init__(self, files: Iterable[SourceFile] = ()) -> None:
        self._data: dict[str, bytes | None] = {file.name: file.content for file in files if file.content is not None}
        self._lines: dict[str, list[str]] = {}

    def data(self, filename: str) -> bytes | None:
        """What a file holds; None where it cannot be read any more."""
        if filename not in self._data:
            try:
                self._data[filename] = read_source(Path(filename), sys.maxsize)
            except UnreadableFile:
                self._data[filename] = None
        return self._data[filename]

    def lines(self, filename: str) -> list[str]:
        """The lines of a file as the parser counts them; none where it cannot be read any more."""
        if filename not in self._lines:
            path, data = Path(filename), self.data(filename)
            try:
                if data is None:
                    text = ""
                elif path.suffix.lower() in NOTEBOOK_SUFFIXES:
                    text = joined(read_cells(data))
                else:
                    text = decode(data, is_python(path))
            except UnreadableFile:
                data = None
            self._lines[filename] = [] if data is None else lines_of(text)
        return self._lines[filename]


def judge(
    program: Program,
    rules: Sequence[Rule],
    settings: Settings,
    pragmas: Mapping[str, Sequence[Pragma]],
    bad_files: Sequence[BadFile],
    names: Sequence[ConfiguredName],
    texts: Texts,
    sites: Callable[[str], Sequence[object]] | None = None,
) -> Judged:
    """Every selected rule on every site, or on those that `sites` gives. A rule that crashes is a failure that names
    it; the others go on. Where only what touches some files is asked for, only that is counted as hidden, and the
    findings are all those of the files that were judged: what is compared with a baseline must be whole."""
    judging = _Judging(program, settings, pragmas, texts)
    last = [rule for rule in rules if "suppression" in rule.sites]
    given: dict[str, Sequence[object]] = {"bad-file": bad_files, "configured-name": names}
    program.expected = tuple(kind for rule in rules for kind in rule.sites)
    for rule in (rule for rule in rules if rule not in last):
        for kind in rule.sites:
            judging.ask(rule, lambda kind=kind: given.get(kind) or (sites or program.sites)(kind))  # type: ignore[misc]
    known = {word for rule in rules for word in (rule.code, rule.slug())}
    suppressions = [
        site
        for name, one in sorted(judging.suppressions.items())
        for site in one.sites(name, known | judging.known, known)
    ]
    for rule in last:
        judging.ask(rule, lambda: suppressions)
    return judging.finish()


class _Judging:
    def __init__(
        self, program: Program, settings: Settings, pragmas: Mapping[str, Sequence[Pragma]], texts: Texts
    ) -> None:
        from nosync_lint.registry import page
        from nosync_lint.registry import rules as all_rules

        self._page = page
        self.known = {word for rule in all_rules() for word in (rule.code, rule.slug())}
        self._program, self._texts = program, texts
        self._ignores = FileIgnores(settings)
        self._heats = HEATS[settings.heat]
        self._least = Confidence(settings.min_confidence).rank
        self._found: list[tuple[Finding, Rule, Place | None, object]] = []
        self._suppressed: list[Suppressed] = []
        self._unshown: list[Finding] = []
        self._hidden: Counter[str] = Counter()
        self._failures: list[str] = []
        self.suppressions = {
            name: Suppressions(found, lambda name=name: texts.lines(name), settings.today)  # type: ignore[misc]
            for name, found in pragmas.items()
            if found
        }

    def ask(self, rule: Rule, sites: Callable[[], Sequence[object]]) -> None:
        try:
            found = sites()
        except Exception as error:
            self._crashed(rule, None, error)
            return
        for site in found:
            place = place_of(site)
            try:
                for judgement in rule.judge(site, self._program):
                    self._take(rule, judgement, place, site)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a rule, possibly not ours, must not take the run down
                self._crashed(rule, place, error)

    def _crashed(self, rule: Rule, place: Place | None, error: BaseException) -> None:
        where = f" at {place.filename}:{place.row}" if place else ""
        self._failures.append(f"rule {rule.code} {rule.slug()} crashed{where}: {type(error).__name__}: {error}")

    def _take(self, rule: Rule, judgement: Judgement, place: Place | None, site: object) -> None:
        filename = judgement.filename or (place.filename if place else "")
        span = judgement.span or self._span(place)
        first, last = span.row, span.end_row
        if place is not None and place.statement is not None:
            row, _, end_row, _ = unpack(place.statement)
            first, last = min(first, row), max(last, end_row)
        comments = self.suppressions.get(filename)
        covering = None
        if comments is not None and "suppression" not in rule.sites:
            covering = comments.cover(rule.code, rule.slug(), first, last)
        heat, flow, root = None, judgement.flow, None
        if rule.heated and place is not None and place.heat is not None:
            heat, root, flow = place.heat, place.root, place.chain or judgement.flow
        elif rule.heated and place is not None and place.function is not None:
            heat = self._program.heat.heat(place.function, place.block)
            if judgement.confidence.rank >= self._least:
                root, chain = self._program.heat.chain(place.function, span.row, "synchronises here", place.block)
                flow = chain or judgement.flow
        finding = Finding(
            rule.code, rule.slug(), judgement.message, filename, span, rule.severity, judgement.confidence,
            judgement.cure, heat, flow, judgement.evidence, judgement.related, root, judgement.sink,
            scope=place.function.record.qualname if place is not None and place.function is not None else "",
            fix=judgement.fix,
            url=self._page(rule),
        )  # fmt: skip
        suppressed = self._suppression(finding, rule, place, covering)
        asked = self._program.touched is None or touches(finding, self._program.touched)
        if self._ignores.cover(rule, filename):
            self._hidden["ignored"] += asked
            self._unshown += [finding] * asked
        elif suppressed is not None:
            self._hidden["suppressed"] += asked
            self._suppressed.append(suppressed)
        elif judgement.confidence.rank < self._least:
            self._hidden[judgement.confidence.value] += asked
            self._unshown.append(finding)
        elif heat is not None and heat not in self._heats:
            self._hidden[heat.value] += asked
            self._unshown.append(finding)
        else:
            self._found.append((finding, rule, place, site))

    def _suppression(
        self, finding: Finding, rule: Rule, place: Place | None, covering: Pragma | None
    ) -> Suppressed | None:
        """What says that a finding is meant: a comment, or the block that it stands in."""
        if covering is not None:
            return Suppressed(finding, covering.form, covering.reason, covering.row, covering.owner, covering.until)
        if not rule.heated or place is None or place.function is None:
            return None
        block = self._program.roots.waiver(place.function, place.block)
        return Suppressed(finding, "block", block[1], block[0]) if block is not None else None

    def _span(self, place: Place | None) -> Span:
        if place is None:
            return Span(1, 1, 1, 1)
        if place.span is not None:
            return place.span
        assert place.pos is not None
        return span_of(place.pos, self._texts.lines(place.filename))

    def finish(self) -> Judged:
        kept = [
            finding if place is None or finding.fix else replace(finding, fix=self._fix(rule, place, site))
            for finding, rule, place, site in self._found
            if place is None or self._confirmed(finding, rule, place)
        ]
        sinks = Counter(finding.group for finding in kept if finding.group)
        findings = sorted(kept, key=lambda finding: finding.order)
        findings = [f if f.group is None or sinks[f.group] > 1 else replace(f, group=None) for f in findings]
        suppressed = sorted(self._suppressed, key=lambda one: one.finding.order)
        named = self._fingerprinted([*findings, *(one.finding for one in suppressed)])
        return Judged(
            tuple(named[: len(findings)]),
            Hidden(**self._hidden),
            tuple(dict.fromkeys(self._failures)),
            tuple(
                replace(one, finding=finding) for one, finding in zip(suppressed, named[len(findings) :], strict=True)
            ),
            tuple(self._unshown),
        )

    def _confirmed(self, finding: Finding, rule: Rule, place: Place) -> bool:
        """Whether libcst finds the rule's shape in the statement. A statement it cannot parse is believed."""
        try:
            shape = rule.shape()
        except Exception as error:
            self._crashed(rule, place, error)
            return True
        if shape is None or place.statement is None:
            return True
        import libcst
        import libcst.matchers as m

        text = self._statement(place)
        if not text.strip():
            return True  # the file has changed since it was read
        try:
            tree = libcst.parse_module(text)
        except libcst.ParserSyntaxError:
            return True
        return bool(m.findall(tree, shape))

    def _fix(self, rule: Rule, place: Place, site: object) -> Fix | None:
        """The fix that a rule offers for a site, as edits of the source."""
        if place.pos is None or place.statement is None:
            return None
        try:
            rewrite = rule.fix(site, self._program)
        except Exception as error:
            self._crashed(rule, place, error)
            return None
        return fix_of(rewrite, self._texts.lines(place.filename), place.pos, place.statement) if rewrite else None

    def _statement(self, place: Place) -> str:
        assert place.statement is not None
        row, column, end_row, end_column = unpack(place.statement)
        lines = [line.encode() for line in self._texts.lines(place.filename)[row - 1 : end_row]]
        if not lines:
            return ""
        lines[-1] = lines[-1][:end_column]
        lines[0] = lines[0][column:]
        first, *rest = [line.decode(errors="replace") for line in lines]
        return "\n".join([first, *rest]) + "\n" if len(lines) > 1 else first + "\n"

    def _fingerprinted(self, findings: Sequence[Finding]) -> list[Finding]:
        """The findings with their snippets and fingerprints. What is hidden counts among equals: a fingerprint does not
        depend on which heat is asked for."""
        near = {(one.filename, one.scope, one.code) for one in findings}
        hidden = [one for one in self._unshown if (one.filename, one.scope, one.code) in near]
        named, seen = list(findings), Counter[Identity]()
        for number, one in sorted(enumerate([*findings, *hidden]), key=lambda pair: pair[1].order):
            identity = identify(one, self._texts)
            seen[identity] += 1
            if number < len(named):
                named[number] = replace(one, snippet=identity.snippet, fingerprint=identity.fingerprint(seen[identity]))
        return named


def identify(finding: Finding, texts: Texts) -> Identity:
    """What a finding is known by, under the file name that it has."""
    text = snippet(texts.lines(finding.filename), finding.span, is_python(Path(finding.filename)), finding.message)
    return Identity(finding.filename, finding.scope, finding.code, text)
