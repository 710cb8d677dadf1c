"""Records that a call makes, `Moves = namedtuple("Moves", "source target")`, as the classes they stand for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_MAKERS = frozenset({"namedtuple", "NamedTuple", "make_dataclass"})


def made_class(node: ast.Assign) -> ast.ClassDef | None:
    """The class that an assignment makes by a call, or None where it makes none, or its fields are not written out."""
    if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
        return None
    call = _maker(node.value)
    body = [] if call is None else [*_fields(call)]
    if call is None or not body:
        return None
    name = node.targets[0].id
    made = ast.ClassDef(name=name, bases=[], keywords=[], body=body, decorator_list=[])
    (made.decorator_list if _called(call) == "make_dataclass" else made.bases).append(call.func)
    return ast.copy_location(made, node)


def named_by_base(node: ast.ClassDef) -> ast.ClassDef:
    """A class with the fields of a record that is made among its bases, `class Moves(namedtuple("Moves", "a b"))`."""
    calls = {number: call for number, base in enumerate(node.bases) if (call := _maker(base)) is not None}
    if not calls:
        return node
    bases = [calls[number].func if number in calls else base for number, base in enumerate(node.bases)]
    fields = [field for call in calls.values() for field in _fields(call)]
    made = ast.ClassDef(
        name=node.name, bases=bases, keywords=node.keywords, body=[*fields, *node.body],
        decorator_list=node.decorator_list,
    )  # fmt: skip
    return ast.copy_location(made, node)


def _maker(node: ast.expr) -> ast.Call | None:
    return node if isinstance(node, ast.Call) and _called(node) in _MAKERS and len(node.args) < 3 else None


def _called(call: ast.Call) -> str:
    func = call.func
    return func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""


def _fields(call: ast.Call) -> Iterator[ast.stmt]:
    """The fields of the record that a call makes, as they would stand in a class; none where some is not a literal."""
    given = call.args[1] if len(call.args) == 2 else None
    pairs: list[tuple[str, ast.expr]] = []
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        pairs = [(name, _untyped(call)) for name in given.value.replace(",", " ").split()]
    elif isinstance(given, ast.List | ast.Tuple):
        for part in given.elts:
            typed = isinstance(part, ast.Tuple | ast.List) and len(part.elts) > 1
            name, annotation = (part.elts[0], part.elts[1]) if typed else (part, _untyped(call))  # type: ignore[attr-defined]
            if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
                return
            pairs.append((name.value, annotation))
    for name, annotation in pairs:
        target = ast.copy_location(ast.Name(id=name, ctx=ast.Store()), call)
        yield ast.copy_location(ast.AnnAssign(target=target, annotation=annotation, value=None, simple=1), call)


def _untyped(call: ast.Call) -> ast.expr:
    """The annotation of a field that may hold anything."""
    return ast.copy_location(ast.Constant(value=...), call)
