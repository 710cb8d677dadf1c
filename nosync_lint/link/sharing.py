"""Shares the judging of sites among processes. Each has all that is linked, takes parts of the functions, and sends
back what waits in them; what they infer is the same, so that the number of processes changes nothing."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import BinaryIO

from nosync_lint.index import die_with_parent
from nosync_lint.link.project import Function
from nosync_lint.link.solver import Node
from nosync_lint.link.syncs import Sync, Syncs

Packed = tuple[int, Sync, int | None]
"""A sync without its function and call, the place of the function in its part, and that of the call in the function."""
SMALL_PROGRAM = 8_000
"""Functions of a program below which a second process costs more than it saves."""
PARTS = 64
"""The functions are handed out in at most so many parts, the next one to whichever process is done: at most 256."""
MAX_SHARES = 4
"""Half of what is inferred is asked for by every tenth of the sites: more processes would repeat each other."""


def waiting(
    syncs: Syncs, functions: Sequence[Function], jobs: int, meanwhile: Callable[[], object]
) -> tuple[Sync, ...]:
    """The sites of these functions that wait in a targeted release. `meanwhile` is run while other processes work."""
    shares = min(jobs, MAX_SHARES) if len(functions) >= SMALL_PROGRAM and hasattr(os, "fork") else 1
    if shares == 1:
        return tuple(_of(syncs, functions))
    size = -(-len(functions) // PARTS) or 1
    parts = [functions[start : start + size] for start in range(0, len(functions), size)]
    queue = _queue(len(parts))
    started = [_start(syncs, parts, queue) for _ in range(shares - 1)]
    meanwhile()
    found = {number: _of(syncs, parts[number]) for number in _taken(queue)}
    os.close(queue)
    for pid, pipe in started:
        packed, frozen = _received(pid, pipe) or ({}, set())
        syncs.frozen.update(frozen)
        for number, sent in packed.items():
            found[number] = [_unpacked(parts[number][place], one, call) for place, one, call in sent]
    for number, part in enumerate(parts):
        if number not in found:  # of a process that failed
            found[number] = _of(syncs, part)
    return tuple(chain.from_iterable(found[number] for number in range(len(parts))))


def _of(syncs: Syncs, functions: Sequence[Function]) -> list[Sync]:
    return [one for one in syncs.over(functions) if one.verdict.synchronises]


def _queue(parts: int) -> int:
    """The end of a pipe from which processes read the number of the next part, a byte each."""
    reading, writing = os.pipe()
    os.write(writing, bytes(range(parts)))
    os.close(writing)
    return reading


def _taken(queue: int) -> Iterator[int]:
    """The parts that this process takes, until there are none."""
    while part := os.read(queue, 1):
        yield part[0]


def _start(syncs: Syncs, parts: Sequence[Sequence[Function]], queue: int) -> tuple[int, BinaryIO]:
    """A process that judges parts of the functions, and the pipe on which it sends what it found."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, os.fdopen(reading, "rb")
    try:
        die_with_parent()
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            found = {number: _packed(_of(syncs, parts[number]), parts[number]) for number in _taken(queue)}
            pickle.dump((found, syncs.frozen), pipe, pickle.HIGHEST_PROTOCOL)
        os._exit(0)
    finally:
        os._exit(1)  # the first process does the work again, and meets the error


def _received(pid: int, pipe: BinaryIO) -> tuple[dict[int, list[Packed]], set[Node]] | None:
    """What a process sends: packed syncs by part, and frozen summaries; None where it failed."""
    with pipe:
        data = pipe.read()
    _, status = os.waitpid(pid, 0)
    return None if status else pickle.loads(data)


def _packed(found: Sequence[Sync], functions: Sequence[Function]) -> list[Packed]:
    """Syncs without what other processes have of their own."""
    places = {function.number: place for place, function in enumerate(functions)}
    packed = []
    for sync in found:
        calls = sync.function.record.calls
        call = None if sync.site is None else next(n for n, site in enumerate(calls) if site is sync.site)
        packed.append((places[sync.function.number], sync._replace(function=None, site=None), call))  # type: ignore[arg-type]
    return packed


def _unpacked(function: Function, sync: Sync, call: int | None) -> Sync:
    return sync._replace(function=function, site=None if call is None else function.record.calls[call])
