"""What is reported: findings, the hops that explain them, and their ranks."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from nosync_lint.source import Span


class Severity(StrEnum):
    """How bad a defect is. `warning` and above fail a run."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def fails(self) -> bool:
        return self is not Severity.INFO


class Confidence(StrEnum):
    """How much of the evidence follows from the program text."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"

    @property
    def rank(self) -> int:
        return ("possible", "likely", "certain").index(self.value)


class Heat(StrEnum):
    """How often a line runs: per step, per request, rarely, or by no known root."""

    HOT = "hot"
    WARM = "warm"
    COLD = "cold"
    UNREACHED = "unreached"


@dataclass(frozen=True, slots=True)
class Hop:
    """One step of the story a finding tells: a file, a 1-based row and a short note."""

    filename: str
    row: int
    note: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One defect at one place.

    `flow` leads from the hot root (or, for contract rules, through the evidence) to the place; `evidence`
    says why the operand is believed to be what it is. `heat` is None for rules that heat does not apply to.
    """

    code: str
    name: str
    message: str
    filename: str
    span: Span
    severity: Severity
    confidence: Confidence
    cure: str
    heat: Heat | None = None
    flow: tuple[Hop, ...] = ()
    evidence: tuple[Hop, ...] = ()
    related: tuple[Hop, ...] = ()
    root: str | None = None
    group: str | None = None
    fingerprint: str = ""
    url: str = field(default="")

    @property
    def order(self) -> tuple[str, int, int, str, str]:
        """Findings are reported in this order, whatever order they were found in."""
        return (self.filename, self.span.row, self.span.column, self.code, self.message)
