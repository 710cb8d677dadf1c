"""How often a line runs: hot roots, cold stops, and the shortest chain of calls from a root to a function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, NamedTuple

from nosync_lint.finding import Heat, Hop
from nosync_lint.index.records import CallSite, Expr, row_of, rows_of
from nosync_lint.link.flow import enclosing
from nosync_lint.link.inference import Inference
from nosync_lint.link.project import Class, Function, Project, called_name
from nosync_lint.models import load


class Step(NamedTuple):
    """How a function was reached first: the caller and its call, or None for a root."""

    caller: Function | None
    call: CallSite | None


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


class Roots:
    """Which functions are roots, which are stops and which blocks never count; by name, marker and preset."""

    def __init__(self, project: Project, hot: Sequence[str], cold: Sequence[str] = ()) -> None:
        self._project = project
        presets = load("presets")
        self._generic: dict[str, Any] = presets["generic"]
        self._blocks: dict[str, list[str]] = presets["blocks"]
        self._configured, self._configured_cold = Patterns(hot), Patterns(cold)
        used = self._packages()
        self.presets = tuple(sorted(n for n, p in presets.items() if set(p.get("when", ())) & used))
        self._preset = {preset: Patterns(presets[preset]["hot"]) for preset in self.presets}
        self._cold_names = tuple(self._generic["cold"])
        self._cold_modules = frozenset(self._generic["cold_modules"])
        self._elsewhere = frozenset(self._blocks["other_platform_modules"])
        self._pools: dict[int, bool] = {}
        self._kinds: dict[int, str | None] = {}
        self._rare: dict[tuple[int, int], str | None] = {}
        self._marked = self._markers()

    def unmatched(self, hot: Sequence[str]) -> list[str]:
        """The given root names that name no function."""
        wanted = Patterns(hot)
        functions = [function for function in self._project.functions if function.record.form == "function"]
        matched = {one for function in functions for one in self._matching(function, wanted)}
        return sorted(name for name in hot if tuple(name.split(".")) not in matched)

    def why_hot(self, function: Function) -> str | None:
        """Why a function is a hot root, or None."""
        number = function.number
        if number not in self._kinds:
            self._kinds[number] = self._find_why(function)
        return self._kinds[number]

    def is_hot(self, function: Function) -> bool:
        return self.why_hot(function) is not None

    def is_cold(self, function: Function) -> bool:
        """Whether a function runs rarely by its name, its module or a marker; a configured root never is."""
        marked = self._marked.get(function.number)
        if marked is not None:
            return marked == "cold"
        if self._configured and self._matches(function, self._configured):
            return False
        if self._configured_cold and self._matches(function, self._configured_cold):
            return True
        record = function.record
        if record.form != "function":
            return record.form != "lambda"
        if _any(record.name, self._cold_names):
            return True
        parts = function.module.name.split(".")
        return any(part in self._cold_modules for part in parts[1:]) or parts[-1].startswith("test_")

    def rare_block(self, function: Function, block: int) -> str | None:
        """ "debug" or "platform" where a block is guarded by a debug switch or belongs to another platform."""
        key = (function.number, block)
        if key not in self._rare:
            self._rare[key] = self._find_rare(function, block)
        return self._rare[key]

    def other_platform(self, function: Function, block: int) -> bool:
        """Whether a block is guarded by a test for another platform."""
        return self.rare_block(function, block) == "platform"

    def elsewhere(self, function: Function) -> bool:
        """Whether the whole module is for another platform."""
        return any(part in self._elsewhere for part in function.module.name.split("."))

    def _find_rare(self, function: Function, block: int) -> str | None:
        blocks = function.record.blocks
        for number in enclosing(blocks, block):
            one = blocks[number]
            if one.test is None or one.form not in ("if", "else"):
                continue
            positive = one.form == "if"
            test = one.test
            while test[0] == "unary" and test[1] == "not":
                positive, test = not positive, test[2]
            names = _names(test)
            if positive and any(_any(name, tuple(self._blocks["debug"])) for name in names):
                return "debug"
            others = any(_any(name, tuple(self._blocks["other_platforms"])) for name in names)
            here = any(_any(name, tuple(self._blocks["this_platform"])) for name in names)
            if (positive and others and not here) or (not positive and here and not others and test[0] != "bool"):
                return "platform"
        return None

    def _find_why(self, function: Function) -> str | None:
        record = function.record
        marked = self._marked.get(function.number)
        if marked is not None:
            return "marked hot" if marked == "hot" else None
        if record.form != "function":
            return None
        if self._configured and self._matches(function, self._configured):
            return "given as hot root"
        if self.is_cold(function) or self.elsewhere(function) or "stub" in record.flags:
            return None
        for preset, patterns in self._preset.items():
            if self._matches(function, patterns):
                return f"hot by preset `{preset}`"
        cls = function.cls
        if cls is None:
            parent = function.parent
            if (
                parent is not None
                and parent.record.form == "module"
                and _any(record.name, tuple(self._generic["hot_functions"]))
            ):
                return "frees, allocates or evicts by its name"
            return None
        for base, names in self._generic["hot_methods_of"].items():
            if base in cls.externs and _any(record.name, tuple(names)):
                return f"`{record.name}` of a {base.rpartition('.')[2]}"
        gives, takes = tuple(self._generic["pool_hands_out"]), tuple(self._generic["pool_takes_back"])
        if (_any(record.name, gives) or _any(record.name, takes)) and self._is_pool(cls):
            return "method of an allocator or pool"
        return None

    def _is_pool(self, cls: Class) -> bool:
        if cls.number not in self._pools:
            names = {name for one in cls.mro for name in one.methods}
            self._pools[cls.number] = any(_any(n, tuple(self._generic["pool_hands_out"])) for n in names) and any(
                _any(n, tuple(self._generic["pool_takes_back"])) for n in names
            )
        return self._pools[cls.number]

    def _matches(self, function: Function, patterns: Patterns) -> bool:
        return any(True for _ in self._matching(function, patterns))

    @staticmethod
    def _matching(function: Function, patterns: Patterns) -> Iterator[tuple[str, ...]]:
        """The patterns that match the end of a function's name, or of the same method's name in a base class."""
        record = function.record
        candidates = patterns.ending(record.name)
        if not candidates:
            return
        names = [function.name.split(".")]
        if function.cls is not None:
            names += [[*cls.name.split("."), record.name] for cls in function.cls.mro[1:]]
        for pattern in candidates:
            if any(
                len(pattern) <= len(name)
                and all(fnmatchcase(a, b) for a, b in zip(reversed(name), reversed(pattern), strict=False))
                for name in names
            ):
                yield pattern

    def _packages(self) -> set[str]:
        used: set[str] = set()
        for module in self._project.modules:
            used.add(module.name.partition(".")[0])
            for definitions in module.index.functions[0].definitions.values():
                for found in definitions:
                    if found.value[0] == "import" and not found.value[3]:
                        used.add(found.value[1].partition(".")[0])
        return used

    def _markers(self) -> dict[int, str]:
        """`# nosync-lint: hot` or `cold` on a `def` line, above it, or inside the function."""
        marked: dict[int, str] = {}
        for module in self._project.modules:
            for pragma in module.index.pragmas:
                if pragma.form not in ("hot", "cold"):
                    continue
                inside = [
                    f for f in module.functions if f.record.form == "function" and _covers(f, pragma.row, pragma.alone)
                ]
                if inside:
                    marked[max(inside, key=lambda f: f.record.pos).number] = pragma.form
        return marked


class HeatMap:
    """Which functions a root reaches, and how."""

    def __init__(self, project: Project, inference: Inference, roots: Roots) -> None:
        self._project, self._inference, self.roots = project, inference, roots
        self.resolved = self.unresolved = 0
        self._interesting = self._called_names()
        self.hot = self._spread([f for f in project.functions if roots.is_hot(f)])

    def heat(self, function: Function, block: int) -> Heat:
        """The heat of a block of a function."""
        while function.record.form == "lambda" and function.parent is not None and function.number not in self.hot:
            function, block = function.parent, 0
        if function.number in self.hot:
            return Heat.COLD if self.roots.rare_block(function, block) else Heat.HOT
        return Heat.COLD if self.roots.is_cold(function) else Heat.UNREACHED

    def chain(self, function: Function, row: int, note: str) -> tuple[str | None, tuple[Hop, ...]]:
        """The root and the hops from it to a row of a function; empty where no root reaches it."""
        if function.number not in self.hot:
            return None, ()
        hops = [Hop(function.module.file.name, row, note)]
        step = self.hot[function.number]
        while step.caller is not None and step.call is not None:
            callee = function.record.qualname or function.name
            hops.append(Hop(step.caller.module.file.name, row_of(step.call.call[4]), f"calls `{callee}`"))
            function = step.caller
            step = self.hot[function.number]
        why = self.roots.why_hot(function)
        hops.append(
            Hop(
                function.module.file.name, row_of(function.record.pos), f"hot root `{function.record.qualname}` ({why})"
            )
        )
        return function.name, tuple(reversed(hops))

    def _spread(self, roots: list[Function]) -> dict[int, Step]:
        reached = {function.number: Step(None, None) for function in roots}
        frontier = sorted(roots, key=lambda function: function.number)
        while frontier:
            calls: list[tuple[Function, CallSite]] = []
            for function in frontier:
                for site in function.record.calls:
                    if called_name(site.call) not in self._interesting and site.call[1][0] in ("name", "attr"):
                        continue
                    if self.roots.rare_block(function, site.block) is None:
                        calls.append((function, site))
            following: dict[int, Step] = {}
            for function, site in calls:
                targets = self._inference.targets(function, site)
                self.resolved += bool(targets)
                self.unresolved += not targets
                for target in targets:
                    callee = self._project.functions[target.function]
                    if target.function in reached or target.function in following:
                        continue
                    if not self.roots.is_cold(callee) and not self.roots.elsewhere(callee):
                        following[target.function] = Step(function, site)
            reached.update(following)
            frontier = [self._project.functions[number] for number in sorted(following)]
        return reached

    def _called_names(self) -> frozenset[str]:
        """Last names under which a function or class of the project may be called."""
        names = {function.record.name for function in self._project.functions if function.record.form == "function"}
        names |= {cls.record.name for cls in self._project.classes}
        names |= {alias for name in list(names) for alias in self._project.aliases.get(name, ())}
        names |= set(self._project.writes_by_attribute)  # callables stored in attributes
        return frozenset(names)


def _covers(function: Function, row: int, alone: bool) -> bool:
    first, last = rows_of(function.record.pos)
    return first - (len(function.record.decorators) + 1 if alone else 0) <= row <= last


@lru_cache(maxsize=200_000)
def _any(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _names(test: Expr) -> list[str]:
    """The names a condition mentions, attributes and called functions included."""
    form = test[0]
    if form == "name":
        return [test[1]]
    if form == "attr":
        return [test[2], *_names(test[1])]
    if form == "call":
        return _names(test[1])
    if form == "unary":
        return _names(test[2])
    if form == "bool":
        return [name for part in test[2] for name in _names(part)]
    if form == "cmp":
        return _names(test[2])
    return []
