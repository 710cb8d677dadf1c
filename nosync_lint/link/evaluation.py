"""Evaluates expressions inside one function: names by the definitions that reach them, the rest by form.

What lies beyond the function is read from summaries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nosync_lint.index.records import Definition, Expr
from nosync_lint.link.annotations import Annotations
from nosync_lint.link.builtin_calls import builtin_call, container_call
from nosync_lint.link.dispatch import Dispatch
from nosync_lint.link.flow import enclosing, holding, narrows, reaching, tested_place
from nosync_lint.link.indexing import IndexShape, index_part
from nosync_lint.link.operations import Operations
from nosync_lint.link.project import Function, Module, Project
from nosync_lint.link.solver import Solver
from nosync_lint.link.values import BOTTOM, NONE, UNKNOWN, Origin, Value, element, vote

MAX_OVERRIDES = 16
"""What a method gives back is joined over at most this many overrides."""
_RESULT_FIELDS = {"values": 0, "indices": 1}  # of what `sort`, `topk` and `max` give
MAX_DEPTH = 24
"""A chain of local definitions longer than this goes on as a summary of its own."""


class At:
    """A place in a function: its record, and the sequence number and block of a statement."""

    __slots__ = ("block", "function", "seq")

    def __init__(self, function: Function, seq: int, block: int) -> None:
        self.function, self.seq, self.block = function, seq, block


class Evaluation:
    """What an expression is at a place. `solver` holds the summaries, which a subclass computes."""

    def __init__(
        self, project: Project, operations: Operations, solver: Solver, elsewhere: Callable[[Function, int], bool]
    ) -> None:
        self._elsewhere = elsewhere
        self.project, self.operations, self.solver = project, operations, solver
        self.annotations = Annotations(project, operations)
        self.dispatch = Dispatch(project)
        self.deferred: dict[tuple[int, int], tuple[Definition, Function]] = {}
        self._memo: dict[tuple[int, int], Value] = {}
        self._draft: dict[tuple[int, int], Value] = {}
        self._depth = 0
        self._narrowing: dict[int, bool] = {}
        self._reaching: dict[tuple[int, str, int, int], tuple[list[Definition], bool]] = {}
        self._forms: dict[str, Callable[[Expr, At], Value]] = {
            name[6:]: getattr(self, name) for name in dir(self) if name.startswith("_eval_")
        }

    def value(self, expr: Expr, at: At) -> Value:
        """What an expression is at a place."""
        found = self.evaluate(expr, at)
        return UNKNOWN if found.kind == "bottom" else found

    def evaluate(self, expr: Expr, at: At) -> Value:
        """The value of an expression by what the previous round knew."""
        form = expr[0]
        if form == "const":
            return _constant(expr[1])
        return self._forms.get(form, self._eval_opaque)(expr, at)

    def _eval_opaque(self, expr: Expr, at: At) -> Value:
        return UNKNOWN

    def _eval_name(self, expr: Expr, at: At) -> Value:
        value = self._lookup(expr[1], at)
        if value.kind in ("object", "unknown", "tensor", "number", "list"):
            value = self.narrowed(expr, value, at)
        return value

    def _lookup(self, name: str, at: At) -> Value:
        function = at.function
        record = function.record
        if name in record.definitions and name not in record.globals:
            key = (function.number, name, at.seq, at.block)
            known = self._reaching.get(key)
            if known is None:
                self._reaching[key] = known = self._here(function, *reaching(record, name, at.seq, at.block))
            found, entry = known
            voters = [
                self._define_cached(one, function)
                if one.seq < at.seq or (one.seq == at.seq and "~" in name)
                else self._deferred_definition(one, function)
                for one in found
            ]
            if entry:
                index = function.parameter(name)
                if index is not None:
                    voters.append(self.solver.read(("param", function.number, index)))
                elif not found and record.form in ("class", "module"):
                    return self._outer(name, function)
            value = vote(voters) if voters else UNKNOWN
            return self.by_name(value, name) if value.kind in ("tensor", "unknown") else value
        index = function.parameter(name)
        if index is not None:
            return self.solver.read(("param", function.number, index))
        return self._outer(name, function)

    def _here(self, function: Function, found: list[Definition], entry: bool) -> tuple[list[Definition], bool]:
        """Definitions without those of branches for other platforms, unless there are no others."""
        here = [one for one in found if not self._elsewhere(function, one.block)]
        return (here, entry) if here or entry else (found, entry)

    def _outer(self, name: str, function: Function) -> Value:
        parent = function.parent
        while parent is not None:
            record = parent.record
            if record.form not in ("class", "module"):
                if name in record.definitions:
                    values = [self._define_cached(found, parent) for found in record.definitions[name]]
                    index = parent.parameter(name)
                    if index is not None:
                        values.append(self.solver.read(("param", parent.number, index)))
                    return vote(values)
                index = parent.parameter(name)
                if index is not None:
                    return self.solver.read(("param", parent.number, index))
            parent = parent.parent
        return self._symbol(function.module, name)

    def _symbol(self, module: Module, name: str) -> Value:
        value = self.project.symbol(module, name)
        if value is None:
            return Value("extern", ref=f"builtins.{name}")
        if not value.known and value.ref is not None:
            return self.solver.read(("global", *value.ref))
        return value

    def _deferred_definition(self, definition: Definition, function: Function) -> Value:
        """A definition that comes round a loop: a summary of its own, so that recursion only ever goes backwards."""
        key = (function.number, id(definition))
        self.deferred[key] = (definition, function)
        return self.solver.read(("definition", *key))

    def _define_cached(self, definition: Definition, function: Function) -> Value:
        """A definition's value: kept for good once it rests on nothing unsettled, else for this computation."""
        key = (function.number, id(definition))
        value = self._memo.get(key)
        if value is not None:
            return value
        solver = self.solver
        value = self._draft.get(key)
        if value is not None:
            solver.provisional = True
            return value
        if self._depth >= MAX_DEPTH:
            return self._deferred_definition(definition, function)
        self._depth += 1
        outer, solver.provisional = solver.provisional, False
        value = self._define(definition, function)
        if solver.provisional:
            self._draft[key] = value
        else:
            self._memo[key] = value
            solver.provisional = outer
        self._depth -= 1
        return value

    def _define(self, definition: Definition, function: Function) -> Value:
        static = (
            self.project.static(function.module, definition.value)
            if definition.value[0] in ("func", "class", "import")
            else None
        )
        if static is not None:
            if not static.known and static.ref is not None:
                return self.solver.read(("global", *static.ref))
            return static
        value = self.evaluate(definition.value, At(function, definition.seq, definition.block))
        if definition.annotation is not None:
            value = self.settle(self.annotations.declared(definition.annotation, function), value, "")
        return self.explained(value, function, definition.row)

    @staticmethod
    def explained(value: Value, function: Function, row: int) -> Value:
        if value.kind == "tensor" and value.why is None:
            return value._replace(why=Origin(function.module.number, row, ""))
        return value

    def narrowed(self, expr: Expr, value: Value, at: At) -> Value:
        """What the tests that hold here say of an expression: `isinstance`, `.is_cuda`, `.device.type == "cpu"`."""
        function = at.function
        if function.number not in self._narrowing:
            tests = (block.test for block in function.record.blocks if block.test is not None)
            self._narrowing[function.number] = any(narrows(test) for test in tests)
        if not self._narrowing[function.number]:
            return value
        for test, outcome in holding(function.record, at.seq, at.block):
            where = tested_place(test, expr, outcome)
            if where is not None and value.kind in ("tensor", "unknown"):
                return value._replace(kind="tensor", where=where)
            if outcome and test[0] == "call" and test[1] == ("name", "isinstance") and test[2][:1] == (expr,):
                declared = self.annotations.declared(test[2][-1], function)
                if declared.known and declared.kind != value.kind:
                    return declared
                if declared.kind == "object" and declared.ref != value.ref and not value.exact:
                    return declared
        return value

    def _eval_attr(self, expr: Expr, at: At) -> Value:
        value = self.attribute(self.evaluate(expr[1], at), expr[2], at)
        if value.kind in ("object", "unknown", "tensor"):
            value = self.narrowed(expr, value, at)
        return value

    def attribute(self, base: Value, name: str, at: At) -> Value:
        """`base.name`."""
        kind = base.kind
        if kind == "bottom":
            return BOTTOM
        if kind == "module":
            value = self.project.member(base.ref, name, at.function.module)
            return self.solver.read(("global", *value.ref)) if not value.known and value.ref is not None else value
        if kind == "extern":
            return Value("extern", ref=f"{base.ref}.{name}")
        if kind == "tensor":
            return self.operations.attribute(name, base) or UNKNOWN
        if kind in ("object", "class"):
            known = [ref for ref in base.ref if isinstance(ref, int)]
            if known:
                values = [self.solver.read(("attr", ref, name)) for ref in known]
                return self.by_name(vote(values), name)
            if base.ref:
                return Value("extern", ref=f"{base.ref[0]}.{name}") if kind == "object" else UNKNOWN
        if kind == "unknown":
            return self._by_unique_name(name)
        if (
            kind == "tuple"
            and name in _RESULT_FIELDS
            and isinstance(base.items, tuple)
            and not isinstance(base.items, Value)
        ):
            place = _RESULT_FIELDS[name]
            return base.items[place] if place < len(base.items) else UNKNOWN
        return UNKNOWN

    def _by_unique_name(self, name: str) -> Value:
        """An attribute of an unknown object, where a single family of classes has one of that name."""
        family = self.dispatch.family(name)
        if family is None:
            return self.by_name(UNKNOWN, name)
        return self.solver.read(("attr", family.number, name)).weaker(1)

    def by_name(self, value: Value, name: str) -> Value:
        """Names like `lens_cpu` say that a value lives on the host: used where nothing else says so."""
        kind = self.operations.convention(name.partition("~")[0])
        if kind is None:
            return value
        if kind == "host" and value.kind == "tensor" and value.where in (None, "parametrised"):
            return value._replace(where="host", trust=min(value.trust, 1))
        if value.kind == "unknown":
            return Value("numpy" if kind == "numpy" else "tensor", where=None if kind == "numpy" else "host", trust=0)
        return value

    def settle(self, declared: Value, inferred: Value, name: str) -> Value:
        """The declared type filters kinds; a contradicting constructor wins; a name may say it lives on the host."""
        if not declared.known:
            value = inferred
        elif inferred.kind in ("bottom", "unknown", "none"):
            value = declared
        elif inferred.kind == declared.kind or (
            inferred.kind in ("int", "bool", "number", "float") and declared.kind in ("int", "float")
        ):
            value = inferred
            if declared.kind == "object" and not set(map(type, declared.ref)) <= {str} and inferred.trust < 2:
                value = declared if not inferred.exact else inferred
            if declared.kind == "tensor" and inferred.dtype is None:
                value = value._replace(dtype=declared.dtype)
        elif inferred.trust == 2:
            value = inferred
        else:
            value = declared
        return self.by_name(value, name)

    def _eval_call(self, expr: Expr, at: At) -> Value:
        func = expr[1]
        if func[0] == "attr":
            base = self.evaluate(func[1], at)
            found = self._method_call(base, func[2], expr, at)
            if found is not None:
                return found
            if base.kind == "object":
                methods = self.dispatch.callees(base, func[2])
                written = [m for m in methods if "stub" not in m.record.flags] or methods
                if 0 < len(written) <= MAX_OVERRIDES:
                    return vote([self.solver.read(("ret", method.number)) for method in written])
            callee = self.attribute(base, func[2], at)
        else:
            callee = self.evaluate(func, at)
        return self._result(callee, expr, at)

    def _arguments(self, call: Expr, at: At) -> tuple[list[Value], dict[str, Value]]:
        """The values of a call's arguments. Only asked for where the result depends on them: most do not."""
        args = [self.evaluate(arg, at) for arg in call[2]]
        return args, {name: self.evaluate(value, at) for name, value in call[3] if name}

    def _method_call(self, base: Value, name: str, call: Expr, at: At) -> Value | None:
        operations = self.operations
        if base.kind == "tensor":
            return operations.method(name, base, *self._arguments(call, at)) or UNKNOWN
        if base.kind == "unknown" and operations.may_imply_tensor(name):
            args, kwargs = self._arguments(call, at)
            if operations.implies_tensor(name, args, kwargs):
                return operations.method(name, Value("tensor", trust=1), args, kwargs)
            return None
        if (
            base.kind == "object"
            and name in ("to", "cuda", "cpu", "eval", "train")
            and self.dispatch.callees(base, name) == ()
        ):
            return base
        return container_call(base, name, lambda: self._arguments(call, at)[0])

    def _result(self, callee: Value, call: Expr, at: At) -> Value:
        """What calling a value gives."""
        if callee.kind == "bottom":
            return BOTTOM
        if callee.kind in ("function", "method"):
            return vote([self.solver.read(("ret", number)) for number in callee.ref])
        if callee.kind == "class":
            return Value("object", ref=callee.ref, exact=True)
        if callee.kind == "extern":
            name = callee.ref
            if name.startswith("builtins."):
                return builtin_call(name[9:], lambda: self._arguments(call, at)[0], self.operations)
            if self.operations.knows(name):
                args, kwargs = self._arguments(call, at)
                factory = self.operations.is_factory(name) and "device" not in kwargs
                ambient = self._ambient(at) if factory else None
                found = self.operations.function(name, args, {**kwargs, "device": ambient} if ambient else kwargs)
                if found is not None:
                    return found
            declared = self.annotations.external(name)
            return declared if declared.known else self._external(name)
        if callee.kind == "object":
            targets = self.dispatch.instances_run(callee)
            return vote([self.solver.read(("ret", method.number)) for method in targets]) if targets else UNKNOWN
        return UNKNOWN

    def _ambient(self, at: At) -> Value | None:
        """The device of a `with torch.device(...)` around a place."""
        blocks = at.function.record.blocks
        for number in enclosing(blocks, at.block):
            block = blocks[number]
            for manager in block.test[1] if block.form == "with" and block.test is not None else ():
                if manager[0] == "call" and manager[1][-1] == "device":
                    value = self.evaluate(manager, at)
                    if value.kind == "device":
                        return value
        return None

    def _external(self, name: str) -> Value:
        last = name.rpartition(".")[2]
        if last[:1].isupper():
            return Value("object", ref=(name,), trust=1)
        return UNKNOWN

    def _eval_sub(self, expr: Expr, at: At) -> Value:
        base = self.evaluate(expr[1], at)
        if base.kind == "tensor":
            return self.subscript(base, expr[2], at)
        if base.kind in ("list", "tuple", "dict", "iter", "set"):
            items = base.items
            index = expr[2]
            if index[0] == "slice":
                return base._replace(items=items if isinstance(items, Value) else vote(items or ()))
            if isinstance(items, Value):
                return items
            if items and index[0] == "const" and isinstance(index[1], int) and -len(items) <= index[1] < len(items):
                return items[index[1]]  # type: ignore[no-any-return]
            return vote(items) if items else UNKNOWN
        if base.kind == "numpy":
            return Value("numpy")
        return BOTTOM if base.kind == "bottom" else UNKNOWN

    def subscript(self, base: Value, index: Expr, at: At) -> Value:
        """`tensor[index]`: same place and dtype class, and the rank where the index tells it."""
        shape = self.index_shape(index, at)
        rank = None
        if base.rank is not None and shape.rank_change is not None:
            rank = base.rank + shape.rank_change
        return base._replace(rank=rank if rank is None or rank >= 0 else None)

    def index_shape(self, index: Expr, at: At) -> IndexShape:
        """The items of an index, classified."""
        parts = index[1] if index[0] == "tuple" else (index,)
        return IndexShape([self._index_part(part, at) for part in parts])

    def _index_part(self, part: Expr, at: At) -> tuple[str, Value]:
        if part[0] in ("slice", "ellipsis"):
            return part[0], NONE
        kind, value = index_part(self.evaluate(part, at))
        if kind in ("any-tensor", "unknown") and part[0] in ("name", "attr"):
            announced = self.operations.convention(part[-1].partition("~")[0])
            if announced == "integers":
                return ("tensor" if kind == "any-tensor" else "integers"), value._replace(trust=min(value.trust, 1))
            if announced == "mask" and kind == "any-tensor":
                return "mask", value
        return kind, value

    def _eval_bin(self, expr: Expr, at: At) -> Value:
        left, right = self.evaluate(expr[2], at), self.evaluate(expr[3], at)
        if left.kind == "list" and expr[1] == "*":
            return left._replace(items=left.items if isinstance(left.items, Value) else vote(left.items or ()))
        return self.operations.binary(expr[1], left, right)

    def _eval_aug(self, expr: Expr, at: At) -> Value:
        return self._eval_bin(expr, at)

    def _eval_unary(self, expr: Expr, at: At) -> Value:
        value = self.evaluate(expr[2], at)
        if expr[1] == "not":
            return Value("bool")
        return (
            value._replace(ref=None) if value.kind in ("int", "float", "tensor", "number", "bool", "numpy") else value
        )

    def _eval_bool(self, expr: Expr, at: At) -> Value:
        return vote([self.evaluate(part, at) for part in expr[2]])

    def _eval_cmp(self, expr: Expr, at: At) -> Value:
        if expr[1][0] in ("is", "is not", "in", "not in"):
            return Value("bool")
        left = self.evaluate(expr[2], at)
        right = self.evaluate(expr[3][0], at)
        return self.operations.compare(left, right)

    def _eval_ifexp(self, expr: Expr, at: At) -> Value:
        return vote([self.evaluate(expr[2], at), self.evaluate(expr[3], at)])

    def _eval_tuple(self, expr: Expr, at: At) -> Value:
        if any(part[0] == "star" for part in expr[1]):
            return Value("tuple", items=vote([self.evaluate(part, at) for part in expr[1]]))
        return Value("tuple", items=tuple(self.evaluate(part, at) for part in expr[1][:12]))

    def _eval_list(self, expr: Expr, at: At) -> Value:
        return Value(expr[0], items=vote([self.evaluate(part, at) for part in expr[1][:12]]) if expr[1] else None)

    _eval_set = _eval_list

    def _eval_dict(self, expr: Expr, at: At) -> Value:
        return Value("dict", items=vote([self.evaluate(part, at) for part in expr[2][:12]]) if expr[2] else None)

    def _eval_comp(self, expr: Expr, at: At) -> Value:
        return Value(expr[1], items=self.evaluate(expr[2], at))

    def _eval_star(self, expr: Expr, at: At) -> Value:
        return element(self.evaluate(expr[1], at))

    def _eval_elem(self, expr: Expr, at: At) -> Value:
        return element(self.evaluate(expr[1], at))

    def _eval_item(self, expr: Expr, at: At) -> Value:
        value = self.evaluate(expr[1], at)
        items = value.items
        if value.kind == "tuple" and isinstance(items, tuple) and not isinstance(items, Value):
            found: Value = items[expr[2]] if expr[2] < len(items) else UNKNOWN
            return found
        return element(value)

    def _eval_enter(self, expr: Expr, at: At) -> Value:
        value = self.evaluate(expr[1], at)
        if value.kind == "object":
            targets = self.dispatch.callees(value, "__enter__")
            return vote([self.solver.read(("ret", one.number)) for one in targets]) if targets else value
        return UNKNOWN

    def _eval_buffer(self, expr: Expr, at: At) -> Value:
        value = self.evaluate(expr[1], at)
        if value.kind == "tensor" and value.where not in ("device", "parametrised"):
            return value._replace(where="parametrised", trust=min(value.trust, 1))
        return value

    def _eval_await(self, expr: Expr, at: At) -> Value:
        return self.evaluate(expr[1], at)

    def _eval_fstr(self, expr: Expr, at: At) -> Value:
        return Value("str")

    def _eval_lambda(self, expr: Expr, at: At) -> Value:
        return Value("function", ref=(at.function.module.functions[expr[1]].number,))


def _constant(value: Any) -> Value:
    if value is None:
        return NONE
    return Value("float" if isinstance(value, complex) else type(value).__name__, ref=value)
