"""Which C++ functions a Python call runs: through registered ops, modules that are compiled, and exported symbols."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from nosync_lint.index.cuda_records import CudaFunction
from nosync_lint.index.cuda_records import Expr as CudaExpr
from nosync_lint.index.records import CallSite, Expr
from nosync_lint.link.call_models import Given
from nosync_lint.link.cxx_bodies import Unit
from nosync_lint.link.cxx_models import CxxModels, Loader, load_place, matches
from nosync_lint.link.cxx_values import CxxValues
from nosync_lint.link.inference import Inference
from nosync_lint.link.names import At
from nosync_lint.link.project import Function, Project
from nosync_lint.source import CUDA_SUFFIXES


class Export(NamedTuple):
    """A C++ function under the name that Python calls it by. `form`: "module", "library" or "symbol"; `space`: the
    module or namespace, empty where the build names it. `path`: the file of the registration."""

    form: str
    space: str
    name: str
    unit: Unit
    path: str


class Extensions:
    """The exports of the linked C++ files, and the Python calls of them."""

    def __init__(self, project: Project, inference: Inference, values: CxxValues, models: CxxModels) -> None:
        self._project, self._inference, self._values, self._models = project, inference, values, models
        self.exports: dict[str, list[Export]] = {}
        for path, index in values.sources.files.items():
            for function in index.functions:
                form = models.exports.get(function.name)
                if form is not None:
                    self._add(self._registered(form, path, function))
            for call in index.calls:
                if call[1][0] == "name" and models.exports.get(call[1][1]) == "symbol" and len(call[2]) > 1:
                    self._add(
                        Export("symbol", "", call[2][0][1], unit, path)
                        for unit in self._targets(path, None, call[2][1:])
                        if call[2][0][0] == "name"
                    )
        self._tops = {module.name.partition(".")[0] for module in project.modules}
        self._declared = self._declarations()

    @property
    def lambdas(self) -> list[Unit]:
        """Exported lambdas, which are no functions by themselves."""
        return [one.unit for found in self.exports.values() for one in found if one.unit.closure >= 0]

    def calls(self) -> Iterator[tuple[Function, CallSite, tuple[Unit, ...]]]:
        """Every Python call that runs a C++ function of the project, with the functions."""
        names = {alias for name in self.exports for alias in (name, *self._project.aliases.get(name, ()))}
        names |= self._inlined()
        sites = [one for name in sorted(names) for one in self._project.calls_by_name.get(name, ())]
        sites += [
            (function, site)
            for function, site in self._project.calls_by_name.get("default", ())
            if site.call[1][0] == "attr" and site.call[1][1][-1] in self.exports
        ]
        for function, site in sorted(sites, key=lambda one: (one[0].number, one[1].call[4])):
            units = self._run_by(function, site)
            if units:
                yield function, site, tuple({unit.key: unit for unit in units}.values())

    # -- registrations --

    def _add(self, exports: Iterator[Export]) -> None:
        for one in exports:
            self.exports.setdefault(one.name.rpartition(".")[2], []).append(one)

    def _registered(self, form: str, path: str, function: CudaFunction) -> Iterator[Export]:
        """What a block of registrations exports."""
        names, words = self._models.names, [p.type or p.name for p in function.parameters]
        if any(matches(word, names["other_keys"]) for word in words[1:-1]):
            return
        space = "" if not words or words[0] in names["placeholders"] else words[0]
        for called in self._values.body(Unit(path, function)).calls:
            callee, arguments = called.call[1], called.call[2]
            if callee[0] != "field" or callee[2] not in names["registers"] or len(arguments) < 2:
                continue
            name = _told(arguments[0])
            keys = [word for argument in arguments[1:] if (word := _key(argument))]
            if name is None or any(matches(word, names["other_keys"]) for word in keys):
                continue
            scope, _, last = name.partition("(")[0].rpartition("::")
            last = last.partition(".")[0].strip() if form == "library" else _owner(callee[1]) + last
            for unit in self._targets(path, function, arguments[1:]):
                yield Export(form, scope or space, last, unit, path)

    def _targets(self, path: str, function: CudaFunction | None, arguments: tuple[CudaExpr, ...]) -> list[Unit]:
        """The function that a registration is given, through wrappers, casts and `&`."""
        for argument in arguments:
            expr = argument
            while expr[0] in ("unary", "cast") or (expr[0] == "call" and expr[2]):
                expr = expr[2] if expr[0] != "call" else expr[2][-1]
            if expr[0] == "lambda" and function is not None:
                return [Unit(path, function, expr[1])]
            found = self._values.named(path, expr[1]) if expr[0] == "name" else []
            if found:
                return found
        return []

    # -- calls of Python --

    def _run_by(self, function: Function, site: CallSite) -> list[Unit]:
        func = site.call[1]
        if func[0] == "attr" and func[2] == "default":
            func = func[1]
        reference = self._reference(func, function, site)
        if reference is None:
            return []
        made = load_place(reference)
        if made is not None:
            return self._of_loaded(*made)
        head, _, name = reference.rpartition(".")
        for ops in self._models.names["ops"]:
            if head.startswith(ops + "."):
                space = head.removeprefix(ops + ".")
                return [one.unit for one in self._find("library", name) if one.space in (space, "")]
        return self._of_module(head, name)

    def _find(self, form: str, name: str) -> list[Export]:
        return [one for one in self.exports.get(name, ()) if one.form == form]

    def _reference(self, func: Expr, function: Function, site: CallSite) -> str | None:
        """The dotted name of what is called, where it is not of the project."""
        value = self._inference.value(func, At(function, site.seq, site.block))
        if value.kind == "extern":
            return str(value.ref)
        if value.kind in ("function", "method", "class", "object"):
            return None
        parts: list[str] = []
        while func[0] == "attr":
            parts.append(func[2])
            func = func[1]
        imported = self._imported(function, func[1]) if func[0] == "name" else None
        return ".".join([imported, *reversed(parts)]) if imported is not None else None

    def _imported(self, function: Function, name: str) -> str | None:
        """The dotted name that an import binds, of a module that is not among the sources."""
        module = function.module
        for record in (function.record, module.index.functions[0]):
            for one in record.definitions.get(name, ()):
                if one.value[0] == "import":
                    _, target, member, level = one.value
                    if level:
                        package = module.name.split(".")[: None if module.is_package else -1]
                        kept = package[: len(package) - (level - 1)]
                        target = ".".join([*kept, target] if target else kept)
                    return f"{target}.{member}" if member else str(target)
        return None

    def _of_module(self, head: str, name: str) -> list[Unit]:
        """What a module is compiled from: by its declaration, its registered name, or its place in the project."""
        classes = [part for part in head.split(".") if part[:1].isupper()][-1:]
        module, listed = head.removesuffix("." + classes[0]) if classes else head, ".".join([*classes, name])
        found = [one for one in self._find("module", name) if one.name == listed]
        named = [one.unit for one in found if one.space and one.space == module.rpartition(".")[2]]
        if named:
            return named
        files = self._declared.get(module)
        placed = module.partition(".")[0] in self._tops and self._project.find_module(module) is None
        if files is None and not placed:
            return []
        inside = [one.unit for one in found if not one.space and (not files or PurePosixPath(one.path).name in files)]
        return inside if files or len({unit.key for unit in inside}) == 1 else []

    def _of_loaded(self, loader: str, number: int, pos: int, name: str) -> list[Unit]:
        """What a call of a loader compiles under a name."""
        function = self._project.functions[number]
        call = next(site.call for site in function.record.calls if site.call[4] == pos)
        model = self._models.loaders[loader]
        files = self._files(model, call, function)
        listed = self.exports.get(name.rpartition(".")[2], ())
        found = [one for one in listed if one.name == name and one.form in ("module", "symbol")]
        inside = [one.unit for one in found if not files or PurePosixPath(one.path).name in files]
        if not inside and name in self._exported(model, call):
            inside = [unit for file in files for unit in self._values.in_file(file, name)]
        return inside if files or len({unit.key for unit in inside}) == 1 else []

    def _exported(self, model: Loader, call: Expr) -> set[str]:
        expr = Given(call, None).find(model.exported) if model.exported is not None else None
        return set(_strings(expr)) if expr is not None else set()

    def _inlined(self) -> set[str]:
        """Functions that loaders export by a list."""
        return {
            name
            for loader, model in self._models.loaders.items()
            if model.exported is not None
            for _, site in self._project.calls_by_name.get(loader.rpartition(".")[2], ())
            for name in self._exported(model, site.call)
        }

    def _files(self, model: Loader, call: Expr, function: Function) -> frozenset[str]:
        """The names of the source files that a call lists; none where they are not told."""
        given = Given(call, None)
        found: set[str] = set()
        for argument in model.sources:
            expr = given.find(argument)
            if expr is None:
                continue
            listed = [expr]
            if expr[0] == "name":
                for record in (function.record, function.module.index.functions[0]):
                    listed += [one.value for one in record.definitions.get(expr[1], ())]
            found |= {
                PurePosixPath(text).name
                for one in listed
                for text in _strings(one)
                if PurePosixPath(text).suffix in CUDA_SUFFIXES
            }
        return frozenset(found)

    def _declarations(self) -> Mapping[str, frozenset[str]]:
        """Extensions that build scripts declare, by their dotted names, with their source files."""
        found: dict[str, frozenset[str]] = {}
        for declarer, model in self._models.declarers.items():
            for function, site in self._project.calls_by_name.get(declarer, ()):
                expr = Given(site.call, None).find(model.name) if model.name is not None else None
                if expr is not None and expr[0] == "const" and isinstance(expr[1], str):
                    found[expr[1]] = self._files(model, site.call, function)
        return found


def _told(expr: CudaExpr) -> str | None:
    """A string, also one inside a macro of selective builds."""
    while expr[0] == "call" and expr[2]:
        expr = expr[2][0]
    return str(expr[1]) if expr[0] == "text" else None


def _key(expr: CudaExpr) -> str:
    """The last word of a plain name, as which dispatch keys are written."""
    return str(expr[1].rpartition("::")[2]) if expr[0] == "name" else ""


def _owner(receiver: CudaExpr) -> str:
    """The class that a chain of registrations belongs to, as a prefix; empty for a module."""
    while receiver[0] == "call" and receiver[1][0] == "field":
        receiver = receiver[1][1]
    named = [one[1] for one in receiver[2] if one[0] == "text"] if receiver[0] == "call" else []
    return f"{named[0]}." if named else ""


def _strings(expr: Expr) -> Iterator[str]:
    """The strings in an expression."""
    pending = [expr]
    while pending:
        one = pending.pop()
        if one and one[0] == "const":
            if isinstance(one[1], str):
                yield one[1]
            continue
        pending += [part for part in one if isinstance(part, tuple)]
