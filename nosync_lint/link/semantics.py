"""What synchronises: verdicts from the rows of `models/torch.toml`, restricted to the targeted releases of torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nosync_lint.finding import Confidence
from nosync_lint.models import load


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a construct synchronises, in which target releases, by which row of the model, and which rule reports it.

    `because` completes the sentence "this stops the host because ...". A verdict that is only `possible` rests on
    something that could not be decided, which `because` names.
    """

    rule: str
    row: str
    releases: tuple[str, ...]
    trust: int
    because: str = ""

    @property
    def synchronises(self) -> bool:
        return bool(self.releases)

    @property
    def confidence(self) -> Confidence:
        return (Confidence.POSSIBLE, Confidence.LIKELY, Confidence.CERTAIN)[self.trust]


SILENT = Verdict("", "", (), 2)


class Semantics:
    """The rows of the model, restricted to the releases a project may run on."""

    def __init__(self, targets: Sequence[str] | None = None) -> None:
        data = load("torch")
        self.targets = tuple(targets) if targets else known_releases()
        self.rows: dict[str, Mapping[str, Any]] = {row["id"]: row for row in data["construct"]}

    def active(self, row: str) -> tuple[str, ...]:
        """The target releases for which a row holds."""
        since, until = self.rows[row].get("since", ""), self.rows[row].get("until", "")
        return tuple(
            release
            for release in self.targets
            if (not since or _version(release) >= _version(since))
            and (not until or _version(release) < _version(until))
        )

    def verdict(self, row: str, trust: int, because: str = "", rule: str | None = None) -> Verdict:
        """The verdict of a row: silent for a row that no rule reports, or that holds in no targeted release."""
        reported = rule or self.rows[row].get("rule")
        if reported is None:
            return SILENT
        return Verdict(reported, row, self.active(row), trust, because)

    def waits(self, row: str) -> bool:
        """Whether a row says that the host waits, and not only that it may, or that a call fails."""
        return str(self.rows[row]["verdict"]).startswith("sync")

    def cure(self, row: str) -> str:
        """What to write instead, with its precondition in brackets; empty where nothing has the same meaning."""
        found = self.rows[row]
        fix, condition = found.get("fix", ""), found.get("fix_precondition", "")
        return f"{fix} (where {condition})" if fix and condition else fix


def known_releases() -> tuple[str, ...]:
    """The torch releases that the model tells apart, oldest first."""
    return tuple(load("torch")["meta"]["releases"])


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
