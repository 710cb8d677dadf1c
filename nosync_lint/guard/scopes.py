"""The guards and permissions that are open in this thread or task, and what they say of an event."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import replace
from typing import Protocol

from nosync_lint.guard.events import EarlyRead, EarlyReadError, Event, GuardReport, SyncError
from nosync_lint.guard.levels import Direction, Level, Reaction

BASELINE = "known before"
"""The reason of what a baseline allows."""
LOGGER = logging.getLogger("nosync_lint.guard")


class Scope(Protocol):
    """What can be open: a guard, or a permission to wait."""

    def answers(self, event: Event) -> tuple[Event, SyncError | None] | None:
        """The event as it is to be recorded, and the error to raise; None where the next scope outwards decides."""


class Permission:
    """Waits are meant here: at most `max_syncs` of them, where that is given."""

    def __init__(self, reason: str, max_syncs: int | None) -> None:
        self.reason, self.max_syncs = reason, max_syncs
        self.used = 0

    def answers(self, event: Event) -> tuple[Event, SyncError | None] | None:
        if event.hidden:
            return replace(event, allowed=self.reason), None
        if self.max_syncs is not None and self.used >= self.max_syncs:
            return None
        self.used += 1
        return replace(event, allowed=self.reason), None


class Rules:
    """What one guard demands, and its report."""

    def __init__(
        self,
        levels: dict[Direction, Level],
        max_syncs: int,
        report: GuardReport,
        blame: tuple[str, ...],
        baseline: frozenset[str],
    ) -> None:
        self._levels, self._max_syncs, self._baseline = levels, max_syncs, baseline
        self._counted: list[Event] = []
        self.report, self.blame = report, blame

    def answers(self, event: Event) -> tuple[Event, SyncError | None] | None:
        if event.fingerprint() in self._baseline:
            return replace(event, allowed=BASELINE), None
        reaction = self._levels[event.direction].reaction(event.explicit)
        if reaction is Reaction.LOG or (event.hidden and reaction is Reaction.REFUSE):
            LOGGER.warning("%s", event)
        if event.hidden or reaction is not Reaction.REFUSE:
            return event, None
        earlier = tuple(self._counted)
        self._counted.append(event)
        return event, SyncError(event, earlier, self._max_syncs) if len(earlier) >= self._max_syncs else None

    def refuse_or_log(self, read: EarlyRead) -> None:
        """Raises `EarlyReadError`, or logs, as the level for what goes to the host says."""
        reaction = self._levels[Direction.D2H].reaction(explicit=False)
        if reaction is Reaction.REFUSE:
            raise EarlyReadError(read)
        if reaction is Reaction.LOG:
            LOGGER.warning("%s", read)


_open: ContextVar[tuple[Scope, ...]] = ContextVar("nosync_lint_guard", default=())


def enter(scope: Scope) -> Token[tuple[Scope, ...]]:
    """Opens a scope inside those that are open in this context."""
    return _open.set((*_open.get(), scope))


@contextmanager
def unseen() -> Iterator[None]:
    """Closes all scopes of this context meanwhile: what runs is not watched."""
    token = _open.set(())
    try:
        yield
    finally:
        _open.reset(token)


def leave(token: Token[tuple[Scope, ...]]) -> None:
    """Closes a scope. Raises `RuntimeError` in another thread or task than it was opened in."""
    try:
        _open.reset(token)
    except ValueError as error:
        raise RuntimeError("a guard was left in another thread or task than it was entered in") from error


def watching() -> Rules | None:
    """The innermost guard that is open in this context."""
    return next((scope for scope in reversed(_open.get()) if isinstance(scope, Rules)), None)


def meet_early_read(read: EarlyRead) -> None:
    """Records a read with every open guard; the innermost decides as of an implicit wait. Raises `EarlyReadError`."""
    guards = [scope for scope in _open.get() if isinstance(scope, Rules)]
    for rules in guards:
        rules.report.early_reads.append(read)
    if guards:
        guards[-1].refuse_or_log(read)


def meet(event: Event) -> None:
    """Records an event with every open guard. The innermost scope decides, or passes it on. Raises `SyncError`."""
    scopes, error = _open.get(), None
    if event.suppressed is None:
        for scope in reversed(scopes):
            answer = scope.answers(event)
            if answer is not None:
                event, error = answer
                break
    for scope in scopes:
        if isinstance(scope, Rules):
            scope.report.events.append(event)
    if error is not None:
        raise error
