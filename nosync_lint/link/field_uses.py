"""How a function uses the fields of a batch: what it asks of them says whether they are tensors, or texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nosync_lint.index.records import Expr
from nosync_lint.link.batches import Batches, is_open
from nosync_lint.link.dispatch import OF_BUILTINS
from nosync_lint.link.operations import Operations
from nosync_lint.link.parts import placed, within
from nosync_lint.link.project import Function, Project
from nosync_lint.link.values import UNKNOWN, Value

_ORDERS = frozenset({"<", "<=", ">", ">=", "==", "!="})
_ENUMS = frozenset({"enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag", "enum.IntFlag"})


class Uses(NamedTuple):
    """The variables and fields that a function uses as only a tensor can be used, and those it compares with texts."""

    tensors: frozenset[Expr]
    others: frozenset[Expr]


class FieldUses:
    """The uses in a function, by what its text says: no summary is read."""

    def __init__(self, project: Project, operations: Operations, batches: Batches) -> None:
        self._project, self._operations, self._batches = project, operations, batches
        self._of: dict[int, Uses] = {}

    def told(self, value: Value, expr: Expr, function: Function) -> Value:
        """A field that may be anything, by its uses in a function and by the name of the variable that holds it."""
        key = _key(expr)
        if key is None or not is_open(value):
            return value
        uses = self._uses(function)
        if key in uses.others:
            return UNKNOWN
        tensor: Value = value.items
        if key in uses.tensors:
            return tensor
        if key[0] != "name":
            return value
        name = key[1].partition("~")[0]
        if self._operations.convention(name) == "count":
            return Value("int", trust=1)
        return tensor if value.ref != "any" and self._batches.names_tensor(name) else value

    def _uses(self, function: Function) -> Uses:
        uses = self._of.get(function.number)
        if uses is None:
            tensors: set[Expr] = set()
            others: set[Expr] = set()
            tests = [block.test for block in function.record.blocks if block.test is not None]
            for expr in (*(one for one, *_ in placed(function.record)), *tests):
                for part in within(expr):
                    self._collect(part, function, tensors, others)
            uses = self._of[function.number] = Uses(frozenset(tensors) - others, frozenset(others))
        return uses

    def _collect(self, part: Expr, function: Function, tensors: set[Expr], others: set[Expr]) -> None:
        form = part[0]
        if form == "call":
            func = part[1]
            if func[0] == "attr" and self._asks_tensor(func[2]):
                _add(func[1], tensors)
            if part[2] and self._takes_tensor(func, function):
                first = part[2][0]
                for one in first[1] if first[0] in ("list", "tuple") else (first,):
                    _add(one, tensors)
        elif form == "attr" and self._operations.of_any_tensor(part[2]) is not None:
            _add(part[1], tensors)
        elif form == "bin" and part[1] == "@":
            _add(part[2], tensors)
            _add(part[3], tensors)
        elif form == "sub":
            for test in _masks(part[2], function):
                for one in (part[1], part[2], test[2], *test[3]):
                    _add(one, tensors)
        elif form == "cmp":
            sides = (part[2], *part[3])
            if any(self._is_text(one, function) for one in sides):
                for one in sides:
                    _add(one, others)

    def _asks_tensor(self, method: str) -> bool:
        return self._operations.has_method(method) and method not in OF_BUILTINS

    def _takes_tensor(self, func: Expr, function: Function) -> bool:
        """Whether a call is one of a torch function or of a module, so that its first argument is a tensor."""
        if func[0] not in ("name", "attr"):
            return False
        if self._batches.names_model(str(func[-1])):
            return True
        if func[0] == "attr" and function.is_self(func[1]):
            cls = function.cls
            of_module = cls is not None and self._operations.module_type in cls.externs
            return of_module and cls is not None and cls.method(func[2]) is None
        found = self._project.static_path(function.module, func)
        return found is not None and found.kind == "extern" and self._operations.takes_tensor(found.ref)

    def _is_text(self, expr: Expr, function: Function) -> bool:
        """Whether an expression is a text, a row of texts, or a member of an enumeration."""
        if expr[0] == "const":
            return isinstance(expr[1], str)
        if expr[0] in ("tuple", "list", "set"):
            return any(self._is_text(one, function) for one in expr[1])
        if expr[0] != "attr" or expr[1][0] not in ("name", "attr"):
            return False
        found = self._project.static_path(function.module, expr[1])
        if found is None or found.kind != "class":
            return False
        return all(_ENUMS & self._project.classes[number].externs for number in found.ref)


def _masks(index: Expr, function: Function) -> Sequence[Expr]:
    """The comparisons that an index is: then a tensor is compared and a tensor is indexed."""
    tests = [index]
    if index[0] == "name":
        tests = [one.value for one in function.record.definitions.get(index[1], ())]
    return tests if all(one[0] == "cmp" and one[1][0] in _ORDERS for one in tests) else ()


def _add(expr: Expr, found: set[Expr]) -> None:
    key = _key(expr)
    if key is not None:
        found.add(key)


def _key(expr: Expr) -> Expr | None:
    """A variable or a field of one, wherever it stands."""
    if expr[0] == "name":
        return expr
    if expr[0] == "attr":
        return expr if expr[1][0] == "name" else None
    if expr[0] == "sub" and expr[1][0] in ("name", "attr") and expr[2][0] in ("const", "name"):
        return ("sub", expr[1], expr[2])
    return None
