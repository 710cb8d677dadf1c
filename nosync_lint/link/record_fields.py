"""Named tuples and dataclasses as what else they are: a tuple of their fields, or a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from nosync_lint.index.records import Expr
from nosync_lint.link.project import Class, Project
from nosync_lint.link.values import Value, vote

_TUPLES = frozenset({"typing.NamedTuple", "typing_extensions.NamedTuple", "collections.namedtuple"})
_SAME = frozenset({"dataclasses.replace", "copy.copy", "copy.deepcopy", "copy.replace"})


class RecordFields:
    """The fields of records in the order they are declared. `attribute` gives one of an instance of a class."""

    def __init__(self, project: Project, attribute: Callable[[int, str], Value]) -> None:
        self._project, self._attribute = project, attribute

    @cache  # noqa: B019 - one instance lives as long as the run
    def names(self, number: int) -> tuple[str, ...]:
        """What a constructor without a body of its own takes by position: the annotated names of the class."""
        cls = self._project.classes[number]
        found: dict[str, None] = {}
        for one in reversed(cls.mro):
            body = one.module.functions[one.record.body].record
            listed = [(each[0].seq, name) for name, each in body.definitions.items() if each[0].annotation is not None]
            found.update(dict.fromkeys(name for _, name in sorted(listed)))
            if _is_tuple(one):
                break  # what a subclass of a named tuple declares is no field
        return tuple(found)

    def is_given(self, number: int) -> bool:
        """Whether instances of a class are given their fields by a constructor without a body of its own."""
        return bool(self.names(number)) and not any(
            "__init__" in one.methods for one in self._project.classes[number].mro
        )

    def of_argument(self, record: Value, classes: Sequence[int], name: str, value: Value) -> Value:
        """A tensor that is a field of an argument lives where tensor arguments do, if nothing else is known and nobody
        puts another one there: what a record brings back to the host is often put in the place of what it held."""
        told = record.why is not None and record.why.argument
        if not told or value.kind != "tensor" or value.where is not None:
            return value
        if not all(self.is_given(ref) and name in self.names(ref) for ref in classes) or self._is_put(classes, name):
            return value
        return value._replace(where="parametrised", trust=min(value.trust, 1), why=record.why)

    def _is_put(self, classes: Sequence[int], name: str) -> bool:
        """Whether a method of such a class writes a field, or a function to one of that name of something else."""
        own = self._project.own_writes.get(name, {})
        family = {one.number for ref in classes for one in self._project.classes[ref].mro}
        return not family.isdisjoint(own) or any(
            not (write.base[0] == "name" and function.is_self(write.base))
            for function, write in self._project.writes_by_attribute.get(name, ())
        )

    def positions(self, value: Value) -> Value:
        """A named tuple as the tuple of its fields; any other value itself."""
        if value.kind != "object" or not value.ref:
            return value
        for ref in value.ref:
            if not isinstance(ref, int) or not _is_tuple(self._project.classes[ref]):
                return value
        return self._fields_of(value)

    def _fields_of(self, value: Value) -> Value:
        rows = [
            Value("tuple", items=tuple(self._attribute(ref, name) for name in self.names(ref)), trust=value.trust)
            for ref in value.ref
        ]
        return vote(rows)

    def method(self, base: Value, name: str) -> Value | None:
        """What a method that every named tuple has gives back; None for another value or method."""
        if name == "_make" and base.kind == "class" and self.positions(base._replace(kind="object")).kind == "tuple":
            return base._replace(kind="object", exact=True)
        if name not in ("_replace", "_asdict") or self.positions(base) is base:
            return None
        return base if name == "_replace" else self._dictionary(base)

    def function(self, name: str, call: Expr, evaluate: Callable[[Expr], Value]) -> Value | None:
        """What a function of the standard library makes of a record; None for another function, or no record."""
        if not call[2] or (name not in _SAME and name not in ("dataclasses.asdict", "dataclasses.astuple")):
            return None
        record = evaluate(call[2][0])
        if record.kind != "object" or not all(isinstance(ref, int) for ref in record.ref):
            return None
        if name in _SAME:
            return record
        return self._dictionary(record) if name == "dataclasses.asdict" else self._fields_of(record)

    def _dictionary(self, value: Value) -> Value:
        if len(value.ref) != 1:
            return Value("dict")
        fields = tuple((name, self._attribute(value.ref[0], name)) for name in self.names(value.ref[0]))
        return Value("dict", ref=fields, items=vote([one for _, one in fields]))


def given_by(call: Expr, name: str, names: Sequence[str]) -> Expr | None:
    """The argument that a constructor call gives to a field, also behind `*row`: then a position of the row."""
    for word, value in call[3]:
        if word == name:
            return value  # type: ignore[no-any-return]
    if name not in names:
        return None
    position = names.index(name)
    for number, arg in enumerate(call[2][: position + 1]):
        if arg[0] == "star":
            return ("item", arg[1], position - number) if number == len(call[2]) - 1 else None
    return call[2][position] if position < len(call[2]) else None


class Remade(NamedTuple):
    """A record that is made another way than by its constructor: the record or class, and what a field gets."""

    record: Expr
    given: Expr


def remade(call: Expr, name: str, names: Sequence[str]) -> Remade | None:
    """What `record._replace(...)`, `replace(record, ...)` or `Record._make(row)` gives to a field."""
    func, given = call[1], dict(call[3]).get(name)
    if func[-1] == "_make":
        made = func[0] == "attr" and len(call[2]) == 1 and name in names
        return Remade(func[1], ("item", call[2][0], names.index(name))) if made else None
    if given is None:
        return None
    if func[0] == "attr" and func[2] == "_replace":
        return Remade(func[1], given)
    return Remade(call[2][0], given) if len(call[2]) == 1 and func[-1] == "replace" else None


def _is_tuple(cls: Class) -> bool:
    return not _TUPLES.isdisjoint(cls.externs)
