"""What a project says of its own functions: which wait, which cure, where what they give back lives, what waives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from nosync_lint.index.records import Expr
from nosync_lint.link.project import Function, Project, called_name, uncalled


class Patterns:
    """Dotted name patterns, looked up by the last part of a name."""

    def __init__(self, names: Iterable[str]) -> None:
        self._literal: dict[str, list[tuple[str, ...]]] = {}
        self._globs: list[tuple[str, ...]] = []
        for pattern in (tuple(name.split(".")) for name in names):
            if any(mark in pattern[-1] for mark in "*?["):
                self._globs.append(pattern)
            else:
                self._literal.setdefault(pattern[-1], []).append(pattern)
        self._ending: dict[str, list[tuple[str, ...]]] = {}

    def __bool__(self) -> bool:
        return bool(self._literal or self._globs)

    def ending(self, name: str) -> list[tuple[str, ...]]:
        """The patterns whose last part matches a name."""
        if name not in self._ending:
            globs = [pattern for pattern in self._globs if fnmatchcase(name, pattern[-1])]
            self._ending[name] = self._literal.get(name, []) + globs
        return self._ending[name]

    def matching(self, function: Function) -> Iterator[tuple[str, ...]]:
        """The patterns that match the end of a function's name, or of the same method's name in a base class."""
        record = function.record
        candidates = self.ending(record.name)
        if not candidates:
            return
        names = [function.name.split(".")]
        if function.cls is not None:
            names += [[*cls.name.split("."), record.name] for cls in function.cls.mro[1:]]
        for pattern in candidates:
            if any(ends(name, pattern) for name in names):
                yield pattern

    def match(self, function: Function) -> bool:
        """Whether some pattern matches a function."""
        return bool(self.ending(function.record.name)) and any(True for _ in self.matching(function))

    def match_name(self, dotted: str) -> bool:
        """Whether some pattern matches the end of a dotted name from outside the project."""
        return any(ends(dotted.split("."), pattern) for pattern in self.ending(dotted.rpartition(".")[2]))


def ends(name: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a dotted name, in parts, ends as a pattern says."""
    return len(pattern) <= len(name) and all(
        fnmatchcase(a, b) for a, b in zip(reversed(name), reversed(pattern), strict=False)
    )


@dataclass(frozen=True, slots=True)
class Told:
    """The lists of the configuration: names of functions, each a qualified name or its end. `waivers` are names of
    context managers under which a wait is meant, `presets` names of `models/presets.toml`, where `auto` stands for
    those of the packages that the project is or imports."""

    waits: tuple[str, ...] = ()
    cures: tuple[str, ...] = ()
    returns_device: tuple[str, ...] = ()
    returns_host: tuple[str, ...] = ()
    waivers: tuple[str, ...] = ()
    presets: tuple[str, ...] = ("auto",)


class Configured:
    """The lists, ready to be asked."""

    def __init__(self, project: Project, told: Told, waivers: Iterable[str]) -> None:
        self._project, self._told = project, told
        self.presets = told.presets
        self.waits, self.cures = Patterns(told.waits), Patterns(told.cures)
        self._device, self._host = Patterns(told.returns_device), Patterns(told.returns_host)
        self._waivers = frozenset(waivers) | frozenset(name.rpartition(".")[2] for name in told.waivers)

    def place(self, function: Function) -> str | None:
        """Where the tensors live that a function of the project gives back, if that is told."""
        if self._device and self._device.match(function):
            return "device"
        return "host" if self._host and self._host.match(function) else None

    def place_of(self, dotted: str) -> str | None:
        """The same for a function from outside the project."""
        if self._device and self._device.match_name(dotted):
            return "device"
        return "host" if self._host and self._host.match_name(dotted) else None

    def waiver(self, managers: Sequence[Expr]) -> Expr | None:
        """The one of the managers of a `with` block, or of the decorators of a function, that says that waits in it
        are meant."""
        for manager in managers:
            path = uncalled(manager)
            if path[0] in ("name", "attr") and path[-1] in self._waivers:
                return manager
        return None

    def unmatched(self) -> list[str]:
        """The names that belong to no function of the project and to nothing that it calls."""
        told = self._told
        listed = (*told.waits, *told.cures, *told.returns_device, *told.returns_host)
        known = {called_name(site.call) for function in self._project.functions for site in function.record.calls}
        known |= {function.record.name for function in self._project.functions}
        return [name for name in listed if not any(fnmatchcase(one, name.rpartition(".")[2]) for one in known if one)]
