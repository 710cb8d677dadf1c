"""Brings whole-program facts to expressions: summaries of parameters, results, attributes, globals and calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from nosync_lint.index.records import AttributeWrite, CallSite, Expr, Parameter, row_of
from nosync_lint.link.calls import Binding, Target, bind
from nosync_lint.link.configured import Configured
from nosync_lint.link.evaluation import Evaluation
from nosync_lint.link.names import FILLED, At
from nosync_lint.link.operations import Operations
from nosync_lint.link.project import Class, Fill, Function, Project
from nosync_lint.link.record_fields import given_by, remade
from nosync_lint.link.solver import Node, Solver
from nosync_lint.link.values import NONE, UNKNOWN, Origin, Value, capped, vote, with_fills

MAX_CALLERS = 24
"""A parameter is joined over at most this many callers, taken in project order."""
MAX_CANDIDATES = 150
"""The callers of a function are not searched where more calls than this go by its name (`get`, `forward`)."""


class Roles(Protocol):
    """What inference asks of the part of the program that knows what functions are for."""

    told: Configured

    def is_hot(self, function: Function) -> bool: ...

    def is_library(self, function: Function) -> bool: ...

    def is_on_host(self, function: Function) -> bool: ...

    def other_platform(self, function: Function, block: int) -> bool: ...


class Inference(Evaluation):
    """Answers what an expression is at a place. Demand-driven: nothing is computed that no question needs."""

    def __init__(
        self,
        project: Project,
        operations: Operations,
        roots: Roles,
    ) -> None:
        super().__init__(project, operations, Solver(self._compute), roots.other_platform)
        self._roots = roots
        self._lasting = self._memo, self._named
        self._calls: dict[tuple[int, int], CallSite] = {}
        self._class_calls: defaultdict[int, list[tuple[Function, CallSite]]] = defaultdict(list)
        for caller, site in project.calls_by_name.get("cls", ()):
            if caller.cls is not None:
                self._class_calls[caller.cls.number].append((caller, site))
        self._replaced: defaultdict[str, list[tuple[Function, CallSite]]] = defaultdict(list)
        for method in ("_replace", "replace"):
            for caller, site in project.calls_by_name.get(method, ()):
                for name, _ in site.call[3]:
                    self._replaced[name].append((caller, site))
        self._kinds: dict[str, Callable[..., Value]] = {
            name[9:]: getattr(self, name) for name in dir(self) if name.startswith("_compute_")
        }

    def targets(self, function: Function, site: CallSite) -> tuple[Target, ...]:
        """The functions of the project that a call may run."""
        key = (function.number, site.call[4])
        self._calls[key] = site
        return self.solver.read(("callee", *key)).items or ()

    def properties(self, read: Expr, at: At) -> tuple[Function, ...]:
        """The properties that reading an attribute may run."""
        base = self.value(read[1], at)
        if base.kind != "object":
            return ()
        return tuple(method for method in self.dispatch.callees(base, read[2]) if method.is_property)

    def told_of(self, dotted: str) -> Value | None:
        """What the configuration says of the result of a function from outside the project."""
        where = self._roots.told.place_of(dotted)
        return None if where is None else Value("tensor", where)

    def _compute(self, node: Node) -> Value:
        kept = self._draft, self._depth, self._memo, self._named, self._arguments_given
        self._draft, self._depth, self._arguments_given = {}, 0, {}
        self._memo, self._named = self._lasting
        value = self._kinds[node[0]](*node[1:])
        self._draft, self._depth, self._memo, self._named, self._arguments_given = kept
        return value

    def _compute_param(self, number: int, index: int) -> Value:
        function = self.project.functions[number]
        parameter = function.record.parameters[index]
        if index == 0 and function.binds and parameter.form in ("positional", "only") and function.cls is not None:
            kind = "object" if function.binds == "self" else "class"
            return Value(kind, ref=(function.cls.number,))
        declared = self.annotations.declared(parameter.annotation, function)
        if parameter.form in ("args", "kwargs"):
            rest = Value("tuple" if parameter.form == "args" else "dict", items=declared, trust=1)
            return self._given(function, parameter, rest, False) if declared.kind == "tensor" else rest
        if declared.kind == "object" and _is_settled(declared):
            return self._record(function, index, declared)
        if _is_settled(declared):
            return self.by_name(declared, parameter.name)
        given = parameter.default
        if not declared.known and given is not None and given[0] == "const" and isinstance(given[1], bool):
            return Value("bool")  # a switch: nobody passes a tensor for it
        callers = self.callers(function)
        if self._roots.is_library(function):  # code that prepares data on the host says nothing of what others pass
            callers = tuple(one for one in callers if not self._roots.is_on_host(one.caller))
        voters = [
            self._argument(function, binding, expr, parameter.name)
            for binding in callers
            if (expr := bind(function, binding, index)) is not None
        ]
        if given is not None:
            default = self.evaluate(given, At(function.parent or function, 0, 0))
            if default.kind not in ("none", "str", "unknown"):  # `device="cpu"` says nothing of what callers give
                voters.append(default)
        value = self.settle(declared, vote(voters) if voters else UNKNOWN, parameter.name)
        return self._given(function, parameter, value, bool(voters))

    def _given(self, function: Function, parameter: Parameter, value: Value, called: bool) -> Value:
        """A parameter by conventions, where declarations and callers leave its kind or its place open."""
        root = self._roots.is_hot(function)
        row = row_of(function.record.pos)
        if value.kind == "unknown" and parameter.annotation is None and self._used_as_tensor(function, parameter.name):
            value = Value("tensor", trust=1)
        if root and (value.kind in ("unknown", "bottom") or (value.kind == "dict" and not _is_placed(value))):
            why = Origin(function.module.number, row, f"batch `{parameter.name}` of a hot root", argument=True)
            of_module = function.cls is not None and self.operations.module_type in function.cls.externs
            batch = self.batches.parameter(parameter.name, of_module, value, why)
            if batch is not None:
                return batch
        if not _lacks_place(value):
            return value
        if root:
            note = f"tensor argument `{parameter.name}` of a hot root"
        elif self._roots.is_library(function):
            calls = "whose calls do not tell" if called else "and does not call"
            note = f"tensor argument `{parameter.name}` of a function that the project offers {calls}"
        else:
            return value
        why = Origin(function.module.number, row, note, argument=True)
        return _put_there(value, why)

    def _record(self, function: Function, index: int, declared: Value) -> Value:
        """A parameter that is an instance of a project class. Where the function is one whose tensor arguments live on
        the device by convention, or is called by one that hands its own on, so do the tensors that are fields of it."""
        parameter = function.record.parameters[index]
        if not any(self.records.is_given(ref) for ref in declared.ref):
            return declared
        if self._roots.is_hot(function) or self._roots.is_library(function):
            note = f"argument `{parameter.name}` of a function that is hot or that the project offers"
            return declared._replace(
                why=Origin(function.module.number, row_of(function.record.pos), note, argument=True)
            )
        for binding in self.callers(function):
            expr = bind(function, binding, index)
            if expr is not None and expr[0] in ("name", "attr"):
                given = self.evaluate(expr, At(binding.caller, binding.site.seq, binding.site.block))
                if given.kind == "object" and given.why is not None and given.why.argument:
                    return declared._replace(why=given.why)
        return declared

    def _used_as_tensor(self, function: Function, name: str) -> bool:
        """Whether a function treats a parameter as nothing but a tensor could be treated."""
        for site in function.record.calls:
            func = site.call[1]
            if func[0] == "attr" and func[1] == ("name", name) and self.operations.only_tensors_have(func[2]):
                return name not in function.record.definitions
        return False

    def _argument(self, function: Function, binding: Binding, expr: Expr, name: str) -> Value:
        site, caller = binding.site, binding.caller
        value = self.evaluate(expr, At(caller, site.seq, site.block))
        if value.kind != "tensor" or value.where is None:
            return value
        note = f"`{caller.record.qualname or caller.name}` passes it as `{name}`"
        before = value.why.cut(1) if value.why is not None else None
        return value._replace(why=Origin(caller.module.number, row_of(site.call[4]), note, before, argument=True))

    def callers(self, function: Function) -> tuple[Binding, ...]:
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
            names = {"cls", name, function.cls.record.name, *(c.record.name for c in function.cls.descendants())}
        for one in list(names):
            names |= self.project.aliases.get(one, set())
        found: list[Binding] = []
        for one in sorted(names):
            if one in ("cls", "__init__") or len(self.project.calls_by_name.get(one, ())) <= MAX_CANDIDATES:
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
        return self._define(*self.deferred[number, key])

    def _compute_ret(self, number: int) -> Value:
        function = self.project.functions[number]
        record = function.record
        told = self._roots.told.place(function)
        if told is not None:
            note = f"`{record.name}` gives it back, by the configuration"
            return Value("tensor", told, why=Origin(function.module.number, row_of(record.pos), note))
        declared = self.annotations.declared(record.returns, function)
        if "stub" in record.flags:
            return declared
        value = vote([self.evaluate(found.value, At(function, found.seq, found.block)) for found in record.results])
        if "generator" in record.flags:
            return Value("iter", items=value, trust=value.trust)
        if not record.results:
            return NONE
        return self.settle(declared, value, record.name)

    def _compute_global(self, number: int, name: str) -> Value:
        module = self.project.modules[number]
        voters, declared = [], UNKNOWN
        for function in module.functions:
            if function.record.form == "module" or name in function.record.globals:
                for found in function.record.definitions.get(name, ()):
                    voters.append(self._define(found, function))
                    if found.annotation is not None:
                        declared = self.annotations.declared(found.annotation, function)
        return self.settle(declared, vote(voters), name)

    def _compute_attr(self, number: int, name: str) -> Value:
        """An attribute of an instance: methods and properties, then its writers in bases, subclasses and outside."""
        cls = self.project.classes[number]
        declared = UNKNOWN
        voters: list[Value] = []
        for one in cls.mro:
            method = one.methods.get(name)
            if method is not None and method.is_property:
                others = [under.methods[name] for under in cls.descendants() if name in under.methods]
                return vote([self._member_function(each) for each in (method, *others[:MAX_CALLERS])])
            if method is not None:
                return self._member_function(method)
            body = one.module.functions[one.record.body]
            for found in body.record.definitions.get(name, ()):
                if found.annotation is not None and not declared.known:
                    declared = self.annotations.declared(found.annotation, body)
                if found.value[0] != "opaque":
                    value = self._define(found._replace(annotation=None), body)  # a default of None says nothing
                    if value.kind != "none" and not _is_field(value):
                        voters.append(value)
        inside = self._writes_of(cls.mro, name)
        for function, write in inside:
            if write.annotation is not None and not declared.known:
                declared = self.annotations.declared(write.annotation, function)
        voters += [self._written(function, write) for function, write in inside]
        unset = all(value.kind == "none" for value in voters)
        if unset and (declared.known or name in self.records.names(number)):
            voters += self._field_arguments(cls, name)
        if not inside and not declared.known and not voters:
            below = list(cls.descendants())
            members = [self._member_function(one.methods[name]) for one in below if name in one.methods]
            members += [self._written(function, write) for function, write in self._writes_of(below, name)]
            voters = [value.weaker(1) for value in members]
        if unset:
            voters += self._outside_writers(cls, name)
        value = self.settle(declared, vote(voters) if voters else UNKNOWN, name)
        put = [one for owner in cls.mro for one in self.project.fills.get(name, {}).get(owner.number, ())]
        if value.kind in FILLED and put:
            return with_fills(value, self._put(put))
        return value

    def _put(self, fills: Sequence[tuple[Function, Fill]]) -> Value:
        """What is put into a container: `items` for all of it, `ref` by literal keys where every key is one."""
        values = []
        for function, fill in fills[:MAX_CALLERS]:
            values.append(self.evaluate(fill.value, At(function, fill.seq, fill.block)))
        keys = [fill.key for _, fill in fills[:MAX_CALLERS]]
        fields: dict[object, list[Value]] = {}
        for key, value in zip(keys, values, strict=True):
            if key is not None and key[0] == "const":
                fields.setdefault(key[1], []).append(value)
        named = len(fills) <= MAX_CALLERS and all(key is not None and key[0] == "const" for key in keys)
        ref = tuple((key, vote(found)) for key, found in fields.items()) if named else None
        return Value("fills", ref=ref, items=capped(vote(values)))

    def _compute_fills(self, number: int, name: str) -> Value:
        function = self.project.functions[number]
        return self._put([(function, fill) for fill in function.local_fills(name)])

    def _field_arguments(self, cls: Class, name: str) -> list[Value]:
        """What constructor calls give to a field of a dataclass or named tuple."""
        return [
            self.explained(self.evaluate(given, At(caller, site.seq, site.block)), caller, row_of(site.call[4]))
            for caller, site, given in self.given_to_field(cls, name)
        ]

    def given_to_field(self, cls: Class, name: str) -> Iterator[tuple[Function, CallSite, Expr]]:
        """The arguments that constructor calls give to a field of a dataclass or named tuple, and what replaces it."""
        if not self.records.is_given(cls.number):
            return
        names = self.records.names(cls.number)
        calls = self.project.calls_by_name.get(cls.record.name, [])[:MAX_CALLERS]
        calls += [one for each in cls.mro for one in self._class_calls.get(each.number, ())]
        for caller, site in calls:
            given = given_by(site.call, name, names)
            if given is None:
                continue
            callee = self.evaluate(site.call[1], At(caller, site.seq, site.block))
            if callee.kind == "class" and cls.number in callee.ref:
                yield caller, site, given
        for caller, site in [*self._replaced.get(name, ()), *self.project.calls_by_name.get("_make", ())][:MAX_CALLERS]:
            found = remade(site.call, name, names)
            base = self.evaluate(found.record, At(caller, site.seq, site.block)) if found is not None else UNKNOWN
            if found is not None and base.kind in ("object", "class") and cls.number in base.ref:
                yield caller, site, found.given

    def _member_function(self, method: Function) -> Value:
        if method.is_property:
            return self.solver.read(("ret", method.number))
        return Value("method", ref=(method.number,))

    def _writes_of(self, classes: Iterable[Class], name: str) -> list[tuple[Function, AttributeWrite]]:
        own = self.project.own_writes.get(name)
        found = [one for cls in classes for one in own.get(cls.number, ())] if own else []
        here = [(function, write) for function, write in found if not self._elsewhere(function, write.block)]
        return here or found

    def _written(self, function: Function, write: AttributeWrite) -> Value:
        value = self.evaluate(write.value, At(function, write.seq, write.block))
        return self.explained(value, function, write.row)

    def _outside_writers(self, cls: Class, name: str) -> list[Value]:
        """`obj.name = value` elsewhere, where `obj` is of this class."""
        found = []
        for function, write in self.project.writes_by_attribute.get(name, ())[:MAX_CALLERS]:
            if write.base[0] == "name" and function.is_self(write.base):
                continue
            at = At(function, write.seq, write.block)
            base = self.evaluate(write.base, at)
            if base.kind == "object" and any(self._related(cls, ref) for ref in base.ref):
                found.append(self._written(function, write).weaker(1))
        return found

    def _related(self, cls: Class, ref: object) -> bool:
        if not isinstance(ref, int):
            return False
        other = self.project.classes[ref]
        return other in cls.mro or cls in other.mro

    def _resolve(self, call: Expr, at: At) -> tuple[Target, ...]:
        """The functions that a call may run, with what is bound before its arguments."""
        func = call[1]
        if func[0] != "attr":
            return self._called(self.evaluate(func, at))
        name = func[2]
        if func[1][:3] == ("call", ("name", "super"), ()):
            return self._super(name, at)
        only = self.dispatch.only(name)
        if only is not None and func[1][0] != "name":
            return (Target(only.number, only.binds != ""),)
        base = self.evaluate(func[1], at)
        if base.kind == "object":
            found = self.dispatch.receivers(base, name)
            if found:
                return tuple(found)
        elif base.kind == "class":
            methods = [m for ref in base.ref if isinstance(ref, int) and (m := self.project.classes[ref].method(name))]
            if methods:
                return tuple(Target(method.number, method.binds == "class") for method in methods)
        elif base.kind == "unknown":
            top = self.dispatch.family(name)
            if top is not None and name in top.methods:
                family = [top, *top.descendants()]
                return tuple(
                    Target(c.methods[name].number, c.methods[name].binds != "") for c in family if name in c.methods
                )
        return self._called(self.attribute(base, name, at))

    def _called(self, callee: Value) -> tuple[Target, ...]:
        if callee.kind == "function":
            return tuple(Target(number, False) for number in callee.ref)
        if callee.kind == "method":
            return tuple(Target(number, self.project.functions[number].binds != "") for number in callee.ref)
        if callee.kind == "class":
            classes = [self.project.classes[ref] for ref in callee.ref if isinstance(ref, int)]
            made = [method for cls in classes if (method := cls.method("__init__")) is not None]
            return tuple(Target(method.number, True) for method in made)
        if callee.kind == "object":
            methods = self.dispatch.instances_run(callee)
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


def _is_field(value: Value) -> bool:
    """Whether a class-level value is the `field(...)` of a dataclass, which says nothing about the attribute."""
    return value.kind == "object" and bool(value.ref) and "dataclasses.field" in value.ref


def _lacks_place(value: Value) -> bool:
    """Whether a value is a tensor or a container of tensors of which it is not known where they live."""
    if value.kind == "tensor":
        return value.where is None
    if value.kind not in ("dict", "list", "tuple"):
        return False
    held = value.items
    return any(_lacks_place(one) for one in ((held,) if isinstance(held, Value) else held or ()))


def _put_there(value: Value, why: Origin) -> Value:
    """The same with those tensors where the callers of a function say."""
    if not _lacks_place(value):
        return value
    if value.kind == "tensor":
        return value._replace(where="parametrised", trust=min(value.trust, 1), why=why)
    held = value.items
    if isinstance(held, Value):
        return value._replace(items=_put_there(held, why), ref=None)
    return value._replace(items=tuple(_put_there(one, why) for one in held))


def _is_placed(value: Value) -> bool:
    """Whether it is known of some tensor in a container where it lives."""
    if value.kind == "tensor":
        return value.where is not None
    held = value.items
    return any(_is_placed(one) for one in ((held,) if isinstance(held, Value) else held or ()))


def _is_settled(declared: Value) -> bool:
    """Whether callers could add nothing that matters to a declared type: a number, or an instance of a project class.

    Tensors and devices need their callers for the place, containers for what they hold.
    """
    if declared.kind == "object":
        return all(isinstance(ref, int) for ref in declared.ref)
    return declared.kind in ("int", "float", "bool") or (
        declared.kind in ("list", "dict", "set") and declared.items is not None and declared.items.kind not in _OPEN
    )


_OPEN = frozenset({"unknown", "tensor", "object", "tuple"})
