"""Markdown, as for the summary page of a job or a comment on a pull request."""

from __future__ import annotations

import re
from collections import Counter
from typing import TextIO

from nosync_lint.finding import Finding
from nosync_lint.report import Report
from nosync_lint.report.formats import Style
from nosync_lint.report.text import flow_label, printable, ranks, summary

_SPECIAL = re.compile(r"[\\`*_\[\]<>|~&@#$]|:(?=//)|(?<=www)\.")
"""What would begin markup, a link, a mention or a formula."""
_NOTICE = "\n{left:,} more findings have no room here.\n"


def write(report: Report, out: TextIO, style: Style) -> None:
    """Write a whole report."""
    encoding = getattr(out, "encoding", None) or "utf-8"
    for text in (_head(report, encoding), *(_finding(finding, encoding) for finding in report.findings)):
        out.write(text)


def within(report: Report, limit: int) -> str:
    """As much of a report as so many bytes of UTF-8 hold, with a line that says how much is left out."""
    text = _head(report, "utf-8")
    room = limit - len(text.encode()) - len(_NOTICE.format(left=len(report.findings)))
    if room < 0:
        return ""
    parts = [text]
    for number, finding in enumerate(report.findings):
        text = _finding(finding, "utf-8")
        room -= len(text.encode())
        if room < 0:
            parts.append(_NOTICE.format(left=len(report.findings) - number))
            break
        parts.append(text)
    return "".join(parts)


def _head(report: Report, encoding: str) -> str:
    """The title, what failed, the notes, the summary, and how often each rule has findings."""
    count = len(report.findings)
    lines = [f"## nosync-lint: {count:,} finding{'' if count == 1 else 's'}", ""]
    lines += [f"**failed:** {_inline(text, encoding)}\n" for text in report.failures]
    lines += [f"note: {_inline(text, encoding)}\n" for text in report.notes]
    lines += [f"{text}\n" for text in summary(report)]
    counted = Counter((finding.code, finding.name) for finding in report.findings)
    if counted:
        lines += ["| findings | rule |", "| ---: | --- |"]
    for (code, name), number in sorted(counted.items(), key=lambda item: (-item[1], item[0])):
        lines.append(f"| {number:,} | {_inline(code, encoding)} {_inline(name, encoding)} |")
    return "\n".join(lines) + "\n"


def _finding(finding: Finding, encoding: str) -> str:
    """One item of a list, with its story below it."""
    place = _code(f"{finding.file}:{finding.span.row}:{finding.span.column}", encoding)
    rule = f"**{_inline(finding.code, encoding)} {_inline(finding.name, encoding)}**"
    lines = [f"- {place} {rule} ({', '.join(ranks(finding))}): {_inline(finding.message, encoding)}"]
    for label, hops in (
        (flow_label(finding), finding.flow), ("believed because", finding.evidence), ("related", finding.related)
    ):  # fmt: skip
        if hops:
            lines.append(f"  - {_inline(label, encoding)}:")
        for hop in hops:
            lines.append(f"    - {_code(f'{hop.file}:{hop.row}', encoding)} {_inline(hop.note, encoding)}")
    if finding.cure:
        lines += ["  - instead:", *(f"    {line}" for line in _block(finding.cure, encoding))]
    return "\n" + "\n".join(lines) + "\n"


def _inline(text: str, encoding: str) -> str:
    """Text whose parts between backticks are code, and in which nothing else is markup."""
    parts = printable(text, encoding).split("`")
    if len(parts) % 2 == 0:
        return _escaped("`".join(parts))
    return "".join(
        _code(part, encoding) if number % 2 and part.strip() else _escaped(part) for number, part in enumerate(parts)
    )


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text)


def _code(text: str, encoding: str) -> str:
    """A span of code, between more backticks than it has in a row."""
    text = printable(text, encoding)
    fence = "`" * (_longest_run(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _block(code: str, encoding: str) -> list[str]:
    """A block of code, between more backticks than it has in a row."""
    fence = "`" * max(3, _longest_run(code) + 1)
    return [fence, *(printable(line, encoding) for line in code.splitlines()), fence]


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
