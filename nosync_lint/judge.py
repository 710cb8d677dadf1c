"""Asks the rules about the sites of a program, and makes findings of what they say.

The program is asked first. libcst confirms the shape of what is left to be shown, and is imported only then.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

from nosync_lint.config import Settings
from nosync_lint.finding import Confidence, Finding, Fix, Heat, Suppressed
from nosync_lint.fix.rewrite import fix_of
from nosync_lint.index.records import Pragma, span_of, unpack
from nosync_lint.link.program import Place, Program, place_of
from nosync_lint.report import Hidden
from nosync_lint.rule import BadFile, ConfiguredName, Judgement, Rule
from nosync_lint.source import CUDA_SUFFIXES, Span, UnreadableFile, decode, read_source
from nosync_lint.suppression import Suppressions

HEATS = {"hot": {Heat.HOT}, "warm": {Heat.HOT, Heat.WARM}, "any": set(Heat)}


@dataclass(frozen=True, slots=True)
class Judged:
    """The findings to show, how many are not shown, the rules that crashed, and the findings that comments cover."""

    findings: tuple[Finding, ...]
    hidden: Hidden
    failures: tuple[str, ...]
    suppressed: tuple[Suppressed, ...]


class Texts:
    """The lines of files by their names, read when first asked for, or given."""

    def __init__(self, given: Mapping[str, bytes] | None = None) -> None:
        self._data: dict[str, bytes | None] = dict(given or {})
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
            try:
                text = decode(self.data(filename) or b"", Path(filename).suffix.lower() not in CUDA_SUFFIXES)
                self._lines[filename] = text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if text else []
            except UnreadableFile:
                self._lines[filename] = []
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
    it; the others go on."""
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
        from nosync_lint.registry import rules as all_rules

        self.known = {word for rule in all_rules() for word in (rule.code, rule.slug())}
        self._program, self._texts = program, texts
        self._heats = HEATS[settings.heat]
        self._least = Confidence(settings.min_confidence).rank
        self._found: list[tuple[Finding, Rule, Place | None, object]] = []
        self._suppressed: list[Suppressed] = []
        self._hidden: Counter[str] = Counter()
        self._failures: list[str] = []
        self.suppressions = {
            name: Suppressions(found, lambda name=name: texts.lines(name))  # type: ignore[misc]
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
        )  # fmt: skip
        if covering is not None:
            self._hidden["suppressed"] += 1
            self._suppressed.append(Suppressed(finding, covering.form, covering.reason, covering.row))
        elif judgement.confidence.rank < self._least:
            self._hidden[judgement.confidence.value] += 1
        elif heat is not None and heat not in self._heats:
            self._hidden[heat.value] += 1
        else:
            self._found.append((finding, rule, place, site))

    def _span(self, place: Place | None) -> Span:
        if place is None:
            return Span(1, 1, 1, 1)
        if place.span is not None:
            return place.span
        assert place.pos is not None
        return span_of(place.pos, self._texts.lines(place.filename))

    def finish(self) -> Judged:
        kept = [
            finding if place is None else replace(finding, fix=self._fix(rule, place, site))
            for finding, rule, place, site in self._found
            if place is None or self._confirmed(finding, rule, place)
        ]
        sinks = Counter(finding.group for finding in kept if finding.group)
        findings = sorted(kept, key=lambda finding: finding.order)
        findings = [f if f.group is None or sinks[f.group] > 1 else replace(f, group=None) for f in findings]
        return Judged(
            tuple(self._fingerprinted(findings)),
            Hidden(**self._hidden),
            tuple(dict.fromkeys(self._failures)),
            tuple(sorted(self._suppressed, key=lambda one: one.finding.order)),
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

    def _fingerprinted(self, findings: Sequence[Finding]) -> Iterator[Finding]:
        """A name for each finding that survives moved lines: rule, file, the text of its row, and which of equals."""
        seen: Counter[tuple[str, str, str]] = Counter()
        for finding in findings:
            lines = self._texts.lines(finding.filename)
            snippet = (
                " ".join(lines[finding.span.row - 1].split()) if finding.span.row <= len(lines) else finding.message
            )
            key = (finding.code, finding.filename, snippet)
            seen[key] += 1
            digest = blake2b(
                "\0".join([*key, str(seen[key])]).encode(errors="surrogateescape"), digest_size=8
            ).hexdigest()
            yield replace(finding, fingerprint=digest)
