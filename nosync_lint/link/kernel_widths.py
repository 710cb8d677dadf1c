"""Offsets into tensors that C++ code computes, or keeps, in 32 bits.

The type of an expression is told by declarations, and what it counts by how it is made: a *stride* is read from a
tensor, or is a parameter or member of such a name; an *id* is loaded from a tensor of ids; a *block* is a place in the
grid that goes by the name of a row. What comes from constants, from places in a block, or is the rest of a division is
small, and so are tables and what is counted by heads, experts, groups or channels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from nosync_lint.finding import Hop
from nosync_lint.index.cuda_matchers import root_name, spell
from nosync_lint.index.cuda_records import CudaParameter, Expr, Step
from nosync_lint.link.kernel_flow import Flow
from nosync_lint.link.kernel_sources import KernelSources, Place

DEEPEST = 24
NARROW = frozenset({
    "int", "unsigned", "unsignedint", "signed", "signedint", "int32_t", "uint32_t", "short", "unsignedshort", "int16_t",
    "uint16_t",
})  # fmt: skip
WIDE = frozenset({
    "int64_t", "uint64_t", "size_t", "ssize_t", "ptrdiff_t", "intptr_t", "uintptr_t", "long", "longlong",
    "unsignedlong", "unsignedlonglong", "longint", "longlongint", "unsignedlongint",
})  # fmt: skip
_STRIDE = re.compile(r"(?:^|_)strides?(?:_|$)|_(?:step|pitch)_?$|Stride", re.ASCII)
_SMALL_STRIDE = re.compile(r"table|indices|mask|freq|expert|head|lse|scale|weight|_h_?$", re.ASCII | re.IGNORECASE)
_IDS = re.compile(r"ind(?:ex|ices|ptr)|idx|slot|page|tok|loc|table|cu_?seq|start|offset", re.ASCII | re.IGNORECASE)
_SMALL_IDS = re.compile(r"lora|expert|head|group|batch|topk", re.ASCII | re.IGNORECASE)
_ROWS = re.compile(r"row|tok|slot|page|seq|loc|pos", re.ASCII | re.IGNORECASE)
_GRID = frozenset({"blockIdx", "threadIdx", "blockDim", "gridDim"})
_SAME = frozenset({"min", "max", "__ldg", "ldg", "abs", "__shfl_sync", "move"})


class NarrowedOffset(NamedTuple):
    """An offset at `row` of a file: `text` is `product` where it is computed in 32 bits, else what is made narrow.
    `hop` says where an address is computed from it; `type` is the 32-bit type. `meant`: a stride is narrow by a cast
    and where it is kept, and is not known to be multiplied in 32 bits."""

    path: str
    row: int
    text: str
    type: str
    product: bool
    hop: Hop
    meant: bool = False


class Sort(NamedTuple):
    """What an expression is: its type in one spelling, empty where that is not known, and what it counts."""

    type: str = ""
    counts: frozenset[str] = frozenset()

    @property
    def narrow(self) -> bool:
        return self.type in NARROW

    @property
    def wide(self) -> bool:
        return self.type in WIDE

    @property
    def pointer(self) -> bool:
        return self.type.endswith("*")

    @property
    def is_offset(self) -> bool:
        return "offset" in self.counts


class Widths:
    """Finds narrow offsets in functions."""

    def __init__(self, sources: KernelSources, flow: Flow) -> None:
        self._sources, self._flow = sources, flow
        self._readings: dict[tuple[str, int, str], _Reading] = {}

    def narrow_offsets(self, place: Place) -> Iterator[NarrowedOffset]:
        """The narrow offsets of a function, each once, by row."""
        found: dict[tuple[int, str], NarrowedOffset] = {}
        reading = self._reading(place)
        reached = [use for use in self._flow.summary(place).uses if use.kind == "address"] if reading.narrowed else []
        for one in reading.narrowed:
            for use in reached:
                if f"stride({one.dimension})" in use.origin and root_name(one.tensor) in use.origin[0]:
                    last = use.hops[-1]
                    hop = Hop(last.path, last.row, last.note)
                    meant = one.meant and not self._multiplied(last.path, last.row)
                    narrowed = NarrowedOffset(place.path, one.row, spell(one.value), one.type, False, hop, meant)
                    before = found.get((one.row, narrowed.text))
                    if before is None or before.meant:
                        found[one.row, narrowed.text] = narrowed
        for offset in reading.offsets:
            found.setdefault((offset.row, offset.text), offset)
        yield from (found[key] for key in sorted(found))

    def _reading(self, place: Place) -> _Reading:
        key = (place.path, place.function.span.row, place.function.name)
        if key not in self._readings:
            self._readings[key] = _Reading(self._sources, place)
        return self._readings[key]

    def _multiplied(self, path: str, row: int) -> bool:
        """Whether the address that is computed in a row comes from a stride that is multiplied in 32 bits."""
        functions = self._sources.files[path].functions
        held = [one for one in functions if one.span.row <= row <= one.span.end_row]
        return any(row in self._reading(Place(path, one)).multiplied for one in held)


class Narrowed(NamedTuple):
    """A stride of a tensor that becomes narrow in `row`. `meant`: by a cast, and it is kept so."""

    row: int
    tensor: Expr
    dimension: str
    value: Expr
    type: str
    meant: bool


class _Reading:
    """One function in text order: the types of its names, and the addresses that it computes."""

    def __init__(self, sources: KernelSources, place: Place) -> None:
        self._sources, self._path, self._function = sources, place.path, place.function
        self._constants = frozenset(self._function.template)
        self._types: dict[str, Sort] = {}
        self._made: dict[str, tuple[Expr, str, int]] = {}
        self.offsets: list[NarrowedOffset] = []
        self.narrowed: list[Narrowed] = []
        self.multiplied: set[int] = set()
        self._take(self._function.parameters)
        self._walk(self._function.steps)
        for inner in self._function.lambdas:
            self._take(inner.parameters)
            self._walk(inner.steps)

    def _take(self, parameters: tuple[CudaParameter, ...]) -> None:
        for one in parameters:
            if one.name:
                self._types[one.name] = Sort(self._plain(one.type), _by_name(one.name, self._plain(one.type)))

    def _walk(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            if step[0] == "let":
                self._let(step[1], self._plain(step[2]), step[3], step[4])
            for value in step[1:]:
                if isinstance(value, tuple):
                    self._addresses(value)

    def _let(self, name: str, spelled: str, value: Expr, row: int) -> None:
        sort = self._sort(value)
        if spelled.startswith("auto"):
            spelled = sort.type
        self._narrows(value, spelled, row)
        kept = sort.counts if spelled in NARROW | WIDE or not spelled else frozenset()
        if "block" in kept and not _ROWS.search(name):
            kept = kept - {"block"} | {"place"}
        if name in ("b", "bs"):
            kept -= {"id"}
        self._types[name] = Sort(spelled, kept)
        self._made[name] = (value, spelled, row)

    def _plain(self, spelled: str) -> str:
        """A type in one spelling, aliases resolved."""
        bare = _plain(spelled)
        base = bare.rstrip("*[]")
        if base in NARROW or base in WIDE or not base:
            return bare
        return _plain(self._sources.alias(self._path, base.rpartition("::")[2])) + bare[len(base) :]

    # -- what is found --

    def _addresses(self, root: Expr) -> None:
        """Looks at every address and every narrowing in an expression."""
        pending = [root]
        while pending:
            expr = pending.pop()
            form = expr[0] if expr else ""
            if form == "bin" and expr[1] in ("+", "-"):
                left, right = self._sort(expr[2]), self._sort(expr[3])
                if left.pointer != right.pointer:
                    self._offset(expr[3] if left.pointer else expr[2], expr[4])
            elif form == "assign" and expr[1] in ("+=", "-=") and self._sort(expr[2]).pointer:
                self._offset(expr[3], expr[4])
            elif form == "index" and len(expr[2]) == 1 and self._sort(expr[1]).pointer:
                self._offset(expr[2][0], expr[3])
            elif form == "assign" and expr[1] == "=":
                self._narrows(expr[3], self._sort(expr[2]).type, expr[4])
            elif form == "cast":
                self._narrows(expr[2], self._plain(expr[1]), expr[3], True)
            elif form == "list":
                for number, (field, value, row) in enumerate(expr[2]):
                    self._narrows(value, self._member(expr[1], field, number), row)
            pending += [part for part in expr if isinstance(part, tuple)]

    def _narrows(self, value: Expr, spelled: str, row: int, cast: bool = False) -> None:
        """Keeps a stride that becomes narrow: by a cast, or because what holds it is."""
        if not cast and spelled in WIDE and value[0] == "cast" and self._plain(value[1]) in NARROW:
            self._keep(value[2], self._plain(value[1]), row, False)  # narrow for nothing
        elif spelled in NARROW:
            self._keep(value, spelled, row, cast)

    def _keep(self, value: Expr, spelled: str, row: int, meant: bool) -> None:
        for tensor, dimension in _strides(value):
            self.narrowed.append(Narrowed(row, tensor, dimension, value, spelled, meant))

    def _offset(self, expr: Expr, row: int, depth: int = 0) -> None:
        """Looks for what is narrow among the terms of an offset from a pointer."""
        if depth > DEEPEST:
            return
        form = expr[0]
        if (form == "bin" and expr[1] in ("+", "-")) or form == "cond":
            self._offset(expr[2], row, depth + 1)
            self._offset(expr[3], row, depth + 1)
        elif form == "cast":
            inner, spelled = self._sort(expr[2]), self._plain(expr[1])
            if inner.is_offset and spelled in NARROW and not inner.narrow:
                self._found(expr[3], expr[2], spelled, False, row)
            else:
                self._offset(expr[2], row, depth + 1)
        elif form == "name" and expr[1] in self._made:
            value, spelled, made = self._made[expr[1]]
            inner = self._sort(value)
            if inner.is_offset and spelled in NARROW and inner.wide:
                self._found(made, value, spelled, False, row)
            else:
                self._offset(value, row, depth + 1)
        elif form == "bin" and expr[1] == "*":
            sort = self._sort(expr)
            if sort.narrow and "stride" in sort.counts and not self._is_small(expr):
                self.multiplied.add(row)
            cut = any(self._is_cut_stride(side) for side in expr[2:4]) and not self._is_small(expr)
            if sort.narrow and (sort.is_offset or cut):
                self._found(expr[4], expr, sort.type, True, row)
            else:
                self._offset(expr[2], row, depth + 1)
                self._offset(expr[3], row, depth + 1)

    def _is_cut_stride(self, expr: Expr) -> bool:
        """Whether a factor is a stride that was wide before."""
        value, spelled = expr, ""
        if expr[0] == "name" and expr[1] in self._made:
            value, spelled, _ = self._made[expr[1]]
        if value[0] == "cast":
            value, spelled = value[2], spelled or self._plain(value[1])
        before = self._sort(value)
        return (spelled in NARROW or spelled.startswith("auto")) and before.wide and "stride" in before.counts

    def _is_small(self, product: Expr) -> bool:
        return any(self._sort(side).counts <= {"small"} and self._sort(side).counts for side in product[2:4])

    def _found(self, row: int, expr: Expr, spelled: str, product: bool, used: int) -> None:
        hop = Hop(self._path, used, "an address is computed from it")
        self.offsets.append(NarrowedOffset(self._path, row, spell(expr), spelled, product, hop))

    # -- sorts --

    def _sort(self, expr: Expr, depth: int = 0) -> Sort:
        """The type of an expression, and what it counts."""
        if depth > DEEPEST or not expr:
            return Sort()
        form = expr[0]
        if form == "name":
            return self._of_name(expr[1])
        if form == "lit":
            return Sort(_literal(expr[1]), frozenset({"small"}))
        if form == "field":
            return self._of_field(expr, depth)
        if form == "index":
            base = self._sort(expr[1], depth + 1)
            return self._loaded(base, expr[1])
        if form == "cast":
            return Sort(self._plain(expr[1]), self._sort(expr[2], depth + 1).counts)
        if form == "bin":
            return self._of_operator(expr, depth)
        if form == "unary":
            inner = self._sort(expr[2], depth + 1)
            if expr[1] == "*":
                return self._loaded(inner, expr[2])
            return Sort(inner.type + "*") if expr[1] == "&" else inner if expr[1] in "+-" else Sort()
        if form == "cond":
            return _joined(self._sort(expr[2], depth + 1), self._sort(expr[3], depth + 1))
        return self._of_call(expr, depth) if form == "call" else Sort()

    def _of_name(self, name: str) -> Sort:
        if name in self._types:
            return self._types[name]
        if name in self._constants:
            return Sort("", frozenset({"small"}))
        member = self._sources.field_type(self._path, self._function.owner, name) if self._function.owner else ""
        if member:
            return Sort(self._plain(member), _by_name(name, self._plain(member)))
        return Sort("", frozenset({"small"}))

    def _of_field(self, expr: Expr, depth: int) -> Sort:
        if expr[1][0] == "name" and expr[1][1] in _GRID:
            return Sort("unsigned", frozenset({"block" if expr[1][1] == "blockIdx" else "small"}))
        spelled = self._plain(self._sources.field_type(self._path, self._sort(expr[1], depth + 1).type, expr[2]))
        return Sort(spelled, _by_name(expr[2], spelled))

    def _of_operator(self, expr: Expr, depth: int) -> Sort:
        operator = expr[1]
        left, right = self._sort(expr[2], depth + 1), self._sort(expr[3], depth + 1)
        if left.pointer or right.pointer:
            return left if left.pointer else right
        spelled = _promoted(left.type, right.type)
        if operator in ("%", "&"):
            return Sort(spelled, frozenset({"small"}))
        if operator in ("/", ">>"):
            return Sort(spelled, left.counts)
        if operator in ("+", "-"):
            return Sort(spelled, left.counts | right.counts)
        if operator != "*":
            return Sort(spelled)
        counts = (left.counts | right.counts) - {"small"}
        one, other = left.counts - {"small"}, right.counts - {"small"}
        moved = ("stride" in one and other & {"id", "block"}) or ("stride" in other and one & {"id", "block"})
        placed = ("id" in one and other & {"stride", "extent"}) or ("id" in other and one & {"stride", "extent"})
        if moved or placed:
            counts |= {"offset"}
        return Sort(spelled, counts or frozenset({"small"}))

    def _of_call(self, expr: Expr, depth: int) -> Sort:
        callee, arguments = expr[1], expr[2]
        name = (callee[1] if callee[0] == "name" else callee[2] if callee[0] == "field" else "").rpartition("::")[2]
        if callee[0] == "field" and name in ("stride", "size", "numel"):
            return Sort("int64_t", frozenset({"stride" if name == "stride" else "extent"}))
        if callee[0] == "field" and name in ("data_ptr", "mutable_data_ptr", "const_data_ptr", "data"):
            return Sort("void*")
        if name in _SAME and arguments:
            first = self._sort(arguments[0], depth + 1)
            if "ldg" in name:
                return self._loaded(first, arguments[0])
            return _joined(first, self._sort(arguments[-1], depth + 1))
        if self._plain(name) in NARROW | WIDE and len(arguments) == 1:
            return Sort(name, self._sort(arguments[0], depth + 1).counts)
        found = self._sources.functions(self._path, name, self._function.owner) if name else []
        returns = {self._plain(one.function.returns) for one in found}
        return Sort(returns.pop() if len(returns) == 1 else "")

    def _loaded(self, base: Sort, expr: Expr) -> Sort:
        """What stands in memory: an id where it is an integer and the name of the table says so."""
        spelled = base.type[:-2] if base.type.endswith("[]") else base.type[:-1] if base.pointer else ""
        name = _last_name(expr)
        if base.pointer and spelled in NARROW | WIDE and _IDS.search(name) and not _SMALL_IDS.search(name):
            return Sort(spelled, frozenset({"id"}))
        return Sort(spelled, frozenset({"stride"}) if base.pointer and _STRIDE.search(name) else frozenset())

    def _member(self, spelled: str, field: str, number: int) -> str:
        struct = self._sources.struct(self._path, spelled) if spelled else None
        if struct is None:
            return ""
        if not field:
            return self._plain(struct.fields[number].type) if number < len(struct.fields) else ""
        return self._plain(self._sources.field_type(self._path, spelled, field))


def _plain(spelled: str) -> str:
    """A type without `const`, references and the namespace of the standard library."""
    bare = spelled.replace("const", "").replace("std::", "").replace("__restrict__", "").rstrip("&")
    return bare.removeprefix("volatile")


def _by_name(name: str, spelled: str) -> frozenset[str]:
    """What a parameter or a member counts."""
    if spelled not in NARROW | WIDE:
        return frozenset()
    if _STRIDE.search(name):
        return frozenset() if _SMALL_STRIDE.search(name) else frozenset({"stride"})
    return frozenset({"extent"})


def _literal(text: str) -> str:
    if "." in text or text in ("true", "false"):
        return ""
    return "int64_t" if text.lower().rstrip("u").endswith("l") else "int"


def _promoted(one: str, other: str) -> str:
    """The type of an operation: wide where one side is, not known where one side is not."""
    if one in WIDE or other in WIDE:
        return one if one in WIDE else other
    if one in NARROW and other in NARROW:
        return "unsigned" if "u" in (one[0], other[0]) else "int"
    return ""


def _joined(one: Sort, other: Sort) -> Sort:
    spelled = one.type if one.type == other.type else _promoted(one.type, other.type)
    return Sort(spelled, one.counts | other.counts)


def _last_name(expr: Expr) -> str:
    """The name of a table: `rows` of `p.rows`, `p.rows + i` and `&rows[i]`."""
    while expr[0] in ("bin", "unary", "index", "cast", "call"):
        if expr[0] == "call" and not expr[2]:
            return ""
        expr = expr[2][0] if expr[0] == "call" else expr[1] if expr[0] == "index" else expr[2]
    return str(expr[2] if expr[0] == "field" else expr[1] if expr[0] == "name" else "")


def _strides(expr: Expr) -> Iterator[tuple[Expr, str]]:
    """The strides of tensors that a value is made of, not those inside of a nested narrowing: tensor and dimension."""
    pending = [expr]
    while pending:
        one = pending.pop()
        if one[0] == "call" and one[1][0] == "field" and one[1][2] == "stride" and len(one[2]) == 1:
            yield one[1][1], spell(one[2][0])
        elif (one[0] == "bin" and one[1] in ("+", "-", "*")) or one[0] == "cond":
            pending += one[2:4]
        elif one[0] == "cast" and _plain(one[1]) not in NARROW:
            pending.append(one[2])
