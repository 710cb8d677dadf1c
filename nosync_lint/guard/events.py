"""What a guard saw: events, the report that holds them, and the error that one of them may be."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from nosync_lint.finding import Confidence, Finding, Hop, Severity
from nosync_lint.fingerprint import Identity
from nosync_lint.guard.levels import Direction
from nosync_lint.report import Hidden, Report
from nosync_lint.report.json import as_json
from nosync_lint.source import Span


class _Placed:
    """What stands at a place in the user's code, and goes to another process as a record."""

    __slots__ = ()
    filename: str
    span: Span
    chain: tuple[Hop, ...]

    @property
    def place(self) -> str:
        return f"{self.filename}:{self.span.row}:{self.span.column}"

    def as_record(self) -> dict[str, Any]:
        """All of it as JSON's own types, for `from_record` in another process."""
        record: dict[str, Any] = json.loads(json.dumps(asdict(self)))  # type: ignore[call-overload]
        return record

    def _callers(self) -> list[str]:
        """The line of text that tells of them, where there are any."""
        named = " <- ".join(f"{hop.filename}:{hop.row} {hop.note}" for hop in self.chain)
        return [f"  from:    {named}"] if named else []


@dataclass(frozen=True, slots=True)
class Event(_Placed):
    """One wait of the host, at the place in the user's code that it comes from. `scope` is the function there,
    `snippet` the expression in its plain form.

    `row` names the row of the model that says so, `code` and `name` the rule that reports it. `hidden`: the host may
    wait inside the driver, which nothing but a profiler shows. `known` is false for one that no row speaks of:
    torch's own tags do, or it was measured. `allowed` and `suppressed` are reasons: of an `allow_sync`, and of a
    comment. `chain` leads from the place up to its callers; `text` is the line of source.
    """

    code: str
    name: str
    row: str
    direction: Direction
    explicit: bool
    hidden: bool
    operation: str
    what: str
    why: str
    cure: str
    filename: str
    span: Span
    severity: Severity
    text: str = ""
    chain: tuple[Hop, ...] = ()
    backward: bool = False
    known: bool = True
    allowed: str | None = None
    suppressed: str | None = None
    scope: str = ""
    snippet: str = ""

    @property
    def identity(self) -> Identity:
        """What the event is known by: the same as a finding of the linter at this place."""
        return Identity(self.filename, self.scope, self.code, self.snippet)

    @property
    def counts(self) -> bool:
        """Whether this is a wait that nobody has answered for."""
        return not self.hidden and self.allowed is None and self.suppressed is None

    def fingerprint(self, number: int = 1) -> str:
        """A name that survives moved lines and another layout, for the n-th of equals, from 1."""
        return self.identity.fingerprint(number)

    @staticmethod
    def from_record(record: dict[str, Any]) -> Event:
        """The event that `as_record` gave."""
        known = {
            "direction": Direction(record["direction"]),
            "severity": Severity(record["severity"]),
            "span": Span(*record["span"]),
            "chain": tuple(Hop(**hop) for hop in record["chain"]),
        }
        return Event(**{**record, **known})

    def __str__(self) -> str:
        waits = "may make the host wait" if self.hidden else "makes the host wait for the device"
        lines = [f"{self.place}: {self.code} {self.name}: this {waits} [{self.direction}]"]
        lines += [f"    {self.text}"] if self.text else []
        lines += [f"  what:    {self.what} ({self.operation}{', in backward' if self.backward else ''})"]
        lines += [f"  why:     {self.why}"]
        lines += [f"  instead: {self.cure}"] if self.cure else []
        lines += [f"  row:     {self.row}"] if self.known else []
        return "\n".join([*lines, *self._callers()])


@dataclass(frozen=True, slots=True)
class EarlyRead(_Placed):
    """Memory of the host that was read, or written, while an asynchronous copy may still write it: a race.

    `copied` is the place of the copy. No wait of the host lies between, and no event of a stream that was asked for.
    """

    what: str
    filename: str
    span: Span
    text: str
    chain: tuple[Hop, ...]
    copied: str

    @staticmethod
    def from_record(record: dict[str, Any]) -> EarlyRead:
        """The read that `as_record` gave."""
        chain = tuple(Hop(**hop) for hop in record["chain"])
        return EarlyRead(**{**record, "span": Span(*record["span"]), "chain": chain})

    def __str__(self) -> str:
        lines = [f"{self.place}: read before the wait: the copy to the host may not have arrived"]
        lines += [f"    {self.text}"] if self.text else []
        lines.append(f"  what:    {self.what} on what {self.copied} copies with non_blocking=True")
        lines.append("  instead: record an event after the copy, and wait for it before the read")
        return "\n".join([*lines, *self._callers()])


class EarlyReadError(Exception):
    """A read that came before the wait, where the guard refuses implicit waits."""

    def __init__(self, read: EarlyRead) -> None:
        self.read = read
        super().__init__(str(read))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.read,)


class CannotGuard(Exception):
    """Nothing here can be watched in the way that was asked for; the message says why and what works."""


class CannotSimulate(CannotGuard):
    """This build of torch, or this system, cannot pretend to have a device."""


class SyncError(Exception):
    """A wait that the guard does not allow. `event` is the one that went too far, `earlier` those counted before."""

    def __init__(self, event: Event, earlier: Sequence[Event], max_syncs: int) -> None:
        self.event, self.earlier, self.max_syncs = event, tuple(earlier), max_syncs
        text = str(event)
        if earlier:
            places = ", ".join(f"{one.place} {one.code}" for one in earlier)
            text += f"\n  counted: {len(earlier) + 1} where {max_syncs} are allowed, earlier at {places}"
        super().__init__(text)

    def __reduce__(self) -> tuple[Any, ...]:
        """As it was made, for the process that waits for another one."""
        return type(self), (self.event, self.earlier, self.max_syncs)


@dataclass(slots=True)
class GuardReport:
    """All events under one guard, in order, those of guards inside it too; and what was read too early."""

    release: str = ""
    events: list[Event] = field(default_factory=list)
    early_reads: list[EarlyRead] = field(default_factory=list)

    @property
    def syncs(self) -> list[Event]:
        """The waits that nobody has answered for: not hidden, not allowed, not suppressed."""
        return [event for event in self.events if event.counts]

    @property
    def hidden(self) -> list[Event]:
        """Where the driver may wait."""
        return [event for event in self.events if event.hidden]

    def by_location(self) -> dict[tuple[str, int, int], list[Event]]:
        """Events by file, row and column, in the order in which the places were first met."""
        found: dict[tuple[str, int, int], list[Event]] = {}
        for event in self.events:
            found.setdefault((event.filename, event.span.row, event.span.column), []).append(event)
        return found

    def to_json(self) -> dict[str, Any]:
        """The report in the schema of `nosync-lint check --output-format json`: one finding for each place and rule."""
        answered = sum(event.allowed is not None or event.suppressed is not None for event in self.events)
        return as_json(
            Report(
                tuple(sorted(self._findings(), key=lambda finding: finding.order)),
                Hidden(suppressed=answered),
                files_reported=len({event.filename for event in self.events}),
                target_torch=(self.release,) if self.release else (),
            )
        )

    def _findings(self) -> Iterator[Finding]:
        groups: dict[tuple[str, Span, str], list[Event]] = {}
        for event in self.events:
            if event.allowed is None and event.suppressed is None:
                groups.setdefault((event.filename, event.span, event.code), []).append(event)
        seen: Counter[str] = Counter()
        for events in groups.values():
            first = events[0]
            seen[first.fingerprint()] += 1
            times = "once" if len(events) == 1 else f"{len(events)} times"
            sure = Confidence.POSSIBLE if first.hidden or not first.known else Confidence.CERTAIN
            yield Finding(
                first.code, first.name, f"{first.what}: {first.why} Ran {times}.", first.filename, first.span,
                first.severity, sure, first.cure,
                flow=tuple(reversed(first.chain)), fingerprint=first.fingerprint(seen[first.fingerprint()]),
                scope=first.scope, snippet=first.snippet,
            )  # fmt: skip
