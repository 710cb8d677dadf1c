"""A report with its fixes made: in a draft, or in the files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nosync_lint.fix.loop import Ask, Sources, improve
from nosync_lint.fix.write import NotWritten
from nosync_lint.report import Report

Write = Callable[[str, bytes, bytes], None]
"""Puts new content in the place of an old one in a file. Raises `NotWritten`."""


def repaired(report: Report, ask: Ask, sources: Sources, write: Write | None) -> Report:
    """What is found once the fixes are made that are wanted. Without `write` they are only shown."""
    draft = improve(report, ask, sources)
    changed = {name: (sources.read(name) or b"", new) for name, new in sorted(draft.contents.items())}
    unwritten = dict[str, str]()
    if write is not None:
        for name, (old, new) in changed.items():
            try:
                write(name, old, new)
            except NotWritten as error:
                unwritten[name] = str(error)
    found = draft.report
    if unwritten:
        changed = {name: contents for name, contents in changed.items() if name not in unwritten}
        found = ask({name: new for name, (_, new) in changed.items()}) if changed else report
    return replace(
        found,
        fixed=tuple(finding for finding in draft.fixed if finding.filename not in unwritten),
        changed=changed,
        failures=(
            *found.failures,
            *draft.failures,
            *(f"{name}: not fixed: {why}" for name, why in unwritten.items()),
        ),
        notes=(*found.notes, *draft.notes),
        seconds=report.seconds,
    )
