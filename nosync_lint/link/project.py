"""The linked project: modules under their names, functions and classes, and what a name in them stands for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from nosync_lint.index.records import AttributeWrite, CallSite, ClassRecord, Expr, FunctionRecord, ModuleIndex
from nosync_lint.link.values import UNKNOWN, Value
from nosync_lint.source import SourceFile

SOURCE_FOLDERS = frozenset({"src", "python", "lib"})
FILLING = frozenset({"append", "add", "appendleft", "insert"})
"""Methods that put their last argument into a container."""
MAX_IMPORTS = 200
"""A name that imports lead back to is followed over at most this many of them."""


class Fill(NamedTuple):
    """A value put into a container, under a key or without one."""

    key: Expr | None
    value: Expr
    seq: int
    block: int


def fills_of(record: FunctionRecord) -> Iterator[tuple[Expr, Fill]]:
    """The containers that a function fills, and what it puts into them."""
    for write in record.writes:
        if write.op is None:
            yield write.base, Fill(write.subscript, write.value, write.seq, write.block)
    for site in record.calls:
        if site.call[1][0] == "attr" and site.call[1][2] in FILLING and site.call[2]:
            yield site.call[1][1], Fill(None, site.call[2][-1], site.seq, site.block)


class Module:
    """One Python file. `name` is its dotted import name."""

    __slots__ = ("file", "folder", "functions", "index", "is_package", "name", "number")

    def __init__(self, number: int, name: str, file: SourceFile, index: ModuleIndex) -> None:
        self.number, self.name, self.file, self.index = number, name, file, index
        self.is_package = file.path.name == "__init__.py"
        self.folder = str(file.path.parent)
        self.functions: list[Function] = []


class Function:
    """One function record of the project, under a project-wide number."""

    __slots__ = ("_fills", "_positions", "cls", "module", "number", "parent", "record")

    def __init__(self, number: int, module: Module, record: FunctionRecord) -> None:
        self.number, self.module, self.record = number, module, record
        self._positions: dict[str, int] | None = None
        self._fills: dict[str, list[Fill]] | None = None
        self.cls: Class | None = None
        self.parent: Function | None = None

    @property
    def name(self) -> str:
        """The qualified name a person would use: `package.module.Class.method`."""
        return f"{self.module.name}.{self.record.qualname}" if self.record.qualname else self.module.name

    def parameter(self, name: str) -> int | None:
        """The position of a parameter among the record's parameters."""
        if self._positions is None:
            self._positions = {one.name: position for position, one in enumerate(self.record.parameters)}
        return self._positions.get(name)

    def local_fills(self, name: str) -> list[Fill]:
        """What this function puts into the container that a local name holds: `rows[key] = t`, `rows.append(t)`."""
        if self._fills is None:
            self._fills = {}
            for base, fill in fills_of(self.record):
                if base[0] == "name":
                    self._fills.setdefault(base[1], []).append(fill)
        return self._fills.get(name, [])

    def is_self(self, base: Expr) -> bool:
        """Whether an expression is the instance or class that this method runs on."""
        parameters = self.record.parameters
        return base[0] == "name" and bool(parameters) and base[1] == parameters[0].name and self.binds != ""

    @property
    def is_property(self) -> bool:
        """Whether reading an attribute runs this method."""
        decorators = self.record.decorators if self.cls is not None else ()
        return any(part[-1] in ("property", "cached_property", "getter") for part in decorators)

    @property
    def binds(self) -> str:
        """What the first parameter is bound to: "self", "class" or "" for plain functions and static methods."""
        if self.cls is None or self.record.form != "function":
            return ""
        for decorator in self.record.decorators:
            if decorator == ("name", "staticmethod"):
                return ""
            if decorator == ("name", "classmethod"):
                return "class"
        return "class" if self.record.name in ("__new__", "__init_subclass__", "__class_getitem__") else "self"


class Class:
    """One class of the project. `bases` and `mro` are filled when the project is linked."""

    __slots__ = ("_descendants", "bases", "children", "externs", "methods", "module", "mro", "number", "record")

    def __init__(self, number: int, module: Module, record: ClassRecord) -> None:
        self.number, self.module, self.record = number, module, record
        self.methods: dict[str, Function] = {}
        self.bases: tuple[Class, ...] = ()
        self.externs: frozenset[str] = frozenset()
        self.children: list[Class] = []
        self.mro: tuple[Class, ...] = (self,)
        self._descendants: tuple[Class, ...] | None = None

    @property
    def name(self) -> str:
        return f"{self.module.name}.{self.record.qualname}"

    def method(self, name: str) -> Function | None:
        """The method that a call on an instance of exactly this class would run."""
        for cls in self.mro:
            found = cls.methods.get(name)
            if found is not None:
                return found
        return None

    def descendants(self) -> tuple[Class, ...]:
        """Every subclass, each once, nearest first."""
        if self._descendants is None:
            found: dict[int, Class] = {}
            pending = list(self.children)
            for cls in pending:  # grows while it is walked
                if cls.number not in found and cls is not self:
                    found[cls.number] = cls
                    pending.extend(cls.children)
            self._descendants = tuple(found.values())
        return self._descendants

    def family(self, name: str) -> list[Class]:
        """The classes that write a method which goes back to the first declaration that this class has of it."""
        first = next((one for one in reversed(self.mro) if name in one.methods), self)  # a lone setter is in none
        return [one for one in (first, *first.descendants()) if name in one.methods]

    def is_abstract(self) -> bool:
        """Whether some method is declared abstract and never given a body down to this class."""
        names = {name for cls in self.mro for name, found in cls.methods.items() if "abstract" in found.record.flags}
        return any("abstract" in found.record.flags for name in names if (found := self.method(name)))


class Project:
    """All modules, functions and classes, and the tables that later questions scan."""

    def __init__(self, files: Sequence[tuple[SourceFile, ModuleIndex]], root: Path | None = None) -> None:
        self.modules: list[Module] = []
        self.functions: list[Function] = []
        self.classes: list[Class] = []
        self.reported: list[Function] = []
        """The functions of the files that are reported, in project order."""
        self.by_name: dict[str, Module] = {}
        self._by_folder: dict[tuple[str, str], Module] = {}
        self._by_tail: dict[str, list[Module]] = defaultdict(list)
        self._members: dict[tuple[str, str, int], Value] = {}
        self._symbols: dict[tuple[int, str], Value | None] = {}
        self._open: set[tuple[int, str]] = set()
        self._met_again: set[tuple[int, str]] = set()
        self._round: dict[tuple[int, str], Value | None] | None = None
        packages = {file.path.parent for file, _ in files if file.path.name == "__init__.py"}
        for file, index in files:
            self._add(file, index, packages, root)
        self._link_classes()
        self.calls_by_name: dict[str, list[tuple[Function, CallSite]]] = defaultdict(list)
        self.writes_by_attribute: dict[str, list[tuple[Function, AttributeWrite]]] = defaultdict(list)
        self.own_writes: dict[str, dict[int, list[tuple[Function, AttributeWrite]]]] = defaultdict(dict)
        self.fills: dict[str, dict[int, list[tuple[Function, Fill]]]] = defaultdict(dict)
        self.methods_by_name: dict[str, list[Function]] = defaultdict(list)
        self.aliases: dict[str, set[str]] = defaultdict(set)
        self._tabulate()

    # -- modules --

    def _add(self, file: SourceFile, index: ModuleIndex, packages: set[Path], root: Path | None) -> None:
        name = _module_name(file, packages, root)
        module = Module(len(self.modules), name, file, index)
        self.modules.append(module)
        if not file.is_notebook:  # nobody can import one
            self.by_name.setdefault(name, module)
            self._by_folder[module.folder, file.path.stem] = module
            if module.is_package:
                self._by_folder.setdefault((str(file.path.parent.parent), file.path.parent.name), module)
            self._by_tail[name.rpartition(".")[2]].append(module)
        classes = [Class(len(self.classes) + n, module, record) for n, record in enumerate(index.classes)]
        self.classes += classes
        for record in index.functions:
            function = Function(len(self.functions), module, record)
            self.functions.append(function)
            module.functions.append(function)
            if file.reported:
                self.reported.append(function)
            if record.owner >= 0:
                function.cls = classes[record.owner]
        for function in module.functions:
            if function.record.parent >= 0:
                function.parent = module.functions[function.record.parent]
        for cls in classes:
            cls.methods = {name: module.functions[numbers[-1]] for name, numbers in cls.record.methods.items()}

    def find_module(self, dotted: str, importer: Module | None = None) -> Module | None:
        """The module of the project that an absolute import names; a unique tail match serves odd layouts."""
        found = self.by_name.get(dotted)
        if found is not None or importer is None:
            return found
        head, _, rest = dotted.partition(".")
        if head in SOURCE_FOLDERS and rest:
            return self.find_module(rest, importer)
        beside = self._by_folder.get((importer.folder, head))
        if beside is not None:
            return beside if not rest else self.by_name.get(f"{beside.name}.{rest}")
        tail = dotted.rpartition(".")[2]
        ending = [m for m in self._by_tail.get(tail, ()) if m.name.endswith("." + dotted)] if rest else []
        return ending[0] if len(ending) == 1 else None

    def resolve_import(self, module: Module, target: str, name: str | None, level: int) -> Value:
        """What `from target import name` (or `import target` without a name) binds in `module`."""
        if level:
            package = module.name.split(".")
            if not module.is_package:
                package = package[:-1]
            kept = package[: len(package) - (level - 1)]
            target = ".".join([*kept, target] if target else kept)
        if name is None:
            return Value("module", ref=target)
        found = self.find_module(target, module)
        if found is None:
            inner = self.find_module(f"{target}.{name}", module)
            return Value("module", ref=inner.name) if inner else Value("extern", ref=f"{target}.{name}")
        value = self.symbol(found, name)
        if value is not None:
            return value
        inner = self.find_module(f"{found.name}.{name}", module)
        return Value("module", ref=inner.name) if inner else UNKNOWN

    def member(self, dotted: str, name: str, importer: Module) -> Value:
        """An attribute of a module that is known by its dotted name, of the project or external."""
        key = (dotted, name, importer.number)
        if key not in self._members:
            self._members[key] = self._find_member(dotted, name, importer)
        return self._members[key]

    def _find_member(self, dotted: str, name: str, importer: Module) -> Value:
        found = self.find_module(dotted, importer)
        if found is None:
            inner = self.find_module(f"{dotted}.{name}", importer)
            return Value("module", ref=inner.name) if inner else Value("extern", ref=f"{dotted}.{name}")
        value = self.symbol(found, name)
        if value is not None:
            return value
        inner = self.find_module(f"{found.name}.{name}", importer)
        return Value("module", ref=inner.name) if inner else Value("unknown", ref=(found.number, name), trust=0)

    def symbol(self, module: Module, name: str) -> Value | None:
        """What a module-level name stands for where that is a function, a class, a module or an import.

        None where the name is not bound there; unknown with `ref` (module number, name) where it is bound to a
        value, which is for inference to find.
        """
        key = (module.number, name)
        if key in self._symbols:
            return self._symbols[key]
        if self._round is not None:
            return self._round.setdefault(key, None)
        if self._met_again or key in self._open:  # what is found now is dropped and found again in rounds
            self._met_again.add(key)
            return None
        self._open.add(key)
        found = self._find_symbol(module, name)
        self._open.remove(key)
        if not self._met_again:
            self._symbols[key] = found
        elif not self._open:
            self._solve_symbols(key)
            found = self._symbols[key]
        return found

    def _solve_symbols(self, key: tuple[int, str]) -> None:
        """Find a name that imports lead back to, and all that it rests on: each round knows what the one before found,
        so that no name depends on which was asked for first."""
        self._round = {key: None}
        before: dict[tuple[int, str], Value | None] = {}
        for _ in range(MAX_IMPORTS):
            if before == self._round:
                break
            before = dict(self._round)
            self._round.update({(n, name): self._find_symbol(self.modules[n], name) for n, name in before})
        self._symbols.update(self._round)
        self._round = None
        self._met_again.clear()

    def _find_symbol(self, module: Module, name: str) -> Value | None:
        found: Value | None = None
        for definition in module.index.functions[0].definitions.get(name, ()):
            value = self.static(module, definition.value) or Value("unknown", ref=(module.number, name), trust=0)
            if (
                found is None
                or not found.known
                or (found.kind in ("extern", "module") and value.kind in ("function", "class"))
            ):
                found = value
            elif found.kind == value.kind and found.kind in ("function", "class") and found != value:
                found = found._replace(ref=tuple(sorted({*found.ref, *value.ref}, key=repr)), trust=1)
        if found is None:
            for target, level in module.index.star_imports:
                source = self.resolve_import(module, target, None, level)
                star = self.find_module(source.ref, module)
                if star is not None and star is not module:
                    found = self.symbol(star, name)
                    if found is not None:
                        return found
        return found

    def static(self, module: Module, value: Expr) -> Value | None:
        """The entity that a definition binds without evaluating anything, or None."""
        form = value[0]
        if form == "func":
            return Value("function", ref=(module.functions[value[1]].number,))
        if form == "class":
            body = module.functions[module.index.classes[value[1]].body]
            return Value("class", ref=(body.cls.number,)) if body.cls else None
        if form == "import":
            return self.resolve_import(module, value[1], value[2], value[3])
        if form == "name" and value[1] in module.index.functions[0].definitions:
            alias = self.symbol(module, value[1])
            return alias if alias is not None and alias.known else None
        return None

    # -- classes --

    def _link_classes(self) -> None:
        for cls in self.classes:
            bases: list[Class] = []
            externs: set[str] = set()
            for base in cls.record.bases:
                value = self.static_path(cls.module, base, cls.record.scope)
                if value is None:
                    continue
                if value.kind == "class":
                    bases.extend(self.classes[number] for number in value.ref if number != cls.number)
                elif value.kind == "extern":
                    externs.add(value.ref)
            cls.bases, cls.externs = tuple(bases), frozenset(externs)
            for parent in bases:
                parent.children.append(cls)
        orders: dict[int, tuple[Class, ...]] = {}
        for cls in self.classes:
            cls.mro = _mro(cls, orders)
        inherited = {cls.number: frozenset().union(*(one.externs for one in cls.mro)) for cls in self.classes}
        for cls in self.classes:
            cls.externs = inherited[cls.number]

    def static_path(self, module: Module, path: Expr, scope: int = 0) -> Value | None:
        """The entity that a dotted name stands for, seen from a function record of `module`."""
        form = path[0]
        if form == "name":
            while scope > 0:
                record = module.index.functions[scope]
                for definition in record.definitions.get(path[1], ()):
                    return self.static(module, definition.value)
                scope = record.parent
            return self.symbol(module, path[1])
        if form == "attr":
            base = self.static_path(module, path[1], scope)
            if base is not None and base.kind == "module":
                return self.member(base.ref, path[2], module)
            if base is not None and base.kind == "extern":
                return Value("extern", ref=f"{base.ref}.{path[2]}")
            if base is not None and base.kind == "class":
                for number in base.ref:
                    for inner in self.classes:
                        if inner.name == f"{self.classes[number].name}.{path[2]}":
                            return Value("class", ref=(inner.number,))
            return None
        if form == "sub":  # Generic[T]
            return self.static_path(module, path[1], scope)
        return None

    # -- tables --

    def _tabulate(self) -> None:
        for function in self.functions:
            record = function.record
            for site in record.calls:
                name = called_name(site.call)
                if name is not None:
                    self.calls_by_name[name].append((function, site))
            for write in record.attributes:
                self.writes_by_attribute[write.name].append((function, write))
                if function.cls is not None and function.is_self(write.base):
                    self.own_writes[write.name].setdefault(function.cls.number, []).append((function, write))
            if function.cls is not None and record.form == "function":
                self.methods_by_name[record.name].append(function)
            if function.cls is not None:
                self._tabulate_fills(function, function.cls)
            for name, definitions in record.definitions.items():
                for definition in definitions:
                    value = definition.value
                    if value[0] == "import" and value[2] is not None and value[2] != name:
                        self.aliases[value[2]].add(name)
                    elif value[0] in ("name", "attr") and value[-1] != name and record.form in ("module", "class"):
                        self.aliases[value[-1]].add(name)

    def _tabulate_fills(self, function: Function, cls: Class) -> None:
        """What a method puts into containers of its instance."""
        for base, fill in fills_of(function.record):
            if base[0] == "attr" and function.is_self(base[1]):
                self.fills[base[2]].setdefault(cls.number, []).append((function, fill))


def called_name(call: Expr) -> str | None:
    """The last name of what is called: `g` in `a.f.g(x)`."""
    func = call[1]
    return func[-1] if func[0] in ("name", "attr") else None


def handed_as(name: str, function: Function, project: Project) -> list[str]:
    """What a parameter is called in the methods that its function hands it on to, where all of one name agree."""
    found: list[str] = []
    for site in function.record.calls if function.parameter(name) is not None else ():
        if site.call[1][0] == "attr" and ("name", name) in site.call[2]:
            methods = project.methods_by_name.get(site.call[1][2], ())
            called = {_parameter_at(method, site.call[2].index(("name", name))) for method in methods}
            found += called if len(called) == 1 else ()
    return found


def _parameter_at(method: Function, place: int) -> str:
    """The name of the parameter that takes the argument at a place of a call; empty where there is none."""
    position = place + (method.binds != "")
    parameters = method.record.parameters
    return parameters[position].name if position < len(parameters) else ""


def uncalled(expr: Expr) -> Expr:
    """What a decorator or context manager is a use of: `a.b` of `@a.b` and of `@a.b(x)`."""
    return expr[1] if expr[0] == "call" else expr


def _module_name(file: SourceFile, packages: set[Path], root: Path | None) -> str:
    folder = file.path.parent
    top = None
    for ancestor in (folder, *folder.parents):
        if ancestor in packages:
            top = ancestor  # folders without __init__.py in between are namespace packages
    if top is not None:
        parts = list(file.path.relative_to(top.parent).with_suffix("").parts)
    else:
        inside = root is not None and file.path.is_relative_to(root)
        known = file.path.relative_to(root).as_posix() if root is not None and inside else file.name
        parts = list(PurePosixPath(known).with_suffix("").parts)
        parts = [part for part in parts if part not in ("..", "/", ".")]
        while len(parts) > 1 and parts[0] in SOURCE_FOLDERS:
            parts = parts[1:]
    if parts[-1] == "__init__":
        parts = parts[:-1] or ["__init__"]
    return ".".join(parts)


def _mro(cls: Class, orders: dict[int, tuple[Class, ...]]) -> tuple[Class, ...]:
    """The method resolution order; depth first without repeats where C3 finds none or inheritance is cyclic."""
    known = orders.get(cls.number)
    if known is not None:
        return known
    orders[cls.number] = (cls,)  # what a cycle sees
    tails = [list(_mro(base, orders)) for base in cls.bases]
    merged = tails[0] if len(tails) == 1 else _merge([*tails, list(cls.bases)])
    orders[cls.number] = tuple(dict.fromkeys([cls, *merged]))
    return orders[cls.number]


def _merge(rows: list[list[Class]]) -> list[Class]:
    merged: list[Class] = []
    rows = [list(row) for row in rows if row]
    while rows:
        for row in rows:
            head = row[0]
            if not any(head in other[1:] for other in rows):
                break
        else:
            head = rows[0][0]
        merged.append(head)
        rows = [kept for kept in ([c for c in row if c is not head] for row in rows) if kept]
    return merged
