"""Finds what expressions are: evaluation inside one function, over summaries of parameters, returns, attributes
and module globals that `solver` brings to a fixed point."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from nosync_lint.index.records import CallSite, Definition, Expr
from nosync_lint.link.annotations import Annotations
from nosync_lint.link.builtin_calls import builtin_call, container_call
from nosync_lint.link.calls import Binding, Target, bind
from nosync_lint.link.flow import holding, reaching
from nosync_lint.link.operations import Operations
from nosync_lint.link.project import Class, Function, Module, Project
from nosync_lint.link.solver import Node, Solver
from nosync_lint.link.values import BOTTOM, NONE, UNKNOWN, Origin, Value, vote

MAX_CALLERS = 48
"""A parameter is joined over at most this many callers, taken in project order."""
MAX_CANDIDATES = 400
"""The callers of a function are not searched where more calls than this go by its name (`get`, `forward`)."""
MAX_DEPTH = 24
"""A chain of local definitions longer than this goes on as a summary of its own, computed in the next round."""


class At:
    """A place in a function: its record, and the sequence number and block of a statement."""

    __slots__ = ("block", "function", "seq")

    def __init__(self, function: Function, seq: int, block: int) -> None:
        self.function, self.seq, self.block = function, seq, block


class Inference:
    """Answers what an expression is at a place. Demand-driven: nothing is computed that no question needs."""

    def __init__(self, project: Project, operations: Operations, is_root: Callable[[Function], bool]) -> None:
        self.project, self.operations = project, operations
        self.annotations = Annotations(project, operations)
        self._is_root = is_root
        self.solver = Solver(self._compute)
        self._memo: dict[tuple[int, int], Value] = {}
        self._draft: dict[tuple[int, int], Value] = {}
        self._depth = 0
        self._forms: dict[str, Callable[[Expr, At], Value]] = {
            name[6:]: getattr(self, name) for name in dir(self) if name.startswith("_eval_")
        }
        self._narrowing: dict[int, bool] = {}
        self._reaching: dict[tuple[int, str, int, int], tuple[list[Definition], bool]] = {}
        self._deferred: dict[tuple[int, int], tuple[Definition, Function]] = {}
        self._calls: dict[tuple[int, int], CallSite] = {}
        self._families: dict[str, tuple[Class, ...] | None] = {}

    # -- questions --

    def value(self, expr: Expr, at: At) -> Value:
        """What an expression is at a place."""
        found = self.evaluate(expr, at)
        return UNKNOWN if found.kind == "bottom" else found

    def targets(self, function: Function, site: CallSite) -> tuple[Target, ...]:
        """The functions of the project that a call may run."""
        key = (function.number, site.call[4])
        self._calls[key] = site
        return self.solver.read(("callee", *key)).items or ()

    # -- summaries --

    def _compute(self, node: Node) -> Value:
        kept, self._draft, depth = self._draft, {}, self._depth
        self._depth = 0
        value: Value = getattr(self, f"_compute_{node[0]}")(*node[1:])
        self._draft, self._depth = kept, depth
        return value

    def _compute_param(self, number: int, index: int) -> Value:
        function = self.project.functions[number]
        parameter = function.record.parameters[index]
        if index == 0 and function.binds and parameter.form in ("positional", "only") and function.cls is not None:
            kind = "object" if function.binds == "self" else "class"
            return Value(kind, ref=(function.cls.number,))
        at = At(function, 0, 0)
        declared = self.annotations.declared(parameter.annotation, at.function)
        if parameter.form == "args":
            return Value("tuple", items=declared if declared.known else UNKNOWN, trust=1)
        if parameter.form == "kwargs":
            return Value("dict", items=declared if declared.known else UNKNOWN, trust=1)
        voters = [self._argument(function, binding, index) for binding in self._callers(function)]
        if parameter.default is not None:
            default = self.evaluate(parameter.default, At(function.parent or function, 0, 0))
            if default.kind not in ("none", "str", "unknown") or (default.kind == "str" and not voters and not declared.known):
                voters.append(default)
        value = self._settle(declared, vote(voters), parameter.name)
        if value.kind == "tensor" and value.where is None and self._is_root(function):
            row = function.record.pos >> 44
            why = Origin(function.module.number, row, f"tensor argument `{parameter.name}` of a hot root")
            return value._replace(where="parametrised", trust=min(value.trust, 1), why=why)
        return value

    def _settle(self, declared: Value, inferred: Value, name: str) -> Value:
        """The declared type filters kinds; a contradicting constructor wins; a name may say it lives on the host."""
        if not declared.known:
            value = inferred
        elif inferred.kind in ("bottom", "unknown", "none"):
            value = declared
        elif inferred.kind == declared.kind or (inferred.kind in ("int", "bool", "number", "float") and declared.kind in ("int", "float")):
            value = inferred
            if declared.kind == "object" and not set(map(type, declared.ref)) <= {str} and inferred.trust < 2:
                value = declared if not inferred.exact else inferred
            if declared.kind == "tensor" and inferred.dtype is None:
                value = value._replace(dtype=declared.dtype)
        elif inferred.trust == 2:
            value = inferred
        else:
            value = declared
        return self._by_name(value, name)

    def _by_name(self, value: Value, name: str) -> Value:
        """Names like `lens_cpu` say that a value lives on the host: used where nothing else says so."""
        kind = self.operations.convention(name.partition("~")[0])
        if kind is None:
            return value
        if kind == "host" and value.kind == "tensor" and value.where in (None, "parametrised"):
            return value._replace(where="host", trust=min(value.trust, 1))
        if value.kind == "unknown":
            return Value("numpy" if kind == "numpy" else "tensor", where=None if kind == "numpy" else "host", trust=0)
        return value

    def _argument(self, function: Function, binding: Binding, index: int) -> Value:
        expr = bind(function, binding, index)
        if expr is None:
            return BOTTOM
        site = binding.site
        return self.evaluate(expr, At(binding.caller, site.seq, site.block))

    def _callers(self, function: Function) -> tuple[Binding, ...]:
        """The calls that may run `function`."""
        return self.solver.read(("callers", function.number)).items or ()

    def _compute_callers(self, number: int) -> Value:
        """The calls that may run a function, by the names it goes under; none where a name is too common to search."""
        function = self.project.functions[number]
        name = function.record.name
        if function.record.form != "function":
            return Value("callers", items=())
        names = {name}
        if name in ("__init__", "__new__") and function.cls is not None:
            names = {function.cls.record.name, *(c.record.name for c in function.cls.descendants())}
        for one in list(names):
            names |= self.project.aliases.get(one, set())
        found: list[Binding] = []
        for one in sorted(names):
            if len(self.project.calls_by_name.get(one, ())) <= MAX_CANDIDATES:
                found += (self.solver.read(("calls", one)).ref or {}).get(number, ())
        return Value("callers", items=tuple(found[:MAX_CALLERS]))

    def _compute_calls(self, name: str) -> Value:
        """All calls of one name, by the function they may run."""
        by_target: dict[int, list[Binding]] = {}
        for caller, site in self.project.calls_by_name.get(name, ()):
            for target in self.targets(caller, site):
                by_target.setdefault(target.function, []).append(Binding(caller, site, target.bound))
        return Value("calls", ref={number: tuple(found) for number, found in by_target.items()})

    def _compute_callee(self, number: int, pos: int) -> Value:
        function, site = self.project.functions[number], self._calls[number, pos]
        return Value("callee", items=self._resolve(site.call, At(function, site.seq, site.block)))

    def _compute_definition(self, number: int, key: int) -> Value:
        return self._define(*self._deferred[number, key])

    def _compute_ret(self, number: int) -> Value:
        function = self.project.functions[number]
        record = function.record
        declared = self.annotations.declared(record.returns, function)
        if "stub" in record.flags:
            return declared
        value = vote([self.evaluate(found.value, At(function, found.seq, found.block)) for found in record.results])
        if "generator" in record.flags:
            return Value("iter", items=value, trust=value.trust)
        if not record.results:
            return NONE
        return self._settle(declared, value, record.name)

    def _compute_global(self, number: int, name: str) -> Value:
        module = self.project.modules[number]
        voters, declared = [], UNKNOWN
        for function in module.functions:
            if function.record.form == "module" or name in function.record.globals:
                for found in function.record.definitions.get(name, ()):
                    voters.append(self._define(found, function))
                    if found.annotation is not None:
                        declared = self.annotations.declared(found.annotation, function)
        return self._settle(declared, vote(voters), name)

    def _compute_attr(self, number: int, name: str) -> Value:
        """An attribute of an instance: methods and properties, then all writers in bases and subclasses."""
        cls = self.project.classes[number]
        declared = UNKNOWN
        voters: list[Value] = []
        family = [*cls.mro]
        for one in family:
            method = one.methods.get(name)
            if method is not None:
                return self._member_function(method)
            body = one.module.functions[one.record.body]
            for found in body.record.definitions.get(name, ()):
                if found.annotation is not None and not declared.known:
                    declared = self.annotations.declared(found.annotation, body)
                if found.value[0] != "opaque":
                    voters.append(self._define(found, body))
        voters += self._writers(family, name)
        if not voters and not declared.known:
            below = list(cls.descendants())
            members = [self._member_function(one.methods[name]) for one in below if name in one.methods]
            voters = [value.weaker(1) for value in [*members, *self._writers(below, name)]]
        if not voters and not declared.known:
            voters = self._outside_writers(cls, name)
        for function, write in self._writes_of(family, name):
            if write.annotation is not None and not declared.known:
                declared = self.annotations.declared(write.annotation, function)
        return self._settle(declared, vote(voters), name)

    def _member_function(self, method: Function) -> Value:
        if any(part[-1] in ("property", "cached_property", "setter", "getter") for part in method.record.decorators):
            return self.solver.read(("ret", method.number))
        return Value("method", ref=(method.number,))

    def _writes_of(self, classes: Iterable[Class], name: str) -> list[tuple[Function, Any]]:
        wanted = {cls.number for cls in classes}
        return [
            (function, write)
            for function, write in self.project.writes_by_attribute.get(name, ())
            if function.cls is not None and function.cls.number in wanted and self._is_self(function, write.base)
        ]

    def _writers(self, classes: Iterable[Class], name: str) -> list[Value]:
        found = []
        for function, write in self._writes_of(classes, name):
            value = self.evaluate(write.value, At(function, write.seq, write.block))
            found.append(self._explained(value, function, write.row))
        return found

    def _outside_writers(self, cls: Class, name: str) -> list[Value]:
        """`obj.name = value` elsewhere, where `obj` is of this class."""
        found = []
        for function, write in self.project.writes_by_attribute.get(name, ())[:MAX_CALLERS]:
            if write.base[0] == "name" and self._is_self(function, write.base):
                continue
            at = At(function, write.seq, write.block)
            base = self.evaluate(write.base, at)
            if base.kind == "object" and any(self._related(cls, ref) for ref in base.ref):
                found.append(self._explained(self.evaluate(write.value, at), function, write.row).weaker(1))
        return found

    def _related(self, cls: Class, ref: object) -> bool:
        if not isinstance(ref, int):
            return False
        other = self.project.classes[ref]
        return other in cls.mro or cls in other.mro

    @staticmethod
    def _is_self(function: Function, base: Expr) -> bool:
        parameters = function.record.parameters
        return base[0] == "name" and bool(parameters) and base[1] == parameters[0].name and function.binds != ""

    @staticmethod
    def _explained(value: Value, function: Function, row: int) -> Value:
        if value.kind == "tensor" and value.why is None:
            return value._replace(why=Origin(function.module.number, row, "made here"))
        return value

    # -- expressions --

    def evaluate(self, expr: Expr, at: At) -> Value:
        """The value of an expression by what the previous round knew."""
        form = expr[0]
        if form == "const":
            return _constant(expr[1])
        return self._forms.get(form, self._eval_opaque)(expr, at)

    def _eval_opaque(self, expr: Expr, at: At) -> Value:
        return UNKNOWN

    _eval_ellipsis = _eval_opaque

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
                self._reaching[key] = known = reaching(record, name, at.seq, at.block)
            found, entry = known
            voters = [
                self._define_cached(one, function)
                if one.seq < at.seq or (one.seq == at.seq and "~" in name)
                else self._deferred_definition(one, function)
                for one in found
            ]
            if entry:
                index = _parameter(function, name)
                if index is not None:
                    voters.append(self.solver.read(("param", function.number, index)))
                elif not found and record.form in ("class", "module"):
                    return self._outer(name, function)
            value = vote(voters) if voters else UNKNOWN
            return self._by_name(value, name) if value.kind in ("tensor", "unknown") else value
        index = _parameter(function, name)
        if index is not None:
            return self.solver.read(("param", function.number, index))
        return self._outer(name, function)

    def _outer(self, name: str, function: Function) -> Value:
        parent = function.parent
        while parent is not None:
            record = parent.record
            if record.form not in ("class", "module"):
                if name in record.definitions:
                    values = [self._define_cached(found, parent) for found in record.definitions[name]]
                    index = _parameter(parent, name)
                    if index is not None:
                        values.append(self.solver.read(("param", parent.number, index)))
                    return vote(values)
                index = _parameter(parent, name)
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
        self._deferred[key] = (definition, function)
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
        static = self.project.static(function.module, definition.value) if definition.value[0] in ("func", "class", "import") else None
        if static is not None:
            if not static.known and static.ref is not None:
                return self.solver.read(("global", *static.ref))
            return static
        value = self.evaluate(definition.value, At(function, definition.seq, definition.block))
        if definition.annotation is not None:
            value = self._settle(self.annotations.declared(definition.annotation, function), value, "")
        return self._explained(value, function, definition.row)

    def narrowed(self, expr: Expr, value: Value, at: At) -> Value:
        """What the tests that hold here say of an expression: `isinstance`."""
        function = at.function
        if function.number not in self._narrowing:
            tests = (block.test for block in function.record.blocks if block.test is not None)
            self._narrowing[function.number] = any("isinstance" in _called(test) for test in tests)
        if not self._narrowing[function.number]:
            return value
        for test, outcome in holding(at.function.record, at.seq, at.block):
            if outcome and test[0] == "call" and test[1] == ("name", "isinstance") and len(test[2]) == 2 and test[2][0] == expr:
                declared = self.annotations.declared(test[2][1], at.function)
                if declared.known and declared.kind != value.kind:
                    return declared
                if declared.kind == "object" and value.kind == "object" and declared.ref != value.ref and not value.exact:
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
                return self._by_name(vote(values), name)
            if base.ref:
                return Value("extern", ref=f"{base.ref[0]}.{name}") if kind == "object" else UNKNOWN
        if kind == "unknown":
            return self._by_unique_name(name)
        return UNKNOWN

    def _by_unique_name(self, name: str) -> Value:
        """An attribute of an unknown object, where a single family of classes has one of that name."""
        family = self._family(name)
        if family is None:
            return self._by_name(UNKNOWN, name)
        return self.solver.read(("attr", family[0].number, name)).weaker(1)

    def _family(self, name: str) -> tuple[Class, ...] | None:
        if name not in self._families:
            writers = {
                function.cls
                for function, write in self.project.writes_by_attribute.get(name, ())
                if function.cls is not None and self._is_self(function, write.base)
            }
            methods = {method.cls for method in self.project.methods_by_name.get(name, ()) if method.cls is not None}
            owners = sorted(writers | methods, key=lambda cls: cls.number)
            tops = [cls for cls in owners if all(cls in other.mro for other in owners)]
            self._families[name] = (tops[0],) if tops and len(name) > 2 else None
        return self._families[name]

    def _eval_call(self, expr: Expr, at: At) -> Value:
        func = expr[1]
        if func[0] == "attr":
            base = self.evaluate(func[1], at)
            found = self._method_call(base, func[2], expr, at)
            if found is not None:
                return found
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
        if base.kind == "object" and name in ("to", "cuda", "cpu", "eval", "train") and self.callees(base, name) == ():
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
                found = self.operations.function(name, args, kwargs)
                if found is not None:
                    return found
            declared = self.annotations.external(name)
            return declared if declared.known else self._external(name)
        if callee.kind == "object":
            targets = self.callees(callee, "__call__") or self.callees(callee, "forward")
            return vote([self.solver.read(("ret", method.number)) for method in targets]) if targets else UNKNOWN
        return UNKNOWN

    def _external(self, name: str) -> Value:
        last = name.rpartition(".")[2]
        if last[:1].isupper():
            return Value("object", ref=(name,), trust=1)
        return UNKNOWN

    def callees(self, base: Value, name: str) -> tuple[Function, ...]:
        """The methods that `base.name()` may run: by its class, and by its subclasses unless it is exact."""
        found: dict[int, Function] = {}
        for ref in base.ref:
            if not isinstance(ref, int):
                continue
            cls = self.project.classes[ref]
            method = cls.method(name)
            if method is not None:
                found[method.number] = method
            if not base.exact:
                for one in cls.descendants():
                    if name in one.methods:
                        found[one.methods[name].number] = one.methods[name]
        return tuple(found.values())

    def receivers(self, base: Value, name: str) -> list[Target]:
        """`callees` with the class that each method would run on, where it is exactly known."""
        found = []
        for ref in base.ref:
            if isinstance(ref, int):
                one = base._replace(ref=(ref,))
                exact = ref if base.exact else None
                found += [Target(method.number, method.binds != "", exact) for method in self.callees(one, name)]
        return list(dict.fromkeys(found))

    def _resolve(self, call: Expr, at: At) -> tuple[Target, ...]:
        """The functions that a call may run, with what is bound before its arguments."""
        func = call[1]
        if func[0] == "attr":
            if func[1] == ("call", ("name", "super"), (), (), func[1][-1]):
                return self._super(func[2], at)
            base = self.evaluate(func[1], at)
            if base.kind == "object":
                found = self.receivers(base, func[2])
                if found:
                    return tuple(found)
            if base.kind == "class":
                methods = [m for ref in base.ref if isinstance(ref, int) and (m := self.project.classes[ref].method(func[2]))]
                if methods:
                    return tuple(Target(m.number, m.binds == "class") for m in methods)
            if base.kind == "unknown":
                family = self._family(func[2])
                if family is not None and (first := family[0].methods.get(func[2])) is not None:
                    below = [c.methods[func[2]] for c in family[0].descendants() if func[2] in c.methods]
                    return tuple(Target(m.number, m.binds != "") for m in [first, *below])
            callee = self.attribute(base, func[2], at)
        else:
            callee = self.evaluate(func, at)
        if callee.kind == "function":
            return tuple(Target(number, False) for number in callee.ref)
        if callee.kind == "method":
            return tuple(Target(number, self.project.functions[number].binds != "") for number in callee.ref)
        if callee.kind == "class":
            found = tuple(m for ref in callee.ref if isinstance(ref, int) and (m := self.project.classes[ref].method("__init__")))
            return tuple(Target(method.number, True) for method in found)
        if callee.kind == "object":
            methods = self.callees(callee, "__call__") or self.callees(callee, "forward")
            return tuple(Target(method.number, True) for method in methods)
        return ()

    def _super(self, name: str, at: At) -> tuple[Target, ...]:
        function: Function | None = at.function
        while function is not None and function.cls is None:
            function = function.parent
        if function is None or function.cls is None:
            return ()
        for cls in function.cls.mro[1:]:
            if name in cls.methods:
                return (Target(cls.methods[name].number, True),)
        return ()

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
        form = part[0]
        if form == "slice":
            return "slice", NONE
        if form == "ellipsis":
            return "ellipsis", NONE
        value = self.evaluate(part, at)
        if value.kind == "none":
            return "none", value
        if value.kind in ("int", "number"):
            return "int", value
        if value.kind == "bool":
            return "bool", value
        if value.kind == "tensor":
            if value.dtype == "bool":
                return "mask", value
            return ("tensor" if value.dtype == "int" else "any-tensor"), value
        if value.kind in ("list", "iter", "numpy", "tuple"):
            return "sequence", value
        if value.kind == "extern" and value.ref == "builtins.Ellipsis":
            return "ellipsis", value
        if value.kind == "object" and value.ref and value.ref[0] == "builtins.slice":
            return "slice", value
        return "unknown", value

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
        return value._replace(ref=None) if value.kind in ("int", "float", "tensor", "number", "bool", "numpy") else value

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
        if value.kind == "tuple" and isinstance(value.items, tuple) and not isinstance(value.items, Value):
            return value.items[expr[2]] if expr[2] < len(value.items) else UNKNOWN  # type: ignore[no-any-return]
        return element(value)

    def _eval_enter(self, expr: Expr, at: At) -> Value:
        value = self.evaluate(expr[1], at)
        if value.kind == "object":
            targets = self.callees(value, "__enter__")
            return vote([self.solver.read(("ret", one.number)) for one in targets]) if targets else value
        return UNKNOWN

    def _eval_await(self, expr: Expr, at: At) -> Value:
        return self.evaluate(expr[1], at)

    def _eval_fstr(self, expr: Expr, at: At) -> Value:
        return Value("str")

    def _eval_lambda(self, expr: Expr, at: At) -> Value:
        return Value("function", ref=(at.function.module.functions[expr[1]].number,))


class IndexShape:
    """The classified items of an index: (kind, value) pairs, where kind is int, slice, ellipsis, none, bool, mask,
    tensor (integers), any-tensor (dtype not known), sequence or unknown."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[tuple[str, Value]]) -> None:
        self.parts = parts

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(kind for kind, _ in self.parts)

    @property
    def rank_change(self) -> int | None:
        """How the index changes the rank of a tensor, where that is known."""
        change, tensors = 0, []
        for kind, value in self.parts:
            if kind in ("slice", "ellipsis"):
                continue
            if kind == "int":
                change -= 1
            elif kind in ("none", "bool"):
                change += 1
            elif kind in ("tensor", "any-tensor", "mask") and value.rank is not None and kind != "any-tensor":
                if kind == "mask":
                    change += 1 - value.rank
                else:
                    change -= 1
                    tensors.append(value.rank)
            else:
                return None
        return change + (max(tensors) if tensors else 0)


def element(value: Value) -> Value:
    """What iterating over a value gives."""
    if value.kind in ("bottom", "unknown"):
        return value
    if value.kind == "tensor":
        return value._replace(rank=None if value.rank is None else max(value.rank - 1, 0))
    if value.kind == "str":
        return Value("str")
    if value.kind == "dict":
        return UNKNOWN
    items = value.items
    if isinstance(items, Value):
        return items
    return vote(items) if items else UNKNOWN


def _called(test: Expr) -> set[str]:
    """The names that a condition calls."""
    if test[0] == "call":
        return {test[1][-1]} if test[1][0] == "name" else set()
    if test[0] == "unary":
        return _called(test[2])
    return {name for part in test[2] for name in _called(part)} if test[0] == "bool" else set()


def _constant(value: Any) -> Value:
    if value is None:
        return NONE
    return Value("float" if isinstance(value, complex) else type(value).__name__, ref=value)


def _parameter(function: Function, name: str) -> int | None:
    for index, parameter in enumerate(function.record.parameters):
        if parameter.name == name:
            return index
    return None

