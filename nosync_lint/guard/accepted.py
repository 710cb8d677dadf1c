"""Baselines of waits: the file of the linter, read and added to by what was seen while tests ran."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from nosync_lint.baseline import Baseline, Entry, load_baseline
from nosync_lint.fingerprint import Identity
from nosync_lint.guard.events import Event
from nosync_lint.guard.scopes import BASELINE
from nosync_lint.guard.sources import shown
from nosync_lint.source import Span


def fingerprints(path: Path) -> frozenset[str]:
    """The fingerprints of the events that a baseline accepts, however often they happen. Raises `BaselineError`."""
    folder = path.absolute().parent
    return frozenset(
        entry.identity._replace(file=shown(os.path.normpath(folder / entry.identity.file))).fingerprint()
        for entry in load_baseline(path).entries
    )


def accept(path: Path, events: Iterable[Event]) -> int:
    """Add to a baseline what nobody has answered for, and count the entries that are new. None is taken out: what a
    run of tests does not reach may still be there. Raises `BaselineError`."""
    baseline = load_baseline(path) if path.exists() else Baseline(path.absolute())
    name = baseline.naming()
    places: dict[Identity, set[Span]] = defaultdict(set)
    for event in events:
        if not event.hidden and event.suppressed is None and event.allowed in (None, BASELINE):
            places[event.identity._replace(file=name(event.filename))].add(event.span)
    entries = {entry.identity: entry for entry in baseline.entries}
    new = {identity: Entry(identity, len(spans)) for identity, spans in places.items() if identity not in entries}
    path.write_text(Baseline(path, tuple({**entries, **new}.values())).text(), encoding="utf-8")
    return len(new)
