"""Text for people: with source frames and colour on a terminal, plain lines in a pipe."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, TextIO

from nosync_lint.finding import Applicability, Finding, Hop, Severity
from nosync_lint.report import Report
from nosync_lint.report.formats import Style

if TYPE_CHECKING:
    from rich.text import Text

CONTEXT = 2
"""Source lines shown above and below the flagged one."""
MAX_STEPS = 8
"""Hops of a chain are indented one step further each, up to this many."""
MAX_HIGHLIGHTED = 400
"""Longer source lines are shown without syntax colours: they are generated, and slow to colour."""

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold blue"}


def write(report: Report, out: TextIO, style: Style) -> None:
    """Write a report. With `style.statistics` a count per rule takes the place of the findings.

    What comes from the linted files is escaped: it cannot move the cursor, set colours or reorder the line. The time
    taken is told on a terminal only, so that two plain reports of the same input are equal.
    """
    page: _Page = _Terminal(out, report.sources) if style.color else _Plain(out)
    page.fixable = report.fixable
    if style.statistics:
        for line in _counts(report.findings):
            page.line(line)
        page.gap()
    else:
        for block in _blocks(report.findings):
            _write_block(page, block)
            page.gap()
    for text in report.failures:
        page.line(f"failed: {text}", "bold red")
    for text in report.notes:
        page.line(f"note: {text}", "yellow")
    first, *rest = _summary(report)
    page.line(first, "bold")
    for text in rest:
        page.line(text, "dim")
    if style.color and report.seconds:
        page.line(f"{report.seconds:.1f} s", "dim")


def _blocks(findings: Sequence[Finding]) -> Iterator[tuple[Finding, ...]]:
    """Findings in report order; those of one group together, where the first of them stands."""
    groups: dict[object, list[Finding]] = {}
    for number, finding in enumerate(findings):
        groups.setdefault(finding.group or number, []).append(finding)
    return (tuple(group) for group in groups.values())


def _write_block(page: _Page, block: tuple[Finding, ...]) -> None:
    """One finding, or the findings of one group: by rule, and then the place that all of them lead to."""
    for number, code in enumerate(dict.fromkeys(finding.code for finding in block)):
        if number:
            page.gap()
        _write_alike(page, tuple(finding for finding in block if finding.code == code))
    if len({finding.code for finding in block}) > 1:
        page.line(f"the {len(block)} findings above have one cause{_cause(block)}", "bold")


def _write_alike(page: _Page, findings: tuple[Finding, ...]) -> None:
    """Findings of one rule and group, followed once by what they have in common."""
    several = len(findings) > 1
    tail = _shared_tail(findings) if several else ()
    related = findings[0].related if several and len({finding.related for finding in findings}) == 1 else ()
    cure = findings[0].cure if several and len({finding.cure for finding in findings}) == 1 else ""
    for number, finding in enumerate(findings):
        if number:
            page.gap()
        page.heading(finding)
        page.frame(finding)
        page.hops(_flow_label(finding), finding.flow[: len(finding.flow) - len(tail)], chain=True)
        page.hops("believed because", finding.evidence)
        page.hops("related", () if related else finding.related)
        page.code("instead", "" if cure else finding.cure)
    if tail or related or cure:
        page.line(f"the {len(findings)} findings above share", "bold")
        page.hops("path", tail, chain=True)
        page.hops("related", related)
        page.code("instead", cure)


def _cause(block: tuple[Finding, ...]) -> str:
    """The place that every finding of a group stands at, leads to or names, where there is one."""
    named = [{(hop.filename, hop.row) for hop in (*finding.flow, *finding.related)} for finding in block]
    own = [{(finding.filename, finding.span.row)} for finding in block]
    common = set.intersection(*(a | b for a, b in zip(named, own, strict=True)))
    places = [(hop.filename, hop.row) for finding in block for hop in reversed(finding.flow)]
    return next((f": {filename}:{row}" for filename, row in places if (filename, row) in common), "")


def _shared_tail(findings: tuple[Finding, ...]) -> tuple[Hop, ...]:
    """The places at which the flows of all findings end alike."""
    length = 0
    for steps in zip(*(reversed(finding.flow) for finding in findings), strict=False):
        if len({(hop.filename, hop.row) for hop in steps}) > 1:
            break
        length += 1
    flow = findings[0].flow
    return flow[len(flow) - length :]


def _flow_label(finding: Finding) -> str:
    if finding.heat is None:
        return "shown by"
    return f"chain from `{finding.root}`" if finding.root else "chain"


def _counts(findings: Sequence[Finding]) -> Iterator[str]:
    counted = Counter((finding.code, finding.name) for finding in findings)
    width = max((len(f"{count:,}") for count in counted.values()), default=0)
    for (code, name), count in sorted(counted.items(), key=lambda item: (-item[1], item[0])):
        yield f"{count:>{width},}  {code}  {name}"


def _summary(report: Report) -> Iterator[str]:
    hidden = [(getattr(report.hidden, one.name), one.name) for one in fields(report.hidden)]
    told = ", ".join(f"{count:,} {name}" for count, name in hidden if count)
    fixed = f", {len(report.fixed):,} fixed" if report.fixed else ""
    yield f"{len(report.findings):,} shown{fixed}; " + (f"hidden: {told}" if told else "nothing hidden")
    yield from _fixable(report)
    files = "file" if report.files_reported == 1 else "files"
    parts = [f"{report.files_reported:,} {files} reported, {report.files_linked:,} linked"]
    calls = report.calls_resolved + report.calls_unresolved
    if calls:
        share = 100 * report.calls_unresolved / calls
        parts.append(f"{report.calls_unresolved:,} of {calls:,} calls unresolved ({share:.1f} %)")
    if report.target_torch:
        parts.append(f"for torch {_releases(report.target_torch)}")
    yield "; ".join(parts)


def _fixable(report: Report) -> Iterator[str]:
    """How many findings have a fix, and which switch makes it."""
    safe = sum(map(report.fixable, report.findings))
    more = sum(_has_unsafe_fix(finding) and not report.fixable(finding) for finding in report.findings)
    parts = [f"[*] {safe:,} fixable with --fix"] if safe else []
    parts += [f"{more:,} {'more ' if safe else 'fixable '}with --unsafe-fixes"] if more else []
    if parts:
        yield ", ".join(parts)


def _has_unsafe_fix(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.applicability is Applicability.UNSAFE


def _releases(releases: tuple[str, ...]) -> str:
    """ "2.9 to 2.12" for neighbours, else a list."""
    parts = [release.split(".") for release in releases]
    minors = [int(part[1]) for part in parts if len(part) == 2 and part[1].isdigit() and part[0] == parts[0][0]]
    if len(releases) > 2 and minors == list(range(minors[0] if minors else 0, (minors or [0])[0] + len(releases))):
        return f"{releases[0]} to {releases[-1]}"
    return ", ".join(releases)


def printable(text: str, encoding: str) -> str:
    """One line that an output of this encoding can hold and a terminal only prints."""
    text = _UNSAFE.sub(_escape, text.replace("\t", " ").replace("\n", " "))
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class _Page(ABC):
    """What a report is made of, in one of two forms."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._encoding = getattr(out, "encoding", None) or "utf-8"
        self.fixable: Callable[[Finding], bool] = lambda finding: False

    def clean(self, text: str) -> str:
        """One line that the output can encode and a terminal only prints."""
        return printable(text, self._encoding)

    def place(self, hop: Hop) -> str:
        return f"{hop.filename}:{hop.row}"

    @abstractmethod
    def line(self, text: str, style: str = "") -> None: ...

    @abstractmethod
    def gap(self) -> None: ...

    @abstractmethod
    def heading(self, finding: Finding) -> None:
        """Where, which rule, how sure, and the message."""

    @abstractmethod
    def frame(self, finding: Finding) -> None:
        """The flagged source line and its neighbours."""

    @abstractmethod
    def hops(self, label: str, hops: tuple[Hop, ...], chain: bool = False) -> None:
        """Places with their notes; each hop of a chain follows from the one above it."""

    @abstractmethod
    def code(self, label: str, code: str) -> None: ...


class _Plain(_Page):
    """Lines without colour, drawing or wrapping. The first line of a finding starts like that of other linters."""

    def line(self, text: str, style: str = "") -> None:
        self._out.write(self.clean(text) + "\n")

    def gap(self) -> None:
        """Findings follow each other without a blank line."""

    def heading(self, finding: Finding) -> None:
        row, column = finding.span.row, finding.span.column
        mark = " [*]" if self.fixable(finding) else ""
        self.line(f"{finding.filename}:{row}:{column}: {finding.code} {finding.name}{mark} {finding.message}")
        self.line("    " + ", ".join(_ranks(finding)))

    def frame(self, finding: Finding) -> None:
        """The file and row say enough in a log."""

    def hops(self, label: str, hops: tuple[Hop, ...], chain: bool = False) -> None:
        if hops:
            self.line(f"    {label}:")
        for number, hop in enumerate(hops):
            self.line(f"      {'-> ' if chain and number else ''}{self.place(hop)} {hop.note}")

    def code(self, label: str, code: str) -> None:
        if code:
            first, *rest = code.splitlines()
            self.line(f"    {label}: {first}")
            for line in rest:
                self.line(f"      {line}")


class _Terminal(_Page):
    """Colour, source frames and trees, as wide as the terminal is."""

    def __init__(self, out: TextIO, sources: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__(out)
        from rich.console import Console

        self._sources = sources
        self._console = Console(
            file=out,
            force_terminal=True,
            color_system="standard",
            no_color=False,
            highlight=False,
            markup=False,
            emoji=False,
        )
        utf = self._encoding.lower().startswith("utf")
        self._bar, self._elbow, self._cut = ("│", "└─ ", "…") if utf else ("|", "`- ", "...")

    def line(self, text: str, style: str = "") -> None:
        self._print([(text, style)])

    def gap(self) -> None:
        self._console.print()

    def heading(self, finding: Finding) -> None:
        style = _STYLES[finding.severity]
        place = (f"{finding.filename}:{finding.span.row}:{finding.span.column}", "bold")
        ranks = f"  [{', '.join(_ranks(finding)[1:])}]"
        mark = "  [*]" if self.fixable(finding) else ""
        self._print([place, (f"  {finding.code} {finding.name}", style), (mark, "cyan"), (ranks, "dim")], wrap=False)
        self._print([(finding.message, "")], indent=2)

    def frame(self, finding: Finding) -> None:
        from rich.cells import cell_len
        from rich.text import Text

        lines, span = self._sources.get(finding.filename, ()), finding.span
        if not 1 <= span.row <= len(lines):
            return
        rows = range(max(1, span.row - CONTEXT), min(len(lines), span.row + CONTEXT) + 1)
        gutter = len(str(rows[-1]))
        room = max(20, self._console.width - gutter - 8)
        flagged = lines[span.row - 1].rstrip("\r\n")
        end = span.end_column - 1 if span.end_row == span.row else len(flagged)
        before = self._expand(flagged[: span.column - 1])
        under = self._expand(flagged[:end])[len(before) :]
        start = max(0, len(before) - room // 3) if len(before) + len(under) > room else 0
        for row in rows:
            text = self._colored(self._expand(lines[row - 1].rstrip("\r\n")), finding.filename)
            self._print_frame(f"{row:>{gutter}}", self._window(text, start, room), "bold" if row == span.row else "dim")
            if row == span.row:
                offset = cell_len(before[start:])
                carets = "^" * max(1, min(cell_len(under), room - offset))
                self._print_frame(" " * gutter, Text(" " * offset + carets, _STYLES[finding.severity]), "dim")

    def _window(self, text: Text, start: int, room: int) -> Text:
        """The part of a line that fits, with a mark where something is cut off."""
        from rich.text import Text

        if start:
            text = Text(self._cut if len(text) > start else "") + text[start + len(self._cut) :]
        if text.cell_len > room:
            text.truncate(room - len(self._cut), overflow="crop")
            text.append(self._cut)
        return text

    def _print_frame(self, number: str, text: Text, style: str) -> None:
        from rich.text import Text

        line = Text.assemble("    ", (f"{number} {self._bar} ", style), text)
        line.rstrip()
        self._console.print(line, soft_wrap=True)

    def _expand(self, line: str) -> str:
        return self.clean(line.expandtabs(4))

    def _colored(self, line: str, filename: str) -> Text:
        from rich.syntax import Syntax
        from rich.text import Text

        if len(line) > MAX_HIGHLIGHTED:
            return Text(line)
        lexer = "python" if filename.endswith((".py", ".pyi")) else "toml" if filename.endswith(".toml") else "cpp"
        text = Syntax("", lexer, theme="ansi_dark", background_color="default").highlight(line)
        text.rstrip()
        return text

    def hops(self, label: str, hops: tuple[Hop, ...], chain: bool = False) -> None:
        if hops:
            self.line(f"  {label}", "bold")
        for number, hop in enumerate(hops):
            guide = self._elbow if chain and number else ""
            indent = 4 + (3 * min(number - 1, MAX_STEPS) if guide else 0)
            self._print([(self.place(hop), "cyan"), (f"  {hop.note}", "")], indent, guide)

    def code(self, label: str, code: str) -> None:
        if code:
            self.line(f"  {label}", "bold")
        for line in code.splitlines():
            self._print([(f"    {line}", "green")], wrap=False)

    def _print(self, parts: Sequence[tuple[str, str]], indent: int = 0, guide: str = "", wrap: bool = True) -> None:
        from rich.text import Text

        text = Text.assemble(*((self.clean(part), style) for part, style in parts))
        if not wrap:
            self._console.print(text, soft_wrap=True)
            return
        first = " " * indent + guide
        for number, line in enumerate(text.wrap(self._console, max(20, self._console.width - len(first)))):
            line.rstrip()
            start = (first, "dim") if number == 0 else " " * len(first)
            self._console.print(Text.assemble(start, line), soft_wrap=True)


def _ranks(finding: Finding) -> list[str]:
    """Severity, confidence and, where the rule has it, heat."""
    return [finding.severity.value, finding.confidence.value, *([finding.heat.value] if finding.heat else [])]
