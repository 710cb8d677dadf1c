"""What models hand out and loops take in: records whose fields are tensors, and the names by which code tells them.

A value of kind "batch" is a tensor, or a record or mapping of tensors: the output of a model, what a data loader
yields, the inputs of a training step. `items` is the tensor. All of it is convention, and never better than likely.
`ref` says what its fields are: "tensors", as those of what models give; "rows", tensors where read by position; "any",
anything, as the project says; or None where some fields may be settings, counts and names.
A field that may be one of those is `open`: a batch with trust 0, until its name or its use says that it is a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from nosync_lint.index.records import Expr
from nosync_lint.link.operations import Operations
from nosync_lint.link.project import Project
from nosync_lint.link.values import NUMBERS, UNKNOWN, Origin, Value, element
from nosync_lint.models import any_of, load

_RECORD_METHODS = frozenset({"get", "pop", "items", "values", "keys", "copy", "update", "setdefault", "__getitem__"})


class Batches:
    """The conventions of `models/values.toml` about batches."""

    def __init__(self, operations: Operations) -> None:
        data = load("values")["batches"]
        self._operations = operations
        self._named = {role: any_of(names) for role, names in data.items()}

    @cache  # noqa: B019 - one instance lives as long as the run
    def _is(self, role: str, name: str) -> bool:
        return bool(self._named[role](name))

    @staticmethod
    def of(where: str, fields: str | None = None, why: Origin | None = None) -> Value:
        """A batch whose tensors live there."""
        return Value("batch", ref=fields, items=Value("tensor", where, trust=1, why=why), trust=1)

    def called(self, callee: Expr, call: Expr) -> Value | None:
        """What calling something unknown gives, by the name it goes under: a model, or a processor of raw data."""
        if callee[0] not in ("name", "attr"):
            return None
        name = str(callee[-1]).partition("~")[0]
        if self._is("collators", name):
            return self.of("host")
        if self._is("processors", name):
            return self.of("host", "tensors") if self.gives_tensors(call) else None
        return self.of("parametrised", "tensors") if self._is("models", name) else None

    def names_model(self, name: str) -> bool:
        """Whether what goes under a name is a model, which is given tensors."""
        return self._is("models", name)

    @staticmethod
    def gives_tensors(call: Expr) -> bool:
        """Whether a call of a processor or tokenizer asks for torch tensors."""
        return ("return_tensors", ("const", "pt")) in call[3]

    def made(self, dotted: str) -> Value | None:
        """The object that an external factory makes: a model or a processor."""
        if self._is("processor_factories", dotted):
            return Value("object", ref=("processor",), trust=1)
        if self._is("model_factories", dotted):
            return Value("object", ref=(self._operations.module_type,), trust=1)
        return None

    def of_external(self, callee: Value, call: Expr) -> Value | None:
        """What calling an instance of an external class gives, where that is a model, a layer or a processor."""
        for ref in callee.ref:
            if ref == "processor":
                return self.of("host", "tensors") if self.gives_tensors(call) else UNKNOWN
            if isinstance(ref, str) and self._is("layers", ref):
                return self.of("parametrised", "tensors")
        return None

    def loaded(self, iterable: Expr) -> Value | None:
        """What iterating over something unknown gives, where its name says that it loads data."""
        while iterable[0] == "call" and iterable[2]:  # enumerate(loader), tqdm(loader)
            iterable = iterable[2][0]
        name = str(iterable[-1]) if iterable[0] in ("name", "attr") else ""
        return self.of("loaded") if self._is("loaders", name) else None

    def is_loader(self, dotted: str) -> bool:
        """Whether an external class is one of data loaders."""
        return self._is("loader_classes", dotted)

    def of_loader(self, loader: Value) -> Value | None:
        """What iterating over an instance gives, where that is a data loader."""
        if not any(isinstance(ref, str) and self.is_loader(ref) for ref in loader.ref):
            return None
        return self.of(loader.where or "loaded")

    @staticmethod
    def loads_to(kwargs: Mapping[str, Value], call: Expr) -> str:
        """Where the tensors live that a new data loader gives."""
        switch = kwargs.get("pin_memory")
        if switch is None:
            rest = any(word is None for word, _ in call[3]) or any(arg[0] == "star" for arg in call[2])
            return "loaded" if rest else "host"
        return {True: "pinned", False: "host"}.get(switch.ref, "loaded") if switch.kind == "bool" else "loaded"

    def parameter(self, name: str, of_module: bool, declared: Value, why: Origin) -> Value | None:
        """What an argument of a hot root holds that is named like a batch, or like the input of a module."""
        if not self._is("parameters", name) and not (of_module and self._is("module_parameters", name)):
            return None
        fields = None if self._is("records_of_any", name) else "tensors"
        if declared.kind == "dict" and isinstance(declared.items, Value):
            fields = "tensors" if declared.items.kind == "tensor" and declared.items.trust == 2 else fields
            fields = "any" if not declared.items.known else fields
        return self.of("parametrised", fields, why)

    def names_tensor(self, name: str) -> bool:
        """Whether a field of a batch, or a variable that holds one, is a tensor by its name."""
        return self._is("fields", name) or (self._is("parameters", name) and not self._is("records_of_any", name))

    def _open(self, batch: Value, tensor: Value) -> Value:
        """A field of a batch, which is a tensor only where its fields are."""
        return tensor if batch.ref == "tensors" and not is_open(batch) else opened(tensor, batch.ref)

    def field(self, batch: Value, name: str) -> Value:
        """`batch.name`, or `batch["name"]`."""
        tensor: Value = batch.items
        announced = self._operations.convention(name)
        if announced in ("host", "numpy"):
            return tensor._replace(where="host") if announced == "host" else Value("numpy", trust=1)
        if self._is("numbers", name):
            return Value("int")
        if self._is("others", name):
            return UNKNOWN
        if self._is("lists", name):
            return Value("list", items=tensor, trust=1)
        return tensor if batch.ref != "any" and self.names_tensor(name) else self._open(batch, tensor)

    def of_record(self, record: Value, classes: list[int], value: Value, project: Project) -> Value:
        """A tensor that is a field of a class which is named like the output of a model: it lives where models do."""
        if value.kind != "tensor" or value.where is not None or record.kind != "object":
            return value
        if not all(self._is("records", project.classes[ref].record.name) for ref in classes):
            return value
        return value._replace(where="parametrised", trust=min(value.trust, 1))

    def attribute(self, batch: Value, name: str) -> Value:
        """`batch.name`: of the tensor that the batch may be, or a field of it."""
        return self._operations.attribute(name, batch.items) or self.field(batch, name)

    def item(self, batch: Value, index: Expr) -> Value | None:
        """`batch[index]`: a field or position; None where the tensor that the batch may be is sliced."""
        if index[0] == "const" and isinstance(index[1], str):
            return self.field(batch, index[1])
        if index[0] not in ("const", "name", "attr", "call", "fstr"):
            return batch if is_open(batch) and index[0] == "slice" else None
        return tensor_of(batch) if batch.ref == "rows" and not is_open(batch) else self._open(batch, batch.items)

    @staticmethod
    def is_record_method(name: str) -> bool:
        """Whether a method is one of mappings and not of tensors."""
        return name in ("items", "keys", "get")

    def method(self, batch: Value, name: str, args: list[Value], call: Expr) -> Value | None:
        """A method of a record; None where it is one of the tensor that the batch may be."""
        if self._operations.moves(name):
            kwargs = {word: Value("unknown") for word, _ in call[3] if word}
            moved = self._operations.method(name, batch.items, args, kwargs)
            if is_open(batch) and moved is not None:
                return moved
            fields = batch.ref or "rows"  # nothing that holds its fields by position answers to this
            return batch._replace(items=moved, ref=fields) if moved is not None else batch
        if name not in _RECORD_METHODS:
            return None
        if name in ("get", "pop", "setdefault", "__getitem__"):
            default = args[1] if len(args) > 1 else UNKNOWN
            if default.kind in (*NUMBERS, "str"):
                return default._replace(ref=None)
            key = args[0].ref if args and args[0].kind == "str" else ""
            return self.field(batch, key) if isinstance(key, str) else self._open(batch, batch.items)
        if name == "items":
            return Value("iter", items=Value("tuple", items=(Value("str"), batch.items)))
        if name == "values":
            return Value("iter", items=batch.items)
        return batch if name == "copy" else UNKNOWN


def opened(tensor: Value, fields: str | None = None) -> Value:
    """A field of a batch that may be such a tensor, or a number, a text or a setting."""
    return Value("batch", ref=fields, items=tensor, trust=0)


def is_open(value: Value) -> bool:
    """Whether a value is a field of a batch that may be anything."""
    return value.kind == "batch" and value.trust == 0


def tensor_of(value: Value) -> Value:
    """The tensor that a batch may be; any other value itself."""
    if value.kind != "batch" or not isinstance(value.items, Value):
        return value
    tensor: Value = value.items
    return tensor if value.trust else tensor.weaker(0)


def of_both(operate: Callable[[Value, Value], Value], left: Value, right: Value) -> Value:
    """The result of an operator. That of a field which may be anything may be anything as well, but beside a tensor."""
    one, other = tensor_of(left), tensor_of(right)
    both = (left, right)
    if not any(map(is_open, both)) or any(one.kind in ("tensor", "batch") and not is_open(one) for one in both):
        return operate(one, other)
    found = operate(*(value.items if is_open(value) else value for value in both))
    return opened(found) if found.kind == "tensor" else found


def unpacked(value: Value) -> Value:
    """What one position of an unpacked value holds."""
    if value.kind != "batch":
        return element(value)
    return opened(value.items, value.ref) if is_open(value) or value.ref in (None, "any") else tensor_of(value)
