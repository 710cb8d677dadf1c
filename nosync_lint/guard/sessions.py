"""What users open: a guard, and permission to wait inside it."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterable, Sequence
from contextvars import Token
from typing import Any, TypeVar

from nosync_lint.guard.backend import Backend, backend_named
from nosync_lint.guard.events import GuardReport
from nosync_lint.guard.levels import BACKENDS, Direction, Level, default_level, level_named
from nosync_lint.guard.scopes import Permission, Rules, Scope, enter, leave

Function = TypeVar("Function", bound=Callable[..., Any])


class Guard:
    """A guard, open between `__enter__`, which gives the report, and `__exit__`. One guard is opened once."""

    def __init__(
        self,
        levels: dict[Direction, Level],
        max_syncs: int,
        where: str,
        blame: tuple[str, ...],
        baseline: frozenset[str],
    ) -> None:
        self.report = GuardReport()
        self._where = where
        self._backend: Backend | None = None
        self._rules = Rules(levels, max_syncs, self.report, blame, baseline)
        self._token: Token[tuple[Scope, ...]] | None = None
        self._thread = 0

    def __enter__(self) -> GuardReport:
        if self._token is not None:
            raise RuntimeError("this guard is open: make one for each `with`")
        self._backend = backend_named(self._where)
        self.report.release = self._backend.enter()
        self._token, self._thread = enter(self._rules), threading.get_ident()
        return self.report

    def __exit__(self, *_: object) -> None:
        if threading.get_ident() != self._thread or self._token is None or self._backend is None:
            raise RuntimeError("a guard was left in another thread than it was entered in, where it is still open")
        token, self._token = self._token, None
        try:
            leave(token)
        finally:
            self._backend.leave()


def guard(
    *,
    level: str | None = None,
    max_syncs: int = 0,
    d2h: str | None = None,
    h2d: str | None = None,
    wait: str | None = None,
    backend: str = "auto",
    blame: Sequence[str] = (),
    baseline: Iterable[str] = (),
) -> Guard:
    """Watches the code inside for waits of the host on a device that need not be there.

    `level` says what is done about them (`Level`); without one it is `NOSYNC_GUARD_LEVEL` from the environment, else
    `disallow`. `d2h`, `h2d` and `wait` are levels for one direction. So many waits as `max_syncs` are let through
    before one raises `SyncError`. `blame` names packages or folders: events are put to their first frame, where one is
    among the callers. `baseline` are fingerprints, as an earlier report has them: these waits are allowed.

    `backend` says where the code runs: `simulated` is a device that is not there, `cuda` a GPU, `stub` torch's CUDA
    build on a runtime that only records (the values are wrong, the waits are not); `auto` the one that this process
    has. Raises `ValueError` for names that are none. Entering raises `CannotGuard` where nothing can be watched in this
    way.
    """
    if backend not in BACKENDS:
        raise ValueError(f"unknown backend `{backend}`: one of {', '.join(BACKENDS)}")
    if isinstance(max_syncs, bool) or not isinstance(max_syncs, int) or max_syncs < 0:
        raise ValueError(f"max_syncs must be a count, not {max_syncs!r}")
    if isinstance(blame, str):
        raise ValueError("blame takes a sequence of names, not one string")
    every = default_level() if level is None else level_named(level)
    given = {Direction.D2H: d2h, Direction.H2D: h2d, Direction.WAIT: wait}
    levels = {direction: every if name is None else level_named(name) for direction, name in given.items()}
    return Guard(levels, max_syncs, backend, tuple(blame), frozenset(baseline))


class Allowance:
    """Permission to wait: a context manager, and a decorator of functions and coroutine functions."""

    def __init__(self, reason: str, max_syncs: int | None) -> None:
        self._reason, self._max_syncs = reason, max_syncs
        self._tokens: list[Token[tuple[Scope, ...]]] = []

    def __enter__(self) -> None:
        self._tokens.append(enter(Permission(self._reason, self._max_syncs)))

    def __exit__(self, *_: object) -> None:
        leave(self._tokens.pop())

    def __call__(self, function: Function) -> Function:
        """The function with this permission, anew in each call. Raises `TypeError` for a generator function."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError("allow_sync cannot decorate a generator function: open it around the lines that wait")
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def waiting(*args: Any, **kwargs: Any) -> Any:
                with Allowance(self._reason, self._max_syncs):
                    return await function(*args, **kwargs)

            return waiting  # type: ignore[return-value]

        @functools.wraps(function)
        def calling(*args: Any, **kwargs: Any) -> Any:
            with Allowance(self._reason, self._max_syncs):
                return function(*args, **kwargs)

        return calling  # type: ignore[return-value]


def allow_sync(*, reason: str, max_syncs: int | None = None) -> Allowance:
    """Says that waits are meant here, and why. Covers what is called from here; recorded, never raised.

    With `max_syncs`, waits beyond that number are judged as if this were not here. Raises `ValueError` without a
    reason.
    """
    if not reason.strip():
        raise ValueError("allow_sync needs a reason: why may the host wait here?")
    if max_syncs is not None and max_syncs < 0:
        raise ValueError(f"max_syncs must be a count, not {max_syncs!r}")
    return Allowance(reason, max_syncs)
