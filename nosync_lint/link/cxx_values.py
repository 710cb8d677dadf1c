"""Where tensors live in C++ host code: inside one function, in terms of its parameters.

A function is read in text order. A name has the definitions before a use that are not in another branch, the last
one that is always met hiding those before it; checks and conditions say more of a name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from nosync_lint.index.cuda_records import OPAQUE, CudaGuard, Expr
from nosync_lint.index.records import row_of, rows_of
from nosync_lint.link.cxx_bodies import Body, Unit, UnitKey
from nosync_lint.link.cxx_models import CxxModels, matches
from nosync_lint.link.kernel_sources import KernelSources, bare_type

Places = frozenset[str | int]
"""Where a tensor may live: "device", "host", "pinned", "?", or where the argument at a position does. A device, or
options for a tensor, is described alike; empty where they say nothing of the device."""
NOWHERE: Places = frozenset()
DEEPEST = 40


class CxxValues:
    """Answers where an expression lives. Bodies and results of functions are kept."""

    def __init__(self, sources: KernelSources, models: CxxModels) -> None:
        self.sources, self.models = sources, models
        self._bodies: dict[UnitKey, Body] = {}
        self._returns: dict[UnitKey, Places | None] = {}
        self._by_name: dict[str, list[Unit]] = {}
        self._classes = {struct.name for index in sources.files.values() for struct in index.structs}
        for unit in self.units():
            self._by_name.setdefault(unit.function.name, []).append(unit)

    def body(self, unit: Unit) -> Body:
        if unit.key not in self._bodies:
            self._bodies[unit.key] = Body(unit, self.sources.files[unit.path].guards)
        return self._bodies[unit.key]

    def units(self) -> Iterator[Unit]:
        """Every host function, by file and row."""
        for path, index in self.sources.files.items():
            for function in index.functions:
                if not function.kernel and not function.device:
                    yield Unit(path, function)

    def marked(self, unit: Unit) -> str | None:
        """The "hot" or "cold" of a comment in a function or above it."""
        first, last = unit.function.span.row, unit.function.span.end_row
        for pragma in self.sources.files[unit.path].pragmas:
            above = pragma.alone and pragma.row == first - 1
            if pragma.form in ("hot", "cold") and (above or first <= pragma.row <= last):
                return pragma.form
        return None

    # -- which function --

    def in_file(self, file: str, name: str) -> list[Unit]:
        """The host functions of a name in files that are called so."""
        return [unit for unit in self._by_name.get(name, ()) if unit.path.rpartition("/")[2] == file]

    def named(self, path: str, name: str, owner: str = "") -> list[Unit]:
        """Host functions of a possibly qualified name: those that a file sees, or else those of the project."""
        scope, _, last = name.rpartition("::")
        found = self._by_name.get(last, [])
        wanted = scope.rpartition("::")[2].split("<")[0] or owner
        inside = [unit for unit in found if wanted and unit.function.owner == wanted]
        if scope and not inside:
            found = [unit for unit in found if unit.function.owner not in self._classes]
        seen = self.sources.visible(path)
        for listed in (inside, found):
            near = [unit for unit in listed if unit.path in seen]
            if near or listed:
                return (near or listed)[:8]
        return []

    def callees(self, body: Body, call: Expr) -> list[Unit]:
        """The functions of the project that a call may run."""
        callee, given = call[1], len(call[2])
        path = body.unit.path
        if callee[0] == "name":
            name = callee[1]
            if self.gives_context(call):
                scope, _, last = name.rpartition("::")
                name = f"{scope}::{self.models.runs[last]}"
                given += 1
            found = self.named(path, name, body.unit.function.owner)
        elif callee[0] == "field":
            base = callee[1]
            spelled = body.types.get(base[1], "") if base[0] == "name" else ""
            owner = body.unit.function.owner if base == ("name", "this", ()) else bare_type(spelled)
            found = [unit for unit in self._by_name.get(callee[2], ()) if unit.function.owner]
            if owner and owner != "auto":
                found = [unit for unit in found if unit.function.owner == owner]
            elif len({unit.function.owner for unit in found}) != 1 or len(callee[2]) < 6:
                found = []
        else:
            return []
        return [unit for unit in found if given <= len(unit.parameters) or any(p.pack for p in unit.parameters)]

    # -- where --

    def places(self, body: Body, expr: Expr, seq: int, row: int, depth: int = 0) -> Places | None:
        """Where the tensor, options or device that an expression gives may be; None where it gives none."""
        if depth > DEEPEST:
            return None
        form = expr[0]

        def inner(part: Expr) -> Places | None:
            return self.places(body, part, seq, row, depth + 1)

        if form == "name":
            return self._name(body, expr, seq, row, depth)
        if form == "text":
            return self._told(expr[1].partition(":")[0])
        if form == "call":
            return self._call(body, expr, seq, row, depth)
        if form == "index":
            return inner(expr[1])
        if form in ("cast", "unary"):
            return inner(expr[2])
        if form == "assign":
            return inner(expr[3])
        if form in ("cond", "bin"):
            return joined(inner(part) for part in expr[2:4])
        if form == "list":
            return joined(inner(value) for _, value, _ in expr[2])
        return None

    def _told(self, name: str) -> Places | None:
        """What a word says of a device; a dtype says nothing, and is told by its `k`."""
        places = self.models.places
        if name in places["host"]:
            return frozenset({"host"})
        if name in places["device"]:
            return frozenset({"device"})
        return NOWHERE if len(name) > 2 and name[0] == "k" and name[1].isupper() else None

    def _name(self, body: Body, expr: Expr, seq: int, row: int, depth: int) -> Places | None:
        name = expr[1]
        reached: list[Places | None] = []
        here = body.around_row(row)
        since = -1
        for one in reversed(body.definitions.get(name, ())):
            if one.seq >= seq or (one.value[0] == "opaque" and bare_type(one.type) in ("Tensor", "auto", "")):
                continue
            apart = [guard for guard in body.around_row(one.row) if guard not in here and guard.form in ("if", "else")]
            if any(_opposed(guard, other) for guard in apart for other in here) or any(one.leaves for one in apart):
                continue
            found = self.places(body, one.value, one.seq, one.row, depth + 1)
            reached.append(found if found is not None or bare_type(one.type) != "Tensor" else frozenset({"?"}))
            if not apart:
                since = one.seq
                break
        if since < 0:
            reached.append(self._parameter(body, name))
        if not reached or all(one is None for one in reached):
            return self._told(name.rpartition("::")[2]) if not reached or reached == [None] else None
        told = self._checked(body, expr, seq, row, since)
        return frozenset({told}) if told is not None else joined(reached)

    def _parameter(self, body: Body, name: str) -> Places | None:
        for position, parameter in enumerate(body.unit.parameters):
            if parameter.name == name:
                kind = bare_type(parameter.type)
                return frozenset({position}) if parameter.is_tensor or kind in self.models.places["types"] else None
        return None

    def _call(self, body: Body, expr: Expr, seq: int, row: int, depth: int) -> Places | None:
        _, callee, arguments, _, _, _ = expr
        models = self.models.places

        def inner(part: Expr) -> Places | None:
            return self.places(body, part, seq, row, depth + 1)

        if callee[0] == "field":
            return self._method(callee, arguments, inner)
        if callee[0] != "name":
            return None
        scope, _, last = callee[1].rpartition("::")
        if last in models["wraps"]:
            return joined(inner(argument) for argument in arguments) or NOWHERE
        if scope.partition("::")[0] in models["namespaces"]:
            found = [one for argument in arguments if (one := inner(argument)) is not None]
            said = joined(one for one in found if one)
            if said:
                return said
            return frozenset({"host"}) if last in models["factories"] else frozenset({"?"})
        units = self.callees(body, expr)
        given = [self._returned(unit, depth) for unit in units]
        return joined(self.bound(one, body, expr, seq, row, depth) for one in given if one is not None)

    def _method(
        self, callee: Expr, arguments: tuple[Expr, ...], inner: Callable[[Expr], Places | None]
    ) -> Places | None:
        name = callee[2]
        base = inner(callee[1])
        moves = self.models.moves
        if base is None or name in self.models.places["numbers"]:
            return None
        if name in moves["dtypes"] and not arguments:
            return NOWHERE
        for place in ("host", "device", "pinned"):
            if name in moves[place]:
                return frozenset({place})
        if name in moves["pins"]:
            return frozenset({"pinned"}) if arguments[:1] == (("lit", "true"),) else base
        if name in moves["told"] and arguments:
            return inner(arguments[0]) or base
        return base

    def gives_context(self, call: Expr) -> bool:
        """Whether a call is given one argument less than what it runs: `X::apply(a)` runs `X::forward(context, a)`."""
        scope, _, last = call[1][1].rpartition("::") if call[1][0] == "name" else ("", "", "")
        return bool(scope) and last in self.models.runs

    def bound(self, places: Places, body: Body, call: Expr, seq: int, row: int, depth: int = 0) -> Places | None:
        """Places in terms of a callee's parameters, in terms of the caller's."""
        arguments: tuple[Expr, ...] = (OPAQUE, *call[2]) if self.gives_context(call) else call[2]
        found: list[Places | None] = [frozenset(one for one in places if isinstance(one, str)) or None]
        for one in places:
            if isinstance(one, int):
                held = self.places(body, arguments[one], seq, row, depth + 1) if one < len(arguments) else None
                found.append(held or frozenset({"?"}))
        return joined(found)

    def _returned(self, unit: Unit, depth: int) -> Places | None:
        key = unit.key
        if key not in self._returns:
            self._returns[key] = None  # what a recursion sees
            body = self.body(unit)
            self._returns[key] = joined(
                self.places(body, value, seq, row, depth + 1) for seq, row, value in body.results
            )
        return self._returns[key]

    # -- what checks say --

    def _checked(self, body: Body, expr: Expr, seq: int, row: int, since: int) -> str | None:
        """Where a name lives by the checks and conditions that hold at a place and came after its definition."""
        for guard in body.around_row(row):
            if guard.form in ("if", "else"):
                for asked, place in self.facts(guard.test, guard.form == "if"):
                    if asked == expr:
                        return place
        for guard in body.guards:
            first, last = rows_of(guard.pos)
            if guard.leaves and guard.form == "if" and last < row and self._open(body, first, row):
                for asked, place in self.facts(guard.test, False):
                    if asked == expr:
                        return place
        for called in body.calls:
            if since < called.seq < seq and called.call[1][0] == "name":
                for asked, place in self._stated(called.call):
                    if asked == expr and self._open(body, row_of(called.pos), row):
                        return place
        return None

    @staticmethod
    def _open(body: Body, row: int, here: int) -> bool:
        """Whether what a row says still holds further down: no branch around it ends before."""
        covering = body.around_row(here)
        return all(g in covering or g.form == "define" or rows_of(g.pos)[0] == row for g in body.around_row(row))

    def _stated(self, call: Expr) -> Iterator[tuple[Expr, str]]:
        """What a check says of the names it is given."""
        name, checks = call[1][1].rpartition("::")[2], self.models.checks
        for place in ("device", "host"):
            if matches(name, checks[place]):
                for argument in call[2]:
                    if argument[0] == "name":
                        yield argument, place
        if matches(name, checks["condition"]):
            for argument in call[2][:1]:
                yield from self.facts(argument, True)

    def demands_dense(self, unit: Unit, position: int) -> Expr | None:
        """The check that refuses a tensor with gaps as an argument, where no condition stands around it."""
        body = self.body(unit)
        asked = ("name", unit.parameters[position].name, ())
        for called in body.calls:
            call = called.call
            name = call[1][1].rpartition("::")[2] if call[1][0] == "name" else ""
            named = matches(name, self.models.checks["dense"]) and asked in call[2]
            stated = matches(name, self.models.checks["condition"]) and any(
                self._is_dense(part, asked) for part in _conjuncts(call[2][:1])
            )
            if (named or stated) and not list(body.around(called.pos)):
                before = [one for one in body.definitions.get(asked[1], ()) if one.seq < called.seq]
                return None if before else call
        return None

    def _is_dense(self, test: Expr, asked: Expr) -> bool:
        return (
            test[0] == "call"
            and test[1][0] == "field"
            and test[1][1] == asked
            and test[1][2] in self.models.moves["asks_dense"]
            and not test[2]
        )

    def facts(self, test: Expr, outcome: bool) -> Iterator[tuple[Expr, str]]:
        """Expressions and where they live, by the outcome of a condition."""
        form = test[0]
        if form == "unary" and test[1] == "!":
            yield from self.facts(test[2], not outcome)
        elif form == "bin" and test[1] == ("&&" if outcome else "||"):
            yield from self.facts(test[2], outcome)
            yield from self.facts(test[3], outcome)
        elif form == "call" and test[1][0] == "field":
            moves = self.models.moves
            if test[1][2] in moves["asks_device"] | moves["asks_host"]:
                yield self._asked(test[1][1]), "device" if (test[1][2] in moves["asks_device"]) == outcome else "host"
        elif form == "bin" and test[1] in ("==", "!="):
            for side, other in ((test[2], test[3]), (test[3], test[2])):
                place = self._place_named(other)
                asked = self._asked(side)
                if place is not None and asked != side:
                    if (test[1] == "==") == outcome:
                        yield asked, place
                    elif place == "host":
                        yield asked, "device"

    def _asked(self, expr: Expr) -> Expr:
        """`x` for `x.device().type()`, `x.device()` and `x.device_type()`; any other expression as it is."""
        while expr[0] == "call" and expr[1][0] == "field" and expr[1][2] in self.models.moves["devices"]:
            expr = expr[1][1]
        return expr

    def _place_named(self, expr: Expr) -> str | None:
        while expr[0] == "call" and len(expr[2]) > 0 and expr[1][0] == "name":
            expr = expr[2][0]
        if expr[0] != "name":
            return None
        told = self._told(expr[1].rpartition("::")[2])
        return next((str(one) for one in told or ()), None)


def joined(parts: Iterable[Places | None]) -> Places | None:
    """Either of several; None where none of them is a place at all."""
    found = [one for one in parts if one is not None]
    return frozenset().union(*found) if found else None


def _conjuncts(tests: Iterable[Expr]) -> Iterator[Expr]:
    """The parts of conditions that must all hold."""
    for test in tests:
        if test[0] == "bin" and test[1] == "&&":
            yield from _conjuncts(test[2:4])
        else:
            yield test


def _opposed(guard: CudaGuard, other: CudaGuard) -> bool:
    """Whether two guards are the two branches of one condition."""
    return guard.test == other.test and {guard.form, other.form} == {"if", "else"}
