"""Tensors that are aligned position by position, and the pairs made of them after one was put in another order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nosync_lint.index.records import CallSite, Expr, Site, row_of
from nosync_lint.link.calls import Binding, bind
from nosync_lint.link.inference import Inference
from nosync_lint.link.names import At
from nosync_lint.link.orders import MAX_CALLS, Order, Orders, parts_of, replaced, site_of, spelled_out
from nosync_lint.link.parts import statements, within
from nosync_lint.link.project import Function, Project, called_name
from nosync_lint.models import load

MAX_TARGETS = 4
"""A call that may run more functions than this is not followed into them."""


class LostPairing(NamedTuple):
    """Two expressions that are paired element by element in `row`, although the call at `site` put one in another
    order. `apart`: they come from two arguments, and not from one."""

    function: Function
    site: CallSite
    row: int
    reordered: Expr
    other: Expr
    apart: bool


class Side(NamedTuple):
    """One of two expressions that are paired element by element."""

    expr: Expr
    order: Order


class Pair(NamedTuple):
    """Two expressions that are paired element by element where `at` says. `looked_up`: some function that they go to
    looks one of them up in a table first. `by_place`: that function takes both by the same slices."""

    one: Side
    other: Side
    at: At
    row: int
    looked_up: bool = False
    by_place: bool = False


class Rows(NamedTuple):
    """The two rows of a pair. `alike`: the same is made of both; `by_place`: by slicing, or they are fields of one
    record."""

    first: Expr
    second: Expr
    alike: bool
    by_place: bool


class Pairings:
    """Finds the pairs of a function, and those that one of two orders breaks up."""

    def __init__(self, project: Project, inference: Inference) -> None:
        self._project, self._inference = project, inference
        self._orders = Orders(project, inference)
        self._pairwise = frozenset(load("contracts")["order"]["pairwise"])
        self._of_arguments: dict[tuple[int, int], list[Pair]] = {}

    def lost(self) -> Iterator[LostPairing]:
        """The calls that break up pairs, each with the first pair that is wrong by it, in project order."""
        for number in sorted(self._reordering()):
            function = self._project.functions[number]
            found: dict[int, LostPairing] = {}
            for pair in self._pairs(function, 0):
                lost = self._broken(pair, function)
                if lost is not None:
                    found.setdefault(lost.site.call[4], lost)
            yield from (found[pos] for pos in sorted(found))

    def _reordering(self) -> set[int]:
        """The reported functions that put a tensor in another order, themselves or by a function that they call."""
        found, helpers = set[int](), set[int]()
        for name in self._orders.methods:
            for function, site in self._project.calls_by_name.get(name, ()):
                if self._orders.reorders(site.call, At(function, site.seq, site.block)):
                    helpers.add(function.number)
        for _ in range(MAX_CALLS):
            found |= helpers
            handing = [one for number in sorted(helpers) if self._hands_out(one := self._project.functions[number])]
            helpers = {binding.caller.number for one in handing for binding in self._inference.callers(one)} - found
        return {number for number in found if self._project.functions[number].module.file.reported}

    def _hands_out(self, function: Function) -> bool:
        order = self._orders.returned(function)
        return order is not None and order.changed is not None

    # -- pairs --

    def _pairs(self, function: Function, depth: int) -> Iterator[Pair]:
        """What a function pairs element by element, itself or in functions that it calls."""
        record = function.record
        for write in record.writes:
            at = At(function, write.seq, write.block)
            index, value = self._side(write.subscript, at), self._side(write.value, at)
            if index is not None and value is not None:
                index = Side(index.expr, index.order._replace(table=write.base))
                yield Pair(index, value, at, row_of(write.pos), value.order.table is not None)
        for site in record.calls:
            at = At(function, site.seq, site.block)
            given = [*site.call[2], *(value for _, value in site.call[3])]
            if called_name(site.call) in self._pairwise:
                listed = [part for arg in given for part in (arg[1] if arg[0] in ("tuple", "list") else (arg,))]
                sides = [side for one in listed if (side := self._side(one, at)) is not None]
                for number, one in enumerate(sides):
                    for other in sides[number + 1 :]:
                        looked_up = one.order.table is not None or other.order.table is not None
                        yield Pair(one, other, at, row_of(site.call[4]), looked_up)
            elif depth < MAX_CALLS and len(given) > 1:
                yield from self._handed_on(site, given, at, depth)
        places: dict[int, CallSite | Site] = {site.seq: site for site in record.calls}
        places.update({site.seq: site for site in record.sites})
        for seq, expr in statements(record):
            for part in within(expr) if seq in places else ():
                if part[0] == "bin":
                    at = At(function, seq, places[seq].block)
                    left, right = self._side(part[2], at), self._side(part[3], at)
                    if left is not None and right is not None:
                        both = left.order.table is not None and right.order.table is not None
                        yield Pair(left, right, at, row_of(places[seq].statement), both)

    def _side(self, expr: Expr, at: At) -> Side | None:
        order = self._orders.order(expr, at)
        return Side(expr, order) if order is not None else None

    def _handed_on(self, site: CallSite, given: list[Expr], at: At, depth: int) -> Iterator[Pair]:
        """The pairs that a function of the project makes of the arguments of a call."""
        sides = [side for one in given if (side := self._side(one, at)) is not None]
        if len(sides) < 2 or (depth == 0 and all(side.order.changed is None for side in sides)):
            return
        targets = self._inference.targets(at.function, site)
        for target in targets if len(targets) <= MAX_TARGETS else ():
            function = self._project.functions[target.function]
            binding = Binding(at.function, site, target.bound)
            for pair in self._pairs_of_arguments(function, depth + 1):
                one = self._argument(pair.one, function, binding, at)
                other = self._argument(pair.other, function, binding, at)
                if one is not None and other is not None:
                    looked_up = pair.looked_up or one.order.table is not None or other.order.table is not None
                    yield Pair(one, other, at, row_of(site.call[4]), looked_up, pair.by_place)

    def _argument(self, side: Side, function: Function, binding: Binding, at: At) -> Side | None:
        index = function.parameter(side.expr[1])
        given = bind(function, binding, index) if index is not None else None
        return self._side(given, at) if given is not None else None

    def _pairs_of_arguments(self, function: Function, depth: int) -> list[Pair]:
        """The pairs that a function makes of what it is given, each side with its parameter as its expression."""
        key = (function.number, depth)
        if key not in self._of_arguments:
            pairs = [self._by_parameter(pair) for pair in self._pairs(function, depth)]
            self._of_arguments[key] = [pair for pair in pairs if pair is not None]
        return self._of_arguments[key]

    def _by_parameter(self, pair: Pair) -> Pair | None:
        """A pair in terms of two parameters, or None where it is not one of two arguments as they came."""
        if pair.one.order.changed is not None or pair.other.order.changed is not None:
            return None
        rows = self._rows(pair)
        if rows is None or rows.first[0] != "name" or rows.second[0] != "name":
            return None
        one, other = Side(rows.first, pair.one.order), Side(rows.second, pair.other.order)
        return pair._replace(one=one, other=other, by_place=pair.by_place or (rows.alike and rows.by_place))

    # -- what is wrong --

    def _broken(self, pair: Pair, function: Function) -> LostPairing | None:
        """What is wrong with a pair: one source in two orders, or two rows of which one is in an order of its own."""
        first, second = pair.one.order, pair.other.order
        if not pair.looked_up or self._orders.same(first, second):
            return None
        apart = first.source != second.source
        if apart and not self._apart(pair):
            return None
        if not apart and first.table is not None and first.table == second.table:
            return None  # one tensor, whose elements are moved on purpose
        spelled, plain = (pair.one, pair.other) if first.changed is not None else (pair.other, pair.one)
        site = site_of(function, spelled.order.changed) if spelled.order.changed is not None else None
        return site and LostPairing(function, site, pair.row, spelled.expr, plain.expr, apart)

    def _apart(self, pair: Pair) -> bool:
        """Whether both sides come from the same places of two rows: sliced alike, or both put in order."""
        rows = self._rows(pair)
        both = pair.one.order.changed is not None and pair.other.order.changed is not None
        return rows is not None and rows.alike and (both or rows.by_place or pair.by_place)

    def _rows(self, pair: Pair) -> Rows | None:
        """The two rows that a pair is made of, or None where that is one, or more than two."""
        sources = [spelled_out(side.order.source, pair.at) for side in (pair.one, pair.other)]
        first, second = (self._roots(source, pair.at) for source in sources)
        if len(first) != 1 or len(second) != 1 or first == second:
            return None
        (one,), (other,) = first, second
        cut = sources[0][0] == "sub" or (sources[0][0] == "call" and self._is_ours(sources[0], pair.at))
        return Rows(one, other, replaced(sources[1], other, one) == sources[0], cut or one[0] != "name")

    def _roots(self, source: Expr, at: At) -> set[Expr]:
        """The rows in an expression: tensors that are parameters, and fields of a record."""
        function = at.function
        if source[0] == "name":
            index = function.parameter(source[1])
            return {source} if index is not None and index >= bool(function.binds) else set()
        if source[0] in ("attr", "item") and self._is_record(source[1], at):
            return {source}
        return {row for part in parts_of(source) for row in self._roots(part, at) if self._is_row(row, at)}

    def _is_row(self, row: Expr, at: At) -> bool:
        known = row[0] != "name" or self._inference.value(row, at).kind in ("tensor", "unknown")
        return known or self._orders.wraps(row, at)

    def _is_record(self, expr: Expr, at: At) -> bool:
        value = self._inference.value(expr, at)
        return self._inference.records.positions(value) is not value

    def _is_ours(self, call: Expr, at: At) -> bool:
        return self._inference.value(call[1], at).kind in ("function", "method")
