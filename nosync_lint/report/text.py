"""What the formats for people share: lines that a terminal only prints, plain or in colour, and how a report ends."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import TextIO

from nosync_lint.finding import Applicability, Confidence, Finding, Heat, Hop, Severity
from nosync_lint.plural import counted
from nosync_lint.report import Hidden, Report
from nosync_lint.report.formats import Style

SEVERITY_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold blue"}

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffe\uffff]")
_COMMAND = re.compile(r"(?:(?<=\s)|^):(?=:)|(?<=#)#(?=\[|vso\[)")
"""What the log readers of CI services take for a command: `::` where a line begins, `##[` and `##vso[` anywhere."""


def printable(text: str, encoding: str) -> str:
    """One line that an output of this encoding can hold, a terminal only prints, and a CI service does not obey."""
    return _COMMAND.sub(_escape, visible(text)).encode(encoding, "backslashreplace").decode(encoding)


def visible(text: str) -> str:
    """One line without control characters, and without half characters, which many readers of JSON refuse."""
    text = _UNSAFE.sub(_escape, text.replace("\t", " ").replace("\n", " "))
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class Page:
    """Plain lines of a report."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._encoding = getattr(out, "encoding", None) or "utf-8"
        self.fixable: Callable[[Finding], bool] = lambda finding: False

    def clean(self, text: str) -> str:
        """One line that the output can encode and a terminal only prints."""
        return printable(text, self._encoding)

    def line(self, text: str, style: str = "") -> None:
        """One line of prose, which may be wrapped."""
        self._out.write(self.clean(text) + "\n")

    def row(self, *parts: tuple[str, str]) -> None:
        """One line that stays one, of texts with their styles."""
        self.line("".join(text for text, _ in parts))

    def gap(self) -> None:
        """Plain findings follow each other without a blank line."""


class ColoredPage(Page):
    """The lines of a report on a terminal, as wide as it is."""

    def __init__(self, out: TextIO) -> None:
        super().__init__(out)
        from rich.console import Console

        self._console = Console(
            file=out,
            force_terminal=True,
            color_system="standard",
            no_color=False,
            highlight=False,
            markup=False,
            emoji=False,
        )

    def line(self, text: str, style: str = "") -> None:
        self._print([(text, style)])

    def row(self, *parts: tuple[str, str]) -> None:
        self._print(parts, wrap=False)

    def gap(self) -> None:
        self._console.print()

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


def page_for(out: TextIO, style: Style) -> Page:
    """The page that a style asks for."""
    return ColoredPage(out) if style.color else Page(out)


def write_counts(page: Page, findings: Sequence[Finding]) -> None:
    """A count per rule, which takes the place of the findings, the most frequent first."""
    counted = Counter((finding.code, finding.name) for finding in findings)
    width = max((len(f"{count:,}") for count in counted.values()), default=0)
    for (code, name), count in sorted(counted.items(), key=lambda item: (-item[1], item[0])):
        page.line(f"{count:>{width},}  {code}  {name}")
    page.gap()


def write_end(page: Page, report: Report) -> None:
    """What failed, what the reader should know, and the summary."""
    for text in report.failures:
        page.line(f"failed: {text}", "bold red")
    for text in report.notes:
        page.line(f"note: {text}", "yellow")
    first, *rest = summary(report)
    page.line(first, "bold")
    for text in rest:
        page.line(text, "dim")


def summary(report: Report) -> Iterator[str]:
    """How much is shown and hidden, and what was read."""
    told = ", ".join(_hidden(report.hidden))
    fixed = f", {len(report.fixed):,} fixed" if report.fixed else ""
    yield f"{len(report.findings):,} shown{fixed}; " + (f"hidden: {told}" if told else "nothing hidden")
    yield from _fixable(report)
    parts = [f"{counted(report.files_reported, 'file')} reported, {report.files_linked:,} linked"]
    calls = report.calls_resolved + report.calls_unresolved
    if calls:
        share = 100 * report.calls_unresolved / calls
        parts.append(f"{report.calls_unresolved:,} of {calls:,} calls unresolved ({share:.1f} %)")
    if report.target_torch:
        parts.append(f"for torch {release_range(report.target_torch)}")
    yield "; ".join(parts)


def _hidden(hidden: Hidden) -> Iterator[str]:
    """How much is hidden and why, and which switch shows it."""
    counts = {one.name: count for one in fields(hidden) if (count := getattr(hidden, one.name))}
    heats = [heat.value for heat in Heat if heat.value in counts]
    doubts = [confidence.value for confidence in Confidence if confidence.value in counts]
    switches: dict[str, str] = {}
    if heats:
        switches[heats[-1]] = f" (--heat {'warm' if heats == [Heat.WARM] else 'any'})"
    if doubts:
        switches["likely" if "likely" in doubts else "possible"] = f" (--min-confidence {doubts[-1]})"
    yield from (f"{count:,} {name}{switches.get(name, '')}" for name, count in counts.items())


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


def release_range(releases: tuple[str, ...]) -> str:
    """ "2.9 to 2.12" for neighbours, else a list."""
    parts = [release.split(".") for release in releases]
    minors = [int(part[1]) for part in parts if len(part) == 2 and part[1].isdigit() and part[0] == parts[0][0]]
    if len(releases) > 2 and minors == list(range(minors[0] if minors else 0, (minors or [0])[0] + len(releases))):
        return f"{releases[0]} to {releases[-1]}"
    return ", ".join(releases)


def ranks(finding: Finding) -> list[str]:
    """Severity, confidence and, where the rule has it, heat."""
    return [finding.severity.value, finding.confidence.value, *([finding.heat.value] if finding.heat else [])]


def story(finding: Finding) -> Iterator[str]:
    """What a finding says besides its message, in plain lines: how sure it is, its chain, its evidence and its cure."""
    yield ", ".join(ranks(finding))
    yield from hop_lines(flow_label(finding), finding.flow, chain=True)
    yield from hop_lines("believed because", finding.evidence)
    yield from hop_lines("related", finding.related)
    yield from code_lines("instead", finding.cure)


def flow_label(finding: Finding) -> str:
    """What the flow of a finding is."""
    if finding.heat is None:
        return "shown by"
    return f"chain from `{finding.root}`" if finding.root else "chain"


def hop_lines(label: str, hops: Sequence[Hop], chain: bool = False) -> Iterator[str]:
    """Places with their notes below a label; each hop of a chain follows from the one above it."""
    if hops:
        yield f"{label}:"
    for number, hop in enumerate(hops):
        yield f"  {'-> ' if chain and number else ''}{hop.file}:{hop.row} {hop.note}"


def code_lines(label: str, code: str) -> Iterator[str]:
    """A line of code beside a label, and more of them below it."""
    for number, line in enumerate(code.splitlines()):
        yield f"  {line}" if number else f"{label}: {line}"
