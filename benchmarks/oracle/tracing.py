"""Which instruction of a sample was running when torch waited: positions are those of the expression it belongs to."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple

from benchmarks.oracle import runtime

MAX_INSTRUCTIONS = 10_000


class Place(NamedTuple):
    """An expression: rows from 1, columns from 0 and in bytes, as the compiler counts."""

    file: str
    row: int
    column: int
    end_row: int
    end_column: int


class TooLong(BaseException):
    """A run executes more instructions of the sample than any sample needs: a loop that waits for the device."""


@dataclass(slots=True)
class Row:
    """What was seen at the expressions that begin in one row."""

    executed: set[Place] = field(default_factory=set)
    syncs: Counter[Place] = field(default_factory=Counter)
    pageable: Counter[Place] = field(default_factory=Counter)
    failures: dict[Place, str] = field(default_factory=dict)
    backward: int | None = None
    """How often the backward of what was computed here waits, None where none was run."""

    assumed: bool = False
    """Whether the arguments were made up although the sample has callers, which did not come here."""

    @property
    def rank(self) -> tuple[bool, int]:
        """Of two runs the better one had no error here, and reached more."""
        return not self.failures, len(self.executed)

    def join(self, other: Row) -> None:
        """Add what another run saw here."""
        self.executed |= other.executed
        self.syncs |= other.syncs
        self.pageable |= other.pageable
        counts = [one for one in (self.backward, other.backward) if one is not None]
        self.backward = max(counts, default=None)


class Trace:
    """What one run of a sample did, row by row. `files` maps the names that code was compiled under to the sample's."""

    def __init__(self, files: dict[str, str]) -> None:
        self.rows: defaultdict[tuple[str, int], Row] = defaultdict(Row)
        self._files = files
        self._at: Place | None = None
        self._left = MAX_INSTRUCTIONS

    @contextmanager
    def running(self) -> Iterator[None]:
        """Trace what is called inside."""
        runtime.record.start()
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(None)
            self._attribute()

    def depth(self, frame: FrameType | None) -> int:
        """How many frames of the sample are on the stack."""
        count = 0
        while frame is not None:
            count += frame.f_code.co_filename in self._files
            frame = frame.f_back
        return count

    def fail(self, error: BaseException) -> None:
        """Remember what was running when an error was raised, in every frame of the sample that it passed."""
        reason = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        trace: TracebackType | None = error.__traceback__
        while trace is not None:
            place = self._place(trace.tb_frame.f_code, trace.tb_lasti)
            if place is not None:
                self._row(place).failures.setdefault(place, reason)
            trace = trace.tb_next

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        if frame.f_code.co_filename not in self._files:
            return None
        self._attribute()
        self._at = None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._inside

    def _inside(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        self._attribute()
        if event == "opcode":
            self._at = self._place(frame.f_code, frame.f_lasti)
            if self._at is not None:
                self._row(self._at).executed.add(self._at)
            self._left -= 1
            if self._left < 0:
                raise TooLong(f"more than {MAX_INSTRUCTIONS:,} instructions")
        elif event == "return":
            outer = frame.f_back
            while outer is not None and outer.f_code.co_filename not in self._files:
                outer = outer.f_back
            self._at = self._place(outer.f_code, outer.f_lasti) if outer is not None else None
        return self._inside

    def _attribute(self) -> None:
        """Give what was recorded to the instruction that was running."""
        recorded = runtime.record.take()
        if recorded is not None and self._at is not None:
            row = self._row(self._at)
            row.syncs[self._at] += recorded.syncs
            row.pageable[self._at] += recorded.pageable

    def _row(self, place: Place) -> Row:
        return self.rows[place.file, place.row]

    def _place(self, code: CodeType, instruction: int) -> Place | None:
        file = self._files.get(code.co_filename)
        if file is None or instruction < 0:
            return None
        row, end_row, column, end_column = _positions(code)[instruction // 2]
        if row is None or end_row is None or column is None or end_column is None:
            return None
        return Place(file, row, column, end_row, end_column)


@cache
def _positions(code: CodeType) -> list[tuple[int | None, int | None, int | None, int | None]]:
    return list(code.co_positions())
