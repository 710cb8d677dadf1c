"""Evaluates expressions inside one function: names by the definitions that reach them, the rest by form.

What lies beyond the function is read from summaries.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from nosync_lint.index.records import Expr
from nosync_lint.link.annotations import wrapped
from nosync_lint.link.batches import Batches, is_open, of_both, tensor_of, unpacked
from nosync_lint.link.builtin_calls import builtin_call, container_call, container_item
from nosync_lint.link.call_results import CallResults
from nosync_lint.link.cxx_models import loaded, loaders
from nosync_lint.link.dispatch import OF_BUILTINS
from nosync_lint.link.field_uses import FieldUses
from nosync_lint.link.flow import enclosing
from nosync_lint.link.indexing import IndexShape, index_part, kept_dense, names_of
from nosync_lint.link.names import At, Names
from nosync_lint.link.operations import Operations
from nosync_lint.link.project import Function, Project, handed_as
from nosync_lint.link.record_fields import RecordFields
from nosync_lint.link.solver import Node, Solver
from nosync_lint.link.values import BOTTOM, MAYBE_PINNED, NONE, UNKNOWN, Value, capped, constant, element, vote

MAX_FIELDS = 24
"""A dictionary literal with more entries than this is a mapping of one kind of value."""
MAX_OVERRIDES = 16
"""What a method gives back is joined over at most this many overrides."""
_RESULT_FIELDS = {"values": 0, "indices": 1}  # of what `sort`, `topk` and `max` give


class Evaluation(Names):
    """What an expression is at a place. A subclass computes the summaries."""

    def __init__(
        self, project: Project, operations: Operations, solver: Solver, elsewhere: Callable[[Function, int], bool]
    ) -> None:
        super().__init__(project, operations, solver, elsewhere)
        self.batches = Batches(operations)
        self._uses = FieldUses(project, operations, self.batches)
        self.records = RecordFields(project, self._field)
        self._same: dict[tuple[int, str], Value | Node] = {}
        self._results = CallResults(self)
        self._forms: dict[str, Callable[[Expr, At], Value]] = {
            name[6:]: getattr(self, name) for name in dir(self) if name.startswith("_eval_")
        }

    @abstractmethod
    def told_of(self, dotted: str) -> Value | None:
        """What the configuration says of the result of a function from outside the project."""

    def value(self, expr: Expr, at: At) -> Value:
        """What an expression is at a place."""
        found = self.evaluate(expr, at)
        return UNKNOWN if found.kind == "bottom" else tensor_of(found) if is_open(found) else found

    def receiver(self, expr: Expr, method: str, at: At) -> Value:
        """What the receiver of a method is: a tensor where a field may be anything and only tensors have the method."""
        found = self.evaluate(expr, at)
        return found.items if is_open(found) and method not in OF_BUILTINS else self.value(expr, at)

    def evaluate(self, expr: Expr, at: At) -> Value:
        """The value of an expression by what the previous round knew."""
        form = expr[0]
        if form == "const":
            return constant(expr[1])
        return self._forms.get(form, self._eval_opaque)(expr, at)

    def _eval_opaque(self, expr: Expr, at: At) -> Value:
        return UNKNOWN

    def _eval_name(self, expr: Expr, at: At) -> Value:
        number, name = at.function.number, expr[1]
        same = self._same.get((number, name))
        if same is None:
            same = self._same[number, name] = self.everywhere(expr, at.function)
        if same:
            if isinstance(same, Value):
                return same
            found = self._arguments_given.get(same) or self.solver.read(same)
            return self._field_told(found, expr, at) if found.kind == "batch" else found
        key = (number, name, at.seq, at.block)
        value = self._named.get(key)
        if value is not None:
            return value
        solver = self.solver
        outer, solver.provisional = solver.provisional, False
        value = self._lookup(expr[1], at)
        if value.kind == "batch":
            value = self._field_told(value, expr, at)
        if value.kind in ("object", "unknown", "tensor", "number", "list") or is_open(value):
            value = self.narrowed(expr, value, at)
        if not solver.provisional:  # it rests on nothing unsettled
            self._named[key] = value
            solver.provisional = outer
        return value

    def _field_told(self, value: Value, expr: Expr, at: At) -> Value:
        """A field of a batch by its name and its uses."""
        told = self._uses.told(value, expr, at.function)
        return self.by_name(told, expr[1]) if expr[0] == "name" else told

    def _eval_attr(self, expr: Expr, at: At) -> Value:
        value = self._field_told(self.attribute(self.evaluate(expr[1], at), expr[2], at), expr, at)
        if value.kind in ("object", "unknown", "tensor") or is_open(value):
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
        if kind == "batch":
            return self.batches.attribute(base, name)
        if kind in ("object", "class"):
            known = [ref for ref in base.ref if isinstance(ref, int)]
            if known:
                values = [self.solver.read(("attr", ref, name)) for ref in known]
                found = self.batches.of_record(base, known, vote(values), self.project)
                return self.by_name(self.records.of_argument(base, known, name, found), name)
            if base.ref:
                return Value("extern", ref=f"{base.ref[0]}.{name}") if kind == "object" else UNKNOWN
        if kind == "unknown":
            found = self._by_unique_name(name)
            described = self.operations.of_any_tensor(name) if found.kind == "unknown" else None
            return described or found
        if (
            kind == "tuple"
            and name in _RESULT_FIELDS
            and isinstance(base.items, tuple)
            and not isinstance(base.items, Value)
        ):
            place = _RESULT_FIELDS[name]
            return base.items[place] if place < len(base.items) else UNKNOWN
        return UNKNOWN

    def _field(self, number: int, name: str) -> Value:
        """A field of an instance of a class."""
        return self.by_name(self.solver.read(("attr", number, name)), name)

    def _by_unique_name(self, name: str) -> Value:
        """An attribute of an unknown object, where a single family of classes has one of that name."""
        family = self.dispatch.family(name)
        if family is None:
            return self.by_name(UNKNOWN, name)
        return self.solver.read(("attr", family.number, name)).guessed()

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
                    return self._returned(tuple(method.number for method in written), expr, at, True)
            callee = self.attribute(base, func[2], at)
        else:
            callee = self.evaluate(func, at)
        return self._result(callee, expr, at)

    def _arguments(self, call: Expr, at: At) -> tuple[list[Value], dict[str, Value]]:
        """The values of a call's arguments. Only asked for where the result depends on them: most do not."""
        args = [self.records.positions(tensor_of(self.evaluate(arg, at))) for arg in call[2]]
        return args, {name: tensor_of(self.evaluate(value, at)) for name, value in call[3] if name}

    def _method_call(self, base: Value, name: str, call: Expr, at: At) -> Value | None:
        operations = self.operations
        if base.kind == "tensor" and self.batches.is_record_method(name):
            base = Value("batch", ref="tensors", items=base, trust=min(base.trust, 1))  # a field may be a record itself
        if base.kind == "batch":
            found = self.batches.method(base, name, self._arguments(call, at)[0], call)
            if found is not None:
                return found
            if is_open(base) and name in OF_BUILTINS:
                return UNKNOWN  # a text or a list has it, too
            base = base.items
        if base.kind == "tensor":
            return operations.method(name, base, *self._arguments(call, at)) or UNKNOWN
        if base.kind in ("object", "class") and (made := self.records.method(base, name)) is not None:
            return made
        if base.kind in ("unknown", "object") and operations.passes(name) and call[2]:
            return self.evaluate(call[2][0], at)
        if base.kind == "unknown" and operations.moves(name):
            where = self.destination(call, at)
            if where is not None:
                return self.batches.of(where, "rows")
        if base.kind == "unknown" and operations.may_imply_tensor(name):
            args, kwargs = self._arguments(call, at)
            if operations.implies_tensor(name, args, kwargs):
                return operations.method(name, Value("tensor", trust=1), args, kwargs)
            return None
        if base.kind == "dict" and isinstance(base.items, Value) and base.items.is_tensor and operations.moves(name):
            return base._replace(items=operations.method(name, base.items, *self._arguments(call, at)))
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
            return self._returned(callee.ref, call, at, callee.kind == "method")
        if callee.kind == "class":
            return Value("object", ref=callee.ref, exact=True)
        if callee.kind == "extern":
            name = callee.ref
            if name.startswith("builtins."):
                return builtin_call(name[9:], lambda: self._iterables(call, at), self.operations)
            told = self.told_of(name) or self.records.function(name, call, lambda arg: self.evaluate(arg, at))
            if told is not None:
                return told
            if self.operations.makes_group(name):
                backend = next((self.evaluate(value, at).ref for word, value in call[3] if word == "backend"), None)
                return Value("object", ref=(f"group of {backend}",))
            made = self.batches.made(name)
            if made is not None:
                return made
            if self.operations.knows(name):
                args, kwargs = self._arguments(call, at)
                if self.operations.takes_tensor(name) and call[2] and is_open(first := self.evaluate(call[2][0], at)):
                    args[0] = first.items
                factory = self.operations.is_factory(name) and "device" not in kwargs
                ambient = self._ambient(at) if factory else None
                found = self.operations.function(name, args, {**kwargs, "device": ambient} if ambient else kwargs)
                if found is not None:
                    return found
            declared = self.annotations.external(name)
            if name in loaders():
                return Value("object", ref=(loaded(name, at.function.number, call[4]),), trust=1)
            if declared.kind == "tensor" and call[2]:
                args = self._arguments(call, at)[0]
                return self.operations.constructed(name, declared, args) or wrapped(declared, args[0])
            return declared if declared.known else self._external(name, call, at)
        if callee.kind == "object":
            targets = self.dispatch.instances_run(callee)
            value = vote([self.solver.read(("ret", method.number)) for method in targets]) if targets else UNKNOWN
            if value.kind != "unknown":
                return value
            if not targets and at.function.is_self(call[1]):
                return self.batches.of("parametrised", "tensors")  # a mixin calls the model that it is part of
            return self.batches.of_external(self.dispatch.with_externs(callee), call) or UNKNOWN
        if callee.kind == "unknown":
            return self.batches.called(call[1], call) or UNKNOWN
        return UNKNOWN

    def _returned(self, functions: tuple[int, ...], call: Expr, at: At, bound: bool) -> Value:
        """What a call of functions of the project gives; `bound`: they are methods that the receiver is handed to."""
        if len(functions) == 1:
            function = self.project.functions[functions[0]]
            found = self._results.of(function, call, at, bound and function.binds != "")
            if found is not None:
                return found
        value = vote([self.solver.read(("ret", number)) for number in functions])
        return self._results.placed(value, lambda: self._arguments(call, at))

    def _iterables(self, call: Expr, at: At) -> list[Value]:
        """The arguments of a builtin; what yields data by its name and is not known, as an iterable of batches."""
        found = self._arguments(call, at)[0]
        for place, (expr, value) in enumerate(zip(call[2], found, strict=True)):
            if value.kind in ("unknown", "object") and (batch := self._loaded(expr, value, at)) is not None:
                found[place] = Value("iter", items=batch, trust=1)
        return found

    def _loaded(self, expr: Expr, value: Value, at: At) -> Value | None:
        """What iterating over an instance or something unknown gives, where that is a data loader or wraps one."""
        while value.kind == "unknown" and expr[0] == "call" and expr[2]:  # tqdm(loader)
            expr = expr[2][0]
            value = self.evaluate(expr, at)
        batch = self.batches.of_loader(self.dispatch.with_externs(value)) if value.kind == "object" else None
        return batch or self.batches.loaded(expr)

    def destination(self, call: Expr, at: At) -> str | None:
        """Where a call that moves its receiver moves it to."""
        moved = self.operations.method(call[1][2], Value("tensor"), *self._arguments(call, at))
        return moved.where if moved is not None else None

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

    def _external(self, name: str, call: Expr, at: At) -> Value:
        last = name.rpartition(".")[2]
        if not last[:1].isupper():
            return UNKNOWN
        if self.batches.is_loader(name):
            return Value("object", self.batches.loads_to(self._arguments(call, at)[1], call), ref=(name,), trust=1)
        switch = self.operations.holds(name)
        if switch is None:
            return Value("object", ref=(name,), trust=1)
        if (switch, ("const", False)) in call[3]:
            return UNKNOWN
        args, kwargs = self._arguments(call, at)
        held = next((one for one in (*args, *kwargs.values()) if one.accelerated), UNKNOWN)
        return Value("object", where=held.where, ref=(name,), trust=1, why=held.why)

    def _eval_sub(self, expr: Expr, at: At) -> Value:
        base = self.records.positions(self.evaluate(expr[1], at))
        if base.kind == "batch":
            item = self.batches.item(base, expr[2])
            if item is not None:
                return self._uses.told(item, expr, at.function)
            base = base.items
        if base.kind == "tensor":
            return self.subscript(base, expr[2], at)
        return container_item(base, expr[2])

    def subscript(self, base: Value, index: Expr, at: At) -> Value:
        """`tensor[index]`: same place and dtype class, and the rank where the index tells it."""
        shape = self.index_shape(index, at)
        if base.where in MAYBE_PINNED and shape.kinds & {"mask", "tensor", "any-tensor", "sequence"}:
            base = base._replace(where="host")  # a copy, of which nothing says that it is pinned
        rank = None
        if base.rank is not None and shape.rank_change is not None:
            rank = base.rank + shape.rank_change
        return base._replace(rank=rank if rank is None or rank >= 0 else None, dense=kept_dense(base.dense, index))

    def index_shape(self, index: Expr, at: At) -> IndexShape:
        """The items of an index, classified."""
        if index[0] == "tuple":
            return IndexShape(index[1], [self._index_part(part, at, nested=True) for part in index[1]])
        value = UNKNOWN
        if index[0] in ("name", "attr", "call", "sub"):
            value = self.records.positions(self.evaluate(index, at))
        if value.kind == "tuple" and isinstance(value.items, tuple) and not isinstance(value.items, Value):
            return IndexShape([("elem", index)] * len(value.items), [index_part(one) for one in value.items])
        if value.kind == "tuple":
            return IndexShape([("elem", index)], [index_part(value.items or UNKNOWN)], counted=False)
        return IndexShape([index], [self._index_part(index, at)])

    def _index_part(self, part: Expr, at: At, nested: bool = False) -> tuple[str, Value]:
        if part[0] == "slice":
            bounds = (self.evaluate(bound, at) for bound in part[1:] if bound[0] not in ("const", "opaque"))
            return next((("device-slice", value) for value in bounds if value.accelerated), ("slice", NONE))
        if part[0] == "ellipsis":
            return part[0], NONE
        kind, value = index_part(tensor_of(self.evaluate(part, at)))
        if nested and value.kind == "tuple" and kind == "unknown":
            return "sequence", value
        if kind not in ("any-tensor", "unknown"):
            return kind, value
        if part[0] == "unary" and part[1] == "~" and kind == "any-tensor":
            return "mask", value.weaker(1)  # nobody indexes with inverted integers
        names = [*names_of(part)] if kind == "any-tensor" or part[0] in ("name", "attr") else []
        if kind == "any-tensor" and part[0] == "name":
            names += handed_as(part[1], at.function, self.project)
        told = (self.operations.convention(name.partition("~")[0]) for name in names)
        announced = next((one for one in told if one in ("integers", "mask")), None)
        if announced == "integers":
            return ("tensor" if kind == "any-tensor" else "integers"), value.weaker(1)
        if announced == "mask" and kind == "any-tensor":
            return "mask", value.weaker(1)
        return kind, value

    def _eval_bin(self, expr: Expr, at: At) -> Value:
        if any(part[0] == "const" and isinstance(part[1], str) for part in expr[2:4]):
            return Value("str")  # whatever the other side would be taken for: no tensor is added to a text
        left, right = self.evaluate(expr[2], at), self.evaluate(expr[3], at)
        if left.kind == "list" and expr[1] == "*":
            return left._replace(items=left.items if isinstance(left.items, Value) else vote(left.items or ()))
        return of_both(lambda one, other: self.operations.binary(expr[1], one, other), left, right)

    def _eval_aug(self, expr: Expr, at: At) -> Value:
        return self._eval_bin(expr, at)

    def _eval_unary(self, expr: Expr, at: At) -> Value:
        value = self.evaluate(expr[2], at)
        if expr[1] == "not":
            return Value("bool")
        if is_open(value):
            return value
        value = tensor_of(value)
        return (
            value._replace(ref=None) if value.kind in ("int", "float", "tensor", "number", "bool", "numpy") else value
        )

    def _eval_bool(self, expr: Expr, at: At) -> Value:
        return vote([self.evaluate(part, at) for part in expr[2]])

    def _eval_cmp(self, expr: Expr, at: At) -> Value:
        if expr[1][0] in ("is", "is not", "in", "not in"):
            return Value("bool")
        return of_both(self.operations.compare, self.evaluate(expr[2], at), self.evaluate(expr[3][0], at))

    def _eval_ifexp(self, expr: Expr, at: At) -> Value:
        return vote([self.evaluate(expr[2], at), self.evaluate(expr[3], at)])

    def _eval_tuple(self, expr: Expr, at: At) -> Value:
        items: list[Value] = []
        for part in expr[1][:12]:
            row = self.records.positions(self.evaluate(part[1], at)) if part[0] == "star" else None
            if row is not None and (row.kind != "tuple" or isinstance(row.items, Value | None)):
                return Value("tuple", items=vote([self.evaluate(one, at) for one in expr[1]]))
            items += [self.evaluate(part, at)] if row is None else row.items
        return Value("tuple", items=tuple(items[:12]))

    def _eval_list(self, expr: Expr, at: At) -> Value:
        return Value(
            expr[0], items=capped(vote([self.evaluate(part, at) for part in expr[1][:12]])) if expr[1] else None
        )

    _eval_set = _eval_list

    def _eval_dict(self, expr: Expr, at: At) -> Value:
        if len(expr[1]) > MAX_FIELDS:
            return Value("dict", items=vote([self.evaluate(part, at) for part in expr[2][:MAX_FIELDS]]))
        fields: dict[object, Value] = {}
        rest: list[Value] = []
        for key, part in zip(expr[1], expr[2], strict=True):
            value = self.evaluate(part, at)
            if key[0] == "const":
                fields[key[1]] = value
            elif key[0] != "star":
                rest.append(value)
            elif value.kind == "batch":
                return value  # {**batch, "more": t}: fields under any name
            elif value.kind == "dict":
                fields.update(value.ref or ())
                rest += [] if value.ref is not None or value.items is None else [value.items]
            else:
                rest.append(UNKNOWN)
        values = [*fields.values(), *rest]
        held = capped(vote(values)) if values else None
        return Value("dict", ref=tuple(fields.items()) if fields and not rest else None, items=held)

    def _eval_comp(self, expr: Expr, at: At) -> Value:
        return Value(expr[1], items=capped(self.evaluate(expr[2], at)))

    def _eval_star(self, expr: Expr, at: At) -> Value:
        return element(self.records.positions(self.evaluate(expr[1], at)))

    def _eval_elem(self, expr: Expr, at: At) -> Value:
        value = self.records.positions(self.evaluate(expr[1], at))
        if value.kind in ("unknown", "object"):
            return self._loaded(expr[1], value, at) or UNKNOWN
        return value if is_open(value) else UNKNOWN if value.kind == "batch" else element(value)

    def _eval_item(self, expr: Expr, at: At) -> Value:
        value = self.records.positions(self.evaluate(expr[1], at))
        items = value.items
        if value.kind == "tuple" and isinstance(items, tuple) and not isinstance(items, Value):
            found: Value = items[expr[2]] if -len(items) <= expr[2] < len(items) else UNKNOWN
            return found
        return unpacked(value)

    def _eval_rest(self, expr: Expr, at: At) -> Value:
        value = self.records.positions(self.evaluate(expr[1], at))
        items = value.items
        if value.kind == "tuple" and isinstance(items, tuple) and not isinstance(items, Value):
            return Value("list", items=vote(items[expr[2] : expr[3] or None]))
        return Value("list", items=unpacked(value))

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
