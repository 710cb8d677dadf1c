"""Makes an event of a wait: why, by which rule, where, and what a comment there says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from nosync_lint.finding import Severity
from nosync_lint.guard.causes import Causes
from nosync_lint.guard.events import EarlyRead, Event
from nosync_lint.guard.levels import Direction
from nosync_lint.guard.places import Place, here
from nosync_lint.guard.scopes import meet, meet_early_read, watching
from nosync_lint.guard.sources import shown, source
from nosync_lint.registry import find

_CALLED = ("", "truth", "number", "item", "backward")
"""Constructs in which the functions that run say more than the construct: `max` asks for the truth of comparisons."""


class Sight(NamedTuple):
    """A wait as it was met: the row in general, and the rows for constructs of Python, by their kind.

    `construct` is the kind under way; None: what stands in the source is asked. With `called`, the functions that run
    may name a better row. `caller` is the thread whose calls led here, where they are not this one's.
    """

    row: str
    operation: str
    what: str
    inside: Mapping[str, str] = {}
    construct: str | None = None
    called: bool = False
    backward: bool = False
    caller: int | None = None


def saw(causes: Causes, sight: Sight) -> bool:
    """Meets a wait that a row of the model speaks of; false where that row does not hold.

    Nothing happens where no guard is open in this thread or task. Raises `SyncError` where one refuses it.
    """
    rules = watching()
    if rules is None:
        return True
    place = here(rules.blame, sight.caller)
    text = source(place.filename)
    read = text.read(place.span)
    construct = read if read and sight.construct in (None, "number") else sight.construct or ""
    row = sight.inside.get(construct, sight.row)
    if sight.called and construct in _CALLED:
        name = text.called(place.span)
        row = causes.by_call((*place.through, *([name] if name else ())), row, sight.row)
    if not causes.holds(row):
        return False
    cause = causes.cause(row)
    meet(
        Event(
            cause.code, cause.name, row, cause.direction, cause.explicit, cause.hidden, sight.operation, sight.what,
            cause.why, cause.cure, shown(place.filename), place.span, cause.severity, text.line(place.span.row),
            place.chain, sight.backward, suppressed=text.suppressed(cause.code, cause.name, place.span.row),
            scope=place.scope, snippet=text.snippet(place.span),
        )
    )  # fmt: skip
    return True


def saw_early_read(what: str, copied: Place) -> None:
    """Meets a read of what a copy may still be writing. Raises `EarlyReadError`."""
    rules = watching()
    if rules is not None:
        place = here(rules.blame)
        meet_early_read(
            EarlyRead(
                what, shown(place.filename), place.span, source(place.filename).line(place.span.row), place.chain,
                f"{shown(copied.filename)}:{copied.span.row}:{copied.span.column}",
            )
        )  # fmt: skip


def saw_unlisted(rule: str, sight: Sight, why: str) -> None:
    """Meets a wait that no row speaks of, as one of a rule. Raises `SyncError`."""
    rules = watching()
    known = find(rule)
    assert known is not None, f"no rule {rule}"
    if rules is None:
        return
    place = here(rules.blame, sight.caller)
    text = source(place.filename)
    meet(
        Event(
            known.code, known.slug(), "", Direction.D2H, False, False, sight.operation, sight.what, why, "",
            shown(place.filename), place.span, Severity.WARNING, text.line(place.span.row), place.chain, sight.backward,
            known=False,
            suppressed=text.suppressed(known.code, known.slug(), place.span.row),
            scope=place.scope, snippet=text.snippet(place.span),
        )
    )  # fmt: skip
