"""What runs while a CUDA graph is recorded: capture regions, and the functions that calls inside them lead to.

Only calls whose target is known are followed. Released code does not wait under capture, it would have crashed: a
method that several classes override, and that are not told apart, ends a path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from nosync_lint.finding import Hop
from nosync_lint.index.records import CallSite, Expr, row_of
from nosync_lint.link.flow import enclosing, holding
from nosync_lint.link.heat import Roots
from nosync_lint.link.inference import Inference
from nosync_lint.link.names import At
from nosync_lint.link.project import Class, Function, Project, called_name, uncalled
from nosync_lint.link.values import Value
from nosync_lint.models import load

MOST_CALLS = 24
"""A path of more calls than this is not followed."""
_EVER = 1 << 60


class Region(NamedTuple):
    """Where a graph is recorded: a block of a function (0: all of it), from one statement to another."""

    function: Function
    row: int
    note: str
    block: int = 0
    first: int = -1
    last: int = _EVER

    def holds(self, seq: int, block: int) -> bool:
        return self.first < seq < self.last and self.block in enclosing(self.function.record.blocks, block)


class Reached(NamedTuple):
    """A function that runs under capture, on exactly the class `receiver` where that is known, and how it came.
    `surely`: no condition on the way decides whether it runs."""

    function: Function
    receiver: Class | None
    region: Region
    before: Reached | None = None
    site: CallSite | None = None
    depth: int = 0
    surely: bool = True

    def holds(self, seq: int, block: int) -> bool:
        """Whether a place of the function is under capture."""
        return self.before is not None or self.region.holds(seq, block)

    def hops(self) -> tuple[Hop, ...]:
        """The region, and the calls from it."""
        found: list[Hop] = []
        one = self
        while one.before is not None and one.site is not None:
            callee = one.function.record.qualname or one.function.name
            caller = one.before.function
            found.append(Hop(caller.module.file.name, row_of(one.site.call[4]), f"calls `{callee}`"))
            one = one.before
        region = self.region
        return (Hop(region.function.module.file.name, region.row, region.note), *reversed(found))


class Capture:
    """Finds regions, and walks from them."""

    def __init__(self, project: Project, inference: Inference, roots: Roots, configured: Sequence[str]) -> None:
        data = load("capture")
        self._project, self._inference, self._roots = project, inference, roots
        self._regions: dict[str, list[str]] = data["regions"]
        self._tells: list[str] = data["conditions"]["tells"]
        self._configured = configured
        self._starting: dict[int, bool] = {}
        self._taken: dict[int, bool] = {}
        self._branches: dict[int, frozenset[int]] = {}

    def unmatched(self) -> list[str]:
        """The configured capture functions that name nothing."""
        functions = [one for one in self._project.functions if one.record.form == "function"]
        return [name for name in self._configured if not self._roots.named(functions, name)]

    def reached(self) -> Iterator[Reached]:
        """Every function that runs under capture, by the shortest way: those that surely run, then the others."""
        seen: set[tuple[int, int | None]] = set()
        frontier, later = self._starts(), list[Reached]()
        while frontier:
            following: list[Reached] = []
            for one in frontier:
                key = (one.function.number, one.receiver.number if one.receiver is not None else None)
                if one.before is not None:
                    if key in seen:
                        continue
                    seen.add(key)
                yield one
                if one.depth < MOST_CALLS:
                    called = list(self._called_by(one))
                    following += [callee for callee in called if callee.surely or not one.surely]
                    later += [callee for callee in called if one.surely and not callee.surely]
            if not following:
                following, later = later, []
            frontier = following

    def runs(self, one: Reached, seq: int, block: int) -> bool:
        """Whether a place of a reached function is met under capture."""
        return (
            one.holds(seq, block)
            and self._roots.rare_block(one.function, block) is None
            and not self._outside(one.function, seq, block)
        )

    def surely_runs(self, reached: Reached, seq: int, block: int, pos: int) -> bool:
        """Whether no condition decides if a place is met when its function is captured, but one that asks for that."""
        function = reached.function
        if not reached.surely or pos in self._chosen(function):
            return False
        blocks = function.record.blocks
        around = enclosing(blocks, block)
        inner = around if reached.before is not None else around[: around.index(reached.region.block)]
        if any(blocks[number].form == "except" for number in inner):
            return False
        left = [
            one.test
            for number, one in enumerate(blocks)
            if one.ends == "leave" and one.last <= seq and one.parent in around and number not in around
        ]
        left += [blocks[number].test for number in inner if blocks[number].form in ("if", "else")]
        return all(test is not None and self._told(test, function) is not None for test in left)

    def _chosen(self, function: Function) -> frozenset[int]:
        """The calls and subscripts of a function that stand in a branch of an expression, by their places."""
        known = self._branches.get(function.number)
        if known is None:
            record = function.record
            roots = [one.value for found in record.definitions.values() for one in found]
            roots += [one.value for one in record.results]
            roots += [write.value for write in record.attributes]
            roots += [write.value for write in record.writes]
            roots += [site.call for site in record.calls]
            known = self._branches[function.number] = frozenset(_in_branches(roots))
        return known

    # -- regions --

    def _starts(self) -> list[Reached]:
        regions: list[Region] = []
        handed: list[Reached] = []
        for function in self._project.functions:
            if not self._roots.elsewhere(function):
                regions += self._of_function(function)
                handed += self._handed(function)
        return [*(Reached(region.function, _final(region.function), region) for region in regions), *handed]

    def _of_function(self, function: Function) -> Iterator[Region]:
        record = function.record
        row = row_of(record.pos)
        if record.form == "function":
            if any(self._roots.named([function], name) for name in self._configured):
                yield Region(function, row, f"`{record.qualname}` captures a graph (configured)")
            if any(_last(decorator) in self._regions["decorators"] for decorator in record.decorators):
                yield Region(function, row, f"`{record.qualname}` is captured as a graph (by its decorator)")
        for number, block in enumerate(record.blocks):
            if block.form == "with" and block.test is not None:
                at = At(function, block.last, block.parent)
                if any(self._manages(manager, at) for manager in block.test[1]):
                    row = self._row(function, number)
                    yield Region(function, row, "a graph is captured here", number)
        yield from self._spans(function)

    def _spans(self, function: Function) -> Iterator[Region]:
        """From a call that begins a capture to the next one that ends it."""
        calls = function.record.calls
        for site in calls:
            if called_name(site.call) in self._regions["begins"]:
                ends = [
                    one.seq for one in calls if one.seq > site.seq and called_name(one.call) in self._regions["ends"]
                ]
                if ends:
                    row = row_of(site.call[4])
                    yield Region(function, row, "a capture begins here", 0, site.seq, min(ends))

    def _handed(self, function: Function) -> Iterator[Reached]:
        """What is handed to functions that capture it."""
        names = {name.rpartition(".")[2] for name in self._regions["callables"]}
        for site in function.record.calls:
            if called_name(site.call) not in names or not site.call[2]:
                continue
            at = At(function, site.seq, site.block)
            callee = self._inference.value(site.call[1], at)
            if callee.kind != "extern" or callee.ref not in self._regions["callables"]:
                continue
            region = Region(function, row_of(site.call[4]), "graphs of these callables are captured here")
            start = Reached(function, None, region)
            given = site.call[2][0]
            for part in given[1] if given[0] in ("tuple", "list") else (given,):
                for target, receiver in self._callables(self._inference.value(part, at)):
                    yield Reached(target, receiver, region, start, site, 1)

    def _callables(self, value: Value) -> list[tuple[Function, Class | None]]:
        """The functions that calling a value runs, each with the class it runs on; none where that is open."""
        functions = self._project.functions
        if value.kind in ("function", "method"):
            return [(functions[number], _final(functions[number])) for number in value.ref]
        if value.kind == "object":
            methods = self._inference.dispatch.instances_run(value)
            if len(methods) == 1:
                exact = [self._project.classes[ref] for ref in value.ref if isinstance(ref, int)] if value.exact else []
                return [(methods[0], exact[0] if len(exact) == 1 else _final(methods[0]))]
        return []

    def _manages(self, manager: Expr, at: At) -> bool:
        """Whether entering a context manager begins a capture."""
        pending, seen = [(manager, at)], set[str]()
        for one, place in pending:  # grows while it is walked
            if one[0] == "ifexp":
                pending += [(one[2], place), (one[3], place)]
            elif one[0] == "name" and one[1] not in seen:
                seen.add(one[1])
                found = at.function.record.definitions.get(one[1], ())
                pending += [(made.value, At(at.function, made.seq, made.block)) for made in found]
            elif one[0] == "call" and self._captures(one, place):
                return True
        return False

    def _captures(self, manager: Expr, at: At) -> bool:
        """Whether a call makes a context manager in which a graph is captured."""
        callee = self._inference.value(manager[1], at)
        if callee.kind == "extern" and callee.ref in self._regions["managers"]:
            return True
        if callee.kind in ("unknown", "extern"):
            return any(name in self._regions["keywords"] for name, _ in manager[3])
        if callee.kind == "class":
            classes = [self._project.classes[ref] for ref in callee.ref if isinstance(ref, int)]
            return any(self._class_manages(cls) for cls in classes)
        if callee.kind in ("function", "method"):
            return any(self._starts_capture(self._project.functions[number]) for number in callee.ref)
        return False

    def _class_manages(self, cls: Class) -> bool:
        enter = cls.method("__enter__")
        if enter is None:
            return bool(cls.externs & set(self._regions["managers"]))
        return self._calls_any(enter, self._regions["begins"], 3)

    def _starts_capture(self, function: Function) -> bool:
        """Whether a generator function yields inside a region of its own."""
        number = function.number
        if number not in self._starting:
            self._starting[number] = False  # what a recursion sees
            self._starting[number] = "generator" in function.record.flags and any(
                region.holds(found.seq, found.block)
                for region in self._of_function(function)
                for found in function.record.results
            )
        return self._starting[number]

    def _calls_any(self, function: Function, names: Sequence[str], depth: int) -> bool:
        """Whether a function calls one of these names, itself or through others."""
        if any(called_name(site.call) in names for site in function.record.calls):
            return True
        return depth > 0 and any(
            self._calls_any(self._project.functions[target.function], names, depth - 1)
            for site in function.record.calls
            for target in self._inference.targets(function, site)[:1]
        )

    @staticmethod
    def _row(function: Function, block: int) -> int:
        """The row of the first call of a block, before which its head stands."""
        record = function.record
        rows = [row_of(site.call[4]) for site in record.calls if site.block == block]
        test = record.blocks[block].test
        heads = [row_of(one[4]) for one in (test[1] if test is not None else ()) if one[0] == "call"]
        return min(heads or rows or [row_of(record.pos)])

    # -- calls --

    def _called_by(self, one: Reached) -> Iterator[Reached]:
        for site in one.function.record.calls:
            if self.runs(one, site.seq, site.block):
                for function, receiver in self._targets(one, site):
                    if not self._roots.elsewhere(function) and not self._is_taken_out(function):
                        surely = self.surely_runs(one, site.seq, site.block, site.call[4])
                        yield Reached(function, receiver, one.region, one, site, one.depth + 1, surely)

    def _targets(self, one: Reached, site: CallSite) -> list[tuple[Function, Class | None]]:
        """The functions that a call surely runs, each with the class it runs on where that is known."""
        function, func = one.function, site.call[1]
        if one.receiver is not None and func[0] == "attr" and function.is_self(func[1]):
            method = one.receiver.method(func[2])
            if method is not None:
                return [(method, one.receiver if method.binds == "self" else None)]
        found = self._inference.targets(function, site)
        functions = [self._project.functions[target.function] for target in found]
        if len(found) == 1:
            target = found[0]
            exact = self._project.classes[target.receiver] if target.receiver is not None else None
            return [(functions[0], exact or _final(functions[0]))]
        if func[0] == "name" and function.parameter(func[1]) is not None:
            return [(callee, _final(callee)) for callee in functions]  # every caller's callable is captured
        return []

    def _is_taken_out(self, function: Function) -> bool:
        """Whether a decorator of the project ends the capture around a function."""
        number = function.number
        if number not in self._taken:
            self._taken[number] = False
            for decorator in function.record.decorators:
                path = uncalled(decorator)
                value = self._project.static_path(function.module, path) if path[0] in ("name", "attr") else None
                for ref in value.ref if value is not None and value.kind == "function" else ():
                    inside = [one for one in self._project.functions[ref].module.functions if _is_inside(one, ref)]
                    if any(self._calls_any(one, self._regions["ends"], 2) for one in inside):
                        self._taken[number] = True
        return self._taken[number]

    # -- conditions --

    def _outside(self, function: Function, seq: int, block: int) -> bool:
        """Whether the tests that hold at a place say that nothing is being captured."""
        return any(
            (told := self._told(test, function)) is not None and told != outcome
            for test, outcome in holding(function.record, seq, block)
        )

    def _told(self, test: Expr, function: Function, depth: int = 3) -> bool | None:
        """What a condition is while a graph is captured; None where it does not ask for that."""
        form = test[0]
        if form == "unary" and test[1] == "not":
            told = self._told(test[2], function, depth)
            return None if told is None else not told
        if form == "bool":
            return next((told for part in test[2] if (told := self._told(part, function, depth)) is not None), None)
        path = test[1] if form == "call" else test
        if path[0] not in ("name", "attr"):
            return None
        if any(fnmatchcase(path[-1], pattern) for pattern in self._tells):
            return True
        if depth == 0:
            return None
        if form == "name":
            found = function.record.definitions.get(test[1], ())
            return self._told(found[0].value, function, depth - 1) if len(found) == 1 else None
        if form == "call":
            value = self._project.static_path(function.module, path)
            called = [self._project.functions[ref] for ref in value.ref] if value and value.kind == "function" else []
            results = [one.value for callee in called for one in callee.record.results]
            return self._told(results[0], called[0], depth - 1) if len(results) == 1 else None
        return None


def _final(function: Function) -> Class | None:
    """The class that a method surely runs on: its own, where nothing inherits from that."""
    cls = function.cls
    return cls if cls is not None and function.binds == "self" and not cls.descendants() else None


def _in_branches(roots: Iterable[Expr]) -> Iterator[int]:
    """The places of calls and subscripts that an expression evaluates only by a condition."""
    pending = [(expr, False) for expr in roots]
    while pending:
        expr, chosen = pending.pop()
        form = expr[0] if expr else ""
        if form == "ifexp":
            pending += [(expr[1], chosen), (expr[2], True), (expr[3], True)]
        elif form == "bool":
            pending += [(part, chosen or place > 0) for place, part in enumerate(expr[2])]
        elif form != "const":
            if chosen and form in ("call", "sub"):
                yield expr[-1]
            pending += [(part, chosen) for part in expr if isinstance(part, tuple)]


def _is_inside(function: Function, number: int) -> bool:
    """Whether a function is one of that number or is defined inside it."""
    one: Function | None = function
    while one is not None:
        if one.number == number:
            return True
        one = one.parent
    return False


def _last(decorator: Expr) -> str:
    path = uncalled(decorator)
    return str(path[-1]) if path[0] in ("name", "attr") else ""
