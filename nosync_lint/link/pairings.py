"""Tensors that are aligned position by position, and the pairs made of them after one was put in another order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nosync_lint.index.records import CallSite, Expr, Site, row_of
from nosync_lint.link.flow import reaching
from nosync_lint.link.inference import Inference
from nosync_lint.link.names import At
from nosync_lint.link.parts import statements, within
from nosync_lint.link.project import Function, Project, called_name
from nosync_lint.models import load

MAX_DEPTH = 20
"""An expression is followed back over at most this many definitions."""


class Order(NamedTuple):
    """The order in which a tensor holds its elements: that of `source`, or what the call `changed` made of it.
    `table` is where they were looked up by an index that has this order."""

    source: Expr
    changed: Expr | None = None
    table: Expr | None = None


class LostPairing(NamedTuple):
    """Two expressions that are paired element by element in `row`, although the call at `site` put one in another
    order. `apart`: they come from two arguments, and not from one."""

    function: Function
    site: CallSite
    row: int
    reordered: Expr
    other: Expr
    apart: bool


class Pairings:
    """Follows the order of elements through the functions that change one."""

    def __init__(self, project: Project, inference: Inference) -> None:
        self._project, self._inference = project, inference
        words = load("contracts")["order"]
        self._functions, self._methods = frozenset(words["functions"]), frozenset(words["methods"])
        self._pairs, self._pairing = frozenset(words["pairs"]), frozenset(words["pairing"])
        self._keeping, self._pairwise = frozenset(words["keeping"]), frozenset(words["pairwise"])

    def lost(self) -> Iterator[LostPairing]:
        """The calls that break up pairs, each with the first pair that is wrong by it, in project order."""
        reordering = {
            function.number
            for name in self._methods
            for function, site in self._project.calls_by_name.get(name, ())
            if function.module.file.reported and self._reorders(site.call, At(function, site.seq, site.block))
        }
        for number in sorted(reordering):
            found: dict[int, LostPairing] = {}
            for lost in self._of(self._project.functions[number]):
                found.setdefault(lost.site.call[4], lost)
            yield from (found[pos] for pos in sorted(found))

    def _of(self, function: Function) -> Iterator[LostPairing]:
        record = function.record
        for write in record.writes:
            at = At(function, write.seq, write.block)
            index, value = self.order(write.subscript, at), self.order(write.value, at)
            if index is not None:
                index = index._replace(table=write.base)
            if index is not None and value is not None and value.table is not None:
                yield from self._compare((write.subscript, index), (write.value, value), function, row_of(write.pos))
        for site in record.calls:
            if called_name(site.call) in self._pairwise:
                at = At(function, site.seq, site.block)
                given = [*site.call[2], *(value for _, value in site.call[3])]
                listed = [part for arg in given for part in (arg[1] if arg[0] in ("tuple", "list") else (arg,))]
                sides = [(one, order) for one in listed if (order := self.order(one, at)) is not None]
                for number, one in enumerate(sides):
                    for other in sides[number + 1 :]:
                        if one[1].table is not None or other[1].table is not None:
                            yield from self._compare(one, other, function, row_of(site.call[4]))
        places: dict[int, CallSite | Site] = {site.seq: site for site in record.calls}
        places.update({site.seq: site for site in record.sites})
        for seq, expr in statements(record):
            for part in within(expr) if seq in places else ():
                if part[0] == "bin":
                    at = At(function, seq, places[seq].block)
                    left, right = self.order(part[2], at), self.order(part[3], at)
                    if left is not None and right is not None and left.table is not None and right.table is not None:
                        yield from self._compare(
                            (part[2], left), (part[3], right), function, row_of(places[seq].statement)
                        )

    def _compare(
        self, one: tuple[Expr, Order], other: tuple[Expr, Order], function: Function, row: int
    ) -> Iterator[LostPairing]:
        """What is wrong with a pair: one source in two orders, or two arguments, each ordered by its own values."""
        first, second = one[1], other[1]
        apart = first.source != second.source
        if first.changed == second.changed or (apart and not self._arguments(first, second, function)):
            return
        if not apart and first.table is not None and first.table == second.table:
            return  # one tensor, whose elements are moved on purpose
        (spelled, order), (plain, _) = (one, other) if first.changed is not None else (other, one)
        site = next(site for site in function.record.calls if site.call == order.changed)
        yield LostPairing(function, site, row, spelled, plain, apart)

    @staticmethod
    def _arguments(first: Order, second: Order, function: Function) -> bool:
        """Whether two orders come from the same places of two arguments: one of them sliced, or both put in order."""
        roots = [_root(one.source) for one in (first, second)]
        own = {None, 0 if function.binds else None}
        alike = roots[0] != roots[1] and _renamed(second.source, roots[1], roots[0]) == first.source
        both = first.changed is not None and second.changed is not None
        return (
            alike and all(function.parameter(root) not in own for root in roots) and (both or first.source[0] == "sub")
        )

    # -- orders --

    def order(self, expr: Expr, at: At, depth: int = 0) -> Order | None:
        """The order of the elements of an expression, or None where it is not known."""
        if depth > MAX_DEPTH:
            return None
        form = expr[0]
        if form == "name":
            return self._of_name(expr[1], at, depth)
        if form == "call":
            return self._of_call(expr, at, depth)
        if form == "attr":
            if expr[2] == "values" and self._reorders(expr[1], at):
                return self._changed(expr[1], at, depth)
            return Order(expr)
        if form in ("item", "sub") and self._gives_pair(expr[1], at):
            place = expr[2] if form == "item" else expr[2][1] if expr[2][0] == "const" else None
            return self._changed(expr[1], at, depth) if place == 0 else None
        if form == "sub":
            return self._of_subscript(expr, at, depth)
        if form == "bin":
            tensors = [part for part in expr[2:4] if self._inference.value(part, at).kind == "tensor"]
            orders = [self.order(part, at, depth + 1) for part in tensors]
            return orders[0] if orders and all(one == orders[0] for one in orders) else None
        return None

    def _of_name(self, name: str, at: At, depth: int) -> Order | None:
        found, entry = reaching(at.function.record, name, at.seq, at.block)
        if not found and entry:
            return Order(("name", name))
        if entry or len(found) > 1:
            return None
        definition = found[0]
        known = self.order(definition.value, At(at.function, definition.seq, definition.block), depth + 1)
        return known or Order(("name", name, definition.seq))

    def _of_call(self, call: Expr, at: At, depth: int) -> Order | None:
        if self._reorders(call, at):
            return None if self._gives_pair(call, at) else self._changed(call, at, depth)
        if called_name(call) not in self._keeping:
            return None
        operand = self._operand(call, at)
        return self.order(operand, at, depth + 1) if operand is not None else None

    def _of_subscript(self, expr: Expr, at: At, depth: int) -> Order | None:
        """`x[index]` has the order of a tensor index; a slice takes a part of the order that was there."""
        items = expr[2][1] if expr[2][0] == "tuple" else (expr[2],)
        chosen = [item for item in items if item[0] not in ("slice", "const", "ellipsis")]
        if not chosen:
            base = self.order(expr[1], at, depth + 1)
            return base._replace(source=("sub", base.source, expr[2])) if base is not None else None
        index = self.order(chosen[0], at, depth + 1) if len(chosen) == 1 else None
        return index._replace(table=expr[1]) if index is not None else None

    def _changed(self, call: Expr, at: At, depth: int) -> Order | None:
        """The order that a call gives to its operand."""
        operand = self._operand(call, at)
        before = self.order(operand, at, depth + 1) if operand is not None else None
        return Order(before.source, call) if before is not None else None

    def _operand(self, call: Expr, at: At) -> Expr | None:
        """The tensor that a method or a function of tensors works on."""
        func: Expr = call[1]
        if func[0] == "attr" and self._inference.value(func[1], at).kind not in ("module", "extern"):
            base: Expr = func[1]
            return base
        return call[2][0] if call[2] and call[2][0][0] != "star" else None

    def _reorders(self, call: Expr, at: At) -> bool:
        if call[0] != "call" or called_name(call) not in self._methods:
            return False
        callee = self._inference.value(call[1], at)
        if callee.kind == "extern":
            return callee.ref in self._functions
        return call[1][0] == "attr" and self._inference.value(call[1][1], at).kind == "tensor"

    def _gives_pair(self, call: Expr, at: At) -> bool:
        """Whether a call gives its result together with indices or counts."""
        if not self._reorders(call, at):
            return False
        return called_name(call) in self._pairs or any(name in self._pairing for name, _ in call[3])


def _root(source: Expr) -> str:
    """The name that the source of an order starts from."""
    while source[0] in ("sub", "attr"):
        source = source[1]
    return str(source[1]) if source[0] == "name" else ""


def _renamed(source: Expr, name: str, new: str) -> Expr:
    """The source of an order with another tensor in place of the one it starts from."""
    if source[0] == "name":
        return ("name", new, *source[2:]) if source[1] == name else source
    return ("sub", _renamed(source[1], name, new), source[2]) if source[0] == "sub" else source
