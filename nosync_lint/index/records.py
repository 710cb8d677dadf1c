"""What `index` keeps of a Python file: plain tuples that hold no syntax tree and no path.

Expressions are nested tuples whose first item names the form:

    ("name", id)                        ("const", value)              ("attr", base, name)
    ("call", func, args, kwargs, pos)   ("sub", base, index, pos)     ("slice", low, high, step)
    ("tuple"|"list"|"set", items)       ("dict", keys, values)        ("star", value)
    ("bin", op, left, right)            ("unary", op, value)          ("bool", op, values)
    ("cmp", ops, left, rights)          ("ifexp", test, yes, no)      ("comp", form, element, ifs)
    ("fstr", parts)                     ("await", value)              ("lambda", function)
    ("buffer", value)                   a buffer of a module
    ("opaque",)

Definitions of local names use these besides: ("elem", iterable) for a loop variable, ("item", value, i) for
an unpacked position (from the end where it is negative), ("rest", value, start, stop) for the starred one (`stop`
0 or negative), ("enter", manager) for `with ... as` (under "" where nothing is bound and the manager is no call),
("aug", op, old, value), ("func", i), ("class", i), ("import", module, name, level). Comprehension variables are
renamed (`x` to `x~3`), so that a name has one meaning in a function and definitions can be searched by scanning.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from nosync_lint.source import Span

Expr = tuple[Any, ...]
OPAQUE: Expr = ("opaque",)
_LONGEST = 0xFFFFFF


def pack(row: int, column: int, end_row: int, end_column: int) -> int:
    """A place in one integer: a file holds a hundred thousand of them. Columns are UTF-8 byte offsets from 0."""
    rows = end_row - row
    if column | rows | end_column > _LONGEST:
        column, rows, end_column = min(column, _LONGEST), min(rows, _LONGEST), min(end_column, _LONGEST)
    return row << 72 | column << 48 | rows << 24 | end_column


def unpack(pos: int) -> tuple[int, int, int, int]:
    """The row, column, end row and end column that `pack` was given."""
    row = pos >> 72
    return row, pos >> 48 & _LONGEST, row + (pos >> 24 & _LONGEST), pos & _LONGEST


def row_of(pos: int) -> int:
    """The row of a packed place."""
    return pos >> 72


def rows_of(pos: int) -> tuple[int, int]:
    """The first and last row of a packed place."""
    return pos >> 72, (pos >> 72) + (pos >> 24 & _LONGEST)


class Parameter(NamedTuple):
    """`form`: "positional" (also by keyword), "only" (positional only), "keyword", "args" or "kwargs"."""

    name: str
    form: str
    annotation: Expr | None
    default: Expr | None


class Block(NamedTuple):
    """A run of statements entered together. `test` is the condition of an "if" or "while" block, `ends` says
    how control leaves it where it never falls out of its end: "raise", or "leave" (return, continue, break)."""

    parent: int
    form: str  # body, if, else, loop, with, try, except, finally, raise
    test: Expr | None
    ends: str
    last: int  # sequence number after its last statement


class Definition(NamedTuple):
    """A name bound to a value, at place `seq` of `block`."""

    seq: int
    block: int
    value: Expr
    row: int
    annotation: Expr | None = None


class AttributeWrite(NamedTuple):
    """`base.name = value`."""

    base: Expr
    name: str
    value: Expr
    seq: int
    block: int
    row: int
    annotation: Expr | None = None


class IndexWrite(NamedTuple):
    """`base[subscript] = value`, or with `op` the augmented form. `statement` is the place of the whole statement."""

    base: Expr
    subscript: Expr
    value: Expr
    op: str | None
    pos: int
    seq: int
    block: int
    statement: int


class CallSite(NamedTuple):
    """A call and where it stands. `call` is the ("call", ...) expression."""

    call: Expr
    seq: int
    block: int
    statement: int


class Site(NamedTuple):
    """Another place where a synchronisation could happen.

    `form`: "read" (an index read), "test" (a truth test), "format" (an f-string), "compare" (`in`, chains), "operate"
    (an operator that reads a number: `[x] * n`, `"%d" % n`).
    """

    form: str
    value: Expr
    pos: int
    seq: int
    block: int
    statement: int


class FunctionRecord(NamedTuple):
    """A function, a lambda, a class body or (number 0) the module body.

    `parent` is the enclosing function record, `owner` the class whose body it stands in, or -1. `flags` holds
    any of "async", "generator", "abstract", "stub" (nothing but docstring, pass, `...` or a raise).
    """

    name: str
    qualname: str
    form: str  # module, function, lambda, class
    parent: int
    owner: int
    parameters: tuple[Parameter, ...]
    returns: Expr | None
    decorators: tuple[Expr, ...]
    flags: frozenset[str]
    pos: int
    blocks: tuple[Block, ...]
    definitions: dict[str, tuple[Definition, ...]]
    attributes: tuple[AttributeWrite, ...]
    writes: tuple[IndexWrite, ...]
    calls: tuple[CallSite, ...]
    sites: tuple[Site, ...]
    results: tuple[Definition, ...]  # returned and yielded values
    globals: frozenset[str]
    reads: frozenset[str]  # names read anywhere in it


class ClassRecord(NamedTuple):
    """A class; `body` is the number of its body's function record, `methods` maps names to function numbers: to those
    of what reading the name gives, so not to setters."""

    name: str
    qualname: str
    scope: int
    bases: tuple[Expr, ...]
    keywords: tuple[tuple[str, Expr], ...]
    decorators: tuple[Expr, ...]
    body: int
    methods: dict[str, tuple[int, ...]]
    pos: int


class Pragma(NamedTuple):
    """A comment addressed to this tool. `form`: ignore, noqa, waiver (the comment of another project),
    hot, cold, off, on, skip-file, or "unknown".

    `alone`: nothing but comments stands on its line. `names`: codes and slugs as written. `until`: the last day on
    which it holds. `columns`: where the comment stands in its row, from 1, the end exclusive. `rows`: the first and
    last row of the statement that it stands in; of the block, for `off` behind its header; (0, 0) for an `off` that
    opens a region.
    """

    row: int
    form: str
    names: tuple[str, ...]
    reason: str
    alone: bool
    until: str = ""
    owner: str = ""
    columns: tuple[int, int] = (1, 1)
    rows: tuple[int, int] = (0, 0)


class Unreadable(NamedTuple):
    """What a file gives that cannot be used: why and what cures it, and the row where it is known."""

    reason: str
    row: int


class ModuleIndex(NamedTuple):
    """Everything later stages know of one Python file, or of the code of a notebook: then `cells` has the row where
    each cell begins with its number, and `unread` what is wrong with those that are left out."""

    functions: tuple[FunctionRecord, ...]
    classes: tuple[ClassRecord, ...]
    star_imports: tuple[tuple[str, int], ...]  # (module, level)
    pragmas: tuple[Pragma, ...]
    lines: int
    cells: tuple[tuple[int, int], ...] = ()
    unread: tuple[Unreadable, ...] = ()


def span_of(pos: int, lines: list[str]) -> Span:
    """The 1-based place in code points of a packed place, given the lines of its file."""
    row, column, end_row, end_column = unpack(pos)

    def points(at: int, offset: int) -> int:
        line = lines[at - 1] if at <= len(lines) else ""
        return offset if line.isascii() else len(line.encode()[:offset].decode(errors="ignore"))

    return Span(row, points(row, column) + 1, end_row, points(end_row, end_column) + 1)
