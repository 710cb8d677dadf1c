"""What `index` keeps of a C++ or CUDA file: plain tuples that hold no syntax tree and no path.

Expressions are nested tuples whose first item names the form; `row` is 1-based:

    ("name", text, targs)                 a possibly qualified name, its template arguments apart
    ("lit", text)                         ("field", base, name, targs)     `a.b`, `a->b`
    ("text", value)                       a string, where it is short
    ("index", base, indices, row)         ("call", callee, args, row, launch, pos)
    ("cast", type, value, row)            ("bin", op, left, right, row)
    ("unary", op, value, row)             ("cond", test, yes, no)
    ("list", type, items, row)            `P{.a = x, y}`; an item is (field or "", value, row)
    ("assign", op, target, value, row)    ("lambda", i)                    the i-th lambda of the function
    ("opaque",)                           whatever the other forms do not describe, or lies under an error

A body is a tuple of steps in text order, branches and loops flattened:

    ("let", name, type, value, row)       ("bind", names, value, row)      a structured binding
    ("do", value, row)                    ("test", value, row, fails)      `fails`: the branch throws
    ("return", value, row)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from nosync_lint.index.records import Pragma
from nosync_lint.source import Span

Expr = tuple[Any, ...]
Step = tuple[Any, ...]
OPAQUE: Expr = ("opaque",)


class CudaParameter(NamedTuple):
    """A parameter. `type` ends in one `*` per pointer level; `pack` marks a parameter pack."""

    name: str
    type: str
    pack: bool

    @property
    def is_tensor(self) -> bool:
        """Whether a tensor arrives here: by value, by reference, optional, or a list of them."""
        return "Tensor" in self.type and "*" not in self.type

    @property
    def is_optional(self) -> bool:
        return self.is_tensor and ("ptional" in self.type or "Maybe" in self.type)


class Matched(NamedTuple):
    """One argument of a matcher: `name` is the variable it is read from, `text` the argument as written."""

    name: str
    text: str
    row: int


class Matcher(NamedTuple):
    """A matcher chain, `X({shape}).with_strides({..}).verify(a).verify(b)` or `X(a).shape({..}).strides({..})`.

    `strides` is None without a stride list, which demands contiguity. `dtypes` is None where the chain says
    nothing of the element type, and empty where it only ties it to a symbol. `pos` is its packed place.
    """

    name: str
    pos: int
    shape: tuple[str, ...]
    strides: tuple[str, ...] | None
    dtypes: tuple[str, ...] | None
    device: bool
    arguments: tuple[Matched, ...]


class CudaLambda(NamedTuple):
    """A lambda inside a function; its free names are those of the function."""

    parameters: tuple[CudaParameter, ...]
    steps: tuple[Step, ...]


class CudaGuard(NamedTuple):
    """A run of code that is not always met. `form`: "if" or "else" (of `test`), "define" or "undefined" (`test` is the
    condition of the preprocessor as ("text", ..)), or "static" (an initial value that is computed once). `leaves`: it
    never falls out of its end. `pos` is its packed place."""

    form: str
    test: Expr
    pos: int
    leaves: bool


class CudaFunction(NamedTuple):
    """A function with a body: a host function, a kernel or (`device`) a device function. `at` is the place of its
    name. A macro before a body, as `PYBIND11_MODULE(name, m) {..}`, is a function too: the words in its brackets stand
    as types."""

    name: str
    owner: str
    template: tuple[str, ...]
    returns: str
    parameters: tuple[CudaParameter, ...]
    kernel: bool
    span: Span
    at: Span
    steps: tuple[Step, ...]
    lambdas: tuple[CudaLambda, ...]
    device: bool = False

    @property
    def tensors(self) -> tuple[CudaParameter, ...]:
        return tuple(parameter for parameter in self.parameters if parameter.is_tensor)


class CudaField(NamedTuple):
    name: str
    type: str
    row: int


class CudaStruct(NamedTuple):
    """A struct or class: its data members in order (those of its bases are not repeated) and its bases."""

    name: str
    fields: tuple[CudaField, ...]
    bases: tuple[str, ...]
    row: int


class CudaConstant(NamedTuple):
    """A constant of a namespace or a class with its value; `owner` is the class or empty."""

    owner: str
    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class CudaIndex:
    """One C++ or CUDA file. `calls` stand outside functions; `untrusted` holds the rows of regions that did not parse
    and were left out."""

    includes: tuple[str, ...] = ()
    functions: tuple[CudaFunction, ...] = ()
    structs: tuple[CudaStruct, ...] = ()
    constants: tuple[CudaConstant, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    pragmas: tuple[Pragma, ...] = ()
    untrusted: tuple[int, ...] = ()
    guards: tuple[CudaGuard, ...] = ()
    calls: tuple[Expr, ...] = ()
