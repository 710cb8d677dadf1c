"""Applies fixes round by round until nothing changes. Nothing is written here: a round is judged before the next."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nosync_lint.finding import Finding
from nosync_lint.fix.apply import applied, compatible
from nosync_lint.report import Report
from nosync_lint.source import UnreadableFile, decode_python, encode_python

MAX_ROUNDS = 40
"""A round makes all fixes that do not overlap, or some of them where one has to be found that harms; what is still
changed after so many will go on changing."""


Ask = Callable[[Mapping[str, bytes]], Report]
"""Gives the report where some files hold something else than on the disk."""


class Sources(NamedTuple):
    """The files that were judged: what they hold, or None where that is no longer what was judged; and whether a new
    content can be parsed."""

    read: Callable[[str], bytes | None]
    parses: Callable[[bytes], bool]


@dataclass(slots=True)
class Draft:
    """Files on their way to being fixed: what is found in them, what they hold instead, what has been fixed, and what
    could not be: `failures` are for the exit code, `notes` for the reader."""

    report: Report
    contents: dict[str, bytes] = field(default_factory=dict)
    fixed: list[Finding] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rejected: set[str] = field(default_factory=set)


def improve(report: Report, ask: Ask, sources: Sources) -> Draft:
    """Make the fixes that are wanted, and those that become possible by them. What would not parse, and what leaves as
    many findings as before, is taken back."""
    draft, most = Draft(report), sys.maxsize
    for _ in range(MAX_ROUNDS):
        made, changed = _round(draft, sources, most)
        if not made:
            return draft
        found = ask({**draft.contents, **changed})
        more = _counted(found.findings) - (_counted(draft.report.findings) - _counted(made))
        if more:
            undone = _blamed(made, [one for one in found.findings if _key(one) in more])
            if not undone and len(made) > 1:
                most = len(made) // 2
                continue
            undone = undone or made
            draft.rejected.update(finding.fingerprint for finding in undone)
            told = ", ".join(sorted({f"{code} in {scope or filename}" for filename, scope, code in more}))
            draft.notes += [f"{_place(one)}: not fixed: with it, there would be more of {told}" for one in undone]
            continue
        draft.contents |= changed
        draft.fixed += made
        draft.report = found
        most *= 2
    draft.notes.append(f"there was still something to fix after {MAX_ROUNDS} rounds; run again")
    return draft


def _round(draft: Draft, sources: Sources, most: int) -> tuple[list[Finding], dict[str, bytes]]:
    """The fixes of one round, at most so many, and what the files hold with them."""
    made, changed = list[Finding](), dict[str, bytes]()
    for filename, planned in _plan(draft).items():
        chosen = planned[: most - len(made)]
        if not chosen:
            break
        data = draft.contents.get(filename) or sources.read(filename)
        new, bad = data, dict[Finding, str]()
        if data is None:
            bad = dict.fromkeys(chosen, "the file has changed since it was read; run again")
        else:
            new, bad = _changed(data, chosen, sources.parses)
        draft.rejected.update(finding.fingerprint for finding in bad)
        draft.failures += [f"{_place(finding)}: not fixed: {why}" for finding, why in bad.items()]
        if new is not None and new != data:
            made += [finding for finding in chosen if finding not in bad]
            changed[filename] = new
    return made, changed


def _plan(draft: Draft) -> dict[str, list[Finding]]:
    """What to fix in this round, by file."""
    by_file = defaultdict[str, list[Finding]](list)
    for finding in draft.report.findings:
        if draft.report.fixable(finding) and finding.fingerprint not in draft.rejected:
            by_file[finding.filename].append(finding)
    return {filename: compatible(found) for filename, found in by_file.items()}


def _changed(
    data: bytes, chosen: Sequence[Finding], parses: Callable[[bytes], bool]
) -> tuple[bytes, dict[Finding, str]]:
    """A file with fixes made, and those that cannot be, each with the reason."""
    try:
        text = decode_python(data)
        if encode_python(text, data) != data:
            raise UnreadableFile("its encoding cannot be written back as it was read; save it as UTF-8")
    except UnreadableFile as error:
        return data, dict.fromkeys(chosen, error.reason)

    def made(findings: Sequence[Finding]) -> bytes | None:
        new = encode_python(applied(text, findings), data)
        return new if parses(new) else None

    together = made(chosen)
    if together is not None:
        return together, {}
    good, bad = list[Finding](), dict[Finding, str]()
    for finding in chosen:
        if made([*good, finding]) is not None:
            good.append(finding)
        else:
            bad[finding] = "the rewritten file would not parse"
    return made(good) or data, bad


def _counted(findings: Sequence[Finding]) -> Counter[tuple[str, str, str]]:
    """How many findings of a rule there are in a function: rows move, these do not."""
    return Counter(map(_key, findings))


def _key(finding: Finding) -> tuple[str, str, str]:
    return finding.filename, finding.scope, finding.code


def _blamed(made: Sequence[Finding], more: Sequence[Finding]) -> Sequence[Finding]:
    """The fixes that may have led to findings of which there are more: those in the same functions, else in the same
    files, else in the files that these findings tell of. None where nothing points to any."""
    scopes = {(one.filename, one.scope) for one in more}
    files = {one.filename for one in more}
    told = {hop.filename for one in more for hop in (*one.flow, *one.evidence, *one.related)}
    near = [one for one in made if (one.filename, one.scope) in scopes]
    return near or [one for one in made if one.filename in files] or [one for one in made if one.filename in told]


def _place(finding: Finding) -> str:
    return f"{finding.filename}:{finding.span.row}:{finding.span.column}: {finding.code}"
