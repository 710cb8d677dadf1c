"""Where values go in C++ host functions and in the kernels they launch.

A function is evaluated once, its parameters standing for themselves. What it does with a parameter, a member
of it or something read from it (a *path*) is kept as uses: an address was computed from it, it was read through
a pointer of some element type, it reached a launch, a check constrained it. A call or launch maps the uses of
the callee onto the caller's arguments, so a `.stride(1)` in a host function meets the subscript in a kernel body.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from nosync_lint.index.cuda_matchers import spell
from nosync_lint.index.cuda_records import CudaFunction, Expr, Step
from nosync_lint.link.kernel_matchers import KernelMatchers
from nosync_lint.link.kernel_sources import KernelSources, Place
from nosync_lint.link.kernel_values import EMPTY, Passage, Path, Summary, Use, Value, bounded, deep_origins, join

DEEPEST_CALL = 16
DEEPEST_VALUE = 160  # together with the deepest call this bounds the recursion
DEEPEST_CLOSURE = 8
MOST_WALKS = 64  # lambda bodies evaluated per function
_CHECK = re.compile(r"check|assert|enforce|require|expect", re.IGNORECASE)
_POINTERS = frozenset({"data_ptr", "mutable_data_ptr", "const_data_ptr"})
_SAME = frozenset({"value", "get", "unwrap", "get_value", "value_or", "contiguous", "move", "forward"})
_PROPERTIES = {
    "dtype": "dtype", "scalar_type": "dtype", "element_size": "dtype", "is_floating_point": "dtype",
    "is_contiguous": "contiguous", "IsContiguous": "contiguous",
    "size": "shape", "sizes": "shape", "shape": "shape", "dim": "shape", "ndim": "shape", "numel": "shape",
    "device": "device", "is_cuda": "device", "get_device": "device",
}  # fmt: skip
_TOLD = frozenset({"read", "equal", "matched"})  # kinds of use whose detail tells two of them apart
LONGEST_PATH = 8
_ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^"})


class Flow:
    """Evaluates functions on demand and keeps their summaries."""

    def __init__(self, sources: KernelSources, matchers: KernelMatchers) -> None:
        self.sources, self.matchers = sources, matchers
        self._summaries: dict[tuple[str, int, str], Summary] = {}
        self._open: list[tuple[str, int, str]] = []
        self.depth = 0  # of the expression that is evaluated, callees included

    def summary(self, place: Place) -> Summary:
        """The summary of a function; empty inside a recursion and beyond the deepest call."""
        key = (place.path, place.function.span.row, place.function.name)
        known = self._summaries.get(key)
        if known is not None:
            return known
        if key in self._open or len(self._open) >= DEEPEST_CALL:
            return Summary((), EMPTY, {})
        self._open.append(key)
        try:
            found = _Evaluation(self, place).run()
        finally:
            self._open.pop()
        self._summaries[key] = found
        return found


class _Evaluation:
    """One function: an environment of local names and the uses found so far."""

    def __init__(self, flow: Flow, place: Place) -> None:
        self.flow, self.sources, self.path, self.function = flow, flow.sources, place.path, place.function
        self.types = {parameter.name: parameter.type for parameter in self.function.parameters}
        self.types["this"] = self.function.owner
        self.env: dict[str, Value] = {}
        self.uses: dict[tuple[Path, int, str, str, bool], Use] = {}
        self.returned = EMPTY
        self.walks = 0
        self.walked: set[int] = set()
        self._running: list[int] = []
        self.matchers = flow.matchers.own(place)
        self.matcher_classes = {matcher.name for matcher in self.matchers} | flow.matchers.matching(place).helpers

    def run(self) -> Summary:
        for name, spelled in self.types.items():
            if not name:
                continue
            self.env[name] = Value(frozenset({((name,), 0)}), "*" in spelled)
            if spelled.endswith("*"):
                self._use(self.env[name], "read", spelled[:-1], self.function.span.row, f"`{name}` is `{spelled}`")
        for _ in range(3):
            before = (len(self.uses), sum(len(value.origins) for value in self.env.values()))
            self.walks = 0
            self._walk(self.function.steps)
            for i, inner in enumerate(self.function.lambdas):
                if i not in self.walked:
                    self._walk(inner.steps)
            if before == (len(self.uses), sum(len(value.origins) for value in self.env.values())):
                break
        for matcher in self.matchers:
            for argument in matcher.arguments:
                value = self.env.get(argument.name, EMPTY)
                self._use(value, "matched", matcher.name, argument.row, f"`{argument.text}` is matched")
        return Summary(tuple(self.uses.values()), self.returned, self.env)

    def _use(self, value: Value, kind: str, detail: str, row: int, note: str) -> None:
        for origin, read_at in sorted(value.origins):
            self._keep(Use(origin, read_at, kind, detail, (Passage(self.path, row, note),)))

    def _keep(self, use: Use) -> None:
        """Of uses that differ in their hops only, the first."""
        self.uses.setdefault((use.origin, use.row, use.kind, use.detail if use.kind in _TOLD else "", use.device), use)

    def _walk(self, steps: Iterable[Step]) -> None:
        for step in steps:
            kind = step[0]
            if kind == "let":
                self._let(step[1], step[2], step[3], step[4])
            elif kind == "bind":
                value = self._eval(step[2])
                for i, name in enumerate(step[1]):
                    self._store(name, self._position(value, i))
            elif kind == "return":
                value = self._eval(step[1])
                shaped = self._shaped(value, self.function.returns) if step[1][0] == "list" else value
                self.returned = join(self.returned, shaped)
            elif kind == "test" and step[3]:
                self._eval(step[1])
                self._constrain(step[1], True, step[2])
            else:
                self._eval(step[1])

    def _let(self, name: str, spelled: str, expr: Expr, row: int) -> None:
        value = self._eval(expr)
        if expr[0] == "list":
            value = self._shaped(value, spelled if bare(expr[1]) in ("", "auto") else expr[1])
        if spelled.endswith("*"):
            if spelled != "auto*":
                self._use(value, "read", spelled[:-1], row, f"read as `{spelled[:-1]}`")
            value = value._replace(pointer=True)
        if expr[0] == "list" and not value.origins and bare(expr[1]).rpartition("::")[2][:1].isupper():
            value = value._replace(origins=frozenset({(("$" + name,), 0)}))
        self._store(name, value)

    def _store(self, name: str, value: Value) -> None:
        """Adds to what a local name may be; what nests too deeply is forgotten."""
        self.env[name] = bounded(join(self.env.get(name, EMPTY), value))

    def _eval(self, expr: Expr) -> Value:
        if self.flow.depth >= DEEPEST_VALUE:
            return EMPTY
        self.flow.depth += 1
        try:
            return self._form(expr)
        finally:
            self.flow.depth -= 1

    def _form(self, expr: Expr) -> Value:
        form = expr[0]
        if form == "name":
            return self._name(expr[1])
        if form == "field":
            return self._get(self._eval(expr[1]), expr[2])
        if form == "call":
            return self._call(expr)
        if form == "cast":
            return self._cast(expr)
        if form == "bin":
            return self._binary(expr)
        if form == "index":
            return self._index(expr)
        if form == "unary":
            return self._unary(expr)
        if form == "assign":
            return self._assign(expr)
        if form == "cond":
            self._eval(expr[1])
            return join(self._eval(expr[2]), self._eval(expr[3]))
        if form == "list":
            items = {field or f"#{i}": self._eval(value) for i, (field, value, _) in enumerate(expr[2])}
            return self._shaped(Value(fields=items), expr[1])
        return Value(closure=expr[1]) if form == "lambda" else EMPTY

    def _name(self, name: str) -> Value:
        known = self.env.get(name)
        if known is not None:
            return known
        if self.function.owner and self.sources.field_type(self.path, self.function.owner, name):
            return self._get(self.env["this"], name)
        constant = self.sources.constant(self.path, name, self.function.owner)
        if constant is not None and constant != ("name", name, ()):
            self.env[name] = EMPTY
            self.env[name] = self._eval(constant)
            return self.env[name]
        return Value(symbols=frozenset({name}))

    def _type(self, path: Path) -> str:
        spelled = self.types.get(path[0], "")
        for part in path[1:]:
            spelled = self.sources.field_type(self.path, spelled, part) if spelled else ""
        return spelled

    def _get(self, value: Value, name: str) -> Value:
        """A member (`name`) or an element (`[]`) of a value."""
        if not value.origins and not value.fields:
            return EMPTY
        origins = frozenset(((*path, name), row) for path, row in value.origins if len(path) < LONGEST_PATH)
        pointer = any("*" in self._type(path) for path, _ in origins)
        result = Value(origins, pointer) if origins else EMPTY
        if name == "[]":
            for key, item in value.fields.items():
                if key == "[]" or key[0] == "#":
                    result = join(result, item)
        elif name in value.fields:
            result = join(result, value.fields[name])
        return result

    def _position(self, value: Value, i: int) -> Value:
        """The i-th member in order of declaration."""
        result = value.fields.get(f"#{i}", EMPTY)
        if not value.origins and i < len(value.fields) and f"#{i}" not in value.fields:
            return list(value.fields.values())[i]
        for path, row in value.origins:
            struct = self.sources.struct(self.path, self._type(path)) if self._type(path) else None
            name = struct.fields[i].name if struct and i < len(struct.fields) else f"#{i}"
            result = join(result, self._get(Value(frozenset({(path, row)})), name))
        return result

    def _shaped(self, value: Value, spelled: str) -> Value:
        """A brace list with its positions named after the members of the struct it builds."""
        struct = self.sources.struct(self.path, spelled) if spelled and value.fields else None
        if struct is None:
            return value
        fields: dict[str, Value] = {}
        for key, item in value.fields.items():
            if key[0] == "#" and int(key[1:]) < len(struct.fields):
                key = struct.fields[int(key[1:])].name
            fields[key] = self._shaped(item, self.sources.field_type(self.path, spelled, key)) if item.fields else item
        return value._replace(fields=fields)

    def _cast(self, expr: Expr) -> Value:
        _, spelled, inner, row = expr
        value = self._eval(inner)
        if spelled.endswith("*"):
            self._use(value, "read", spelled[:-1], row, f"read as `{spelled[:-1]}`")
            return value._replace(pointer=True)
        return value

    def _binary(self, expr: Expr) -> Value:
        _, operator, left_expr, right_expr, row = expr
        left, right = self._eval(left_expr), self._eval(right_expr)
        if operator in ("+", "-") and left.pointer != right.pointer:
            pointer, offset = (left, right) if left.pointer else (right, left)
            self._use(offset, "address", spell(expr), row, "an address is computed from it")
            return pointer
        if operator in _ARITHMETIC:
            return Value(left.origins | right.origins, left.pointer or right.pointer)
        return EMPTY

    def _index(self, expr: Expr) -> Value:
        _, base_expr, indices, row = expr
        base = self._eval(base_expr)
        for index in indices:
            self._use(self._eval(index), "address", spell(expr), row, "an address is computed from it")
        if base.pointer:
            self._use(base, "deref", "", row, "it is read or written here")
        strided = frozenset((path, at) for path, at in base.origins if path[-1] in ("strides", "strides()"))
        if strided and indices:
            name = f"stride({spell(indices[0])})"
            stride = Value(frozenset(((*path[:-1], name), at or row) for path, at in strided))
            return join(stride, self._get(base, "[]"))
        if len(indices) == 1 and indices[0][0] == "lit" and f"#{indices[0][1]}" in base.fields:
            return base.fields[f"#{indices[0][1]}"]
        return self._get(base, "[]")

    def _unary(self, expr: Expr) -> Value:
        _, operator, inner, row = expr
        if operator == "&" and inner[0] == "index":
            self._eval(inner)
            return self._eval(inner[1])._replace(pointer=True)
        value = self._eval(inner)
        if operator == "*" and value.pointer:
            self._use(value, "deref", "", row, "it is read or written here")
            return self._get(value, "[]")
        return EMPTY if operator == "!" else value

    def _assign(self, expr: Expr) -> Value:
        _, operator, target, value_expr, row = expr
        value = self._eval(value_expr)
        if operator != "=" or target[0] in ("index", "unary"):
            present = self._eval(target)
            if operator in ("+=", "-=") and present.pointer:
                self._use(value, "address", spell(expr), row, "an address is computed from it")
                return present
        keys: list[str] = []
        while target[0] in ("field", "index"):
            keys.append(target[2] if target[0] == "field" else "[]")
            target = target[1]
        if target[0] == "name" and target[1] not in self.types:
            for key in keys:
                value = Value(fields={key: value})
            self._store(target[1], value)
        return value

    def _call(self, expr: Expr) -> Value:
        _, callee, arguments, row, launch, _ = expr
        if self._is_matcher(callee):
            return EMPTY
        if callee[0] == "field":
            method = self._method(callee, arguments, row)
            if method is not None:
                return method
        values = [self._eval(argument) for argument in arguments]
        target = self._eval(callee)
        if target.closure >= 0 and callee[0] in ("name", "lambda"):
            return self._invoke(target.closure, values)
        for value in values:
            if value.closure >= 0 and value.closure not in self.walked:
                self._invoke(value.closure, [])
        if callee[0] == "call" and values and values[0].symbols:
            return self._apply(self._named(values[0].symbols), values[1:], row, True, "the kernel")
        name = callee[1] if callee[0] == "name" else callee[2] if callee[0] == "field" else ""
        if callee[0] == "name" and _CHECK.search(name) and arguments[:1] and arguments[0][0] != "name":
            self._check(name, arguments, row)
            return EMPTY
        for i, value in enumerate(values[:-1]):
            kernels = [place for place in self._named(value.symbols) if place.function.kernel]
            if kernels:
                return self._apply(kernels, values[i + 1 :], row, True, name)
        if launch:
            return self._apply(self._named(target.symbols), values, row, True, name)
        if callee[0] == "field":
            found = self.sources.functions(self.path, name) if len(name) > 1 else []
            found = [place for place in found if place.function.owner]
            return self._apply(found[:4], values, row, False, name, self._eval(callee[1]))
        owner = self.function.owner if "::" not in name else ""
        found = self.sources.functions(self.path, name, owner)
        struct = self.sources.struct(self.path, name) if not found and name[:1].isupper() else None
        if struct is not None:
            return self._shaped(Value(fields={f"#{i}": value for i, value in enumerate(values)}), name)
        return self._apply(found[:8], values, row, False, name)

    def _is_matcher(self, callee: Expr) -> bool:
        """Whether a call belongs to a matcher chain: those are facts of the index and carry no values."""
        while callee[0] == "field" and callee[1][0] == "call":
            callee = callee[1][1]
        name = callee[1].rpartition("::")[2] if callee[0] == "name" else ""
        return name in self.matcher_classes or (callee[0] == "field" and callee[2] == "verify")

    def _named(self, symbols: Iterable[str]) -> list[Place]:
        return [
            place for name in sorted(symbols) for place in self.sources.functions(self.path, name, self.function.owner)
        ]

    def _method(self, callee: Expr, arguments: tuple[Expr, ...], row: int) -> Value | None:
        """Methods of tensors and symbols; None for any other."""
        name = callee[2]
        if name == "stride" and len(arguments) == 1:
            return self._read(self._eval(callee[1]), f"stride({spell(arguments[0])})", row)
        if name == "strides" and not arguments:
            return self._read(self._eval(callee[1]), "strides()", row)
        if name in _POINTERS:
            pointer = self._read(self._eval(callee[1]), "data", row)._replace(pointer=True)
            if callee[3]:
                self._use(self._eval(callee[1]), "dtype", callee[3][0], row, f"`{name}<{callee[3][0]}>`")
            return pointer
        if name in _SAME:
            return self._eval(callee[1])
        if name == "set_value" and arguments:
            self._use(self._eval(callee[1]), "equal", spell(arguments[0]), row, f"set to {spell(arguments[0])}")
            return EMPTY
        return EMPTY if name in _PROPERTIES else None

    @staticmethod
    def _read(value: Value, name: str, row: int) -> Value:
        return Value(frozenset(((*path, name), row) for path, _ in value.origins))

    def _invoke(self, closure: int, values: list[Value]) -> Value:
        self.walked.add(closure)
        self.walks += 1
        if self.walks > MOST_WALKS or closure in self._running or len(self._running) >= DEEPEST_CLOSURE:
            return EMPTY
        inner = self.function.lambdas[closure]
        for parameter, value in zip(inner.parameters, values, strict=False):
            if parameter.name:
                self._store(parameter.name, value)
        outer, self.returned = self.returned, EMPTY
        self._running.append(closure)
        self._walk(inner.steps)
        self._running.pop()
        returned, self.returned = self.returned, outer
        return returned

    def _apply(
        self, places: list[Place], values: list[Value], row: int, launch: bool, name: str, this: Value = EMPTY
    ) -> Value:
        """The uses of the callees in terms of this function's own paths, and what they return."""
        result = EMPTY
        if launch:
            for value in values:
                self._deep_use(value, "launch", row, "handed to a kernel")
        fitting = [place for place in places if _fits(place.function, len(values))]
        if not fitting:
            for value in values:
                self._deep_use(value, "escape", row, f"given to `{name}`")
            self._deep_use(this, "escape", row, f"given to `{name}`")
            return Value(frozenset(o for value in values for o in value.origins), any(v.pointer for v in values))
        for place in fitting:
            bound = _bind(place.function, values)
            bound["this"] = this
            summary = self.flow.summary(place)
            for use in summary.uses:
                value = bound.get(use.origin[0], EMPTY)
                if value.origins or value.fields:
                    note = f"passed to `{place.function.name}` as `{'.'.join(use.origin)}`"
                    reached = self._resolve(value, use.origin[1:])
                    for origin, at in sorted(
                        deep_origins(reached) if use.kind in ("launch", "escape") else reached.origins
                    ):
                        hops = (Passage(self.path, at or row, note), *use.hops)
                        self._keep(Use(origin, at, use.kind, use.detail, hops, launch or use.device))
            result = join(result, self._translate(summary.returned, bound))
        return result

    def _resolve(self, value: Value, path: Path) -> Value:
        for part in path:
            value = self._get(value, part)
        return value

    def _translate(self, value: Value, bound: Mapping[str, Value]) -> Value:
        result = Value(pointer=value.pointer, symbols=value.symbols)
        for (root, *rest), _ in value.origins:
            if root in bound:
                result = join(result, self._resolve(bound[root], tuple(rest)))
        fields = {key: self._translate(item, bound) for key, item in value.fields.items()}
        return join(result, Value(fields=fields)) if fields else result

    def _deep_use(self, value: Value, kind: str, row: int, note: str) -> None:
        self._use(Value(deep_origins(value)), kind, "", row, note)

    def _check(self, name: str, arguments: tuple[Expr, ...], row: int) -> None:
        if name.endswith("_EQ") and len(arguments) > 1:
            self._constrain(("bin", "==", arguments[0], arguments[1], row), False, row)
        else:
            for argument in arguments[:2]:
                self._constrain(argument, False, row)

    def _constrain(self, condition: Expr, negated: bool, row: int) -> None:
        """What a condition that must hold (`negated`: must not hold) says of tensors."""
        form = condition[0]
        if form == "unary" and condition[1] == "!":
            self._constrain(condition[2], not negated, row)
            return
        if form == "bin" and condition[1] in ("&&", "||"):
            self._constrain(condition[2], negated, row)
            self._constrain(condition[3], negated, row)
            return
        if form == "bin" and condition[1] == ("!=" if negated else "=="):
            for side, other in ((condition[2], condition[3]), (condition[3], condition[2])):
                if side[0] != "bin" or side[1] != "%":
                    self._use(self._eval(side), "equal", spell(other), row, f"checked: {spell(condition)}")
        pending = [condition]
        while pending:
            expr = pending.pop()
            if expr and expr[0] == "call" and expr[1][0] == "field" and expr[1][2] in _PROPERTIES:
                kind = _PROPERTIES[expr[1][2]]
                self._use(self._eval(expr[1][1]), kind, spell(condition), row, f"checked: {spell(condition)}")
            pending += [item for item in expr if isinstance(item, tuple)]


def _fits(function: CudaFunction, given: int) -> bool:
    """Whether so many arguments may be meant for the function; parameters may have defaults."""
    return given <= len(function.parameters) or any(parameter.pack for parameter in function.parameters)


def _bind(function: CudaFunction, values: list[Value]) -> dict[str, Value]:
    bound: dict[str, Value] = {}
    for i, parameter in enumerate(function.parameters):
        if parameter.pack:
            for value in values[i:]:
                bound[parameter.name] = join(bound.get(parameter.name, EMPTY), value)
        elif i < len(values):
            bound[parameter.name] = values[i]
    return bound


def bare(type_text: str) -> str:
    """A type without its pointers and arrays."""
    return type_text.rstrip("*[]")
