"""What a rule is: a defect with a name, and one question asked of the program."""

from __future__ import annotations

import copy
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from nosync_lint.finding import Applicability, Confidence, Fix, Hop, Severity
from nosync_lint.source import Span

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode

    from nosync_lint.link.program import Program
    from nosync_lint.link.syncs import Sync


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a rule says of one site. `judge` turns it into a `Finding` with heat, chain and fingerprint.

    `filename` and `span` default to those of the site. `sink` names what several judgements share (for
    example the de-duplication that a lost override leads to): equal sinks give findings one `group`.
    """

    message: str
    cure: str
    confidence: Confidence
    filename: str | None = None
    span: Span | None = None
    flow: tuple[Hop, ...] = ()
    evidence: tuple[Hop, ...] = ()
    related: tuple[Hop, ...] = ()
    sink: str | None = None
    fix: Fix | None = None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """How a site is written so that it does not wait.

    `template` is the new text of the expression at the site, or of its whole `statement`. Parts of the old text stand
    in braces, and keep their every character: `{target}`, `{index}`, `{index[0]}` and `{value}` of a subscript or a
    store, `{function}`, `{receiver}`, `{args[0]}` and `{args[device]}` of a call. What stands between them gives way
    to what stands between them in the template, where it differs.

    The lines of the statements `removed` go, which stand at packed places. With `hoisted` the line of the statement
    moves before the loop that it stands in, and the template is empty.
    """

    recipe: str
    applicability: Applicability
    message: str
    template: str
    statement: bool = False
    removed: tuple[int, ...] = ()
    hoisted: bool = False


@dataclass(frozen=True, slots=True)
class BadFile:
    """A file that could not be used: kind of site "bad-file"."""

    filename: str
    reason: str
    span: Span


@dataclass(frozen=True, slots=True)
class Suppression:
    """A suppression comment, once everything else is judged: kind of site "suppression".

    `unknown` are names in it that no rule has, `unused` those that match no finding. `expired`: it would cover a
    finding, and its last day is over. `removal` takes it away, or what is unused in it.
    """

    filename: str
    span: Span
    form: str
    names: tuple[str, ...]
    unknown: tuple[str, ...]
    reason: str
    used: bool
    unused: tuple[str, ...] = ()
    until: str = ""
    owner: str = ""
    expired: bool = False
    removal: Fix | None = None


@dataclass(frozen=True, slots=True)
class StaleEntry:
    """An entry of the baseline that asks for more findings than there are: kind of site "baseline-entry". `source` is
    the file that it is about."""

    filename: str
    span: Span
    source: str
    name: str
    listed: int
    found: int


@dataclass(frozen=True, slots=True)
class BudgetCheck:
    """A budget of the configuration, and the syncs that were found below its root: kind of site "budget"."""

    filename: str
    span: Span
    root: str
    budget: int
    syncs: tuple[Hop, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class ConfiguredName:
    """A name or path in the configuration: kind of site "configured-name"."""

    filename: str
    span: Span
    kind: str
    name: str
    cure: str
    exists: bool


class Status(StrEnum):
    """Where a rule is in its life: `docs/versioning.md` says what may change when. One that is gone is `Retired`."""

    PREVIEW = "preview"
    STABLE = "stable"
    DEPRECATED = "deprecated"


@dataclass(frozen=True, slots=True)
class Option:
    """Something a project may say of one rule: a list of strings, a number or a truth value, like its default."""

    name: str
    default: tuple[str, ...] | int | bool
    about: str


@dataclass(frozen=True, slots=True)
class Retired:
    """A code and slug that no rule has any more, or ever will. `now` is the rule that took its place, if any."""

    code: str
    slug: str
    since: str
    why: str
    now: str = ""


class Rule(ABC):
    """One defect. The class name in kebab-case is the slug, the first line of the module docstring its summary.

    `sites` names the kinds of site the rule is asked about. `heated` says whether the defect is about lines
    that run (then heat and chain are added) or about a contract (then `flow` is the rule's own evidence). A rule whose
    `default` is false is asked only where it is selected. `recipes` names the rewrites that it offers. In a project
    `severity` may be another one, and `options` are what else may be said of it there.
    """

    code: ClassVar[str]
    since: ClassVar[str]
    severity: Severity
    sites: ClassVar[tuple[str, ...]]
    heated: ClassVar[bool] = True
    default: ClassVar[bool] = True
    status: ClassVar[Status] = Status.STABLE
    options: ClassVar[tuple[Option, ...]] = ()
    given: Mapping[str, Any] = MappingProxyType({})
    recipes: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def slug(cls) -> str:
        return re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()

    def configured(self, severity: Severity | None, options: Mapping[str, Any]) -> Self:
        """This rule as a project wants it."""
        rule = copy.copy(self)
        rule.severity = severity or self.severity
        rule.given = dict(options)
        return rule

    def option(self, name: str) -> Any:
        """What a project says of an option, or its default."""
        return self.given.get(name, next(one.default for one in self.options if one.name == name))

    @staticmethod
    def shape() -> BaseMatcherNode | None:
        """The libcst shape that a flagged statement must contain; None where the site is no Python statement."""
        return None

    @abstractmethod
    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        """Yield what is wrong at `site`. Asks the program; never walks syntax."""

    def fix(self, site: object, program: Program) -> Rewrite | None:
        """How `site`, which is judged and shown, can be written instead; None where nothing is known to mean the same.

        What it rests on is checked against what is inferred: safe where that leaves no doubt.
        """
        return None


def tier(sure: bool) -> Applicability:
    """How far a rewrite may be applied, by whether all that it rests on is proven."""
    return Applicability.SAFE if sure else Applicability.UNSAFE


def waits(
    sync: Sync, program: Program, what: str, *, cure: str = "", stops: str = " and waits for the stream"
) -> Judgement:
    """The judgement of a place that waits: what it does, in which releases and why, and the cure of its row."""
    verdict = sync.verdict
    reason = f": {verdict.because}" if verdict.because else ""
    return Judgement(
        message=f"{what}{stops} {program.when(verdict)}{reason}",
        cure=cure or program.cure(sync),
        confidence=verdict.confidence,
        evidence=program.evidence(sync.operand),
    )
