"""Every place of the program that may wait for the device: sites of the index, judged by what their operands are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from nosync_lint.index.records import CallSite, Expr, IndexWrite, Site
from nosync_lint.link.batches import tensor_of
from nosync_lint.link.call_models import CallModel, CallModels, CopyModel, Given
from nosync_lint.link.flow import enclosing
from nosync_lint.link.heat import Roots
from nosync_lint.link.index_semantics import IndexSemantics
from nosync_lint.link.indexing import IndexShape
from nosync_lint.link.inference import Inference
from nosync_lint.link.names import At
from nosync_lint.link.parts import is_empty
from nosync_lint.link.project import Function, Project, called_name, uncalled
from nosync_lint.link.semantics import Semantics, Verdict
from nosync_lint.link.solver import Node
from nosync_lint.link.stores import Store
from nosync_lint.link.values import ACCELERATED, HOST, MAYBE_PAGEABLE, NUMBERS, UNKNOWN, Value, element

Spot = IndexWrite | CallSite | Site
"""A place in a function where a synchronisation could happen."""


class Sync(NamedTuple):
    """A place that may wait. `expr` is what waits, `operand` the value that the verdict rests on, `spelled` its
    expression. `sink` marks a de-duplication that a known position makes unnecessary."""

    function: Function
    expr: Expr
    pos: int
    statement: int
    block: int
    seq: int
    verdict: Verdict
    operand: Value
    spelled: Expr
    store: Store | None = None
    site: CallSite | None = None
    sink: bool = False


class Modelled(NamedTuple):
    """A call that the models know by name: its arguments, its receiver, the copy that it may be, and the rows that
    apply to such a receiver."""

    given: Given
    base: Value
    copy: CopyModel | None
    models: tuple[CallModel, ...]


class Syncs:
    """Judges the sites of a program. Nothing is kept between them."""

    def __init__(self, project: Project, inference: Inference, semantics: Semantics, roots: Roots) -> None:
        self._project, self._inference, self._semantics, self._roots = project, inference, semantics, roots
        self._index = IndexSemantics(semantics)
        self._models = CallModels()
        aliases = tuple(self._aliases(self._models.names))
        self._names = self._models.names.union(name for name, _ in aliases)
        self._sink_names = self._models.sinks.union(name for name, known in aliases if known in self._models.sinks)
        self._forms = {
            "read": self._read,
            "test": self._test,
            "format": self._format,
            "compare": self._compare,
            "operate": self._operate,
        }

    @property
    def frozen(self) -> set[Node]:
        """The summaries that kept changing and were taken as they stood."""
        return self._inference.solver.frozen

    def over(self, functions: Sequence[Function]) -> Iterator[Sync]:
        """Those of some functions, in their order."""
        for function in functions:
            if not self._roots.elsewhere(function):
                yield from self.of(function)

    def of(self, function: Function) -> Iterator[Sync]:
        """Those of one function."""
        for spot in self.spots(function):
            yield from self.at(function, spot)

    def sinks(self, function: Function) -> Iterator[Sync]:
        """The de-duplications of one function that a known position makes unnecessary."""
        for site in function.record.calls if not self._roots.elsewhere(function) else ():
            if called_name(site.call) in self._sink_names:
                yield from (sync for sync in self.at(function, site) if sync.sink and sync.verdict.synchronises)

    def spots(self, function: Function) -> Iterator[Spot]:
        """The places of a function that are worth a look: all index writes and sites, and calls by their names."""
        record = function.record
        waits = self._roots.told.waits
        calls = (
            site
            for site in record.calls
            if (name := called_name(site.call)) in self._names or (waits and name and waits.ending(name))
        )
        yield from chain[Spot](record.writes, calls, record.sites)

    def at(self, function: Function, spot: Spot) -> Iterator[Sync]:
        """Those of one spot."""
        if self._roots.other_platform(function, spot.block):
            return
        if isinstance(spot, IndexWrite):
            yield from self._write(function, spot)
        elif isinstance(spot, CallSite):
            yield from self._call(function, spot)
        else:
            yield from self._forms[spot.form](function, spot)

    def _aliases(self, known: frozenset[str]) -> Iterator[tuple[str, str]]:
        """What the project calls the last names of calls, with those names."""
        for function in self._project.functions:
            for name, definitions in function.record.definitions.items():
                for one in definitions:
                    if one.value[0] in ("import", "attr") and one.value[2] in known:
                        yield name, one.value[2]

    # -- index reads and writes --

    def _write(self, function: Function, write: IndexWrite) -> Iterator[Sync]:
        at = At(function, write.seq, write.block)
        target = self._inference.value(write.base, at)
        if target.kind not in ("tensor", "unknown"):
            return
        shape = self._inference.index_shape(write.subscript, at)
        if target.kind == "unknown" and not any(value.accelerated for _, value in shape.parts):
            return
        value = self._inference.value(write.value, at)
        store = Store(write, target, shape, value)
        expr = ("sub", write.base, write.subscript, write.pos)
        for verdict, operand in self._index.write(target, shape, value, write.op):
            if verdict.row:
                place = (write.pos, write.statement, write.block, write.seq)
                spelled = write.base if operand is target else _item(shape, operand, write.value)
                yield Sync(function, expr, *place, verdict, operand, spelled, store)

    def _read(self, function: Function, site: Site) -> Iterator[Sync]:
        at = At(function, site.seq, site.block)
        _, base_expr, subscript, _ = site.value
        base = self._inference.value(base_expr, at)
        if base.kind not in ("tensor", "unknown", "list", "tuple", "iter", "numpy"):
            return
        shape = self._inference.index_shape(subscript, at)
        for verdict, operand in self._index.read(base, shape):
            if verdict.row:
                yield self._at(function, site, verdict, operand, _item(shape, operand, subscript))

    # -- truth tests, comparisons, text --

    def _test(self, function: Function, site: Site) -> Iterator[Sync]:
        value = self._inference.value(site.value, At(function, site.seq, site.block))
        if value.kind == "tensor" and value.where in (*ACCELERATED, None):
            yield self._at(function, site, self._waits("d2h.bool", value), value, site.value)

    def _compare(self, function: Function, site: Site) -> Iterator[Sync]:
        at = At(function, site.seq, site.block)
        _, ops, left, rights = site.value
        if ops[0] in ("in", "not in"):
            holder = self._inference.value(rights[0], at)
            if holder.kind == "tensor":
                if holder.accelerated:
                    yield self._at(function, site, self._waits("d2h.contains", holder), holder, rights[0])
            elif holder.kind in ("list", "tuple") and element(holder).kind not in ("str", "none"):
                for value in (self._inference.value(left, at), element(holder)):
                    if value.accelerated:
                        verdict = self._semantics.verdict("d2h.in_list", min(value.trust, 1), "elements are compared")
                        yield self._at(function, site, verdict, value, left)
                        return
            return
        for expr in (left, *rights):
            value = self._inference.value(expr, at)
            if value.accelerated:
                yield self._at(function, site, self._waits("d2h.chained_cmp", value), value, expr)
                return

    def _format(self, function: Function, site: Site) -> Iterator[Sync]:
        at = At(function, site.seq, site.block)
        for part in site.value[1]:
            value = self._inference.value(part, at)
            if value.accelerated:
                yield self._at(function, site, self._waits("d2h.print", value), value, part)
                return

    def _operate(self, function: Function, site: Site) -> Iterator[Sync]:
        at = At(function, site.seq, site.block)
        _, op, left, right = site.value
        row = "d2h.numeric_dunder" if op == "*" else "d2h.print"
        parts = right[1] if op == "%" and right[0] == "tuple" else (left, right)
        for expr in parts:
            value = self._inference.value(expr, at)
            if value.accelerated:
                yield self._at(function, site, self._waits(row, value), value, expr)
                return

    def _waits(self, row: str, value: Value) -> Verdict:
        return self._semantics.verdict(row, value.trust if value.accelerated else 0)

    @staticmethod
    def _at(function: Function, site: Site, verdict: Verdict, operand: Value, spelled: Expr) -> Sync:
        return Sync(
            function, site.value, site.pos, site.statement, site.block, site.seq, verdict, operand, spelled
        )  # fmt: skip

    # -- calls --

    def _call(self, function: Function, site: CallSite) -> Iterator[Sync]:
        if self._is_told_to_wait(function, site):
            verdict = self._semantics.verdict("project.waits", 2, "the configuration says so")
            yield self._called(function, site, verdict, UNKNOWN, ("opaque",))
            return
        found = self.rows_of(function, site)
        if found is None:
            return
        if found.copy is not None:
            yield from self._copy(function, site, found.copy, found.given, found.base)
        for model in found.models:
            yield from self._modelled(function, site, model, found.given)

    def _is_told_to_wait(self, function: Function, site: CallSite) -> bool:
        """Whether a call runs a function of which the configuration says that it waits."""
        waits = self._roots.told.waits
        if not waits or not waits.ending(called_name(site.call) or ""):
            return False
        targets = self._inference.targets(function, site)
        if any(waits.match(self._project.functions[target.function]) for target in targets):
            return True
        callee = self._inference.value(site.call[1], At(function, site.seq, site.block))
        return callee.kind == "extern" and waits.match_name(callee.ref)

    def rows_of(self, function: Function, site: CallSite) -> Modelled | None:
        """What the models say of a call; None where it runs nothing that they know by name."""
        call, models = site.call, self._models
        func = call[1]
        at = At(function, site.seq, site.block)
        if func[0] == "attr":
            name = func[2]
            known = name in models.methods or name in models.copy_methods or name in models.members
            base = self._inference.receiver(func[1], name, at) if known else UNKNOWN
            if known and base.kind not in ("module", "extern"):
                rows = tuple(self._of_receiver(name, base, func[1]))
                return Modelled(Given(call, func[1]), base, models.copy_methods.get(name), rows)
        callee = self._inference.value(func, at)
        if callee.kind != "extern":
            return None
        rows = tuple(models.functions.get(callee.ref, ()))
        return Modelled(Given(call, None), UNKNOWN, models.copy_functions.get(callee.ref), rows)

    def _of_receiver(self, name: str, base: Value, spelled: Expr) -> Iterator[CallModel]:
        """The rows for a method, by what its receiver is, or by how it is named where that is not known."""
        if base.kind in ("object", "str"):
            refs = base.ref if base.kind == "object" else ("builtins.str",)
            for owner, model in self._models.members.get(name, ()):
                known = (self._project.classes[ref].externs if isinstance(ref, int) else (ref,) for ref in refs)
                if any(fnmatchcase(one, owner) for names in known for one in names):
                    yield model
            return
        if spelled[:2] == ("call", ("name", "super")):
            return  # a method that a class of the project has from its bases
        for model in self._models.methods.get(name, ()):
            if model.named or model.form == "none":
                word = str(spelled[-1]) if spelled[0] in ("name", "attr") else ""
                if base.kind == "unknown" and (model.distinctive or any(fnmatchcase(word, one) for one in model.named)):
                    yield model
            elif base.kind in ("tensor", "unknown"):
                yield model

    def _modelled(self, function: Function, site: CallSite, model: CallModel, given: Given) -> Iterator[Sync]:
        if any(name in self._project.calls_by_name for name in model.off):
            return
        if not model.admits(given) or self._is_host_group(model, given, function, site):
            return
        at = At(function, site.seq, site.block)
        found = self._operand(model, site.call, given, at)
        if found is None:
            return
        operand, spelled = found
        trust = model.trust if model.told(given) else 0
        if model.form == "none":
            trust = min(trust, 1 if model.distinctive or model.named else 2)
        else:
            trust = min(trust, operand.trust if operand.where in (*ACCELERATED, model.lives) else 0)
        if model.trains:
            if operand.dtype not in ("float", None):
                return
            trust = min(trust, 1 if operand.dtype == "float" and self._trains(function, site.block) else 0)
        verdict = self._semantics.verdict(model.row, trust, rule=model.rule)
        if verdict.row:
            yield self._called(function, site, verdict, operand, spelled)._replace(sink=model.sink)

    @staticmethod
    def _called(function: Function, site: CallSite, verdict: Verdict, operand: Value, spelled: Expr) -> Sync:
        place = (site.call[4], site.statement, site.block, site.seq)
        return Sync(function, site.call, *place, verdict, operand, spelled, site=site)

    def _is_host_group(self, model: CallModel, given: Given, function: Function, site: CallSite) -> bool:
        """Whether a collective is given a group whose backend works on the host."""
        expr = given.find(model.of) if model.of is not None else None
        if expr is None:
            return False
        value = self._inference.value(expr, At(function, site.seq, site.block))
        refs = value.ref if value.kind == "object" else ()
        return any(isinstance(ref, str) and fnmatchcase(ref, pattern) for ref in refs for pattern in model.only)

    def _operand(self, model: CallModel, call: Expr, given: Given, at: At) -> tuple[Value, Expr] | None:
        """The argument that makes a call wait, or None where none does."""
        value_of = self._inference.value
        if model.form == "none":
            return UNKNOWN, ("opaque",)
        if model.form == "elements":
            return self._element_operand(given, at)
        if model.form == "held":
            return self._held_operand(given, at)
        if model.form == "result":
            made = value_of(call, at)
            return (made, call) if made.accelerated else None
        chosen = given.all if model.form == "any" else [given.find(one) for one in model.operands]
        listed = [expr for expr in chosen if expr is not None]
        if model.lives == "host":
            return self._host_operand(model, given, listed, at)
        unknown: tuple[Value, Expr] | None = None
        for expr in listed:
            if expr[0] == "const":
                continue
            value = self._given_value(expr, call, at)
            if model.rank == 0 and value.kind in ("tuple", "list"):
                value = _sized(value)
            if model.rank is not None and value.rank is not None and value.rank > model.rank:
                continue
            if value.accelerated or (value.kind == "object" and value.where in ACCELERATED):
                return value, expr
            if (value.kind == "tensor" and value.where is None) or (
                value.kind == "unknown" and model.form == "listed" and model.rank is None
            ):
                unknown = unknown or (value, expr)
        return unknown

    def _given_value(self, expr: Expr, call: Expr, at: At) -> Value:
        """What an argument of a call is, or its receiver."""
        func = call[1]
        if func[0] == "attr" and func[1] is expr:
            return self._inference.receiver(expr, func[2], at)
        return self._inference.value(expr, at)

    def _host_operand(self, model: CallModel, given: Given, listed: list[Expr], at: At) -> tuple[Value, Expr] | None:
        value_of = self._inference.value
        if model.beside and not any(value_of(expr, at).accelerated for expr in given.all):
            return None
        for expr in listed:
            value = value_of(expr, at)
            if (
                value.kind == "tensor"
                and value.where in MAYBE_PAGEABLE
                and (model.rank is None or value.rank == model.rank)
            ):
                return value, expr
        return None

    def _element_operand(self, given: Given, at: At) -> tuple[Value, Expr] | None:
        """A tensor whose elements a builtin looks at, or a container of tensors."""
        for expr in given.all:
            value = self._inference.value(expr, at)
            for held in (value, element(value) if value.kind in ("list", "tuple", "iter", "set", "dict") else UNKNOWN):
                if held.accelerated:
                    return held, expr
        return None

    def _held_operand(self, given: Given, at: At) -> tuple[Value, Expr] | None:
        """A tensor that is turned into text or bytes: an argument, or what a container among them holds."""
        for expr in given.all:
            value = self._inference.value(expr, at)
            pending = [value]
            for one in pending:  # grows while it is walked
                if one.accelerated:
                    return (one if one is value else one.weaker(1)), expr
                if one.kind in ("list", "tuple", "set", "dict") and one.items is not None:
                    pending += [one.items] if isinstance(one.items, Value) else one.items
        return None

    def _trains(self, function: Function, block: int) -> bool:
        """Whether a place is part of a module that is trained, and nothing around it switches gradients off."""
        if function.cls is None or not self._roots.is_module(function.cls) or not self._trained:
            return False
        blocks = function.record.blocks
        around = (blocks[number] for number in enclosing(blocks, block))
        managers = [one for held in around if held.form == "with" and held.test is not None for one in held.test[1]]
        switches = [*function.record.decorators, *managers]
        names = {uncalled(part)[-1] for part in switches}
        return not names & self._models.without_gradients

    @cached_property
    def _trained(self) -> bool:
        """Whether something that is no test asks for gradients."""
        models = self._models
        return any(
            not models.tests(function.module.name, function.record.name)
            for name in models.gradients
            for function, _ in self._project.calls_by_name.get(name, ())
        )

    # -- copies --

    def _copy(self, function: Function, site: CallSite, model: CopyModel, given: Given, base: Value) -> Iterator[Sync]:
        expr = given.find(model.source)
        if expr is None or is_empty(expr):
            return
        at = At(function, site.seq, site.block)
        source = self._given_value(expr, site.call, at)
        target = base if model.into else self._inference.value(site.call, at)
        held = _moved(target)
        if source.kind == "object":
            moves = "module" in model.rows and self._is_module(source)
            near = moves and self._inference.destination(site.call, at) in ACCELERATED
            row, trust = (model.rows["module"], 1 if source.exact else 0) if near else ("", 0)
        else:
            read = "elements" in model.rows  # each element of a list becomes a number, and is not moved by itself
            row, trust = self._direction(model, source if read else _moved(source), held, given, at)
        if row:
            verdict = self._semantics.verdict(row, trust)
            if verdict.row:
                operand = _moved(source) if _moved(source).kind in ("tensor", "numpy") else held
                yield self._called(function, site, verdict, operand, expr)

    def _direction(self, model: CopyModel, source: Value, target: Value, given: Given, at: At) -> tuple[str, int]:
        """The row of a copy by where it starts and ends, and how far both are known."""
        rows = model.rows
        near, far = target.where in ACCELERATED, target.where in HOST
        gaps = (False, "reordered") if model.into else (False,)  # what keeps its order of strides is copied as it lies
        trust = min(target.trust, source.trust)
        if source.kind != "tensor":
            return self._data(model, source, target)
        flag = given.find(model.flag)
        asked = self._inference.value(flag, at).ref if flag is not None else False
        waits = asked is False
        if not isinstance(asked, bool):
            trust = 0
        if near and source.where in (*HOST, None):
            trust = trust if source.where in HOST else 0
            if waits:
                return rows.get("upload", ""), trust
            if source.where == "pinned":
                return (rows.get("upload_strided", "") if source.dense in gaps else ""), trust
            return rows.get("upload_async", ""), 0 if source.where == "loaded" else trust
        if far and source.where in (*ACCELERATED, None):
            trust = trust if source.accelerated else 0
            if waits:
                return rows.get("download", ""), trust
            if target.where == "pinned":
                return (rows.get("download_strided", "") if target.dense in gaps else ""), trust
            return rows.get("download_async", ""), trust
        return "", 0

    @staticmethod
    def _data(model: CopyModel, source: Value, target: Value) -> tuple[str, int]:
        """A copy of Python data, of numpy arrays, or of what is not known."""
        rows = model.rows
        if source.kind in ("list", "tuple"):
            inner = element(source)
            if inner.accelerated and "elements" in rows:
                return rows["elements"], min(inner.trust, 1)
        if target.where not in ACCELERATED or "elements" not in rows or (model.sizes and source.kind in NUMBERS):
            return "", 0
        trust = model.unknown if source.kind in ("unknown", "bottom") else 2
        return rows["upload"], min(trust, target.trust)

    def _is_module(self, value: Value) -> bool:
        return any(isinstance(ref, int) and self._roots.is_module(self._project.classes[ref]) for ref in value.ref)


def _sized(value: Value) -> Value:
    """The device tensor among several sizes, or the sizes."""
    items = value.items if isinstance(value.items, tuple) else (value.items,)
    return next((one for one in items if isinstance(one, Value) and one.accelerated and one.rank == 0), value)


def _item(shape: IndexShape, operand: Value, other: Expr) -> Expr:
    """The index item that a verdict rests on, itself or its elements; `other` where it rests on none."""
    pairs = zip(shape.items, shape.parts, strict=True)
    return next((item for item, (_, value) in pairs if operand in (value, value.items)), other)


def _moved(value: Value) -> Value:
    """The tensors that a copy moves: those that a batch holds, or the tensor itself."""
    if value.kind == "batch":
        return tensor_of(value)
    if value.kind in ("dict", "list", "tuple") and value.items is not None:
        inner = element(value) if value.kind != "dict" else value.items
        return inner if isinstance(inner, Value) and inner.kind == "tensor" else value
    return value
