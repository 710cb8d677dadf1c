"""An explanation as text for people, or as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TextIO

from nosync_lint import __version__
from nosync_lint.answers import Explanation, HeatAnswer, LineFacts, Operand, SiteAnswer, Step, Wait
from nosync_lint.finding import Confidence, Finding, Hop
from nosync_lint.report.json import SCHEMA_VERSION, dump, finding_as_json
from nosync_lint.report.text import printable
from nosync_lint.source import Span

Line = tuple[int, str, str]
"""An indentation, a text and a style."""

_UNKNOWN = "unknown"
_OPEN = (_UNKNOWN, "unreached")
"""What the last step of a trail says where something beyond it is missing."""


def write_explanation(explanation: Explanation, out: TextIO, *, color: bool) -> None:
    """Write an explanation: the answer first, then each site with its operands, then heat and what is not known."""
    encoding = getattr(out, "encoding", None) or "utf-8"
    lines = [(indent, printable(text, encoding), style) for indent, text, style in _lines(explanation)]
    if color:
        _write_colored(lines, out)
        return
    for indent, text, _ in lines:
        out.write((" " * indent + text).rstrip() + "\n")


def write_explanation_json(explanation: Explanation, out: TextIO) -> None:
    """Write an explanation as one JSON object, pure ASCII."""
    tool = {"name": "nosync-lint", "version": __version__}
    dump({"schema_version": SCHEMA_VERSION, "tool": tool, **_as_json(explanation)}, out)


def _as_json(value: Any) -> Any:
    """A record as JSON's own types; a finding as in reports."""
    if isinstance(value, Finding):
        return finding_as_json(value)
    if isinstance(value, Span):
        return value._asdict()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_as_json(one) for one in value]
    if is_dataclass(value):
        return {one.name: _as_json(getattr(value, one.name)) for one in fields(value)}
    return value


def _write_colored(lines: Sequence[Line], out: TextIO) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=out, force_terminal=True, color_system="standard", no_color=False, highlight=False)
    for indent, text, style in lines:
        for number, part in enumerate(Text(text, style).wrap(console, max(20, console.width - indent - 2))):
            part.rstrip()
            console.print(Text(" " * (indent + (2 if number else 0))) + part, soft_wrap=True)


def _lines(told: Explanation) -> Iterator[Line]:
    facts = told.facts
    inside = f" in `{facts.function}`" if facts is not None else ""
    yield 0, f"{told.filename}:{told.row}{inside}", "bold"
    if told.text:
        yield 4, told.text, ""
    yield 0, told.answer, "bold green" if told.answer.startswith("not reported") else "bold red"
    for one in told.outcomes:
        yield 4, f"{one.finding.code}: {one.finding.message}", ""
        if one.finding.heat is None:
            yield from _hops("shown by", one.finding.flow)
        yield from _hops("related", one.finding.related)
        if one.finding.cure and not one.hidden:
            yield 6, f"instead: {one.finding.cure.splitlines()[0]}", "green"
            for line in one.finding.cure.splitlines()[1:]:
                yield 8, line, "green"
    if facts is not None:
        yield from _facts(facts, told.row, any(not one.hidden for one in told.outcomes))
    for hop in told.suppressions:
        yield 0, f"suppression: {hop.file}:{hop.row} {hop.note}", "yellow"
    for note in told.notes:
        yield 0, f"failed: {note}", "bold red"


def _facts(facts: LineFacts, row: int, reported: bool) -> Iterator[Line]:
    plain = [one for one in facts.sites if not (one.waits or one.undecided or one.operands or one.runs)]
    waits = any(one.waits for one in facts.sites)
    for site in sorted(facts.sites, key=_interest):
        if site not in plain:
            yield 0, "", ""
            yield from _site(site, row, brief=waits and not (site.waits or site.undecided))
    if plain:
        yield 0, "", ""
    for site in plain:
        yield 0, f"{site.form} `{site.text}`: {site.silent}", ""
    yield 0, "", ""
    if facts.nearest:
        yield (
            0,
            "nearest places that could wait: " + ", ".join(f"row {hop.row} {hop.note}" for hop in facts.nearest),
            "",
        )
    yield from _heat(facts.heat)
    yield from _unresolved(facts, row, reported)


def _interest(site: SiteAnswer) -> int:
    """Sites in the order in which they answer: what waits, what is undecided, what does not wait, code that runs."""
    return 0 if site.waits else 1 if site.undecided else 2 if site.operands else 3


def _site(site: SiteAnswer, row: int, *, brief: bool) -> Iterator[Line]:
    """One site; `brief` leaves out how its operands are known, where another site is the answer."""
    active = [wait for wait in site.waits if wait.releases]
    begins = f"row {site.span.row}, " if site.span.row != row else ""
    where = f"{site.form} `{site.text}` ({begins}column {site.span.column})"
    if active:
        yield 0, f"{where}: {_holds(active[0])}", "bold"
        for wait in active[1:]:
            yield 4, f"and {_holds(wait)}", ""
    elif site.undecided:
        yield 0, f"{where}: undecided, {site.silent}", "bold yellow"
    else:
        yield 0, f"{where}: {site.silent}", "bold"
    for operand in site.operands:
        yield from _operand(operand, brief)
    for hop in site.runs:
        yield 4, f"runs {hop.note} {hop.file}:{hop.row}", ""
    for hop in site.below:
        yield 6, f"waits there, and is reported there: {hop.file}:{hop.row} {hop.note}", ""
    if site.runs and not site.below:
        yield 6, "nothing near there is known to wait", ""
    for wait in site.waits:
        yield from _row(wait)


def _holds(wait: Wait) -> str:
    """When a wait happens, how sure that is, and why."""
    verb = "may wait" if wait.confidence is Confidence.POSSIBLE else "waits"
    return f"{verb} {wait.releases} ({wait.confidence.value})" + (f": {wait.because}" if wait.because else "")


def _row(wait: Wait) -> Iterator[Line]:
    yield 4, f"model row {wait.row}: {wait.construct}", "dim"
    if wait.condition:
        yield 6, f"when: {wait.condition}", "dim"
    if wait.source:
        yield 6, f"source: {wait.source}", "dim"


def _operand(operand: Operand, brief: bool) -> Iterator[Line]:
    yield 4, f"{operand.role} `{operand.text}` is {operand.value}", "" if operand.known else "yellow"
    if not brief:
        yield from _trail(operand.steps, operand.end, 6, operand.value)


def _trail(steps: Sequence[Step], end: str, indent: int, said: str) -> Iterator[Line]:
    """The steps of a trail, each under the one that it explains; a single line of them is not indented further."""
    for step in steps:
        alone = len(steps) == 1
        value = f": {step.value}" if step.value and not said.startswith(step.value) else ""
        others = f" ({step.more})" if step.more else ""
        yield indent, f"{'<-' if alone else '*'} {step.filename}:{step.row} {step.note}{value}{others}", ""
        yield from _trail(step.steps, step.end, indent if alone else indent + 2, step.value or said)
    if end:
        yield indent, f"{'the trail ends: ' if said.startswith(_OPEN) else '<- '}{end}", "yellow"


def _hops(label: str, hops: Sequence[Hop]) -> Iterator[Line]:
    if hops:
        yield 6, f"{label}:", ""
    for number, hop in enumerate(hops):
        yield 8, f"{'-> ' if number else ''}{hop.file}:{hop.row} {hop.note}", ""


def _heat(heat: HeatAnswer) -> Iterator[Line]:
    yield 0, f"heat: {heat.heat.value}" + (f": {heat.why}" if heat.why else ""), "bold"
    for number, hop in enumerate(heat.chain):
        yield 4, f"{'-> ' if number else ''}{hop.file}:{hop.row} {hop.note}", ""
    yield from _trail(heat.callers, "", 4, "")


def _unresolved(facts: LineFacts, row: int, reported: bool) -> Iterator[Line]:
    """The calls that are not known, with their trails where they may be what is missed."""
    way = f"; {facts.on_the_way} on the way to it" if facts.on_the_way else ""
    yield 0, f"calls that could not be resolved: {facts.open_calls or 'none'} in `{facts.function}`{way}", "bold"
    told = any(not part.known for site in facts.sites for part in site.operands)
    for step in facts.unresolved if facts.sites else ():  # elsewhere the count says enough
        more = f" ({step.more})" if step.more else ""
        yield 4, f"{step.filename}:{step.row} {step.note}{more}", ""
        if not reported and not (told and step.row == row):
            yield from _trail(step.steps, step.end, 6, _UNKNOWN)
