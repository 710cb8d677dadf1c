"""What Python hands to kernels: views with gaps where a dense tensor is assumed, and sizes that say too little of them.

A kernel is a function that is compiled for the device, a launch a call `kernel[grid](...)` of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nosync_lint.finding import Hop
from nosync_lint.index.cuda_matchers import spell
from nosync_lint.index.records import CallSite, Definition, Expr, pack, row_of, unpack
from nosync_lint.link.cxx import Cxx
from nosync_lint.link.flow import reaching
from nosync_lint.link.heat import Roots
from nosync_lint.link.inference import Inference
from nosync_lint.link.names import At
from nosync_lint.link.project import Function, Project
from nosync_lint.link.wording import wording
from nosync_lint.models import load


class StridedArgument(NamedTuple):
    """A view with gaps that is handed to a C++ function which demands a dense tensor. `path` and `pos`: the check, or
    the call where `called` is true."""

    path: str
    pos: int
    called: bool
    argument: str
    view: str
    check: str
    hops: tuple[Hop, ...]


class AssumedStride(NamedTuple):
    """An address in a kernel that takes `stride` for dense rows of a view with gaps; the row stands in the kernel."""

    path: str
    row: int
    tensor: str
    view: str
    dimension: int
    hops: tuple[Hop, ...]


class ShortSpan(NamedTuple):
    """The bytes of a tensor, by its elements, that decide how wide the offsets of a strided access are."""

    path: str
    pos: int
    tensor: str
    span: str
    hops: tuple[Hop, ...]


class Launches:
    """Answers what is wrong with the arguments of kernels that are called from Python."""

    def __init__(self, project: Project, inference: Inference, roots: Roots, cxx: Cxx) -> None:
        data = load("views")
        self._project, self._inference, self._roots, self._cxx = project, inference, roots, cxx
        self._cuts: dict[str, int] = data["cuts"]
        self._words = data["words"]

    def strided_arguments(self) -> Iterator[StridedArgument]:
        """The checks that refuse a view with gaps, and the calls that hand it over."""
        checks: dict[tuple[str, int], StridedArgument] = {}
        for function, site, units in self._cxx.python_calls():
            at = At(function, site.seq, site.block)
            for unit in units:
                for position, expr in enumerate(site.call[2]):
                    check = self._cxx.demands_dense(unit, position)
                    view = self._view(expr, at) if check is not None else None
                    if check is None or view is None:
                        continue
                    path, row = function.module.file.name, row_of(site.call[4])
                    told = f"`{spell(check)}` demands that `{unit.parameters[position].name}` is dense"
                    handed = Hop(path, row, f"`{wording(expr)}` is {view}")
                    demanded = Hop(unit.path, check[3], told)
                    name = unit.parameters[position].name
                    yield StridedArgument(
                        path, site.call[4], True, wording(expr), view, spell(check), (handed, demanded)
                    )
                    checks.setdefault(
                        (unit.path, check[5]),
                        StridedArgument(unit.path, check[5], False, name, view, spell(check), (demanded, handed)),
                    )
        yield from (checks[key] for key in sorted(checks))

    def assumed_strides(self) -> Iterator[AssumedStride]:
        """Addresses that multiply a size and a stride of a view with gaps, where the next outer stride is not given."""
        found: dict[tuple[str, int], AssumedStride] = {}
        for function, site, kernel in self._launches():
            at = At(function, site.seq, site.block)
            given = _bound(kernel, site)
            for pointer, expr in given.items():
                view = self._view(expr, at)
                strides = {name: i for name, one in given.items() if (i := self._stride_of(one, expr)) is not None}
                if view is None:
                    continue
                for name, dimension in strides.items():
                    if dimension < 1 or dimension - 1 in strides.values():
                        continue
                    sizes = {one for one, what in given.items() if self._extent_of(what, expr) == dimension}
                    for row in _multiplied(kernel, name, sizes, pointer):
                        path = kernel.module.file.name
                        launch = Hop(function.module.file.name, row_of(site.call[4]), f"launched with {view}")
                        found.setdefault(
                            (path, row),
                            AssumedStride(path, row, wording(expr), view, dimension - 1, (launch,)),
                        )
        yield from (found[key] for key in sorted(found))

    def short_spans(self) -> Iterator[ShortSpan]:
        """Sizes in bytes, by the number of elements, that decide on narrow offsets for a tensor with strides."""
        found: dict[tuple[str, int], ShortSpan] = {}
        for function, site, kernel in self._launches():
            at = At(function, site.seq, site.block)
            given = _bound(kernel, site)
            for name, expr in given.items():
                for span in self._spans(expr, at):
                    tensor = span[2][1][1]
                    if any(self._stride_of(one, tensor) is not None for one in given.values()):
                        row, column, _, _ = unpack(span[2][4])
                        _, _, end_row, end_column = unpack(span[3][4])
                        path = function.module.file.name
                        hop = Hop(path, row_of(site.call[4]), f"decides `{name}` of `{kernel.record.name}`")
                        pos = pack(row, column, end_row, end_column)
                        found.setdefault((path, pos), ShortSpan(path, pos, wording(tensor), wording(span), (hop,)))
        yield from (found[key] for key in sorted(found))

    # -- launches --

    def _launches(self) -> Iterator[tuple[Function, CallSite, Function]]:
        """Every launch of a kernel of the project."""
        for function in self._project.functions:
            for site in function.record.calls:
                func = site.call[1]
                if func[0] != "sub" or func[1][0] not in ("name", "attr"):
                    continue
                value = self._project.static_path(function.module, func[1])
                numbers = value.ref if value is not None and value.kind == "function" else ()
                kernels = [one for one in (self._project.functions[n] for n in numbers) if self._roots.elsewhere(one)]
                if len(kernels) == 1:
                    yield function, site, kernels[0]

    # -- what an expression says of a tensor --

    def _view(self, expr: Expr, at: At) -> str | None:
        """How a tensor was cut so that gaps are left, in words; None where that is not known."""
        for _ in range(8):
            if expr[0] == "name":
                found, entry = reaching(at.function.record, expr[1], at.seq, at.block)
                if entry or len(found) != 1:
                    return None
                expr, at = found[0].value, At(at.function, found[0].seq, found[0].block)
            elif expr[0] in ("item", "elem") or (expr[0] == "sub" and expr[2][0] == "const"):
                expr = expr[1]
            elif expr[0] == "call" and expr[1][0] == "attr":
                name = expr[1][2]
                if name in self._words["same"]:
                    expr = expr[1][1]
                    continue
                return self._cut(expr, name, at) if name in self._cuts else None
            else:
                return None
        return None

    def _cut(self, call: Expr, name: str, at: At) -> str | None:
        receiver = call[1][1]
        function = self._inference.value(receiver, at)
        place = self._cuts[name] + (function.kind in ("module", "extern"))
        tensor = call[2][0] if function.kind in ("module", "extern") and call[2] else receiver
        dim = dict(call[3]).get(self._words["dim"]) or (call[2][place] if place < len(call[2]) else None)
        dimension = _number(dim)
        whole = self._inference.value(tensor, at)
        if whole.kind != "tensor" or dimension in (None, 0) or whole.rank == 1 or dimension == -(whole.rank or 0):
            return None
        return f"a part of `{wording(tensor)}` along dimension {dimension}"

    def _stride_of(self, expr: Expr, tensor: Expr) -> int | None:
        """The dimension whose stride of a tensor an expression is."""
        return self._measure(expr, tensor, self._words["stride"])

    def _extent_of(self, expr: Expr, tensor: Expr) -> int | None:
        """The dimension whose size of a tensor an expression is."""
        return self._measure(expr, tensor, self._words["extent"])

    @staticmethod
    def _measure(expr: Expr, tensor: Expr, words: list[str]) -> int | None:
        if expr[0] == "call" and expr[1][0] == "attr" and expr[1][1] == tensor and expr[1][2] in words:
            return _number(expr[2][0]) if len(expr[2]) == 1 else None
        if expr[0] == "sub" and expr[1][0] == "attr" and expr[1][1] == tensor and expr[1][2] in words:
            return _number(expr[2])
        return None

    def _spans(self, expr: Expr, at: At) -> Iterator[Expr]:
        """The products of elements and bytes of one tensor that a comparison with the narrow limit asks for."""
        if expr[0] != "cmp":
            return
        sides = (expr[2], *expr[3])
        values = [self._inference.value(side, at) for side in sides]
        limit = self._words["narrow_limit"]
        named = [self._constant(side, at) for side in sides]
        if not any(isinstance(v, int) and abs(v - limit) <= 1 for v in [*named, *(v.ref for v in values)]):
            return
        for side in sides:
            one = side
            if one[0] == "name":
                found, entry = reaching(at.function.record, one[1], at.seq, at.block)
                one = found[0].value if len(found) == 1 and not entry else one
            product = one[0] == "bin" and one[1] == "*"
            asked = product and self._asks(one[2], "elements") and self._asks(one[3], "bytes")
            if asked and one[2][1][1] == one[3][1][1]:
                yield one

    def _asks(self, expr: Expr, what: str) -> bool:
        return expr[0] == "call" and expr[1][0] == "attr" and expr[1][2] in self._words[what]

    def _constant(self, expr: Expr, at: At) -> int | None:
        """The number that an expression of literals gives, also through a name of the module."""
        if expr[0] == "name":
            found = at.function.module.index.functions[0].definitions.get(expr[1], ())
            return self._constant(found[0].value, at) if len(found) == 1 else None
        if expr[0] == "bin":
            left, right = self._constant(expr[2], at), self._constant(expr[3], at)
            if left is None or right is None:
                return None
            if expr[1] == "**":
                return int(left**right) if 0 <= right <= 64 else None
            if expr[1] == "<<":
                return left << right if 0 <= right <= 64 else None
            return {"+": left + right, "-": left - right, "*": left * right}.get(expr[1])
        return _number(expr)


def _number(expr: Expr | None) -> int | None:
    if expr is not None and expr[0] == "unary" and expr[1] == "-":
        inner = _number(expr[2])
        return -inner if inner is not None else None
    return expr[1] if expr is not None and expr[0] == "const" and type(expr[1]) is int else None


def _bound(kernel: Function, site: CallSite) -> dict[str, Expr]:
    """The argument expressions of a launch by the kernel's parameters."""
    names = [parameter.name for parameter in kernel.record.parameters]
    given = dict(zip(names, site.call[2], strict=False))
    given.update((name, value) for name, value in site.call[3] if name in names)
    return {name: value for name, value in given.items() if value[0] != "star"}


def _multiplied(kernel: Function, stride: str, sizes: set[str], pointer: str) -> Iterator[int]:
    """The rows where the kernel adds a product of a stride and one of the sizes to the pointer."""
    record = kernel.record
    definitions: list[Definition] = [one for found in record.definitions.values() for one in found]
    roots = [(one.value, one.row) for one in definitions] + [(site.call, row_of(site.call[4])) for site in record.calls]
    for root, row in roots:
        pending = [root]
        while pending:
            expr = pending.pop()
            if expr and expr[0] == "bin" and expr[1] == "+" and ("name", pointer) in (expr[2], expr[3]):
                factors = [set(_factors(part)) for part in _terms(expr)]
                if any(stride in names and names & sizes for names in factors):
                    yield row
            elif expr and expr[0] != "const":
                pending += [part for part in expr if isinstance(part, tuple)]


def _terms(expr: Expr) -> Iterator[Expr]:
    if expr[0] == "bin" and expr[1] == "+":
        yield from _terms(expr[2])
        yield from _terms(expr[3])
    else:
        yield expr


def _factors(expr: Expr) -> Iterator[str]:
    if expr[0] == "bin" and expr[1] == "*":
        yield from _factors(expr[2])
        yield from _factors(expr[3])
    elif expr[0] == "name":
        yield expr[1]
