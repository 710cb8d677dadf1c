"""Where in the user's code something happens: file, rows and columns, and the calls that lead there."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from nosync_lint.finding import Hop
from nosync_lint.fingerprint import scope_of
from nosync_lint.guard.sources import shown, source
from nosync_lint.source import Span

CHAIN = 8
"""Callers that an event names at most."""

_GUARD = str(Path(__file__).parent)
_STANDARD = sysconfig.get_path("stdlib")
_INSTALLED = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
_SCRIPTS = sysconfig.get_path("scripts")
_RUNNERS = frozenset(
    {"_pytest", "pluggy", "pytest", "pytest_asyncio", "anyio", "xdist", "execnet", "__channelexec__", "coverage"}
)
"""Packages that run tests: their frames are no callers."""
_HANDLERS = ("__torch_dispatch__", "__torch_function__")


class Place(NamedTuple):
    """A place in the user's code. `filename` is that of the code object; `through` are the functions of torch between
    it and the operation, the outermost first; methods with their class, and a class for its `__init__`. `scope` is the
    function that it stands in, as the linter names it."""

    filename: str
    span: Span
    chain: tuple[Hop, ...]
    through: tuple[str, ...]
    scope: str = ""


def here(blame: Sequence[str] = (), caller: int | None = None) -> Place:
    """The innermost frame of the user's code: not torch, the standard library, or the guard.

    With `blame`, the first one in a package or under a folder that is named there, where there is one. `caller` is a
    thread that waits for this one: its frames go on where those of this thread end.
    """
    through: list[str] = []
    users: list[FrameType] = []
    for frame in _frames(caller):
        if not _foreign(frame.f_code.co_filename):
            if users or not _passes_on(frame):
                users.append(frame)
        elif not users and not frame.f_code.co_filename.startswith((_GUARD, _STANDARD)):
            through.append(frame.f_code.co_qualname.rpartition("<locals>.")[2].removesuffix(".__init__"))
    named = [at for at, frame in enumerate(users) if _blamed(frame, blame)]
    users = users[named[0] if named else 0 :]
    if not users:
        return Place("<unknown>", Span(1, 1, 1, 1), (), tuple(reversed(through)))
    chain = [
        Hop(shown(frame.f_code.co_filename), frame.f_lineno or 1, f"in `{frame.f_code.co_qualname}`")
        for frame in users
        if not _runs_tests(frame)
    ]
    code = users[0].f_code
    named_by = tuple(reversed(through))
    return Place(code.co_filename, _span(users[0]), tuple(chain[:CHAIN]), named_by, scope_of(code.co_qualname))


def _passes_on(frame: FrameType) -> bool:
    """Whether a frame is of a mode or a class of tensors that only runs the operation which it was given."""
    code = frame.f_code
    if code.co_name not in _HANDLERS:
        return False
    called = source(code.co_filename).called(_span(frame))
    return called in _HANDLERS or called in code.co_varnames[: code.co_argcount]


def _runs_tests(frame: FrameType) -> bool:
    """Whether a frame is one of a runner, or of the script that starts it."""
    package = str(frame.f_globals.get("__package__") or frame.f_globals.get("__name__", ""))
    return package.partition(".")[0] in _RUNNERS or frame.f_code.co_filename.startswith(_SCRIPTS)


def _frames(caller: int | None) -> Iterator[FrameType]:
    threads: list[FrameType | None] = [sys._getframe(2)]
    if caller is not None:
        threads.append(sys._current_frames().get(caller))
    for frame in threads:
        while frame is not None:
            yield frame
            frame = frame.f_back


def _span(frame: FrameType) -> Span:
    positions = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    row, end_row, start, end = positions
    if row is None or end_row is None or start is None or end is None:  # python -X no_debug_ranges
        return Span(frame.f_lineno or 1, 1, frame.f_lineno or 1, 1)
    text = source(frame.f_code.co_filename)
    return Span(row, text.column(row, start), end_row, text.column(end_row, end))


@lru_cache(maxsize=4096)
def _foreign(filename: str) -> bool:
    torch = sys.modules.get("torch")
    folders = [_GUARD, *([str(Path(torch.__file__).parent)] if torch and torch.__file__ else [])]
    if filename.startswith("<frozen") or any(filename.startswith(folder + "/") for folder in folders):
        return True
    return filename.startswith(_STANDARD + "/") and not filename.startswith(_INSTALLED)


def _module(frame: FrameType) -> str:
    """The name by which a module is imported, also where it is the program that runs."""
    spec = frame.f_globals.get("__spec__")
    return str(getattr(spec, "name", None) or frame.f_globals.get("__name__", ""))


def _blamed(frame: FrameType, blame: Sequence[str]) -> bool:
    name = _module(frame)
    return any(name == one or name.startswith(one + ".") or frame.f_code.co_filename.startswith(one) for one in blame)
