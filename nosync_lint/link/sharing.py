"""Shares the judging of sites among processes. Each has all that is linked, takes a part of the functions, and sends
back what waits in them; what they infer is the same, so that the number of processes changes nothing."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from itertools import chain
from typing import BinaryIO

from nosync_lint.index import die_with_parent
from nosync_lint.link.project import Function
from nosync_lint.link.solver import Node
from nosync_lint.link.syncs import Sync, Syncs

SMALL_PROGRAM = 8_000
"""Functions of a program below which a second process costs more than it saves."""
OWN_SHARE = 0.5
"""The part of an equal share that the first process takes, since it has other things to do meanwhile."""
MAX_SHARES = 4
"""Half of what is inferred is asked for by every tenth of the sites: more processes would repeat each other."""


def waiting(
    syncs: Syncs, functions: Sequence[Function], jobs: int, meanwhile: Callable[[], object]
) -> tuple[Sync, ...]:
    """The sites of these functions that wait in a targeted release. `meanwhile` is run while other processes work."""
    shares = min(jobs, MAX_SHARES) if len(functions) >= SMALL_PROGRAM and hasattr(os, "fork") else 1
    first = int(len(functions) * OWN_SHARE / shares) if shares > 1 else len(functions)
    size = -(-(len(functions) - first) // max(shares - 1, 1)) or 1
    own = functions[:first]
    others = [functions[start : start + size] for start in range(first, len(functions), size)]
    started = [_start(syncs, part) for part in others]
    found = [_of(syncs, own)]
    if started:
        meanwhile()
    for part, (pid, pipe) in zip(others, started, strict=True):
        sent = _received(pid, pipe)
        if sent is None:
            found.append(_of(syncs, part))
            continue
        found.append([_unpacked(part[place], one, call) for place, one, call in sent[0]])
        syncs.frozen.update(sent[1])
    return tuple(chain.from_iterable(found))


def _of(syncs: Syncs, functions: Sequence[Function]) -> list[Sync]:
    return [one for one in syncs.over(functions) if one.verdict.synchronises]


def _start(syncs: Syncs, functions: Sequence[Function]) -> tuple[int, BinaryIO]:
    """A process that judges some functions, and the pipe on which it sends what it found."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, os.fdopen(reading, "rb")
    try:
        die_with_parent()
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            places = {function.number: place for place, function in enumerate(functions)}
            found = [_packed(one, places[one.function.number]) for one in _of(syncs, functions)]
            pickle.dump((found, syncs.frozen), pipe, pickle.HIGHEST_PROTOCOL)
        os._exit(0)
    finally:
        os._exit(1)  # the first process does the work again, and meets the error


def _received(pid: int, pipe: BinaryIO) -> tuple[list[tuple[int, Sync, int | None]], set[Node]] | None:
    """What a process sends: packed syncs and frozen summaries; None where it failed."""
    with pipe:
        data = pipe.read()
    _, status = os.waitpid(pid, 0)
    return None if status else pickle.loads(data)


def _packed(sync: Sync, place: int) -> tuple[int, Sync, int | None]:
    """A sync without what other processes have of their own: the function by its place, the call by number."""
    call = None
    if sync.site is not None:
        call = next(n for n, site in enumerate(sync.function.record.calls) if site is sync.site)
    return place, sync._replace(function=None, site=None), call  # type: ignore[arg-type]


def _unpacked(function: Function, sync: Sync, call: int | None) -> Sync:
    return sync._replace(function=function, site=None if call is None else function.record.calls[call])
