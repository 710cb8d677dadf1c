"""Why something waits: the rows of the linter's model, for the torch that runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from nosync_lint.finding import Severity
from nosync_lint.guard.levels import Direction
from nosync_lint.link.semantics import Semantics, known_releases
from nosync_lint.models import load
from nosync_lint.registry import find, summary


@dataclass(frozen=True, slots=True)
class Cause:
    """One row of the model, and the rule that reports it."""

    row: str
    code: str
    name: str
    direction: Direction
    explicit: bool
    hidden: bool
    why: str
    cure: str
    severity: Severity


class UnknownRelease(Exception):
    """The model does not reach back to this torch."""


def release_of(version: str) -> str:
    """The release of the model that a version such as `2.13.0+cpu` counts as: one that is newer counts as the last.

    Raises `UnknownRelease` for an older one.
    """
    releases = known_releases()
    number = _number(version)
    if number < _number(releases[0]):
        raise UnknownRelease(f"torch {version} is older than {releases[0]}, the first release that the guard knows")
    return next((known for known in reversed(releases) if _number(known) <= number), releases[-1])


def _number(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


class Causes:
    """The rows of `models/torch.toml` that hold in one release."""

    def __init__(self, release: str) -> None:
        self.release = release
        self._semantics = Semantics([release])
        table = load("dispatch")
        self._explicit = frozenset(table["rows"]["explicit"])
        self._named: dict[str, list[str]] = {}
        for call in (*load("calls")["call"], *load("calls")["copy"]):
            rows = [call[key] for key in ("row", "upload", "download", "elements") if key in call]
            methods = () if "named" in call else call.get("methods", ())  # of a receiver that only the source names
            for function in (*call.get("functions", ()), *methods):
                self._named.setdefault(function.rpartition(".")[2], []).extend(rows)
            for member in call.get("members", ()):
                self._named.setdefault(".".join(member.split(".")[-2:]), []).extend(rows)
        self.cause = cache(self._cause)
        self.holds = cache(self._holds)

    def _holds(self, row: str) -> bool:
        """Whether the row says of this release that the host waits, or may."""
        known = self._semantics.rows[row]
        waits = str(known["verdict"]).startswith(("sync", "may-block"))
        return waits and bool(self._semantics.active(row))

    def by_call(self, names: Iterable[str], *general: str) -> str:
        """The row of the first of these functions that the linter knows to wait in this direction, and for another
        reason than the general rows; else the first of those. Methods are named with their class."""
        for name in names:
            known: list[str] = [*self._named.get(name, ()), *self._named.get(name.rpartition(".")[2], ())]
            for row in known:
                if row not in general and self.holds(row) and self._direction(row) is self._direction(general[0]):
                    return row
        return general[0]

    def _cause(self, row: str) -> Cause:
        known = self._semantics.rows[row]
        rule = find(known["rule"])
        assert rule is not None, f"no rule {known['rule']}"
        return Cause(
            row,
            rule.code,
            rule.slug(),
            self._direction(row),
            row in self._explicit,
            known["verdict"] == "may-block",
            summary(rule),
            self._semantics.cure(row).replace("{t}", "t"),
            rule.severity,
        )

    def _direction(self, row: str) -> Direction:
        verdict = self._semantics.rows[row]["verdict"]
        if verdict == "sync-explicit":
            return Direction.WAIT
        return Direction.H2D if verdict == "sync-h2d" or row.startswith("h2d.") else Direction.D2H
