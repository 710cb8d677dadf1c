"""What is known of a place, for the window that an editor opens over it: the rule, the operands, and the heat."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lsprotocol import types

from nosync_lint.answers import Explanation, HeatAnswer, Operand, SiteAnswer, Step
from nosync_lint.finding import Finding
from nosync_lint.registry import documentation, find
from nosync_lint.server.positions import Positions, overlap

MAX_STEPS = 6
"""Steps of a trail that are shown below an operand."""
Told = list[str]
"""Paragraphs of Markdown."""


def hover(
    findings: Sequence[Finding], explanation: Explanation | None, positions: Positions, place: types.Position
) -> types.Hover | None:
    """What to show over a place; None where nothing there could wait."""
    cursor = types.Range(place, place)
    here = [one for one in findings if overlap(positions.range(one.span), cursor)]
    facts = explanation.facts if explanation is not None else None
    sites = [one for one in facts.sites if overlap(positions.range(one.span), cursor)] if facts is not None else []
    told: Told = []
    for finding in here:
        told += _finding(finding)
    for site in sites:
        told += _site(site)
    if not told:
        return None
    if facts is not None:
        told.append(_heat(facts.heat))
    span = here[0].span if here else sites[0].span
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, "\n\n".join(told)), positions.range(span))


def _finding(finding: Finding) -> Iterator[str]:
    yield f"**{finding.code} {finding.name}** ({finding.severity.value}, {finding.confidence.value})"
    yield _plain(finding.message)
    if finding.cure:
        yield f"Instead:\n```\n{finding.cure}\n```"
    rule = find(finding.code)
    if rule is not None:
        yield from _page(documentation(rule))


def _page(text: str) -> Iterator[str]:
    """The docstring of a rule up to what it misses: its headings stand alone on a line, with indented text below."""
    for heading, body in re.findall(r"^(\S.*)\n((?: {4}.*(?:\n|$)|\n(?= {4}))+)", text, re.M):
        if heading.startswith(("Missed", "False")):
            return
        paragraph = " ".join(line.strip() for line in body.strip().splitlines())
        yield f"*{heading}*: {paragraph}"


def _site(site: SiteAnswer) -> Iterator[str]:
    waits = [wait for wait in site.waits if wait.releases]
    if waits:
        because = f": {waits[0].because}" if waits[0].because else ""
        yield f"{site.form} {_code(site.text)} waits {waits[0].releases}{_plain(because)}"
    elif site.silent:
        yield f"{site.form} {_code(site.text)}: {_plain(site.silent)}"
    rows = [line for operand in site.operands for line in _operand(operand)]
    if rows:
        yield "\n".join(rows)


def _operand(operand: Operand) -> Iterator[str]:
    yield f"- {operand.role} {_code(operand.text)} is {_plain(operand.value)}"
    step: Step | None = operand.steps[0] if operand.steps else None
    for _ in range(MAX_STEPS):
        if step is None:
            break
        value = f": {_plain(step.value)}" if step.value else ""
        yield f"  - row {step.row} of {_plain(step.filename)}: {_plain(step.note)}{value}"
        step = step.steps[0] if step.steps else None


def _heat(heat: HeatAnswer) -> str:
    why = f": {_plain(heat.why)}" if heat.why else ""
    chain = "".join(f"\n- {_plain(hop.note)} (row {hop.row} of {_plain(hop.filename)})" for hop in heat.chain)
    return f"The line is **{heat.heat.value}**{why}" + (f"\n{chain}" if chain else "")


def _code(text: str) -> str:
    """Source text between backticks: more of them than it holds itself."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    ticks = "`" * (longest + 1)
    return f"{ticks} {text} {ticks}" if longest else f"`{text}`"


def _plain(text: str) -> str:
    """A sentence in which nothing but the code between backticks is markup."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a backtick that closes nothing
        return re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", text)
    plain = [re.sub(r"([\\*_{}\[\]<>#|~])", r"\\\1", part) for part in parts[::2]]
    marked = [f"`{part}`" for part in parts[1::2]]
    return "".join(text for pair in zip(plain, [*marked, ""], strict=True) for text in pair)
