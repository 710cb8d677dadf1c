"""What an annotation declares."""

from __future__ import annotations

from nosync_lint.index.records import Expr
from nosync_lint.link.operations import Operations
from nosync_lint.link.project import Function, Project
from nosync_lint.link.values import NONE, UNKNOWN, Value, vote

_WRAPPERS = frozenset({"Optional", "Annotated", "Final", "ClassVar", "Required", "NotRequired", "Awaitable", "InitVar"})


class Annotations:
    """Turns annotation expressions into values: a declared type, one trust below a constructor for its place."""

    def __init__(self, project: Project, operations: Operations) -> None:
        self._project, self._operations = project, operations

    def declared(self, expr: Expr | None, function: Function) -> Value:
        """The value that an annotation (or the second argument of `isinstance`) declares, or unknown."""
        if expr is None:
            return UNKNOWN
        form = expr[0]
        if form == "const":
            return NONE if expr[1] is None else UNKNOWN
        if form in ("name", "attr"):
            return self._named(expr, function)
        if form == "bin" and expr[1] == "|":
            return vote([self.declared(expr[2], function), self.declared(expr[3], function)])
        if form == "tuple":
            return vote([self.declared(part, function) for part in expr[1]])
        if form == "sub":
            return self._generic(expr, function)
        return UNKNOWN

    def external(self, dotted: str) -> Value:
        """What an external type is, by the model file."""
        kind = self._operations.types.get(dotted)
        if not isinstance(kind, str) or kind == "unknown":
            return UNKNOWN
        types = self._operations.types
        where = types["where"].get(dotted)
        return Value(kind, where, None, types["dtype"].get(dotted), trust=1 if where == "parametrised" else 2)

    def _named(self, expr: Expr, function: Function) -> Value:
        module = function.module
        found = self._project.static_path(module, expr, function.number - module.functions[0].number)
        if found is None:
            if expr[0] == "name":
                kind = self._operations.types["builtin"].get(expr[1])
                return Value(kind) if kind else UNKNOWN
            return UNKNOWN
        if found.kind == "class":
            return Value("object", ref=found.ref)
        if found.kind == "extern":
            known = self.external(found.ref)
            if known.known:
                return known
            last = found.ref.rpartition(".")[2]
            if last[:1].isupper() and found.ref.partition(".")[0] not in ("typing", "typing_extensions"):
                return Value("object", ref=(found.ref,))
            return UNKNOWN
        if not found.known and found.ref is not None:
            return self._alias(found.ref)
        return UNKNOWN

    def _alias(self, key: tuple[int, str]) -> Value:
        """A module-level alias: `Batch = dict[str, Tensor]`."""
        module = self._project.modules[key[0]]
        for definition in module.index.functions[0].definitions.get(key[1], ())[-1:]:
            if definition.value[0] in ("sub", "attr", "bin") and definition.value != ("name", key[1]):
                return self.declared(definition.value, module.functions[0])
        return UNKNOWN

    def _generic(self, expr: Expr, function: Function) -> Value:
        base = expr[1]
        name = base[-1] if base[0] in ("name", "attr") else ""
        parts: tuple[Expr, ...] = expr[2][1] if expr[2][0] == "tuple" else (expr[2],)
        if name in _WRAPPERS:
            return self.declared(parts[0], function)
        if name == "Union":
            return vote([self.declared(part, function) for part in parts])
        if name in ("Type", "type"):
            inner = self.declared(parts[0], function)
            return Value("class", ref=inner.ref) if inner.kind == "object" else UNKNOWN
        outer = self._named(base, function) if base[0] in ("name", "attr") else UNKNOWN
        if outer.kind == "tuple":
            if len(parts) == 2 and parts[1][0] == "ellipsis":
                return Value("tuple", items=self.declared(parts[0], function))
            return Value("tuple", items=tuple(self.declared(part, function) for part in parts))
        if outer.kind == "dict":
            return Value("dict", items=self.declared(parts[-1], function))
        if outer.kind in ("list", "set", "iter"):
            return Value(outer.kind, items=self.declared(parts[0], function))
        return outer


def wrapped(declared: Value, data: Value) -> Value:
    """`nn.Parameter(data)`: what the data is, in the place that the type tells unless the data is there already."""
    if data.kind != "tensor":
        return declared
    dtype = declared.dtype or data.dtype
    if declared.where is None or data.accelerated:
        return data._replace(dtype=dtype)
    return data._replace(where=declared.where, dtype=dtype, trust=min(declared.trust, data.trust))
