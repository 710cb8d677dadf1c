"""Findings that are accepted for now: a file with one entry a line, by what a finding is known by and not by its row.

Each line is a JSON object, and they are sorted: a diff shows what came and went, and branches merge line by line.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from nosync_lint.config import ConfigError
from nosync_lint.finding import Finding, Heat
from nosync_lint.fingerprint import Identity

VERSION = 1
_HEADER = "nosync-lint-baseline"
_MARKERS = ("<<<<<<<", "|||||||", "=======", ">>>>>>>")
"""What git begins the lines with that it puts between two sides of a conflict."""
_ANEW = "write it anew with --write-baseline"
_TEXTS = ("file", "scope", "code", "snippet", "reason", "owner")
_HEATS = (Heat.HOT, Heat.WARM, None, Heat.COLD, Heat.UNREACHED)


class BaselineError(ConfigError):
    """A baseline that cannot be used; the message names the file, the line and the cure."""


@dataclass(frozen=True, slots=True)
class Entry:
    """`count` findings of one identity, whose file is relative to the folder of the baseline, and where it stands."""

    identity: Identity
    count: int = 1
    reason: str = ""
    owner: str = ""
    row: int = 0

    @property
    def name(self) -> str:
        """What it accepts, for a reader."""
        file, scope, code, snippet = self.identity
        where = f"`{scope}` of {file}" if scope else file
        return f"{code} `{snippet}` in {where}"

    def as_line(self) -> str:
        """The line of the file."""
        record: dict[str, Any] = {
            key: value for key, value in self.identity._asdict().items() if value or key != "scope"
        }
        record |= {"count": self.count} if self.count > 1 else {}
        record |= {key: value for key, value in (("reason", self.reason), ("owner", self.owner)) if value}
        return json.dumps(record, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Baseline:
    """The entries of one file, each identity once."""

    path: Path
    entries: tuple[Entry, ...] = ()
    unread: int = 0
    """Lines of the file that hold no entry, and will not be written again."""

    def text(self) -> str:
        """The content of the file."""
        lines = [json.dumps({_HEADER: VERSION})]
        lines += [entry.as_line() for entry in sorted(self.entries, key=lambda entry: entry.identity)]
        return "\n".join(lines) + "\n"

    def naming(self) -> Callable[[str], str]:
        """Gives the name that a file has in this baseline, wherever the run was started."""
        folder = os.path.realpath(self.path.parent)
        return cache(lambda name: os.path.relpath(os.path.realpath(name), folder).replace(os.sep, "/"))


def load_baseline(path: Path) -> Baseline:
    """The baseline in a file. Raises `BaselineError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise BaselineError(f"{path}: there is no such baseline; --write-baseline makes it") from error
    except UnicodeDecodeError as error:
        raise BaselineError(f"{path}: cannot be read as a baseline: {error}; {_ANEW}") from error
    except OSError as error:
        raise BaselineError(f"{path}: cannot be read as a baseline: {error}") from error
    first, *rest = lines = text.split("\n")
    _check_conflicts(path, lines)
    _check_header(path, first)
    entries: dict[Identity, Entry] = {}
    for row, line in enumerate(rest, 2):
        if line.strip():
            entry = _entry(path, row, line)
            known = entries.get(entry.identity)
            if known is not None:
                raise BaselineError(
                    f"{path}:{row}: is the same entry as line {known.row}; remove one and add up their counts"
                )
            entries[entry.identity] = entry
    return Baseline(path, tuple(entries.values()))


def salvage_baseline(path: Path) -> Baseline:
    """What can be read of a baseline that is to be written anew: each entry once, with its reason. Raises
    `BaselineError` for a file that is none, or is one of another release: that is not overwritten."""
    try:
        lines = path.read_bytes().decode(errors="replace").split("\n")
    except OSError as error:
        raise BaselineError(f"{path}: cannot be read as a baseline: {error}") from error
    header = next((line for line in lines if _version(line) is not None), lines[0])
    _check_header(path, header)
    entries: dict[Identity, Entry] = {}
    unread = 0
    for line in lines:
        if not line.strip() or line.startswith(_MARKERS) or _version(line) is not None:
            continue
        try:
            entry = _entry(path, 0, line)
        except BaselineError:
            unread += 1
            continue
        known = entries.get(entry.identity, entry)
        entries[entry.identity] = replace(
            known,
            count=max(known.count, entry.count),
            reason=known.reason or entry.reason,
            owner=known.owner or entry.owner,
        )
    return Baseline(path, tuple(entries.values()), unread)


def _check_conflicts(path: Path, lines: Sequence[str]) -> None:
    row = next((row for row, line in enumerate(lines, 1) if line.startswith(_MARKERS)), None)
    if row is not None and any(_version(line) is not None for line in lines):
        raise BaselineError(
            f"{path}:{row}: holds the conflict markers of a merge: keep the lines of both sides, each once, or {_ANEW}"
        )


def _version(line: str) -> object:
    """The version that a line states if it is the first one of a baseline; else None."""
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return header.get(_HEADER) if isinstance(header, dict) else None


def _check_header(path: Path, line: str) -> None:
    version = _version(line)
    if version is None:
        raise BaselineError(f'{path}:1: is no baseline: the first line must be {{"{_HEADER}": {VERSION}}}')
    if version != VERSION:
        raise BaselineError(
            f"{path}:1: is of version {version!r}, and this release reads version {VERSION}; use the release that "
            f"wrote it, or remove it and {_ANEW}"
        )


def _entry(path: Path, row: int, line: str) -> Entry:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise BaselineError(f"{path}:{row}: is not JSON ({error}); correct it, or {_ANEW}") from error
    if not isinstance(record, dict):
        raise BaselineError(f"{path}:{row}: must be a JSON object, not {line.strip()[:40]!r}")
    for key, value in record.items():
        if key != "count" and key not in _TEXTS:
            raise BaselineError(f"{path}:{row}: unknown key `{key}`; known are {', '.join((*_TEXTS, 'count'))}")
        if key != "count" and not isinstance(value, str):
            raise BaselineError(f"{path}:{row}: `{key}` must be a text, not {value!r}")
    count = record.get("count", 1)
    if type(count) is not int or count < 1:
        raise BaselineError(f"{path}:{row}: `count` must be a number from 1, not {count!r}")
    missing = [key for key in ("file", "code", "snippet") if not record.get(key)]
    if missing:
        raise BaselineError(f"{path}:{row}: the entry lacks {', '.join(missing)}")
    identity = Identity(*(record.get(key, "") for key in Identity._fields))
    return Entry(identity, count, record.get("reason", ""), record.get("owner", ""), row)


@dataclass(frozen=True, slots=True)
class Scene:
    """What a run looked at, under the names that files have in the baseline: the files and rules that were judged."""

    name: Callable[[str], str]
    files: frozenset[str]
    codes: frozenset[str]
    known: frozenset[str]
    """Codes of all rules."""
    is_there: Callable[[str], bool]
    has_scope: Callable[[str, str], bool]

    def sees(self, entry: Entry) -> bool:
        """Whether this run would have found what an entry accepts."""
        file, _, code, _ = entry.identity
        return (file in self.files or not self.is_there(file)) and (code in self.codes or code not in self.known)

    def identity(self, finding: Finding) -> Identity:
        """What a finding is known by in the baseline."""
        return Identity(self.name(finding.filename), finding.scope, finding.code, finding.snippet)


@dataclass(slots=True)
class Comparison:
    """What a baseline says of the findings of a run."""

    new: list[Finding] = field(default_factory=list)
    accepted: list[tuple[Finding, Entry]] = field(default_factory=list)
    stale: list[tuple[Entry, int]] = field(default_factory=list)
    """Entries that accept more than there is, with how many there are."""
    moved: dict[Identity, Identity] = field(default_factory=dict)
    """Entries whose place is gone, with the place of what they accept."""


def compare(
    baseline: Baseline, findings: Sequence[Finding], hidden: Mapping[Identity, int], scene: Scene
) -> Comparison:
    """Which findings are accepted and which are new, and which entries are stale.

    `hidden` counts the findings that exist and are not shown. Of several that are alike the hottest and surest are
    accepted first. An entry whose file or function is gone follows to the only finding that is otherwise the same.
    """
    outcome = Comparison()
    waiting: dict[Identity, list[Finding]] = defaultdict(list)
    for finding in sorted(findings, key=_weight):
        waiting[scene.identity(finding)].append(finding)
    left: list[Entry] = []
    for entry in baseline.entries:
        taken = _accept(entry, waiting.get(entry.identity, []), outcome)
        there = taken + hidden.get(entry.identity, 0)
        if there < entry.count and scene.sees(entry):
            if there:
                outcome.stale.append((entry, there))
            else:
                left.append(entry)
    for entry in left:
        identity = _moved_to(entry, left, [one for one, found in waiting.items() if found], scene)
        if identity is None:
            outcome.stale.append((entry, 0))
            continue
        taken = _accept(entry, waiting[identity], outcome)
        outcome.moved[entry.identity] = identity
        if taken < entry.count:
            outcome.stale.append((entry, taken))
    outcome.new = sorted((one for found in waiting.values() for one in found), key=lambda one: one.order)
    outcome.accepted.sort(key=lambda pair: pair[0].order)
    outcome.stale.sort(key=lambda pair: pair[0].row)
    return outcome


def _weight(finding: Finding) -> tuple[object, ...]:
    return (_HEATS.index(finding.heat), -finding.confidence.rank, finding.order)


def _accept(entry: Entry, findings: list[Finding], outcome: Comparison) -> int:
    """Take the first findings for an entry, as many as it accepts."""
    taken = findings[: entry.count]
    del findings[: entry.count]
    outcome.accepted += [(finding, entry) for finding in taken]
    return len(taken)


def _moved_to(entry: Entry, left: Sequence[Entry], new: Sequence[Identity], scene: Scene) -> Identity | None:
    """Where the finding of an entry went whose file, or function, is gone: to the only place that may be meant."""
    file, scope, _, _ = entry.identity
    if not scene.is_there(file):
        changed = "file"
    elif scope and not scene.has_scope(file, scope):
        changed = "scope"
    else:
        return None
    blank = entry.identity._replace(**{changed: ""})
    rivals = [one for one in left if one.identity._replace(**{changed: ""}) == blank]
    places = [one for one in new if one._replace(**{changed: ""}) == blank]
    return places[0] if len(rivals) == len(places) == 1 else None


def updated(baseline: Baseline, comparison: Comparison, scene: Scene, add: bool) -> Baseline:
    """The baseline without what is stale and with moves written down; with `add`, new findings are accepted, too.
    Entries that stay keep their reasons."""
    found = {entry.identity: there for entry, there in comparison.stale}
    kept = [
        replace(entry, identity=comparison.moved.get(entry.identity, entry.identity), count=count)
        for entry in baseline.entries
        if (count := found.get(entry.identity, entry.count))
    ]
    entries = {entry.identity: entry for entry in kept}
    for identity, count in Counter(map(scene.identity, comparison.new if add else ())).items():
        known = entries.get(identity)
        entries[identity] = Entry(identity, count) if known is None else replace(known, count=known.count + count)
    return Baseline(baseline.path, tuple(entries.values()), baseline.unread)
