"""What tensor operations give back, by the rows of `models/values.toml`: place, rank and dtype class of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from nosync_lint.link.dtypes import Dtypes, element_of, of_data, promoted
from nosync_lint.link.values import ACCELERATED, HOST, MAYBE_PINNED, NUMBERS, UNKNOWN, Value, alternatives, vote
from nosync_lint.models import any_of, load

Keywords = Mapping[str, Value]
_INT, _STR = Value("int"), Value("str")
_SIZES = Value("tuple", items=Value("int"))


class Operations:
    """The rows of the model file, ready to be asked."""

    def __init__(self) -> None:
        data = load("values")
        self.types: dict[str, Any] = data["types"]
        self.builtins: dict[str, str] = data["builtins"]
        self.attributes: dict[str, str] = data["attributes"]
        self.conventions: dict[str, list[str]] = data["conventions"]
        modules = data["modules"]
        self.accelerators = frozenset(modules["accelerators"])
        self.hosts = frozenset(modules["hosts"])
        self.dtypes = Dtypes(data)
        self.functions: dict[str, dict[str, Any]] = {}
        self.methods: dict[str, dict[str, Any]] = {}
        for row in data["operation"]:
            for name in row["names"]:
                if row["form"] != "method":
                    self.functions.update({f"{module}.{name}": row for module in modules["functions"]})
                if row["form"] != "function":
                    self.methods[name] = row
        self.module_type = f"{modules['tensors']}.nn.Module"
        self.device_type = f"{modules['tensors']}.device"
        self._views = frozenset(modules["views"])
        kinds = ("mask", "host", "numpy", "count", "device", "integers")
        self._announces = {kind: any_of(self.conventions[kind]) for kind in kinds}
        self._holding: dict[str, str] = self.types["holding"]
        self._tensor_methods = frozenset(data["types"]["only_tensors_have"])

    # -- places --

    def device(self, value: Value | None) -> str | None:
        """The residency that a `device=` argument names. An unresolved one means the accelerator."""
        if value is None or value.kind == "none":
            return None
        if value.kind in ("str", "device") and value.ref is not None:
            places = {self._named_place(str(text)) for text in alternatives(value.ref)}
            if len(places) == 1:
                return places.pop()
            return None if "host" in places else "parametrised"
        if value.kind == "int":
            return "device"
        return value.where or "parametrised"

    def _named_place(self, text: str) -> str:
        name = text.partition(":")[0]
        if name in self.hosts:
            return "host"
        if name in self.accelerators:
            return "device"
        return "meta" if name == "meta" else "parametrised"

    @cache  # noqa: B019 - one instance lives as long as the run
    def convention(self, name: str) -> str | None:
        """What a name announces: something of the "host" or "numpy", a "device", "count", "integers", "mask", None."""
        for kind in ("mask", "host", "numpy", "count", "device", "integers"):
            if self._announces[kind](name):
                return kind
        return None

    # -- results --

    def function(self, dotted: str, args: Sequence[Value], kwargs: Keywords) -> Value | None:
        """The result of an external function, or None where no row knows it."""
        if dotted == self.device_type:
            return Value("device", where=self.device(args[0]) if args else None, ref=args[0].ref if args else None)
        row = self.functions.get(dotted)
        if row is None:
            return None
        operand = args[0] if args else kwargs.get("input", UNKNOWN)
        return self._result(dotted.rpartition(".")[2], row, operand, args, kwargs)

    def method(self, name: str, operand: Value, args: Sequence[Value], kwargs: Keywords) -> Value | None:
        """The result of a method of a tensor, or None where no row knows it."""
        row = self.methods.get(name)
        if row is None:
            return None
        result = self._result(name, row, operand, [operand, *args], kwargs)
        kept = name in self._views or name.endswith("_")
        if operand.where in MAYBE_PINNED and result.where == "host" and kept:
            return result._replace(where=operand.where)
        return result

    def knows(self, dotted: str) -> bool:
        """Whether `function` has a row for an external function."""
        return dotted in self.functions or dotted == self.device_type

    def is_factory(self, dotted: str) -> bool:
        """Whether an external function makes a tensor where `device=` or the ambient device says."""
        row = self.functions.get(dotted)
        return row is not None and row.get("where") in ("argument", "data")

    def constructed(self, dotted: str, declared: Value, data: Sequence[Value]) -> Value | None:
        """What calling an external tensor class gives, where that says more than the class: data is put on the host."""
        made = self.types["constructors"]
        if dotted not in made["host"] and not (dotted in made["data"] and all(map(_is_data, data))):
            return None
        rank = _data_rank(data[0]) if len(data) == 1 and data[0].kind not in NUMBERS else _shape_rank(list(data), {})
        return declared._replace(where="host", rank=rank, dense=True)

    def holds(self, dotted: str) -> str | None:
        """The switch of an external class whose instances keep the tensors they are made of; None for other classes."""
        return next((switch for pattern, switch in self._holding.items() if fnmatchcase(dotted, pattern)), None)

    def makes_group(self, dotted: str) -> bool:
        """Whether an external function makes a process group."""
        return dotted in self.conventions["group_factories"]

    def passes(self, name: str) -> bool:
        """Whether a method of an object that is not known hands its first argument through."""
        return name in self.conventions["passes"]

    def has_method(self, name: str) -> bool:
        """Whether tensors have a method of this name that some row knows."""
        return name in self.methods

    def takes_tensor(self, dotted: str) -> bool:
        """Whether an external function is one of tensors: it computes something of its first argument, a tensor."""
        row = self.functions.get(dotted)
        return row is not None and row.get("where") in ("operand", "view")

    def only_tensors_have(self, name: str) -> bool:
        """Whether a method is one that nothing but a tensor has."""
        return name in self._tensor_methods

    def moves(self, name: str) -> bool:
        """Whether a method gives back its receiver in another place."""
        row = self.methods.get(name)
        return row is not None and row.get("where") in ("move", "host", "device", "pinned")

    def may_imply_tensor(self, name: str) -> bool:
        """Whether `implies_tensor` can be true for some arguments."""
        row = self.methods.get(name)
        return row is not None and (bool(row.get("only")) or row.get("where") == "move")

    def implies_tensor(self, name: str, args: Sequence[Value], kwargs: Keywords) -> bool:
        """Whether only a tensor answers to this call: a method nothing else has, or `to` with a dtype."""
        row = self.methods.get(name)
        if row is None:
            return False
        return bool(row.get("only")) or (name == "to" and any(self.dtypes.names(v) for v in [*args, *kwargs.values()]))

    def attribute(self, name: str, operand: Value) -> Value | None:
        """An attribute of a tensor."""
        form = self.attributes.get(name)
        if form is None:
            return None
        if form == "same":
            return operand
        if form == "sizes":
            return _SIZES
        if form == "device":
            return Value("device", where=operand.where or "parametrised", trust=operand.trust)
        if form == "dtype":
            return Value("dtype", dtype=operand.dtype, ref=operand.ref)
        return Value(form)

    def of_any_tensor(self, name: str) -> Value | None:
        """An attribute that tensors and arrays have and little else: their shape, dtype and device."""
        form = self.attributes.get(name)
        return self.attribute(name, Value("tensor", trust=1)) if form in ("sizes", "device", "dtype") else None

    def binary(self, op: str, left: Value, right: Value) -> Value:
        """An arithmetic operator of which one side is a tensor, or of two plain values."""
        tensors = [value for value in (left, right) if value.kind == "tensor"]
        if not tensors:
            return _plain(op, left, right)
        where, told = _operand_where(tensors)
        rank = _broadcast(left, right)
        dtype = "float" if op == "/" else promoted([left, right])
        if dtype is None and op in _ARITHMETIC and "float" not in (left.kind, right.kind) and _has_number(left, right):
            dtype = "number"  # an int or a float, and no mask
        if op == "@":
            rank = None
        trust = told.trust
        if len(tensors) == 1 and not (left.known and right.known):
            trust = min(trust, 1)
        return Value("tensor", where, rank, dtype, self.dtypes.binary(op, left, right), trust=trust, why=told.why)

    def compare(self, left: Value, right: Value) -> Value:
        """`==`, `<` and the like: a bool tensor where a tensor takes part, and not known where one may."""
        if "str" in (left.kind, right.kind) or "none" in (left.kind, right.kind):
            return Value("bool")  # no element is one
        result = self.binary("+", left, right)
        if result.kind == "tensor":
            return result._replace(dtype="bool", ref="bool")
        return UNKNOWN if "unknown" in (left.kind, right.kind) else Value("bool")

    def _result(
        self, name: str, row: Mapping[str, Any], operand: Value, args: Sequence[Value], kwargs: Keywords
    ) -> Value:
        result = row.get("result", "tensor")
        simple = _SIMPLE.get(result)
        if simple is not None:
            return simple
        if result == "sizes":
            return _INT if len(args) > 1 or "dim" in kwargs else _SIZES
        if result == "number":
            return Value(operand.dtype or "number")
        where, trust, why = self._where(row.get("where"), operand, args, kwargs)
        dtype = self._dtype(row.get("dtype"), operand, args, kwargs)
        rank = self._rank(row.get("rank"), row["form"], operand, args, kwargs)
        exact = self.dtypes.exact(name, row, operand, args, kwargs)
        tensor = Value("tensor", where, rank, dtype, exact, trust=trust, dense=self._dense(row, operand), why=why)
        if result == "list":
            return Value("list", items=tensor._replace(rank=operand.rank), trust=trust)
        if result.startswith("tuple:"):
            others = [_indices(tensor) if row.get("second") == "int" else tensor] * (int(result[6:]) - 1)
            return Value("tuple", items=(tensor, *others), trust=trust)
        if result == "extremum":
            if len([v for v in args if v.kind != "none"]) > 1 or "dim" in kwargs:
                other = args[1] if len(args) > 1 else UNKNOWN
                if other.kind == "tensor":
                    return self.binary("+", operand, other)
                return Value("tuple", items=(tensor, _indices(tensor)), trust=trust)
            return tensor._replace(rank=0)
        if result == "counted":
            extra = [n for n in ("return_inverse", "return_counts") if (kwargs.get(n) or _FALSE).ref]
            ints = _indices(tensor)._replace(rank=None)
            if kwargs.get("dim", _NONE).kind != "none":
                tensor = tensor._replace(rank=operand.rank)
            return Value("tuple", items=(tensor, *[ints] * len(extra)), trust=trust) if extra else tensor
        if result == "where":
            if len(args) > 1 or len(kwargs) > 1:
                return tensor._replace(dtype=promoted([*args[1:], *kwargs.values()]))
            return Value("tuple", items=_indices(tensor)._replace(rank=1), trust=trust)
        if result == "nonzero":
            if (kwargs.get("as_tuple") or _FALSE).ref:
                return Value("tuple", items=tensor._replace(rank=1), trust=trust)
            return tensor
        return tensor

    @staticmethod
    def _dense(row: Mapping[str, Any], operand: Value) -> bool | str | None:
        """Whether a result fills its memory without gaps: stated by the row, and for a copy kept from its operand."""
        stated: bool | str | None = row.get("dense")
        gaps = stated == "reordered" and operand.dense is False
        return operand.dense if stated == "same" or gaps else stated

    def _where(self, form: Any, operand: Value, args: Sequence[Value], kwargs: Keywords) -> tuple[str | None, int, Any]:
        given = kwargs.get("device")
        if form in ("argument", "like", "data") and given is not None and given.kind != "none":
            where = self.device(given)
            trust = 2 if given.known and (given.where or given.ref is not None) else 1
            trust = 0 if where in HOST and given.trust < 2 and form != "argument" else trust
            if where == "host":
                return _pinned(kwargs, trust)
            return where, min(trust, 1) if where == "parametrised" else trust, None
        if form == "argument":
            return _pinned(kwargs, 2)
        if form in ("host", "pinned", "device"):
            return form, max(operand.trust, 1) if operand.kind == "tensor" else 2, None
        if form == "data" and _is_data(operand):
            return "host", operand.trust, None
        if form == "view" and operand.kind == "tensor" and operand.where is not None:
            return operand.where, operand.trust, operand.why
        if form == "move":
            return self._move(operand, args[1:], kwargs)
        tensors = [v for v in self._tensors(args, kwargs) if v.kind == "tensor"]
        if not tensors:
            return None, 1, operand.why
        where, told = _operand_where(tensors)
        return where, told.trust, told.why

    def _move(self, operand: Value, args: Sequence[Value], kwargs: Keywords) -> tuple[str | None, int, Any]:
        """`t.to(...)`: a device, a dtype, another tensor, or several of them."""
        given = kwargs.get("device") or kwargs.get("other")
        for value in args:
            if given is None and not self.dtypes.names(value) and value.kind not in ("bool", "none"):
                given = value
                break
        if given is None:
            return operand.where, operand.trust, operand.why
        if given.kind == "tensor":
            return given.where, min(given.trust, operand.trust), given.why
        if given.kind in ("unknown", "bottom") and "device" not in kwargs:
            return operand.where if operand.where in ACCELERATED else None, min(operand.trust, 1), operand.why
        where = self.device(given)
        if where in HOST and given.trust < 2:
            return where, 0, None  # a device that was worked out is seldom the host, and another call may bring another
        return where, 1 if where == "parametrised" else max(operand.trust, 1), None

    def _tensors(self, args: Sequence[Value], kwargs: Keywords) -> list[Value]:
        found = []
        for value in [*args, *kwargs.values()]:
            if value.kind == "tensor":
                found.append(value)
            elif value.kind in ("list", "tuple") and value.items is not None:
                inner = [value.items] if isinstance(value.items, Value) else list(value.items)
                found.extend(v for v in inner if v.kind == "tensor")
        return found

    def _dtype(self, form: Any, operand: Value, args: Sequence[Value], kwargs: Keywords) -> str | None:
        if form is None or form in ("bool", "int", "float"):
            return form  # type: ignore[no-any-return]
        if form == "same":
            return operand.dtype
        if form == "move":
            candidates = [kwargs["dtype"]] if "dtype" in kwargs else list(args[1:])
            for value in candidates:
                if value.kind == "tensor":
                    return value.dtype
                if self.dtypes.names(value):
                    return self.dtypes.named(value)
                if value.kind in ("unknown", "bottom"):
                    return None if "dtype" in kwargs else operand.dtype
            return operand.dtype
        if form == "quotient" and (kwargs.get("rounding_mode") or _NONE).kind == "none":
            return "float"
        if form in ("result", "quotient"):
            return promoted([v for v in args if v.kind in ("tensor", "int", "float", "bool")])
        if form == "element":
            return element_of(operand).dtype
        if form == "data":
            return of_data(operand)
        default = str(form).partition(":")[2]
        if "dtype" in kwargs and kwargs["dtype"].kind != "none":
            return self.dtypes.named(kwargs["dtype"])
        if default == "same":
            return operand.dtype
        if default == "total":  # of masks is a count
            return "int" if operand.dtype == "bool" else operand.dtype
        if default == "data":
            return of_data(operand)
        if default == "fill":
            return of_data(args[1] if len(args) > 1 else kwargs.get("fill_value", UNKNOWN))
        if default == "numbers":
            kinds = {value.kind for value in args}
            return "float" if "float" in kinds else "int" if kinds <= {"int"} else None
        return default

    def _rank(self, form: Any, shape: str, operand: Value, args: Sequence[Value], kwargs: Keywords) -> int | None:
        if isinstance(form, int) or form is None:
            return form
        if form == "same":
            return operand.rank
        if form in ("shape", "shape-first"):
            sizes = list(args[1:]) if shape == "method" else list(args)
            first = form == "shape-first" or (bool(sizes) and sizes[0].kind in ("tuple", "list"))
            return _shape_rank(sizes[:1] if first else sizes, kwargs)
        if form == "sizes":
            return _shape_rank(list(args[1:]), kwargs)
        if form == "flatten":
            return 1 if len(args) <= 1 and not kwargs else None
        if form == "data":
            return _data_rank(operand)
        if form == "broadcast":
            rank = operand.rank
            for value in args[1:]:
                rank = _broadcast(Value("tensor", rank=rank), value)
            return rank
        if form == "reduce":
            dim = args[1] if len(args) > 1 else kwargs.get("dim", kwargs.get("axis"))
            if dim is None or dim.kind == "none":
                return 0
            kept = kwargs.get("keepdim", args[2] if len(args) > 2 else _FALSE)
            if operand.rank is None or dim.kind != "int":
                return None
            return operand.rank if kept.ref is True else max(operand.rank - 1, 0)
        if form == "other":
            return args[1].rank if len(args) > 1 and args[1].kind == "tensor" else None
        if form == "flat-unless-dim":
            return operand.rank if len(args) > 2 or "dim" in kwargs else 1
        inner = element_of(operand).rank
        if form == "element":
            return inner
        if form == "element-plus-one":
            return None if inner is None else inner + 1
        step = {"plus-one": 1, "minus-one": -1}.get(form, 0)
        return None if operand.rank is None or not step else operand.rank + step


_FALSE, _NONE = Value("bool", ref=False), Value("none")
_SIMPLE = {
    "int": _INT, "float": Value("float"), "bool": Value("bool"), "str": _STR, "none": _NONE,
    "numpy": Value("numpy"), "list-of-numbers": Value("list"),
}  # fmt: skip


def _indices(tensor: Value) -> Value:
    """Positions in a tensor, in the same place."""
    return tensor._replace(dtype="int", ref="int64")


def _pinned(kwargs: Keywords, trust: int) -> tuple[str, int, None]:
    """A place on the host. A switch that is worked out pins the memory wherever that can be done."""
    switch = kwargs.get("pin_memory")
    if switch is None or switch.kind == "none" or switch.ref is False:
        return "host", trust, None
    return "pinned", trust if switch.ref is True else min(trust, 1), None


def _operand_where(tensors: Sequence[Value]) -> tuple[str | None, Value]:
    """Where the operands of one operation live, and the one that tells: together, but for 0-dim host tensors."""
    near = [value for value in tensors if value.where in ACCELERATED]
    if near:
        told = max(near, key=lambda value: value.trust)
        return told.where, told
    placed = [value for value in tensors if value.where is not None]
    told = min(placed or tensors, key=lambda value: value.trust)
    if not placed:
        return None, told
    unknown = len(placed) < len(tensors)
    return ("host" if placed[0].where in HOST else placed[0].where), told.weaker(1) if unknown else told


def _broadcast(left: Value, right: Value) -> int | None:
    ranks = []
    for value in (left, right):
        if value.kind == "tensor":
            ranks.append(value.rank)
        elif value.kind in ("int", "float", "bool", "number"):
            ranks.append(0)
        else:
            ranks.append(None)
    known = [rank for rank in ranks if rank is not None]
    return max(known) if len(known) == 2 else None


_ARITHMETIC = frozenset({"+", "-", "*", "//", "%", "**"})


def _has_number(left: Value, right: Value) -> bool:
    """Whether one side is an int, or a tensor of ints or numbers, so that the result of arithmetic is no bool."""
    return any(v.kind == "int" or (v.kind == "tensor" and v.dtype in ("int", "number")) for v in (left, right))


def _plain(op: str, left: Value, right: Value) -> Value:
    if left.kind == "bottom" or right.kind == "bottom":
        return Value("bottom")
    numbers = ("bool", "int", "float", "number")
    if left.kind in numbers and right.kind in numbers:
        if op == "/" or "float" in (left.kind, right.kind):
            return Value("float")
        return Value("number" if "number" in (left.kind, right.kind) else "int")
    for value in (left, right):
        if value.kind in ("numpy", "str"):
            return Value(value.kind)
    for value in (left, right):
        if value.kind in ("list", "tuple", "set", "dict"):
            items = value.items if isinstance(value.items, Value) else vote(value.items) if value.items else None
            return Value(value.kind, items=items)
    return UNKNOWN


def _is_data(value: Value) -> bool:
    """Whether a value is Python data or an array: what is made of it is made on the host."""
    return value.kind in ("list", "tuple", "numpy", *NUMBERS)


def _data_rank(value: Value) -> int | None:
    if value.kind in ("bool", "int", "float", "number"):
        return 0
    if value.kind in ("tensor", "numpy"):
        return value.rank
    if value.kind in ("list", "tuple", "iter"):
        inner = element_of(value)
        if inner.kind == "tensor":
            return None
        deeper = _data_rank(inner)
        if deeper is None:
            return None
        return deeper + 1
    return None


def _shape_rank(sizes: list[Value], kwargs: Keywords) -> int | None:
    if not sizes and "size" in kwargs:
        sizes = [kwargs["size"]]
    if len(sizes) == 1 and sizes[0].kind in ("tuple", "list"):
        items = sizes[0].items
        return len(items) if isinstance(items, tuple) and not isinstance(items, Value) else None
    if sizes and all(value.kind in ("int", "number") for value in sizes):
        return len(sizes)
    if len(sizes) > 1:
        return len(sizes)
    return None
