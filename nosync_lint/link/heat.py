"""How often a line runs: hot roots, cold stops, and the shortest chain of calls from a root to a function."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from nosync_lint.finding import Heat, Hop
from nosync_lint.index.records import Block, CallSite, Expr, row_of, rows_of
from nosync_lint.link.configured import Configured, Patterns, Told
from nosync_lint.link.flow import enclosing
from nosync_lint.link.implicit_calls import ImplicitCalls
from nosync_lint.link.inference import Inference
from nosync_lint.link.project import Class, Function, Project, called_name, uncalled
from nosync_lint.models import any_of, load


class Step(NamedTuple):
    """How a function was reached first: the caller and its call, or None for a root."""

    caller: Function | None
    call: CallSite | None


class ModuleRole(NamedTuple):
    """What the name of a module says of the functions in it: the parts by which it is cold or for another platform,
    and whether its data is still on the host."""

    cold: str | None
    platform: str | None
    on_host: bool


class Roots:
    """Which functions are roots, which are stops and which blocks never count; by name, marker and preset."""

    def __init__(
        self, project: Project, hot: Sequence[str], cold: Sequence[str] = (), told: Told | None = None
    ) -> None:
        self._project = project
        presets = load("presets")
        self._generic: dict[str, Any] = presets["generic"]
        lists = {**presets["blocks"], **{key: names for key, names in self._generic.items() if isinstance(names, list)}}
        self._is = {key: any_of(names) for key, names in lists.items()}
        self._hot_methods = {base: any_of(names) for base, names in self._generic["hot_methods_of"].items()}
        self._configured, self._configured_cold = Patterns(hot), Patterns(cold)
        self.told = Configured(project, told or Told(), presets["blocks"]["waivers"])
        named = self.told.presets
        used = self._packages() if "auto" in named else set()
        self.presets = tuple(sorted(n for n, p in presets.items() if n in named or set(p.get("when", ())) & used))
        self._preset = {preset: Patterns(presets[preset]["hot"]) for preset in self.presets}
        self._warm = {name: Patterns(presets[name].get("warm", ())) for name in ("generic", *self.presets)}
        self._cold_names = tuple(self._generic["cold"])
        self._cold_modules = frozenset(self._generic["cold_modules"])
        self._elsewhere = any_of(presets["blocks"]["other_platform_modules"])
        self._module_types = frozenset(self._generic["module_types"])
        self._of_modules = [self._told_by_name(module.name) for module in project.modules]
        self._device_code = self._find_device_code()
        self._pools: dict[int, bool] = {}
        self._kinds: dict[int, str | None] = {}
        self._rare: dict[tuple[int, int], str | None] = {}
        self._marked = self._markers()

    def unmatched(self, hot: Sequence[str]) -> list[str]:
        """The given root names that name no function."""
        wanted = Patterns(hot)
        functions = [function for function in self._project.functions if function.record.form == "function"]
        matched = {one for function in functions for one in wanted.matching(function)}
        return sorted(name for name in hot if tuple(name.split(".")) not in matched)

    def named(self, functions: Iterable[Function], name: str) -> list[Function]:
        """The functions that a name stands for: the end of their qualified name, or of the same method's in a base."""
        wanted = Patterns([name])
        return [function for function in functions if wanted.match(function)]

    def why_hot(self, function: Function) -> str | None:
        """Why a function is a hot root, or None."""
        number = function.number
        if number not in self._kinds:
            self._kinds[number] = self._find_why(function)
        return self._kinds[number]

    def why_warm(self, function: Function) -> str | None:
        """Why a function runs once per request, or None."""
        if not self._warm or self._marked.get(function.number) is not None or function.record.form != "function":
            return None
        for preset, patterns in self._warm.items():
            if patterns.match(function) and not self.is_cold(function) and not self.elsewhere(function):
                return f"runs once per request by preset `{preset}`"
        return None

    def is_hot(self, function: Function) -> bool:
        return self.why_hot(function) is not None

    def is_cold(self, function: Function) -> bool:
        """Whether a function runs rarely by its name, its module or a marker; a configured root never is."""
        return self.why_cold(function) is not None

    def why_cold(self, function: Function) -> str | None:
        """Why a function runs rarely, or None."""
        marked = self._marked.get(function.number)
        if marked is not None:
            return "marked cold" if marked == "cold" else None
        if self._configured and self._configured.match(function):
            return None
        if self._configured_cold and self._configured_cold.match(function):
            return "given as cold stop"
        record = function.record
        if record.form != "function":
            return None if record.form == "lambda" else f"the body of a {record.form} runs once"
        if self._is["cold"](record.name):
            stop = next(pattern for pattern in self._cold_names if fnmatchcase(record.name, pattern))
            return f"cold stop by its name (`{stop}`)"
        rare = self.cold_module(function)
        return f"cold stop by its module (`{rare}`)" if rare is not None else None

    def cold_module(self, function: Function) -> str | None:
        """The part of a module's name by which it holds tests, tools or configuration, or None."""
        return self._of_modules[function.module.number].cold

    def rare_block(self, function: Function, block: int) -> str | None:
        """ "debug", "platform", "error" or "waived" where a debug switch guards a block, it is for another platform, it
        ends in an exception, or a context manager says that waits in it are meant."""
        key = (function.number, block)
        if key not in self._rare:
            self._rare[key] = self._find_rare(function, block)
        return self._rare[key]

    def other_platform(self, function: Function, block: int) -> bool:
        """Whether a block is guarded by a test for another platform."""
        return self.rare_block(function, block) == "platform"

    def waiver(self, function: Function, block: int) -> tuple[int, str] | None:
        """The row and the reason of the context manager, or decorator, that says that waits in a block are meant."""
        while block >= 0:
            one = function.record.blocks[block]
            manager = self.told.waiver(one.test[1]) if one.form == "with" and one.test is not None else None
            if manager is not None:
                return _told(manager, function)
            block = one.parent
        manager = self.told.waiver(function.record.decorators)
        return _told(manager, function) if manager is not None else None

    def elsewhere(self, function: Function) -> bool:
        """Whether a function is not judged: its module is for another platform, it is device code, or a cure."""
        return self.why_elsewhere(function) is not None

    def why_elsewhere(self, function: Function) -> str | None:
        """Why nothing in a function is judged, or None."""
        if function.number in self._device_code:
            return "it is compiled for the device"
        if self.told.cures and self.told.cures.match(function):
            return "it is given as a cure: what waits in it is its business"
        part = self._of_modules[function.module.number].platform
        return f"its module is for another platform (`{part}`)" if part is not None else None

    def is_library(self, function: Function) -> bool:
        """Whether a function is one that other projects may call with tensors of theirs."""
        record = function.record
        if record.form != "function" or record.name.startswith("_") or self.is_cold(function):
            return False
        return not self.is_on_host(function)

    def is_on_host(self, function: Function) -> bool:
        """Whether a function belongs to a part of the project whose data is still on the host."""
        return self._of_modules[function.module.number].on_host

    def _told_by_name(self, module: str) -> ModuleRole:
        parts = module.split(".")
        cold = next((part for part in parts[1:] if part in self._cold_modules), None)
        return ModuleRole(
            parts[-1] if cold is None and parts[-1].startswith("test_") else cold,
            next((part for part in parts if self._elsewhere(part)), None),
            any(self._is["host_modules"](part) for part in parts),
        )

    def is_module(self, cls: Class) -> bool:
        """Whether a class is a module of a network."""
        return bool(cls.externs & self._module_types)

    def _find_device_code(self) -> frozenset[int]:
        """Functions that are compiled for the device, and the functions that only they call."""
        found: set[int] = set()
        for function in self._project.functions:
            for decorator in function.record.decorators:
                path = uncalled(decorator)
                if path[0] in ("name", "attr") and _last_is_jit(path):
                    value = self._project.static_path(function.module, path)
                    if value is not None and value.kind == "extern" and self._is["device_code"](value.ref):
                        found.add(function.number)
        pending = sorted(found)
        for number in pending:  # grows while it is walked
            function = self._project.functions[number]
            for site in function.record.calls:
                if site.call[1][0] == "name":
                    callee = self._project.static_path(function.module, site.call[1])
                    for one in callee.ref if callee is not None and callee.kind == "function" else ():
                        if one not in found:
                            found.add(one)
                            pending.append(one)
        inner = [f.number for f in self._project.functions if f.parent is not None and f.parent.number in found]
        return frozenset([*found, *inner])

    def _find_rare(self, function: Function, block: int) -> str | None:
        one = function.record.blocks[block]
        found = self._why_rare(one)
        if found is None and one.parent < 0:
            return "waived" if self.told.waiver(function.record.decorators) is not None else None
        return found if found is not None else self.rare_block(function, one.parent)

    def _why_rare(self, one: Block) -> str | None:
        """The same of a block alone, without those around it."""
        if one.form == "raise" or (one.ends == "raise" and one.form in ("if", "else")):
            return "error"
        if one.form == "with" and one.test is not None and self.told.waiver(one.test[1]) is not None:
            return "waived"
        if one.test is None or one.form not in ("if", "else"):
            return None
        positive = one.form == "if"
        test = one.test
        while test[0] == "unary" and test[1] == "not":
            positive, test = not positive, test[2]
        names = _names(test)
        if positive and any(self._is["debug"](name) for name in names):
            return "debug"
        others = any(self._is["other_platforms"](name) for name in names)
        here = any(self._is["this_platform"](name) for name in names)
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
        if self._configured and self._configured.match(function):
            return "given as hot root"
        if self.is_cold(function) or self.elsewhere(function) or "stub" in record.flags:
            return None
        for preset, patterns in self._preset.items():
            if patterns.match(function):
                return f"hot by preset `{preset}`"
        cls = function.cls
        if cls is None:
            parent = function.parent
            if parent is not None and parent.record.form == "module" and self._is["hot_functions"](record.name):
                return "runs in every step by its name"
            return None
        for base, is_hot in self._hot_methods.items():
            if base in cls.externs and is_hot(record.name):
                return f"`{record.name}` of a {base.rpartition('.')[2]}"
        gives, takes = self._is["pool_hands_out"], self._is["pool_takes_back"]
        if (gives(record.name) or takes(record.name)) and self._is_pool(cls):
            return "method of an allocator or pool"
        return None

    def _is_pool(self, cls: Class) -> bool:
        if cls.number not in self._pools:
            names = {name for one in cls.mro for name in one.methods}
            gives, takes = self._is["pool_hands_out"], self._is["pool_takes_back"]
            self._pools[cls.number] = any(map(gives, names)) and any(map(takes, names))
        return self._pools[cls.number]

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
        self.hot: dict[int, Step] = {}
        self._interesting = self._called_names()
        self._implicit = ImplicitCalls(project, inference)
        self.hot = self._spread([f for f in project.functions if roots.is_hot(f)])
        counted = self.resolved, self.unresolved  # on the way from hot roots
        warm = [f for f in project.functions if f.number not in self.hot and roots.why_warm(f) is not None]
        self.warm = self._spread(warm)
        self.resolved, self.unresolved = counted

    def heat(self, function: Function, block: int) -> Heat:
        """The heat of a block of a function."""
        function, block = self._running(function, block)
        if function.number in self.hot:
            return Heat.COLD if self.roots.rare_block(function, block) else Heat.HOT
        if function.number in self.warm:
            return Heat.COLD if self.roots.rare_block(function, block) else Heat.WARM
        return Heat.COLD if self.roots.is_cold(function) else Heat.UNREACHED

    def chain(self, function: Function, row: int, note: str, block: int = 0) -> tuple[str | None, tuple[Hop, ...]]:
        """The root and the hops from it to a row of a function, in a block of it; empty where no root reaches it."""
        function, block = self._running(function, block)
        reached = self.hot if function.number in self.hot else self.warm
        if function.number not in reached:
            return None, ()
        hops = [Hop(function.module.file.name, row, note + _in_loops(function, block))]
        step = reached[function.number]
        while step.caller is not None and step.call is not None:
            note = f"calls `{function.record.qualname or function.name}`" + _in_loops(step.caller, step.call.block)
            hops.append(Hop(step.caller.module.file.name, row_of(step.call.call[4]), note))
            function = step.caller
            step = reached[function.number]
        hot = reached is self.hot
        why = self.roots.why_hot(function) if hot else self.roots.why_warm(function)
        root = f"{'hot' if hot else 'warm'} root `{function.record.qualname}` ({why})"
        hops.append(Hop(function.module.file.name, row_of(function.record.pos), root))
        return function.name, tuple(reversed(hops))

    def through(self, files: Collection[str]) -> frozenset[int]:
        """The functions that stand in these files or whose chain leads through them."""
        found: set[int] = set()
        for reached in (self.hot, self.warm):
            for number, step in reached.items():  # callers come before what they call
                here = self._project.functions[number].module.file.name in files
                if here or (step.caller is not None and step.caller.number in found):
                    found.add(number)
        return frozenset(found)

    def _running(self, function: Function, block: int) -> tuple[Function, int]:
        """The function that runs the code: for a lambda that nothing is known to call, the one that it stands in."""
        while function.record.form == "lambda" and function.parent is not None and function.number not in self.hot:
            function, block = function.parent, 0
        return function, block

    def _spread(self, roots: list[Function]) -> dict[int, Step]:
        reached = {function.number: Step(None, None) for function in roots}
        frontier = sorted(roots, key=lambda function: function.number)
        while frontier:
            following: dict[int, Step] = {}
            for function in frontier:
                for site in self._followed(function):
                    targets = self._inference.targets(function, site)
                    self.resolved += bool(targets)
                    self.unresolved += not targets
                    for target in targets:
                        self._follow(function, site, target.function, reached, following)
                for site, method in self._unnamed(function):
                    self._follow(function, site, method.number, reached, following)
            reached.update(following)
            frontier = [self._project.functions[number] for number in sorted(following)]
        return reached

    def _follow(
        self, function: Function, site: CallSite, number: int, reached: dict[int, Step], following: dict[int, Step]
    ) -> None:
        callee = self._project.functions[number]
        if (
            number in reached
            or number in following
            or number in self.hot
            or self.roots.is_cold(callee)
            or self.roots.elsewhere(callee)
        ):
            return
        following[number] = Step(function, site)

    def _unnamed(self, function: Function) -> Iterator[tuple[CallSite, Function]]:
        """The properties and special methods that a function runs: calls that do not look like it."""
        return self._implicit.of(function, lambda block: self.roots.rare_block(function, block) is None)

    def calls(self, function: Function) -> Iterator[tuple[CallSite, Function]]:
        """The calls of a hot function along which heat flows, with what they run."""
        for site in self._followed(function):
            for target in self._inference.targets(function, site):
                callee = self._project.functions[target.function]
                if self._takes_heat(callee):
                    yield site, callee
        for site, method in self._unnamed(function):
            if self._takes_heat(method):
                yield site, method

    def _takes_heat(self, callee: Function) -> bool:
        return callee.number in self.hot and not self.roots.is_cold(callee) and not self.roots.elsewhere(callee)

    def below(self, roots: Sequence[Function]) -> frozenset[int]:
        """The hot functions that these reach, themselves included."""
        found = {function.number for function in roots if function.number in self.hot}
        pending = sorted(found)
        for number in pending:  # grows while it is walked
            function = self._project.functions[number]
            for callee in (one.number for _, one in self.calls(function)):
                if callee in self.hot and callee not in found:
                    found.add(callee)
                    pending.append(callee)
        return frozenset(found)

    def _followed(self, function: Function) -> Iterator[CallSite]:
        """The calls of a function that run as often as it does and may run code of the project."""
        for site in function.record.calls:
            if called_name(site.call) not in self._interesting and site.call[1][0] in ("name", "attr"):
                continue
            if self.roots.rare_block(function, site.block) is None:
                yield site

    def _called_names(self) -> frozenset[str]:
        """Last names under which a function or class of the project may be called."""
        names = {function.record.name for function in self._project.functions if function.record.form == "function"}
        names |= {cls.record.name for cls in self._project.classes}
        names |= {alias for name in list(names) for alias in self._project.aliases.get(name, ())}
        names |= set(self._project.writes_by_attribute)  # callables stored in attributes
        return frozenset(names)


def _told(manager: Expr, function: Function) -> tuple[int, str]:
    """The row of a use of a context manager, and the text it is given: as `reason`, or first."""
    if manager[0] != "call":
        return row_of(function.record.pos), ""
    _, _, args, kwargs, pos = manager
    given = [value for name, value in kwargs if name == "reason"] or list(args[:1])
    reason = given[0][1] if given and given[0][0] == "const" and isinstance(given[0][1], str) else ""
    return row_of(pos), reason


def _in_loops(function: Function, block: int) -> str:
    """How many loops of a function a block stands in, in words."""
    blocks = function.record.blocks
    depth = sum(blocks[number].form == "loop" for number in enclosing(blocks, block))
    return "" if not depth else ", in a loop" if depth == 1 else f", in {depth} nested loops"


def _covers(function: Function, row: int, alone: bool) -> bool:
    first, last = rows_of(function.record.pos)
    return first - (len(function.record.decorators) + 1 if alone else 0) <= row <= last


def _last_is_jit(path: Expr) -> bool:
    """Whether a decorator may be a compiler for the device: a cheap test before its name is resolved."""
    return "jit" in path[-1] or path[-1] in ("kernel", "func")


def _names(test: Expr) -> list[str]:
    """The names a condition mentions, attributes and called functions included."""
    form = test[0]
    if form == "name":
        return [test[1]]
    if form == "attr":
        inner = _names(test[1])
        return [test[2], f"{inner[0]}.{test[2]}", *inner] if inner else [test[2]]
    if form == "call":
        return _names(test[1])
    if form == "unary":
        return _names(test[2])
    if form == "bool":
        return [name for part in test[2] for name in _names(part)]
    if form == "cmp":
        return _names(test[2])
    return []
