"""Runs the functions of samples and writes what torch did at which expression:

    python -m nosync_lint.guard.stub -m benchmarks.oracle.recorder OUT.json SAMPLE...

Each sample runs in a process of its own. First the functions that nothing in the sample names are called, with made-up
arguments; then those that these did not run to their end. A function is tried with choice after choice of arguments,
and each run is done twice, of which the second counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import json
import logging
import multiprocessing
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.oracle import backward, runtime
from benchmarks.oracle.arguments import Arguments, Choice, choices
from benchmarks.oracle.programs import Entry, Missing, Program, Unavailable
from benchmarks.oracle.runtime import torch
from benchmarks.oracle.tracing import Row, TooLong, Trace

SECONDS_PER_SAMPLE = 300
MAX_YIELDS = 8
Rows = dict[tuple[str, int], Row]


class Sample:
    """A sample that is being run. `rows` is what counts, `reasons` why a function could not be called."""

    def __init__(self, path: Path) -> None:
        self.program = Program(path, self._failed)
        self.trace = Trace(self.program.files)
        self.modules: dict[str, ModuleType] = {}
        self.rows: Rows = {}
        self.reasons: dict[tuple[str, int], str] = {}

    def run(self) -> None:
        with self.trace.running():
            self.modules = self.program.load()
        self.rows = dict(self.trace.rows)
        for named in (False, True):
            for entry in self.program.entries:
                if entry.named is named and not _is_complete(entry, self.rows):
                    self._add(self._tried(entry), named)

    def _failed(self, error: BaseException) -> None:
        """A statement raised: note it, and go on behind it unless a caller in the sample waits for its result."""
        self.trace.fail(error)
        frame = sys._getframe(1)
        if frame.f_code.co_name != "<module>" and self.trace.depth(frame) > 1:
            raise error

    def _tried(self, entry: Entry) -> Rows:
        """Call a function until a choice of arguments runs all of it; each row comes from the best run that has it."""
        runs: list[tuple[Rows, Choice]] = []
        tensors = 0
        for choice in choices():
            if runs and len(choice.tensors) > max(tensors, 1):
                continue
            for _ in range(2):
                arguments = Arguments(choice)
                self._call(entry, arguments)
            tensors = max(tensors, arguments.tensors)
            runs.append((dict(self.trace.rows), choice))
            if _is_complete(entry, runs[-1][0]):
                break
        runs.sort(key=lambda run: -len(_ran(entry, run[0])))  # stable: of equals, the likelier choice
        best: Rows = {}
        for rows, _ in runs:
            for at, row in rows.items():
                if at not in best or row.rank > best[at].rank:
                    best[at] = row
        for at, count in self._backward(entry, runs[0][1]).items():
            best.setdefault(at, Row()).backward = count
        return best

    def _backward(self, entry: Entry, choice: Choice) -> Counter[tuple[str, int]]:
        """How often the host waits on the way back from what a function returns, by the rows on that way."""
        found: Counter[tuple[str, int]] = Counter()
        try:
            for _ in range(2):
                self._start_afresh(choice)
                with backward.remembered():
                    with self.trace.running():
                        result = self._result(entry, Arguments(choice))
                    found = backward.waits(result, self.program.files)
        except (Exception, TooLong) as error:
            self._note(entry, error)
        return found

    def _call(self, entry: Entry, arguments: Arguments) -> None:
        self._start_afresh(arguments.choice)
        try:
            with self.trace.running():
                _consume(self._result(entry, arguments))
        except (Exception, TooLong) as error:
            self._note(entry, error)

    def _start_afresh(self, choice: Choice) -> None:
        """Random numbers of the host start over, and memory of the device is new, so that it reads as zero."""
        self.trace = Trace(self.program.files)
        torch.manual_seed(0)
        gc.collect()
        torch.cuda.empty_cache()
        runtime.record.reads_give(choice.read)

    def _note(self, entry: Entry, error: BaseException) -> None:
        """Remember why a function could not be called to its end: the first reason is told."""
        reason = str(error) if isinstance(error, Unavailable) else f"{type(error).__name__}: {error}"
        self.reasons.setdefault((entry.file, entry.row), reason.partition("\n")[0])

    def _result(self, entry: Entry, arguments: Arguments) -> Any:
        """What the function of an entry gives back, called on an instance of its class if it is a method."""
        owner: Any = self.modules[entry.module]
        for name in entry.classes:
            owner = getattr(owner, name)
        if isinstance(owner, Missing):
            raise Unavailable(owner.why)
        if entry.classes and not isinstance(inspect.getattr_static(owner, entry.name), staticmethod | classmethod):
            owner = arguments.instance(owner)
        found = getattr(owner, entry.name)
        return arguments.call(found) if inspect.isroutine(found) and entry.name != "__init__" else found

    def _add(self, rows: Rows, named: bool) -> None:
        """Keep what a function has run: rows that nothing reached so far, and to others what they did here as well.

        Where the sample itself calls a function, made-up arguments say nothing about rows that its callers reached, and
        little about the others.
        """
        for at, row in rows.items():
            known = self.rows.get(at)
            if known is None or (known.failures and not row.failures):
                row.assumed = named
                self.rows[at] = row
            elif not named and not row.failures:
                known.join(row)


def _ran(entry: Entry, rows: Rows) -> frozenset[tuple[int, ...]]:
    """The parts of a function that ran, in rows without an error."""
    seen = [row for (file, _), row in rows.items() if file == entry.file and not row.failures]
    places = {place for row in seen for place in row.executed}
    return entry.parts & ({(place.row,) for place in places} | {place[1:] for place in places})


def _is_complete(entry: Entry, rows: Rows) -> bool:
    return _ran(entry, rows) == entry.parts


def _consume(result: Any) -> None:
    """Run what a call only prepares: coroutines, generators, context managers."""
    if inspect.iscoroutine(result):
        asyncio.run(result)
    elif inspect.isgenerator(result):
        list(islice(result, MAX_YIELDS))
    elif isinstance(result, contextlib.AbstractContextManager) and not isinstance(result, torch.nn.Module):
        with result:
            pass


def record(path: Path, out: Path) -> None:
    """Run one sample and write what was seen. Runs in a process of its own, in a folder of its own, silently."""
    logging.basicConfig(level=logging.DEBUG)  # what is logged is turned into text
    with out.with_suffix(".err").open("w") as errors, tempfile.TemporaryDirectory() as folder:
        os.dup2(errors.fileno(), sys.stdout.fileno())
        os.dup2(errors.fileno(), sys.stderr.fileno())
        os.chdir(folder)
        gc.freeze()  # torch itself is no garbage, and much to look through
        sample = Sample(path)
        sample.run()
        rows = [
            {
                "executed": sorted(row.executed),
                "syncs": sorted((*place, count) for place, count in row.syncs.items() if count),
                "pageable": sorted((*place, count) for place, count in row.pageable.items() if count),
                "failures": sorted((*place, reason) for place, reason in row.failures.items()),
                "assumed": [*at] if row.assumed else [],
                "backward": [] if row.backward is None else [*at, row.backward],
            }
            for at, row in sample.rows.items()
        ]
        reasons = sorted((file, row, reason) for (file, row), reason in sample.reasons.items())
        out.write_text(json.dumps({"rows": rows, "reasons": reasons}))
        os.chdir("/")


def main(out: Path, samples: Iterable[Path]) -> int:
    told: dict[str, Any] = {}
    context = multiprocessing.get_context("fork")
    for path in samples:
        with tempfile.TemporaryDirectory() as folder:
            part = Path(folder) / "sample.json"
            process = context.Process(target=record, args=(path.resolve(), part))
            process.start()
            process.join(SECONDS_PER_SAMPLE)
            if process.exitcode == 0:
                told[str(path)] = json.loads(part.read_text())
                continue
            last = part.with_suffix(".err").read_text().strip().rpartition("\n")[2]
            died = f"its process ended with {process.exitcode}: {last}"
            if process.is_alive():
                died = f"not done after {SECONDS_PER_SAMPLE} seconds"
                process.kill()
                process.join()
            told[str(path)] = {"rows": [], "reasons": [], "died": died}
    out.write_text(json.dumps({"torch": runtime.version(), "samples": told}))
    return 0


if __name__ == "__main__":
    runtime.record = runtime.OnStubs()
    raise SystemExit(main(Path(sys.argv[1]), [Path(one) for one in sys.argv[2:]]))
