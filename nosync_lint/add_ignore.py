"""Adds a comment to every line that is reported: for a project that starts with many findings, or accepts a few.

Only comments are added. A file is written when it is known that it parses, that the index finds the same in it at the
same places, and that the comments cover what they are about.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from nosync_lint.finding import Finding
from nosync_lint.fix.write import NotWritten, replace_content
from nosync_lint.index import Indexed, index_one
from nosync_lint.index.cuda import cuda_comment_places
from nosync_lint.index.cuda_records import CudaIndex
from nosync_lint.index.pragmas import comment_places, read_pragmas
from nosync_lint.index.records import ModuleIndex, Unreadable
from nosync_lint.registry import find, rules
from nosync_lint.source import CUDA_SUFFIXES, PYTHON_SUFFIXES, UnreadableFile, decode, encoding_of
from nosync_lint.suppression import Suppressions

_SOURCES = PYTHON_SUFFIXES | CUDA_SUFFIXES | {""}
_ROW = {True: re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)"), False: re.compile(r"[^\n]*(?:\n|\Z)")}
"""A row with its end, in Python and in C++."""


class BadReason(Exception):
    """A reason that cannot stand in a comment; the text says why."""


class Uncovered(Exception):
    """Findings of a file that no comment can cover; the text says why."""


@dataclass(frozen=True, slots=True)
class Added:
    """How many comments were added to how many files, and the findings that are left, each with the reason."""

    comments: int
    files: int
    left: tuple[str, ...]


def check_reason(reason: str, today: date) -> None:
    """Raises `BadReason` for one that would not be read as the reason of a comment."""
    if not reason.strip():
        raise BadReason("a comment needs a reason: why is the host allowed to wait here?")
    if not reason.isprintable():
        raise BadReason("a reason is one line of printable text")
    comment = _comment("#", [rules()[0].code], reason)
    found = next(read_pragmas(comment, 1, alone=True))
    if found.form == "unknown":
        raise BadReason(f"{reason!r} cannot be the reason of a comment: {found.reason}")
    if found.columns[1] <= len(comment):
        raise BadReason(f"{reason!r} cannot be the reason of a comment: a second comment begins in it")
    if not found.reason:
        raise BadReason(f"{reason!r} gives no reason")
    if found.until and found.until < today.isoformat():
        raise BadReason(f"until={found.until} is over: such a comment covers nothing")


def _comment(mark: str, codes: Sequence[str], reason: str) -> str:
    return f"{mark} nosync-lint: ignore[{', '.join(codes)}] {reason.strip()}"


def add_ignores(findings: Sequence[Finding], sources: Mapping[str, Sequence[str]], reason: str, today: date) -> Added:
    """Write a comment with this reason beside every finding. `sources` are the lines that the findings are about."""
    by_file: dict[str, list[Finding]] = defaultdict(list)
    left: list[str] = []
    for finding in findings:
        rule = find(finding.code)
        if rule is not None and {"suppression", "bad-file"} & set(rule.sites):
            left.append(_told(finding, "it is no finding that a comment can cover"))
        elif finding.cell is not None:
            left.append(_told(finding, f"notebooks are left alone: write the comment into cell {finding.cell}"))
        elif Path(finding.filename).suffix.lower() not in _SOURCES:
            left.append(_told(finding, "it stands in no source file"))
        else:
            by_file[finding.filename].append(finding)
    comments = files = 0
    for filename, found in by_file.items():
        try:
            comments += _add_to_file(Path(os.path.realpath(filename)), found, sources.get(filename, ()), reason, today)
            files += 1
        except (Uncovered, NotWritten, UnreadableFile, OSError) as error:
            why = error.strerror or str(error) if isinstance(error, OSError) else str(error)
            left += [_told(finding, why) for finding in found]
    return Added(comments, files, tuple(left))


def _told(finding: Finding, why: str) -> str:
    return f"{finding.file}:{finding.span.row}: {finding.code} {finding.name}: {why}"


def _add_to_file(path: Path, findings: Sequence[Finding], lines: Sequence[str], reason: str, today: date) -> int:
    """Add the comments to one file, and count them. Raises `Uncovered` and leaves the file alone where that fails."""
    data = path.read_bytes()
    is_python = path.suffix.lower() not in CUDA_SUFFIXES
    text = decode(data, is_python)
    if text.replace("\r\n", "\n").replace("\r", "\n").split("\n") != list(lines):
        raise Uncovered("the file has changed since it was read")
    edits = _python_rows(text, findings) if is_python else _cuda_rows(text, findings)
    written = _written(text, edits, is_python, reason)
    try:
        new = written.encode(encoding_of(data, is_python))
    except UnicodeEncodeError as error:
        raise Uncovered(f"the reason cannot be written in the encoding {error.encoding}") from error
    above = sorted(row for row, alone in edits if alone)
    _check(index_one(data, is_python), index_one(new, is_python), findings, above, written, today)
    replace_content(path, data, new)
    return len(edits)


_Edits = dict[tuple[int, bool], list[str]]
"""The codes of the comments to be added: behind a row, or, where the flag is set, in a row of its own above it."""


def _python_rows(text: str, findings: Sequence[Finding]) -> _Edits:
    edits: _Edits = defaultdict(list)
    places = comment_places(text)
    for finding in findings:
        row = places.get(finding.span.row)
        if row is None:
            raise Uncovered("no statement stands there")
        edits[row, False].append(finding.code)
    return edits


def _cuda_rows(text: str, findings: Sequence[Finding]) -> _Edits:
    edits: _Edits = defaultdict(list)
    free = cuda_comment_places(text)
    for finding in findings:
        first, last = finding.span.row, finding.span.end_row
        row = next((row for row in range(first, last + 1) if row in free), None)
        if row is None and first > 1 and first - 1 not in free:
            raise Uncovered("a comment has no place there: it is part of a macro or a string")
        edits[(first, True) if row is None else (row, False)].append(finding.code)
    return edits


def _written(text: str, edits: _Edits, is_python: bool, reason: str) -> str:
    """The text with the comments in it. Rows keep their ends."""
    mark, newline = "#" if is_python else "//", "\r\n" if "\r\n" in text else "\n"
    written = []
    for row, line in enumerate(_ROW[is_python].findall(text), 1):
        body = line.rstrip("\r\n")
        end = line[len(body) :]
        if (row, True) in edits:
            indent = body[: len(body) - len(body.lstrip())]
            written.append(f"{indent}{_comment(mark, _once(edits[row, True]), reason)}{end or newline}")
        if (row, False) in edits:
            body = f"{body.rstrip()}  {_comment(mark, _once(edits[row, False]), reason)}"
        written.append(body + end)
    return "".join(written)


def _once(codes: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(codes))


def _check(
    old: Indexed, new: Indexed, findings: Sequence[Finding], above: Sequence[int], text: str, today: date
) -> None:
    """Raises `Uncovered` where the new text is not the old one with comments that cover the findings."""
    if isinstance(old, Unreadable) or isinstance(new, Unreadable):
        raise Uncovered("it would not be read any more")
    if not above and _without_comments(old) != _without_comments(new):
        raise Uncovered("the comment would change what the file says")
    lines = text.replace("\r\n", "\n").split("\n")
    comments = Suppressions(new.pragmas, lambda: lines, today)
    for finding in findings:
        first, last = _moved(finding.span.row, above), _moved(finding.span.end_row, above)
        if comments.cover(finding.code, finding.name, first, last) is None:
            raise Uncovered(f"the comment would not cover {finding.code} in row {finding.span.row}")


def _without_comments(facts: ModuleIndex | CudaIndex) -> ModuleIndex | CudaIndex:
    return facts._replace(pragmas=()) if isinstance(facts, ModuleIndex) else replace(facts, pragmas=())


def _moved(row: int, above: Sequence[int]) -> int:
    return row + sum(other <= row for other in above)
