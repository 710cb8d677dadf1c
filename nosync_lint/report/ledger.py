"""The ledger of a project: every finding that somebody has accepted, why, who answers for it, and how often it runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from nosync_lint import __version__
from nosync_lint.finding import Suppressed
from nosync_lint.plural import counted
from nosync_lint.report import Report
from nosync_lint.report.json import SCHEMA_VERSION, finding_as_json
from nosync_lint.report.text import printable

FORMATS = ("text", "json", "markdown")
_HEADINGS = ("place", "rule", "heat", "reason", "owner", "until", "by", "chain")


def write_ledger(report: Report, out: TextIO, form: str) -> None:
    """Write the accepted findings of a report in one of the `FORMATS`."""
    if form == "json":
        json.dump(_as_json(report), out, indent=2)
        out.write("\n")
        return
    lines = _markdown(report) if form == "markdown" else _text(report)
    encoding = getattr(out, "encoding", None) or "utf-8"
    for line in lines:
        out.write(printable(line, encoding) + "\n")


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "nosync-lint", "version": __version__},
        "waivers": [
            {
                "form": one.form,
                "row": one.row or None,
                "reason": one.reason,
                "owner": one.owner or None,
                "until": one.until or None,
                "finding": finding_as_json(one.finding),
            }
            for one in report.suppressed
        ],
        "failures": list(report.failures),
        "notes": list(report.notes),
    }


def _text(report: Report) -> Iterator[str]:
    for one in report.suppressed:
        finding = one.finding
        yield f"{_place(one)}: {finding.code} {finding.name} [{', '.join(_ranks(one))}] {_reason(one)}"
        told = [("owner", one.owner), ("until", one.until), ("by", _by(one))]
        yield "    " + ", ".join(f"{name} {value}" for name, value in told if value)
        if finding.heat is not None and finding.flow:
            yield "    " + _chain(one)
    yield from _remarks(report)
    yield _summary(report.suppressed)


def _markdown(report: Report) -> Iterator[str]:
    yield f"| {' | '.join(_HEADINGS)} |"
    yield f"|{'---|' * len(_HEADINGS)}"
    for one in report.suppressed:
        finding = one.finding
        cells = (
            f"`{_place(one)}`", f"{finding.code} {finding.name}", finding.heat.value if finding.heat else "",
            _reason(one), one.owner, one.until, _by(one), _chain(one) if finding.heat is not None else "",
        )  # fmt: skip
        yield f"| {' | '.join(_cell(cell) for cell in cells)} |"
    yield ""
    for text in (*_remarks(report), _summary(report.suppressed)):
        yield f"{_cell(text)}  "


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _remarks(report: Report) -> Iterator[str]:
    yield from (f"failed: {text}" for text in report.failures)
    yield from (f"note: {text}" for text in report.notes)


def _place(one: Suppressed) -> str:
    finding = one.finding
    return f"{finding.file}:{finding.span.row}:{finding.span.column}"


def _ranks(one: Suppressed) -> list[str]:
    finding = one.finding
    return [*([finding.heat.value] if finding.heat else []), finding.confidence.value]


def _reason(one: Suppressed) -> str:
    return one.reason or "(no reason is given)"


def _by(one: Suppressed) -> str:
    """What says so: the form of a comment and its row, the row of a block, or the baseline."""
    return f"{one.form} in row {one.row}" if one.row else one.form


def _chain(one: Suppressed) -> str:
    hops = " -> ".join(f"{hop.file}:{hop.row}" for hop in one.finding.flow)
    return f"{one.finding.root}: {hops}" if one.finding.root else hops


def _summary(waivers: Sequence[Suppressed]) -> str:
    """How many there are, of each heat, and how many nobody has explained."""
    heats = Counter(one.finding.heat.value if one.finding.heat else "without heat" for one in waivers)
    told = ", ".join(f"{count} {heat}" for heat, count in sorted(heats.items()))
    mute = sum(not one.reason for one in waivers)
    parts = [counted(len(waivers), "accepted finding") + (f": {told}" if told else "")]
    return "; ".join([*parts, *([f"{mute} without a reason"] if mute else [])])
