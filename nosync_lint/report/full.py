"""Text for people: with source frames and colour on a terminal, plain lines in a pipe."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from nosync_lint.finding import Finding, Hop
from nosync_lint.report import Report
from nosync_lint.report.formats import Style
from nosync_lint.report.text import (
    SEVERITY_STYLES,
    ColoredPage,
    Page,
    code_lines,
    flow_label,
    hop_lines,
    ranks,
    write_counts,
    write_end,
)

if TYPE_CHECKING:
    from rich.text import Text

CONTEXT = 2
"""Source lines shown above and below the flagged one."""
MAX_STEPS = 8
"""Hops of a chain are indented one step further each, up to this many."""
MAX_HIGHLIGHTED = 400
"""Longer source lines are shown without syntax colours: they are generated, and slow to colour."""

_LEXERS = {(".py", ".pyi", ".ipynb"): "python", (".toml",): "toml"}


def write(report: Report, out: TextIO, style: Style) -> None:
    """Write a report. With `style.statistics` a count per rule takes the place of the findings.

    What comes from the linted files is escaped: it cannot move the cursor, set colours or reorder the line. The time
    taken is told on a terminal only, so that two plain reports of the same input are equal.
    """
    page: _Findings = _Terminal(out, report.sources) if style.color else _Plain(out)
    page.fixable = report.fixable
    if style.statistics:
        write_counts(page, report.findings)
    else:
        for block in _blocks(report.findings):
            _write_block(page, block)
            page.gap()
    write_end(page, report)
    if style.color and report.seconds:
        page.line(f"{report.seconds:.1f} s", "dim")


def _blocks(findings: Sequence[Finding]) -> Iterator[tuple[Finding, ...]]:
    """Findings in report order; those of one group together, where the first of them stands."""
    groups: dict[object, list[Finding]] = {}
    for number, finding in enumerate(findings):
        groups.setdefault(finding.group or number, []).append(finding)
    return (tuple(group) for group in groups.values())


def _write_block(page: _Findings, block: tuple[Finding, ...]) -> None:
    """One finding, or the findings of one group: by rule, and then the place that all of them lead to."""
    for number, code in enumerate(dict.fromkeys(finding.code for finding in block)):
        if number:
            page.gap()
        _write_alike(page, tuple(finding for finding in block if finding.code == code))
    if len({finding.code for finding in block}) > 1:
        page.line(f"the {len(block)} findings above have one cause{_cause(block)}", "bold")


def _write_alike(page: _Findings, findings: tuple[Finding, ...]) -> None:
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
        page.hops(flow_label(finding), finding.flow[: len(finding.flow) - len(tail)], chain=True)
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
    named = [{(hop.file, hop.row) for hop in (*finding.flow, *finding.related)} for finding in block]
    own = [{(finding.file, finding.span.row)} for finding in block]
    common = set.intersection(*(a | b for a, b in zip(named, own, strict=True)))
    places = [(hop.file, hop.row) for finding in block for hop in reversed(finding.flow)]
    return next((f": {filename}:{row}" for filename, row in places if (filename, row) in common), "")


def _shared_tail(findings: tuple[Finding, ...]) -> tuple[Hop, ...]:
    """The places at which the flows of all findings end alike."""
    length = 0
    for steps in zip(*(reversed(finding.flow) for finding in findings), strict=False):
        if len({(hop.file, hop.row) for hop in steps}) > 1:
            break
        length += 1
    flow = findings[0].flow
    return flow[len(flow) - length :]


class _Findings(Page, ABC):
    """What a finding is made of, in one of two forms."""

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
    def code(self, label: str, code: str) -> None:
        """Lines of code below a label."""


class _Plain(_Findings):
    """Lines without colour, drawing or wrapping. The first line of a finding starts like that of other linters."""

    def heading(self, finding: Finding) -> None:
        row, column = finding.span.row, finding.span.column
        mark = " [*]" if self.fixable(finding) else ""
        self.line(f"{finding.file}:{row}:{column}: {finding.code} {finding.name}{mark} {finding.message}")
        self.line("    " + ", ".join(ranks(finding)))

    def frame(self, finding: Finding) -> None:
        """The file and row say enough in a log."""

    def hops(self, label: str, hops: tuple[Hop, ...], chain: bool = False) -> None:
        for line in hop_lines(label, hops, chain):
            self.line(f"    {line}")

    def code(self, label: str, code: str) -> None:
        for line in code_lines(label, code):
            self.line(f"    {line}")


class _Terminal(ColoredPage, _Findings):
    """Colour, source frames and trees, as wide as the terminal is."""

    def __init__(self, out: TextIO, sources: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__(out)
        self._sources = sources
        utf = self._encoding.lower().startswith("utf")
        self._bar, self._elbow, self._cut = ("│", "└─ ", "…") if utf else ("|", "`- ", "...")

    def heading(self, finding: Finding) -> None:
        style = SEVERITY_STYLES[finding.severity]
        place = (f"{finding.file}:{finding.span.row}:{finding.span.column}", "bold")
        told = f"  [{', '.join(ranks(finding)[1:])}]"
        mark = "  [*]" if self.fixable(finding) else ""
        self.row(place, (f"  {finding.code} {finding.name}", style), (mark, "cyan"), (told, "dim"))
        self._print([(finding.message, "")], indent=2)

    def frame(self, finding: Finding) -> None:
        from rich.cells import cell_len
        from rich.text import Text

        lines, span = self._sources.get(finding.file, ()), finding.span
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
                self._print_frame(" " * gutter, Text(" " * offset + carets, SEVERITY_STYLES[finding.severity]), "dim")

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
        lexer = (
            "python"
            if filename.endswith((".py", ".pyi", ".ipynb"))
            else "toml"
            if filename.endswith(".toml")
            else "cpp"
        )
        text = Syntax("", lexer, theme="ansi_dark", background_color="default").highlight(line)
        text.rstrip()
        return text

    def hops(self, label: str, hops: tuple[Hop, ...], chain: bool = False) -> None:
        if hops:
            self.line(f"  {label}", "bold")
        for number, hop in enumerate(hops):
            guide = self._elbow if chain and number else ""
            indent = 4 + (3 * min(number - 1, MAX_STEPS) if guide else 0)
            self._print([(f"{hop.file}:{hop.row}", "cyan"), (f"  {hop.note}", "")], indent, guide)

    def code(self, label: str, code: str) -> None:
        if code:
            self.line(f"  {label}", "bold")
        for line in code.splitlines():
            self.row((f"    {line}", "green"))
