"""The order in which a tensor holds its elements: whose it is, and which call changed it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nosync_lint.index.records import CallSite, Expr
from nosync_lint.link.calls import Binding, bind
from nosync_lint.link.flow import reaching
from nosync_lint.link.inference import Inference
from nosync_lint.link.names import At
from nosync_lint.link.project import Function, Project, called_name
from nosync_lint.models import load

MAX_DEPTH = 20
"""An expression is followed back over at most this many definitions."""
MAX_CALLS = 5
"""Functions that hand on what they are given are followed so deep."""


class Order(NamedTuple):
    """The order in which a tensor holds its elements: that of `source`, or what the call `changed` made of it.
    `table` is where they were looked up by an index that has this order."""

    source: Expr
    changed: Expr | None = None
    table: Expr | None = None


class Orders:
    """Follows the order of elements through the functions that change one."""

    def __init__(self, project: Project, inference: Inference) -> None:
        self._project, self._inference = project, inference
        words = load("contracts")["order"]
        self._functions, self.methods = frozenset(words["functions"]), frozenset(words["methods"])
        self._pairs, self._pairing = frozenset(words["pairs"]), frozenset(words["pairing"])
        self._permutations, self._parts = frozenset(words["permutations"]), frozenset(words["parts"])
        self._keeping, self._lookups = frozenset(words["keeping"]), frozenset(words["lookups"])
        self._returned: dict[int, Order | None] = {}

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
            if expr[2] in self._parts and self.reorders(expr[1], at):
                return self._changed(expr[1], at, depth)
            return (self.order(expr[1], at, depth + 1) if self.wraps(expr[1], at) else None) or Order(expr)
        if form in ("item", "sub") and self._gives_pair(expr[1], at):
            place = expr[2] if form == "item" else expr[2][1] if expr[2][0] == "const" else None
            return self._of_pair(expr[1], place, at, depth)
        if form == "item" and expr[1][0] == "tuple" and -len(expr[1][1]) <= expr[2] < len(expr[1][1]):
            return self.order(expr[1][1][expr[2]], at, depth + 1)
        if form == "sub":
            return self._of_subscript(expr, at, depth)
        if form == "bin":
            tensors = [part for part in expr[2:4] if self._inference.value(part, at).kind == "tensor"]
            orders = [self.order(part, at, depth + 1) for part in tensors]
            return orders[0] if orders and all(one == orders[0] for one in orders) else None
        return None

    def reorders(self, call: Expr, at: At) -> bool:
        """Whether a call gives the elements of a tensor back in another order."""
        if call[0] != "call" or called_name(call) not in self.methods:
            return False
        callee = self._inference.value(call[1], at)
        if callee.kind == "extern":
            return callee.ref in self._functions
        return call[1][0] == "attr" and self._inference.value(call[1][1], at).kind == "tensor"

    def returned(self, function: Function) -> Order | None:
        """The order of what a function returns, in terms of its parameters; None where its returns differ in it."""
        if function.number not in self._returned:
            self._returned[function.number] = None  # what recursion sees
            found = [self.order(one.value, At(function, one.seq, one.block)) for one in function.record.results]
            sources = {one and (one.source, one.table) for one in found}
            changed = next((one.changed for one in found if one is not None and one.changed is not None), None)
            if len(sources) == 1 and found[0] is not None:
                alike = all((one.changed is None) == (changed is None) for one in found if one is not None)
                self._returned[function.number] = found[0]._replace(changed=changed) if alike else None
        return self._returned[function.number]

    def same(self, one: Order, other: Order) -> bool:
        """Whether two orders were changed alike: by one call, or by two that put one row in one order."""
        first, second = one.changed, other.changed
        if first == second or first is None or second is None:
            return first == second
        names = {called_name(first), called_name(second)}
        return names <= self._permutations and one.source == other.source and first[3] == second[3]

    # -- forms --

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
        name = called_name(call)
        if self.reorders(call, at):
            operand = self._operand(call, at)
            if name == "argsort" and operand is not None and self._is_permutation(operand, at):
                before = self.order(operand, at, depth + 1)
                return before and Order(before.source)  # ranks: the places of the elements as they were
            return None if self._gives_pair(call, at) else self._changed(call, at, depth)
        if name in self._keeping:
            operand = self._operand(call, at)
            return self.order(operand, at, depth + 1) if operand is not None else None
        if name in self._lookups and call[2]:
            operand = self._operand(call, at)
            index = dict(call[3]).get("index", call[2][-1])
            return self._looked_up(operand, index, at, depth) if operand is not None and operand != index else None
        return self._handed_on(call, at, depth)

    def _handed_on(self, call: Expr, at: At, depth: int) -> Order | None:
        """The order of what a function of the project makes of one of its arguments."""
        site = site_of(at.function, call)
        if site is None:
            return None
        targets = self._inference.targets(at.function, site)
        if len(targets) != 1:
            return None
        function = self._project.functions[targets[0].function]
        binding = Binding(at.function, site, targets[0].bound)
        if function.record.name == "__init__":
            return self._wrapped(function, binding, at, depth)
        inner = self.returned(function)
        given = self._given(inner.source, function, binding) if inner else None
        before = self.order(given, at, depth + 1) if given is not None else None
        if inner is None or before is None:
            return Order(spelled_out(call, at))
        source = renamed(inner.source, root(inner.source), before.source)
        return Order(source, call if inner.changed is not None else before.changed, inner.table or before.table)

    def _wrapped(self, made: Function, binding: Binding, at: At, depth: int) -> Order | None:
        """The order of an object around one tensor, which may be a part of that tensor: pages of tokens."""
        index = self._one_tensor(made)
        given = bind(made, binding, index) if index is not None else None
        before = self.order(given, at, depth + 1) if given is not None else None
        return before and before._replace(source=("sub", before.source, ("const", made.name)))

    def _one_tensor(self, made: Function) -> int | None:
        """The parameter of a constructor that is a tensor, where that is one."""
        kinds = [
            self._inference.solver.read(("param", made.number, n)).kind for n in range(len(made.record.parameters))
        ]
        return kinds.index("tensor") if kinds.count("tensor") == 1 else None

    def wraps(self, expr: Expr, at: At) -> bool:
        """Whether an expression is an object around one tensor."""
        value = self._inference.value(expr, at)
        if value.kind != "object" or len(value.ref) != 1 or not isinstance(value.ref[0], int):
            return False
        made = self._project.classes[value.ref[0]].method("__init__")
        return made is not None and self._one_tensor(made) is not None

    @staticmethod
    def _given(source: Expr, function: Function, binding: Binding) -> Expr | None:
        index = function.parameter(root(source))
        return bind(function, binding, index) if index is not None else None

    def _of_subscript(self, expr: Expr, at: At, depth: int) -> Order | None:
        """`x[index]` has the order of a tensor index; a slice takes a part of the order that was there."""
        items = expr[2][1] if expr[2][0] == "tuple" else (expr[2],)
        chosen = [item for item in items if item[0] not in ("slice", "const", "ellipsis")]
        if not chosen:
            base = self.order(expr[1], at, depth + 1)
            return base._replace(source=("sub", base.source, expr[2])) if base is not None else None
        return self._looked_up(expr[1], chosen[0], at, depth) if len(chosen) == 1 else None

    def _looked_up(self, table: Expr, index: Expr, at: At, depth: int) -> Order | None:
        """Elements of a table by an index: in the order of the index. A row by its own permutation is that row."""
        found = self.order(index, at, depth + 1)
        if found is None or found.changed is None or not self._is_permutation(index, at):
            return found._replace(table=table) if found is not None else None
        row = self.order(table, at, depth + 1)
        own = row is not None and row.changed is None and row.source == found.source
        return found._replace(table=row.table if own and row is not None else table)

    def _of_pair(self, call: Expr, place: object, at: At, depth: int) -> Order | None:
        """One of several results: the inverse of a de-duplication is in the order before, all else in the new one."""
        changed = self._changed(call, at, depth)
        words = [name for name, value in call[3] if name in self._pairing and value != ("const", False)]
        if changed is None or called_name(call) in self._pairs or place == 0:
            return changed if isinstance(place, int) else None
        if "return_inverse" in words and place == 1:
            return Order(changed.source)
        return changed if isinstance(place, int) else None

    def _changed(self, call: Expr, at: At, depth: int) -> Order | None:
        """The order that a call gives to its operand."""
        operand = self._operand(call, at)
        before = self.order(operand, at, depth + 1) if operand is not None else None
        if before is None and operand is not None:
            before = Order(spelled_out(operand, at))
        return Order(before.source, call) if before is not None else None

    def _operand(self, call: Expr, at: At) -> Expr | None:
        """The tensor that a method or a function of tensors works on."""
        func: Expr = call[1]
        if func[0] == "attr" and self._inference.value(func[1], at).kind not in ("module", "extern"):
            base: Expr = func[1]
            return base
        return call[2][0] if call[2] and call[2][0][0] != "star" else None

    def _is_permutation(self, expr: Expr, at: At, depth: int = 0) -> bool:
        """Whether an expression holds the places from which a call took the elements."""
        if expr[0] == "name" and depth < MAX_DEPTH:
            found, entry = reaching(at.function.record, expr[1], at.seq, at.block)
            if entry or len(found) != 1:
                return False
            at = At(at.function, found[0].seq, found[0].block)
            return self._is_permutation(found[0].value, at, depth + 1)
        if expr[0] == "call":
            return called_name(expr) == "argsort" and self.reorders(expr, at)
        if expr[0] == "attr":
            return bool(expr[2] == "indices") and self.reorders(expr[1], at)
        second = expr[0] in ("item", "sub") and expr[2] in (1, ("const", 1)) and expr[1][0] == "call"
        return second and called_name(expr[1]) in self._pairs and self.reorders(expr[1], at)

    def _gives_pair(self, call: Expr, at: At) -> bool:
        """Whether a call gives its result together with indices or counts."""
        if not self.reorders(call, at):
            return False
        return called_name(call) in self._pairs or any(name in self._pairing for name, _ in call[3])


def spelled_out(expr: Expr, at: At, depth: int = 0) -> Expr:
    """An expression without places, with local names replaced by what they stand for where that is one thing."""
    form = expr[0]
    if form == "name" and depth < MAX_DEPTH:
        seq = expr[2] if len(expr) > 2 else None
        found, entry = reaching(at.function.record, expr[1], at.seq, at.block)
        if seq is not None:
            found, entry = [one for one in at.function.record.definitions.get(expr[1], ()) if one.seq == seq], False
        if entry or len(found) != 1:
            return expr
        return spelled_out(found[0].value, At(at.function, found[0].seq, found[0].block), depth + 1)
    if form in ("name", "const"):
        return expr
    if form == "call":
        args = tuple(spelled_out(arg, at, depth + 1) for arg in expr[2])
        words = tuple((name, spelled_out(value, at, depth + 1)) for name, value in expr[3])
        return ("call", spelled_out(expr[1], at, depth + 1), args, words)
    if form == "sub":
        return ("sub", spelled_out(expr[1], at, depth + 1), spelled_out(expr[2], at, depth + 1))
    if form in ("tuple", "list"):
        return (form, tuple(spelled_out(part, at, depth + 1) for part in expr[1]))
    return tuple(spelled_out(part, at, depth + 1) if _is_expr(part) else part for part in expr)


def _is_expr(part: object) -> bool:
    return isinstance(part, tuple) and bool(part) and isinstance(part[0], str)


def root(source: Expr) -> str:
    """The name that the source of an order starts from."""
    while source[0] in ("sub", "attr"):
        source = source[1]
    return str(source[1]) if source[0] == "name" else ""


def renamed(source: Expr, name: str, new: Expr) -> Expr:
    """The source of an order with another expression in place of the name it starts from."""
    if source[0] == "name":
        return (*new, *source[2:]) if source[1] == name and new[0] == "name" else new if source[1] == name else source
    return (source[0], renamed(source[1], name, new), *source[2:]) if source[0] in ("sub", "attr") else source


def parts_of(expr: Expr) -> Iterator[Expr]:
    """The expressions directly inside one."""
    for part in expr[1:]:
        if _is_expr(part):
            yield part
        elif isinstance(part, tuple):
            yield from (one[1] if not _is_expr(one) else one for one in part if isinstance(one, tuple))


def replaced(expr: Expr, old: Expr, new: Expr) -> Expr:
    """An expression with another one in all places of one in it."""
    if expr == old:
        return new
    return tuple(replaced(part, old, new) if isinstance(part, tuple) else part for part in expr)


def site_of(function: Function, call: Expr) -> CallSite | None:
    """Where a call stands."""
    return next((site for site in function.record.calls if site.call == call), None)
