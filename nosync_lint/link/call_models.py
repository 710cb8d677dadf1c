"""The rows of `models/calls.toml`: which calls wait, what their operands must be, and under which conditions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, NamedTuple

from nosync_lint.index.records import Expr
from nosync_lint.models import load

_LITERALS = {"true": True, "false": False}


class Argument(NamedTuple):
    """An argument by position, by name, or both. `value`: the literal it is compared with, or None for any."""

    position: int | None
    name: str
    value: Any = None

    @classmethod
    def parse(cls, text: str) -> Argument:
        """From "position:name" or "position:name=value"; either side of the colon may be empty."""
        place, _, rest = text.partition(":")
        name, _, value = rest.partition("=")
        literal = _LITERALS.get(value, int(value) if value.lstrip("-").isdigit() else value) if value else None
        return cls(int(place) if place else None, name, literal)


class Given:
    """The arguments of one call. For a method, `receiver` is the tensor and counts as the first argument."""

    __slots__ = ("_positional", "_words")

    def __init__(self, call: Expr, receiver: Expr | None) -> None:
        self._positional: tuple[Expr, ...] = call[2] if receiver is None else (receiver, *call[2])
        self._words = dict(call[3])

    def find(self, argument: Argument) -> Expr | None:
        """The expression given for an argument, or None."""
        word: Expr | None = self._words.get(argument.name) if argument.name else None
        if word is not None:
            return word
        place = argument.position
        if place is None or place >= len(self._positional):
            return None
        if any(one[0] == "star" for one in self._positional[: place + 1]):
            return None
        return self._positional[place]

    def holds(self, argument: Argument) -> bool:
        """Whether an argument is given with the literal that is asked for; with any value but None where none is."""
        expr = self.find(argument)
        if argument.value is None:
            return expr is not None and expr != ("const", None)
        return expr == ("const", argument.value)

    @property
    def all(self) -> tuple[Expr, ...]:
        """Every argument; those behind `**` are not known."""
        return (*self._positional, *(value for name, value in self._words.items() if name))

    def __len__(self) -> int:
        return len(self._positional) + len(self._words)


@dataclass(frozen=True, slots=True)
class CallModel:
    """One row: see the head of the model file. `form` is "listed", or what takes the place of listed `operands`."""

    row: str
    rule: str | None
    form: str
    operands: tuple[Argument, ...]
    lives: str
    beside: str
    rank: int | None
    when: tuple[Argument, ...]
    unless: tuple[Argument, ...]
    arguments: int | None
    trust: int
    distinctive: bool
    named: tuple[str, ...]
    of: Argument | None
    only: tuple[str, ...]
    among: tuple[str, ...]
    sure: tuple[str, ...]
    sink: bool
    trains: bool
    off: tuple[str, ...]

    @classmethod
    def parse(cls, row: Mapping[str, Any]) -> CallModel:
        operands = row.get("operands", ["0:input"])
        form = operands[0] if operands[0] in ("none", "any", "elements", "held", "result") else "listed"
        return cls(
            row["row"],
            row.get("rule"),
            form,
            tuple(Argument.parse(text) for text in operands) if form == "listed" else (),
            row.get("lives", "device"),
            row.get("beside", ""),
            row.get("rank"),
            tuple(Argument.parse(text) for text in row.get("when", ())),
            tuple(Argument.parse(text) for text in row.get("unless", ())),
            row.get("arguments"),
            row.get("trust", 2),
            row.get("distinctive", False),
            tuple(row.get("named", ())),
            Argument.parse(row["of"]) if "of" in row else None,
            tuple(row.get("only", ())),
            tuple(row.get("among", ())),
            tuple(row.get("sure", ())),
            row.get("sink", False),
            row.get("trains", False),
            tuple(row.get("off", ())),
        )

    def admits(self, given: Given) -> bool:
        """Whether the arguments are such that the row speaks of this call."""
        if self.arguments is not None and len(given) != self.arguments:
            return False
        name = self._of(given)
        if name is not None and _any(name, self.only):
            return False
        if self.among and not _any(name or "", self.among):
            return False
        return all(given.holds(one) for one in self.when) and not any(given.holds(one) for one in self.unless)

    def told(self, given: Given) -> bool:
        """Whether the argument `of` is left out, or named so that the row is known to hold."""
        name = self._of(given)
        return name is None or not self.sure or _any(name, self.sure)

    def _of(self, given: Given) -> str | None:
        """How the argument `of` is named; None where it is not given."""
        expr = given.find(self.of) if self.of is not None else None
        return None if expr is None or expr == ("const", None) else _spelled(expr)


@dataclass(frozen=True, slots=True)
class CopyModel:
    """A call that copies: the argument that is copied, whether into the tensor of the method, and the rows by
    direction. A row that is missing says that such a copy does not wait. `unknown`: how far it is believed that
    unknown data is no tensor. `sizes`: a number is a size and no data. `flag`: the
    argument that makes the copy asynchronous."""

    source: Argument
    into: bool
    unknown: int
    sizes: bool
    flag: Argument
    rows: Mapping[str, str]


class CallModels:
    """Rows by the names of what is called."""

    def __init__(self) -> None:
        data = load("calls")
        self.functions: dict[str, list[CallModel]] = defaultdict(list)
        self.methods: dict[str, list[CallModel]] = defaultdict(list)
        self.members: dict[str, list[tuple[str, CallModel]]] = defaultdict(list)
        training = data["training"]
        self.gradients, self.without_gradients = frozenset(training["calls"]), frozenset(training["off"])
        self._tests: list[str] = training["tests"]
        for row in data["call"]:
            model = CallModel.parse(row)
            for name in row.get("functions", ()):
                self.functions[name].append(model)
            for name in row.get("methods", ()):
                self.methods[name].append(model)
            for name in row.get("members", ()):
                owner, _, method = name.rpartition(".")
                self.members[method].append((owner, model))
        self.copy_functions: dict[str, CopyModel] = {}
        self.copy_methods: dict[str, CopyModel] = {}
        for row in data["copy"]:
            rows = {key: value for key, value in row.items() if key.partition("_")[0] in _DIRECTIONS}
            copy = CopyModel(
                Argument.parse(row["source"]),
                row.get("into", False),
                row.get("unknown", 0),
                row.get("sizes", False),
                Argument.parse(row.get("flag", ":non_blocking")),
                rows,
            )
            self.copy_functions.update(dict.fromkeys(row.get("functions", ()), copy))
            self.copy_methods.update(dict.fromkeys(row.get("methods", ()), copy))
        functions = [*self.functions, *self.copy_functions]
        self.names = frozenset(
            {*self.methods, *self.members, *self.copy_methods, *(name.rpartition(".")[2] for name in functions)}
        )

    @cached_property
    def sinks(self) -> frozenset[str]:
        """The last names of calls that a known position makes unnecessary."""
        by_name = [(name.rpartition(".")[2], rows) for name, rows in self.functions.items()] + [*self.methods.items()]
        return frozenset(name for name, rows in by_name if any(model.sink for model in rows))

    def tests(self, module: str, name: str) -> bool:
        """Whether a function is part of a test by its name or that of its module."""
        parts = (*module.split("."), name)
        return any(fnmatchcase(part, pattern) for part in parts for pattern in self._tests)

    def rows(self) -> Sequence[str]:
        """The rows that some call is tied to."""
        models = [
            *self.functions.values(),
            *self.methods.values(),
            [m for found in self.members.values() for _, m in found],
        ]
        copies = [*self.copy_functions.values(), *self.copy_methods.values()]
        return sorted(
            {m.row for found in models for m in found} | {row for copy in copies for row in copy.rows.values()}
        )


_DIRECTIONS = frozenset({"upload", "download", "elements", "module"})


def _any(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _spelled(expr: Expr) -> str:
    """The last name of a plain expression, by which a process group tells its backend."""
    if expr[0] in ("name", "attr"):
        return str(expr[-1])
    if expr[0] == "call":
        return _spelled(expr[1])
    return ""
