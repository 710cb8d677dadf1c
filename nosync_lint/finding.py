"""What is reported: findings, the hops that explain them, their ranks, and the rules that make them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from nosync_lint.source import Span


class Severity(StrEnum):
    """How bad a defect is, the worst first. `warning` and above fail a run, unless the project says otherwise."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    def reaches(self, least: Severity) -> bool:
        """Whether this is as bad as another one, or worse."""
        return list(Severity).index(self) <= list(Severity).index(least)


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
    """One step of the story a finding tells: a file, a 1-based row (in a notebook of its `cell`) and a short note."""

    filename: str
    row: int
    note: str
    cell: int | None = None

    @property
    def file(self) -> str:
        """The file as people read it, with the cell of a notebook."""
        return _with_cell(self.filename, self.cell)


class Applicability(StrEnum):
    """How far a fix may be applied without a look at it.

    A safe one keeps what the program does. An unsafe one may change it where something is not as we believe. One for
    display is never applied.
    """

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"


@dataclass(frozen=True, slots=True)
class Edit:
    """The text between two places of the file of a finding gives way to another one, which may be empty."""

    span: Span
    content: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A rewrite that cures a finding. Its edits do not overlap, stand in their order, and are made all or none.

    `recipe` names what was rewritten into what, such as `index-fill`: each has its section in the page of the rule.
    """

    recipe: str
    applicability: Applicability
    message: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One defect at one place.

    `flow` leads from the hot root (or, for contract rules, through the evidence) to the place; `evidence`
    says why the operand is believed to be what it is. `heat` is None for rules that heat does not apply to.
    `scope` is the function or class it stands in, qualified within its module and empty at the top of it.
    `cell` is the number of the cell of a notebook, counted from 1 over all of its cells; the rows of `span` are then
    rows of that cell. `snippet` is the flagged expression in its plain form. Rule, file, scope and snippet are what a
    finding is known by.
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
    scope: str = ""
    fix: Fix | None = None
    cell: int | None = None
    snippet: str = ""

    @property
    def order(self) -> tuple[str, int, int, int, str, str]:
        """Findings are reported in this order, whatever order they were found in."""
        return (self.filename, self.cell or 0, self.span.row, self.span.column, self.code, self.message)

    @property
    def file(self) -> str:
        """The file as people read it, with the cell of a notebook. `Report.sources` has its lines under this name."""
        return _with_cell(self.filename, self.cell)


def _with_cell(filename: str, cell: int | None) -> str:
    return filename if cell is None else f"{filename}:cell {cell}"


@dataclass(frozen=True, slots=True)
class Suppressed:
    """A finding that is known and accepted: by a comment or block in the source, or by the baseline.

    `reason` is what the comment or the entry says, `row` where the comment stands in the file of the finding (0 for an
    entry of the baseline), `form` its form: ignore, noqa, waiver, off, skip-file, block (a context manager or decorator
    says that waits are meant), or baseline. `until` is the last day on which it holds.
    """

    finding: Finding
    form: str
    reason: str
    row: int = 0
    owner: str = ""
    until: str = ""


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """What reports say of a rule. `summary` is one sentence, `documentation` begins with it.

    `sites` are the kinds of site it is asked about: "bad-file" for files that cannot be used, "configured-name" for the
    configuration.
    """

    code: str
    name: str
    severity: Severity
    summary: str
    documentation: str
    sites: tuple[str, ...] = ()
    url: str = ""
