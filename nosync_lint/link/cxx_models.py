"""The rows of `models/cxx.toml`: what waits in C++ host code, and how Python reaches it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Any, NamedTuple

from nosync_lint.index.cuda_matchers import spell
from nosync_lint.index.cuda_records import Expr
from nosync_lint.link.call_models import Argument
from nosync_lint.models import load


class WaitModel(NamedTuple):
    """One row: see the head of the model file."""

    id: str
    form: str
    unless: tuple[str, ...]
    when: tuple[str, ...]
    receivers: tuple[str, ...]
    arguments: int | None
    trust: int
    does: str
    cure: str

    def admits(self, arguments: tuple[Expr, ...]) -> bool:
        """Whether the arguments are such that the row speaks of this call."""
        if self.arguments is not None and len(arguments) != self.arguments:
            return False
        spelled = [spell(argument) for argument in arguments]
        if any(matches(text, self.unless) for text in spelled):
            return False
        return not self.when or any(matches(text, self.when) for text in spelled)


class Loader(NamedTuple):
    """A call in Python that makes an extension: which of its arguments list the sources and what they export, and
    which one names it."""

    sources: tuple[Argument, ...]
    exported: Argument | None
    name: Argument | None

    @classmethod
    def parse(cls, row: Mapping[str, Any]) -> Loader:
        exported, name = row.get("exported"), row.get("name")
        return cls(
            tuple(Argument.parse(text) for text in row["sources"]),
            Argument.parse(exported) if exported else None,
            Argument.parse(name) if name else None,
        )


class CxxModels:
    """Rows by the names of what is called, and the lists of names."""

    def __init__(self) -> None:
        data = load("cxx")
        self.functions: dict[str, list[tuple[str, WaitModel]]] = defaultdict(list)
        self.methods: dict[str, list[WaitModel]] = defaultdict(list)
        for row in data["wait"]:
            model = WaitModel(
                row["id"], row["form"], tuple(row.get("unless", ())), tuple(row.get("when", ())),
                tuple(row.get("receivers", ())), row.get("arguments"), row.get("trust", 2), row["does"], row["cure"],
            )  # fmt: skip
            for name in row.get("functions", ()):
                self.functions[name.rpartition("::")[2]].append((name, model))
            for name in row.get("methods", ()):
                self.methods[name].append(model)
        self.known = frozenset({*self.functions, *self.methods})
        self.exports = {macro: row["form"] for row in data["export"] for macro in row["macros"]}
        self.names: dict[str, tuple[str, ...]] = {key: tuple(listed) for key, listed in data["names"].items()}
        self.moves: dict[str, frozenset[str]] = {key: frozenset(listed) for key, listed in data["moves"].items()}
        self.runs: dict[str, str] = data["calls"]["runs"]
        self.memory = frozenset(data["calls"]["memory"])
        self.containers = tuple(data["calls"]["containers"])
        self.places: dict[str, frozenset[str]] = {key: frozenset(listed) for key, listed in data["places"].items()}
        self.checks: dict[str, tuple[str, ...]] = {key: tuple(listed) for key, listed in data["checks"].items()}
        self.blocks: dict[str, tuple[str, ...]] = {key: tuple(listed) for key, listed in data["blocks"].items()}
        self.blocks["debug"] += tuple(load("presets")["blocks"]["debug"])
        self.cold = tuple(load("presets")["generic"]["cold"])
        self.loaders = {name: Loader.parse(row) for row in data["loader"] for name in row["functions"]}
        self.declarers = {name: Loader.parse(row) for row in data["declares"] for name in row["functions"]}

    def of_function(self, name: str) -> list[WaitModel]:
        """The rows for a free function, called by a possibly qualified name."""
        found = self.functions.get(name.rpartition("::")[2], ())
        return [model for known, model in found if name == known or name.endswith("::" + known)]


def rows() -> list[dict[str, Any]]:
    """The rows of what waits, as written."""
    return list(load("cxx")["wait"])


@cache
def loaders() -> frozenset[str]:
    """The functions of Python that compile and load an extension."""
    return frozenset(name for row in load("cxx")["loader"] for name in row["functions"])


def loaded(loader: str, function: int, pos: int) -> str:
    """A name for what one call of a loader gives, by which its arguments are found again."""
    return f"{loader}#{function}:{pos}"


def load_place(reference: str) -> tuple[str, int, int, str] | None:
    """The loader, the function and the place of the call in what `loaded` gave, and the attribute of it that is named;
    None for any other name."""
    loader, mark, rest = reference.partition("#")
    place, _, attribute = rest.partition(".")
    function, _, pos = place.partition(":")
    return (loader, int(function), int(pos), attribute) if mark else None


@lru_cache(maxsize=100_000)
def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a name matches one of the patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
