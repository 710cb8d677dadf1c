"""What stands inside expressions and functions: every sub-expression, with the statement that it is part of."""

from __future__ import annotations

from collections.abc import Iterator

from nosync_lint.index.records import Expr, FunctionRecord, pack
from nosync_lint.link.flow import holding

_ONE = {"attr": (1,), "sub": (1, 2), "slice": (1, 2, 3), "star": (1,), "elem": (1,), "enter": (1,), "await": (1,),
    "buffer": (1,), "item": (1,), "rest": (1,), "bin": (2, 3), "aug": (2, 3), "unary": (2,), "ifexp": (1, 2, 3),
    "comp": (2,), "call": (1,), "cmp": (2,), "case": (1,)}  # fmt: skip
_MANY = {"tuple": (1,), "list": (1,), "set": (1,), "dict": (1, 2), "bool": (2,), "cmp": (3,), "comp": (3,),
    "fstr": (1,), "call": (2,)}  # fmt: skip
"""By form, the places of an expression that hold an expression, and those that hold several."""


_LEAVES = frozenset({"name", "const", "opaque", "ellipsis", "lambda"})


def within(expr: Expr, calls: bool = True) -> Iterator[Expr]:
    """An expression and all that stands in it, outermost first. The bodies of lambdas are functions of their own, and
    without `calls` so are the calls in it, which are places of their own."""
    pending = [expr]
    while pending:
        one = pending.pop()
        form = one[0]
        if form == "call" and not calls and one is not expr:
            continue
        yield one
        if form in _LEAVES:
            continue
        if form == "attr":
            pending.append(one[1])
            continue
        for place in _ONE.get(form, ()):
            pending.append(one[place])
        for place in _MANY.get(form, ()):
            pending += one[place]
        if form == "call":
            pending += [value for _, value in one[3]]


def statements(record: FunctionRecord) -> Iterator[tuple[int, Expr]]:
    """The expressions of a function that are kept, each with the number of its statement; conditions with -1."""
    for definitions in record.definitions.values():
        yield from ((one.seq, one.value) for one in definitions)
    for attribute in record.attributes:
        yield attribute.seq, attribute.base
        yield attribute.seq, attribute.value
    for write in record.writes:
        yield from ((write.seq, part) for part in (write.base, write.subscript, write.value))
    yield from ((site.seq, site.call) for site in record.calls)
    yield from ((site.seq, site.value) for site in record.sites)
    yield from ((one.seq, one.value) for one in record.results)
    yield from ((-1, block.test) for block in record.blocks if block.test is not None)


def placed(record: FunctionRecord) -> Iterator[tuple[Expr, int, int, int]]:
    """The expressions that a function evaluates, each with its sequence number, block and packed place."""
    for call in record.calls:
        yield call.call, call.seq, call.block, call.call[4]
    for site in record.sites:
        yield site.value, site.seq, site.block, site.pos
    for write in record.writes:
        yield ("sub", write.base, write.subscript, write.pos), write.seq, write.block, write.pos
    for one in (*record.results, *(d for found in record.definitions.values() for d in found)):
        yield one.value, one.seq, one.block, pack(one.row, 0, one.row, 0)
    for written in record.attributes:
        yield written.value, written.seq, written.block, pack(written.row, 0, written.row, 0)


def tested(record: FunctionRecord, seq: int, block: int) -> Iterator[Expr]:
    """Everything that stands in the tests which hold at a place."""
    for test, _ in holding(record, seq, block):
        yield from within(test)


def is_empty(expr: Expr) -> bool:
    """Whether an expression is an empty literal, or what a constructor makes of one: there is nothing to copy."""
    if expr[0] == "call" and len(expr[2]) == 1:
        expr = expr[2][0]
    return expr[0] in ("list", "tuple") and not expr[1]
