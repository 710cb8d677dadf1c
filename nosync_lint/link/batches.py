"""What models hand out and loops take in: records whose fields are tensors, and the names by which code tells them.

A value of kind "batch" is a tensor, or a record or mapping of tensors: the output of a model, what a data loader
yields, the inputs of a training step. `items` is the tensor. All of it is convention, and never better than likely.
"""

from __future__ import annotations

from functools import cache

from nosync_lint.index.records import Expr
from nosync_lint.link.operations import Operations
from nosync_lint.link.project import Project
from nosync_lint.link.values import UNKNOWN, Origin, Value, element
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
    def of(where: str, why: Origin | None = None) -> Value:
        """A batch whose tensors live there."""
        return Value("batch", items=Value("tensor", where, trust=1, why=why), trust=1)

    def called(self, callee: Expr, call: Expr) -> Value | None:
        """What calling something unknown gives, by the name it goes under: a model, or a processor of raw data."""
        if callee[0] not in ("name", "attr"):
            return None
        name = str(callee[-1]).partition("~")[0]
        if self._is("collators", name):
            return self.of("host")
        if self._is("processors", name):
            return self.of("host") if self.gives_tensors(call) else None
        return self.of("parametrised") if self._is("models", name) else None

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
                return self.of("host") if self.gives_tensors(call) else UNKNOWN
            if isinstance(ref, str) and self._is("layers", ref):
                return self.of("parametrised")
        return None

    def loaded(self, iterable: Expr) -> Value | None:
        """What iterating over something unknown gives, where its name says that it loads data."""
        while iterable[0] == "call" and iterable[2]:  # enumerate(loader), tqdm(loader)
            iterable = iterable[2][0]
        name = str(iterable[-1]) if iterable[0] in ("name", "attr") else ""
        return self.of("host") if self._is("loaders", name) else None

    def parameter(self, name: str, of_module: bool, why: Origin) -> Value | None:
        """What an argument of a hot root holds that is named like a batch, or like the input of a module."""
        named = self._is("parameters", name) or (of_module and self._is("module_parameters", name))
        return self.of("parametrised", why) if named else None

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
        return tensor

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
        if index[0] == "const":
            return self.field(batch, index[1]) if isinstance(index[1], str) else batch.items
        return batch.items if index[0] in ("name", "attr", "call", "fstr") else None

    @staticmethod
    def is_record_method(name: str) -> bool:
        """Whether a method is one of mappings and not of tensors."""
        return name in ("items", "keys", "get")

    def method(self, batch: Value, name: str, args: list[Value], call: Expr) -> Value | None:
        """A method of a record; None where it is one of the tensor that the batch may be."""
        if self._operations.moves(name):
            kwargs = {word: Value("unknown") for word, _ in call[3] if word}
            moved = self._operations.method(name, batch.items, args, kwargs)
            return batch._replace(items=moved) if moved is not None else batch
        if name not in _RECORD_METHODS:
            return None
        if name in ("get", "pop", "setdefault", "__getitem__"):
            key = args[0].ref if args and args[0].kind == "str" else ""
            return self.field(batch, key) if isinstance(key, str) else batch.items
        if name == "items":
            return Value("iter", items=Value("tuple", items=(Value("str"), batch.items)))
        if name == "values":
            return Value("iter", items=batch.items)
        return batch if name == "copy" else UNKNOWN


def tensor_of(value: Value) -> Value:
    """The tensor that a batch may be; any other value itself."""
    return value.items if value.kind == "batch" and isinstance(value.items, Value) else value


def unpacked(value: Value) -> Value:
    """What one position of an unpacked value holds."""
    return tensor_of(value) if value.kind == "batch" else element(value)
