"""Arguments for the functions of a sample: what the annotation says, else what the name says, else a tensor.

Tensors lie on the device, as the linter takes those to do that a function receives and nobody in the project passes;
names that are conventions for the host are kept on the host.
"""

from __future__ import annotations

import collections
import collections.abc
import inspect
import itertools
import sys
import types
import typing
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from benchmarks.oracle.programs import Missing, Unavailable
from benchmarks.oracle.runtime import numpy, torch

SIZE = 8
"""What constructors are given for an int, so that smaller ints index what they make."""

HOST = ("*_cpu", "cpu_*", "host_*", "*_host")
PINNED = ("*_pinned", "pinned_*", "staged", "staging")
ARRAYS = ("*_np", "np_*")
MASKS = ("mask", "*_mask", "masks", "keep", "valid", "is_*", "done", "finished")
INTEGERS = (
    "idx", "*_idx", "index", "*_index", "indices", "*_indices", "ids", "*_ids", "rows", "*_rows", "slots", "*_slots",
    "pages", "*_pages", "positions", "*_positions", "lengths", "*_lengths", "labels", "tokens", "counts",
)  # fmt: skip
NUMBERS = ("n", "num_*", "*_size", "size", "count", "*_count", "width", "height", "dim", "step", "start", "stop")
MAX_DEPTH = 4


class Choice(NamedTuple):
    """What the arguments of one run are made of."""

    tensors: tuple[str, ...]
    """A kind for each parameter that takes a tensor, the last one for all others."""
    number: int = 2
    flag: bool = True
    optional: bool = False
    """Whether parameters get a value that may be None or have a default."""
    read: int = 0
    """What small reads of device memory give."""
    extent: int = SIZE
    """Of every dimension of a tensor, and of a list."""


KINDS: dict[str, tuple[int, str]] = {
    "vector": (1, "float32"),
    "matrix": (2, "float32"),
    "integers": (1, "int64"),
    "cube": (3, "float32"),
    "scalar": (0, "float32"),
    "integer matrix": (2, "int64"),
    "mask": (1, "bool"),
    "integer scalar": (0, "int64"),
}
"""Rank and dtype of the tensors that are tried, likeliest first."""

TYPED = {"LongTensor": "int64", "IntTensor": "int32", "BoolTensor": "bool", "FloatTensor": "float32"}
SINGLE = tuple((kind,) for kind in KINDS)
PAIRS = tuple(itertools.permutations(list(KINDS)[:6], 2))
OTHERWISE = (
    {"read": 1},
    {"flag": False, "optional": True},
    {"flag": False, "optional": True, "read": 1},
    {"number": SIZE, "optional": True},
    {"number": 0},
    {"extent": 4},
    {"extent": 2, "number": 1},
)


def choices() -> Iterator[Choice]:
    """The runs to try, likeliest first."""
    for kinds in (*SINGLE, *PAIRS):
        yield Choice(kinds)
    for other in OTHERWISE:
        for kinds in SINGLE[:4]:
            yield Choice(kinds)._replace(**other)


class Arguments:
    """Makes the arguments of one run."""

    def __init__(self, choice: Choice) -> None:
        self.choice = choice
        self.tensors = 0

    def call(self, function: Callable[..., Any], building: bool = False) -> Any:
        """Call a function with arguments of its own. Raises `Unavailable` where one cannot be made."""
        positional, named = self.of(function, building)
        return function(*positional, **named)

    def of(
        self, function: Callable[..., Any], building: bool = False, depth: int = 0
    ) -> tuple[list[Any], dict[str, Any]]:
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError) as error:
            raise Unavailable(f"its parameters are not known: {error}") from error
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for parameter in signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            if parameter.default is not parameter.empty and not (self.choice.optional and depth == 0):
                if parameter.kind is parameter.POSITIONAL_ONLY:
                    positional.append(parameter.default)
                continue
            annotation = _resolved(parameter.annotation, function)
            try:
                value = self.value(parameter.name, annotation, building, depth)
            except Unavailable as error:
                value = Missing(str(error))
            if parameter.kind is parameter.KEYWORD_ONLY:
                named[parameter.name] = value
            else:
                positional.append(value)
        return positional, named

    def value(self, name: str, annotation: Any, building: bool = False, depth: int = 0) -> Any:
        """A value for a parameter, an element or a field."""
        if depth > MAX_DEPTH:
            raise Unavailable(f"`{name}` is nested too deeply")
        if annotation in (inspect.Parameter.empty, typing.Any, object) or isinstance(annotation, typing.TypeVar | str):
            return self._by_name(name, building)
        if annotation is None or annotation is type(None):
            return None
        if isinstance(annotation, Missing):
            raise Unavailable(f"`{name}`: {annotation.why}")
        origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is typing.Annotated:
            return self.value(name, inner[0], building, depth)
        if origin is typing.Literal:
            return inner[0]
        if origin in (typing.Union, types.UnionType):
            return self._of_union(name, inner, building, depth)
        return self._of_type(name, origin or annotation, inner, building, depth)

    def _of_union(self, name: str, inner: tuple[Any, ...], building: bool, depth: int) -> Any:
        if type(None) in inner and not self.choice.optional:
            return None
        wanted = [one for one in inner if one is not type(None)]
        tensor = next((one for one in wanted if one is torch.Tensor), wanted[0])
        return self.value(name, tensor, building, depth)

    def _of_type(self, name: str, kind: Any, inner: tuple[Any, ...], building: bool, depth: int) -> Any:
        def element(of: Any) -> Any:
            return self.value(name, of, building, depth + 1)

        if _is_tensor(kind):
            return self._tensor(name, TYPED.get(getattr(kind, "__name__", "")))
        if kind in _SIMPLE:
            return _SIMPLE[kind](self, name, building)
        if kind is tuple:
            elements = [one for one in inner if one is not Ellipsis] or [int]
            return tuple(element(one) for one in (elements * 2 if Ellipsis in inner else elements))
        if kind in _MAPPINGS:
            key, value = inner if len(inner) == 2 else (str, torch.Tensor)
            filled = {element(key): element(value)}
            return collections.defaultdict(int, filled) if kind is collections.defaultdict else filled
        if kind in _SEQUENCES:
            of = inner[0] if inner else int
            flags = [True] * self.choice.extent
            values = [0, 1, 2] if of is int else flags if of is bool else [element(of) for _ in range(3)]
            return _SEQUENCES[kind](values)
        if kind in (collections.abc.Callable, Callable):
            return lambda *given, **named: given[0] if given else None
        if kind in (numpy.ndarray, numpy.typing.NDArray):
            return self._array()
        return self._instance(name, kind, depth)

    def _instance(self, name: str, kind: Any, depth: int) -> Any:
        if not isinstance(kind, type):
            raise Unavailable(f"`{name}`: nothing is known of {kind}")
        if issubclass(kind, torch.optim.Optimizer):
            return _optimizer() if kind is torch.optim.Optimizer else _optimizer(kind)
        if kind is torch.nn.Module:
            return _layer()
        if kind.__module__ == "builtins":
            raise Unavailable(f"`{name}`: nothing is known of {kind.__name__}")
        return self.instance(kind, depth + 1)

    def instance(self, kind: type, depth: int = 0) -> Any:
        """An instance of a class; modules are on the device. Raises `Unavailable`."""
        if inspect.isabstract(kind):
            raise Unavailable(f"{kind.__name__} is abstract")
        positional, named = self.of(kind, True, depth)
        made = kind(*positional, **named)
        return made.to("cuda") if isinstance(made, torch.nn.Module) else made

    def _by_name(self, name: str, building: bool) -> Any:
        if name in ("device", "dev") or name.endswith("_device"):
            return torch.device("cuda")
        if name.endswith("dtype"):
            return torch.float32
        if _is_named(name, ARRAYS):
            return self._array()
        if _is_named(name, NUMBERS):
            return SIZE if building else self.choice.number
        made = next((make for pattern, make in _OBJECTS.items() if fnmatchcase(name, pattern)), None)
        return self._tensor(name, None) if made is None else made()

    def _shape(self) -> tuple[list[int], str]:
        """Shape and dtype of the next tensor or array."""
        rank, dtype = KINDS[self.choice.tensors[min(self.tensors, len(self.choice.tensors) - 1)]]
        self.tensors += 1
        return [self.choice.extent] * rank, dtype

    def _tensor(self, name: str, dtype: str | None) -> Any:
        shape, otherwise = self._shape()
        if dtype is None and _is_named(name, MASKS):
            dtype = "bool"
        if dtype is None and _is_named(name, INTEGERS):
            dtype = "int64"
        if dtype is not None:
            shape = shape or [self.choice.extent]  # what is named after its elements has some
        made = torch.zeros(shape, dtype=getattr(torch, dtype or otherwise))
        if _is_named(name, PINNED):
            return made.pin_memory()
        return made if _is_named(name, HOST) else made.to("cuda")

    def _array(self) -> Any:
        """Whole numbers, which index as well, and are no singular matrix."""
        shape, _ = self._shape()
        return numpy.eye(shape[0], dtype=numpy.int64) if len(shape) == 2 else numpy.zeros(shape, dtype=numpy.int64)


_SIMPLE: dict[Any, Callable[[Arguments, str, bool], Any]] = {
    int: lambda one, name, building: SIZE if building else one.choice.number,
    float: lambda one, name, building: 0.5,
    bool: lambda one, name, building: one.choice.flag,
    str: lambda one, name, building: "cuda" if "device" in name else "",
    bytes: lambda one, name, building: b"",
    torch.device: lambda one, name, building: torch.device("cuda"),
    torch.dtype: lambda one, name, building: torch.float32,
    torch.Size: lambda one, name, building: torch.Size([SIZE]),
    torch.Generator: lambda one, name, building: torch.Generator(device="cuda"),
}
_SEQUENCES: dict[Any, Callable[[list[Any]], Any]] = {
    list: list,
    set: set,
    frozenset: frozenset,
    collections.deque: collections.deque,
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Iterable: list,
    collections.abc.Collection: list,
    collections.abc.Iterator: iter,
    collections.abc.Generator: iter,
}
_MAPPINGS = (dict, collections.defaultdict, collections.abc.Mapping, collections.abc.MutableMapping)


def _resolved(annotation: Any, function: Callable[..., Any]) -> Any:
    """An annotation that stands as text, evaluated where the function stands; the text where that fails."""
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    if not isinstance(annotation, str):
        return annotation
    inner = inspect.unwrap(function)
    scope = getattr(inner, "__globals__", None) or vars(sys.modules[inner.__module__])
    try:
        return eval(annotation, dict(scope))
    except Exception:  # a name that only a type checker sees
        return annotation


def _is_tensor(kind: Any) -> bool:
    if isinstance(kind, type) and issubclass(kind, torch.Tensor):
        return True
    return isinstance(kind, type(torch.LongTensor))


def _is_named(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _layer() -> Any:
    """A module on the device whose parameters have gradients."""
    layer = torch.nn.Linear(SIZE, SIZE, device="cuda")
    for parameter in layer.parameters():
        parameter.grad = torch.zeros_like(parameter)
    return layer


def _optimizer(kind: Any = torch.optim.SGD) -> Any:
    return kind(_layer().parameters(), lr=0.1)


def _scaler() -> Any:
    """A gradient scaler that has scaled a loss."""
    scaler = torch.amp.GradScaler("cuda")
    scaler.scale(torch.zeros((), device="cuda"))
    return scaler


_OBJECTS: dict[str, Callable[[], Any]] = {
    "optimizer": _optimizer,
    "*_optimizer": _optimizer,
    "scaler": _scaler,
    "*_scaler": _scaler,
    "model": _layer,
    "module": _layer,
}
"""What everybody calls by these names."""
