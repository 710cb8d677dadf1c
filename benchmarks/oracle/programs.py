"""A sample as a program that can be run piece by piece: what fails is noted, and what stands behind it still runs.

Every statement of a module or function stands in a `try`. Where one fails, the names it would have given a value hold
`Missing`, which fails again where it is used. Modules that are not installed are `Missing` too.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple, NoReturn

FAILED, MISSING = "__failed__", "__missing__"
_BLOCKS = ("body", "orelse", "finalbody")
_SILENT = (ast.Pass, ast.Global, ast.Nonlocal)
_KEPT = (ast.Raise, ast.Break, ast.Continue, *_SILENT)


class Unavailable(Exception):
    """Something is needed that is not there; the message names it."""


class Missing:
    """What a name holds whose value could not be had. Naming it is free, using it raises."""

    def __init__(self, why: str) -> None:
        self.why = why

    def __getattr__(self, name: str) -> Missing:
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(self.why)

    def __getitem__(self, item: object) -> Missing:
        return self

    def __or__(self, other: object) -> Missing:
        return self

    __ror__ = __or__

    def _use(self, *arguments: object, **named: object) -> NoReturn:
        raise Unavailable(self.why)

    __call__ = __iter__ = __bool__ = __len__ = __enter__ = __mro_entries__ = __contains__ = __index__ = __float__ = _use
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = __lt__ = __gt__ = __setitem__ = _use


class Entry(NamedTuple):
    """A function that can be called from outside, and whether the sample names it.

    `parts` are the rows of its statements and the places of its calls and subscripts (row, column, end row, end column,
    as the compiler counts): what leaves a trace when all of it runs.
    """

    module: str
    file: str
    classes: tuple[str, ...]
    name: str
    row: int
    parts: frozenset[tuple[int, ...]]
    named: bool


class Program(importlib.abc.MetaPathFinder):
    """The modules of one sample: a file, or the files of a folder. `failed` is told of each error in a statement."""

    def __init__(self, sample: Path, failed: Callable[[BaseException], None]) -> None:
        self.root = sample if sample.is_dir() else sample.parent
        paths = sorted(sample.rglob("*.py")) if sample.is_dir() else [sample]
        self.paths = {_module_name(path.relative_to(self.root)): path for path in paths}
        self.files = {f"<sample {name}>": path.relative_to(self.root).as_posix() for name, path in self.paths.items()}
        self.trees = {name: ast.parse(path.read_bytes()) for name, path in self.paths.items()}
        self.entries = self._entries()  # before `load`, which rewrites the trees
        self._failed = failed

    def load(self) -> dict[str, ModuleType]:
        """Import every module of the sample."""
        setattr(builtins, FAILED, self._failed)
        setattr(builtins, MISSING, Missing("a statement above failed"))
        sys.meta_path.insert(0, self)
        sys.meta_path.append(_Absent())
        return {name: importlib.import_module(name) for name in self.paths}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        found = self.paths.get(fullname)
        if found is not None:
            package = found.name == "__init__.py"
            loader = _Loader(self.trees[fullname], f"<sample {fullname}>")
            return importlib.machinery.ModuleSpec(fullname, loader, is_package=package)
        if any(name.startswith(f"{fullname}.") for name in self.paths):  # a folder without __init__.py
            loader = _Loader(ast.Module([], []), f"<sample {fullname}>")
            return importlib.machinery.ModuleSpec(fullname, loader, is_package=True)
        return None

    def _entries(self) -> list[Entry]:
        """The functions and methods of the sample."""
        used = {
            node.id if isinstance(node, ast.Name) else node.attr
            for tree in self.trees.values()
            for node in ast.walk(tree)
            if isinstance(node, ast.Name | ast.Attribute)
        }
        return [
            Entry(
                module,
                self.files[f"<sample {module}>"],
                classes,
                node.name,
                node.lineno,
                frozenset(_parts(node.body)),
                node.name in used or node.name.startswith("__"),
            )
            for module, tree in self.trees.items()
            for classes, node in _functions(tree.body, ())
        ]


class _Loader(importlib.abc.InspectLoader):
    def __init__(self, tree: ast.Module, filename: str) -> None:
        self._tree, self._filename = tree, filename

    def get_source(self, fullname: str) -> str | None:
        return None

    def get_code(self, fullname: str) -> CodeType:
        return compile(_resilient(self._tree), self._filename, "exec", dont_inherit=True)


class _Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds what nothing else finds: modules that only hold what is missing."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        importer = sys._getframe(1)
        while importer.f_code.co_filename.startswith("<frozen importlib"):
            assert importer.f_back is not None
            importer = importer.f_back
        if not importer.f_code.co_filename.startswith("<sample "):
            return None  # a library that asks for something optional
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        why = f"{module.__name__} is not installed"

        def attribute(name: str) -> Missing:
            if name.startswith("__"):
                raise AttributeError(name)
            return Missing(why)

        module.__getattr__ = attribute  # type: ignore[method-assign]


def _module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _functions(body: Sequence[ast.stmt], classes: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield classes, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, (*classes, node.name))


def _parts(body: Sequence[ast.stmt]) -> Iterator[tuple[int, ...]]:
    left: list[ast.AST] = list(body)
    while left:
        node = left.pop()
        constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        bare = isinstance(node, ast.AnnAssign) and node.value is None
        if isinstance(node, ast.stmt) and not (constant or bare or isinstance(node, _SILENT)):
            yield (node.lineno,)
        elif isinstance(node, ast.Call | ast.Subscript):
            yield (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
        unevaluated = getattr(node, "annotation", None), getattr(node, "returns", None)
        left += [one for one in ast.iter_child_nodes(node) if one not in unevaluated]


def _resilient(tree: ast.Module) -> ast.Module:
    """The module with each of its statements, and of those in functions, in a `try` of its own."""
    first = [node for node in tree.body if _is_preamble(node)]
    rest = [node for node in tree.body if not _is_preamble(node)]
    return ast.Module([*first, *_guarded(rest)], tree.type_ignores)


def _is_preamble(node: ast.stmt) -> bool:
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


def _guarded(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    return [_guard(node) for node in body]


def _guard(node: ast.stmt) -> ast.stmt:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        node.body = _guarded(node.body)
    elif isinstance(node, ast.ClassDef):
        node.body = [_guard_functions(one) for one in node.body]
    else:
        for block in _BLOCKS:
            if getattr(node, block, None):
                setattr(node, block, _guarded(getattr(node, block)))
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            part.body = _guarded(part.body)
    if isinstance(node, _KEPT):
        return node
    call = ast.Call(ast.Name(FAILED, ast.Load()), [ast.Name("__error__", ast.Load())], [])
    told: list[ast.stmt] = [ast.Expr(call)]
    told += [ast.Assign([target], ast.Name(MISSING, ast.Load())) for target in _targets(node)]
    handler = ast.ExceptHandler(ast.Name("Exception", ast.Load()), "__error__", told)
    guarded = ast.copy_location(ast.Try([node], [handler], [], []), node)
    return ast.fix_missing_locations(guarded)


def _guard_functions(node: ast.stmt) -> ast.stmt:
    """A statement of a class body: it fails with its class, but the functions in it are guarded."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        node.body = _guarded(node.body)
    elif isinstance(node, ast.ClassDef):
        node.body = [_guard_functions(one) for one in node.body]
    return node


def _targets(node: ast.stmt) -> Iterator[ast.expr]:
    """The names and attributes that a statement gives a value, as new targets."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield ast.Name(node.name, ast.Store())
    given = list(node.targets) if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        given.append(node.target)
    while given:
        one = given.pop()
        if isinstance(one, ast.Tuple | ast.List):
            given += one.elts
        elif isinstance(one, ast.Name):
            yield ast.Name(one.id, ast.Store())
        elif isinstance(one, ast.Attribute):
            yield ast.Attribute(one.value, one.attr, ast.Store())
