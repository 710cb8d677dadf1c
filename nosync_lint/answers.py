"""What is answered beside findings, as plain records: why a line is or is not reported, and which calls lead from hot
roots to what waits."""

from __future__ import annotations

from dataclasses import dataclass

from nosync_lint.finding import Confidence, Finding, Heat, Hop
from nosync_lint.source import Span


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a trail: a place, what stands there, what that is in words, and what it follows from.

    `end` says why the trail goes no further, where that is no plain fact; `more` counts the steps beside this one that
    say the same and are left out.
    """

    filename: str
    row: int
    note: str
    value: str = ""
    steps: tuple[Step, ...] = ()
    end: str = ""
    more: str = ""


@dataclass(frozen=True, slots=True)
class Operand:
    """A part of a site that decides whether it waits: its role, its text, what it is in words, and how it is known.

    `known` is whether that decides anything: a tensor without a place does not.
    """

    role: str
    text: str
    value: str
    known: bool
    steps: tuple[Step, ...] = ()
    end: str = ""


@dataclass(frozen=True, slots=True)
class Wait:
    """A row of the model that holds for a site. `releases` is empty where it holds in none that is targeted."""

    row: str
    rule: str
    releases: str
    confidence: Confidence
    because: str
    construct: str
    condition: str
    source: str


@dataclass(frozen=True, slots=True)
class SiteAnswer:
    """A place of a line where a synchronisation could happen.

    `waits` are the rows that hold; where there is none, `silent` says why, and `undecided` whether that is because
    something is not known. `runs` are the functions of the project that a call may run, `below` the nearest places in
    and below them that wait; `unresolved` is a call of which that is not known.
    """

    form: str
    text: str
    span: Span
    statement: tuple[int, int]
    waits: tuple[Wait, ...] = ()
    silent: str = ""
    undecided: bool = False
    unresolved: bool = False
    operands: tuple[Operand, ...] = ()
    runs: tuple[Hop, ...] = ()
    below: tuple[Hop, ...] = ()


@dataclass(frozen=True, slots=True)
class HeatAnswer:
    """How often a line runs and why: the chain from a hot root, or what stopped it, with the calls that lead here."""

    heat: Heat
    why: str
    chain: tuple[Hop, ...] = ()
    callers: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class LineFacts:
    """What the program knows of one line of a Python file. `nearest` are the sites closest to a line that has none,
    `unresolved` the first of the calls of its function that are not known, without those of the line that have operands
    of their own; `open_calls` counts all of these, and `on_the_way` those of the functions before it."""

    function: str
    sites: tuple[SiteAnswer, ...]
    nearest: tuple[Hop, ...]
    heat: HeatAnswer
    unresolved: tuple[Step, ...] = ()
    open_calls: int = 0
    on_the_way: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finding of the line, and why it is not shown; empty where it is."""

    finding: Finding
    hidden: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a line is or is not reported. `facts` is None for a file that is not Python."""

    filename: str
    row: int
    text: str
    answer: str
    outcomes: tuple[Outcome, ...]
    facts: LineFacts | None
    suppressions: tuple[Hop, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Leaf:
    """A finding at the end of a branch of a call tree."""

    code: str
    name: str
    row: int
    column: int
    confidence: Confidence
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """The rows of a function in which it calls another one, by its number in the tree."""

    rows: tuple[int, ...]
    callee: int


@dataclass(frozen=True, slots=True)
class Node:
    """A function of a call tree: why it is a root, what waits in it, and its calls that lead to more."""

    name: str
    filename: str
    row: int
    root: str
    leaves: tuple[Leaf, ...]
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class CallTree:
    """The functions on the ways from hot roots to what waits. `nodes` stand in the order of a walk from `roots`, which
    are numbers of nodes."""

    roots: tuple[int, ...]
    nodes: tuple[Node, ...]
    notes: tuple[str, ...] = ()
