"""What a C++ file sees: its includes among the given files, and the functions, structs and names declared there."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from nosync_lint.index.cuda_records import CudaFunction, CudaIndex, CudaStruct, Expr


class Place(NamedTuple):
    """A function and the file that holds it."""

    path: str
    function: CudaFunction


class KernelSources:
    """The indexed C++ and CUDA files by name. Includes are resolved among these files only, by path suffix."""

    def __init__(self, files: Mapping[str, CudaIndex]) -> None:
        self.files = dict(sorted(files.items()))
        self._by_base: dict[str, list[str]] = defaultdict(list)
        self._functions: dict[str, list[Place]] = defaultdict(list)
        self._structs: dict[str, list[tuple[str, CudaStruct]]] = defaultdict(list)
        self._constants: dict[str, list[tuple[str, str, Expr]]] = defaultdict(list)
        self._aliases: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for path, index in self.files.items():
            self._by_base[posixpath.basename(path)].append(path)
            for function in index.functions:
                self._functions[function.name].append(Place(path, function))
            for struct in index.structs:
                self._structs[struct.name].append((path, struct))
            for constant in index.constants:
                self._constants[constant.name].append((path, constant.owner, constant.value))
            for name, text in index.aliases:
                self._aliases[name].append((path, text))
        self.visible = lru_cache(maxsize=None)(self._visible)
        self.struct = lru_cache(maxsize=None)(self._struct)

    def _visible(self, path: str) -> frozenset[str]:
        """The file and all it includes, directly or not."""
        seen: set[str] = set()
        pending = [path]
        while pending:
            current = pending.pop()
            if current not in seen and current in self.files:
                seen.add(current)
                pending += [found for name in self.files[current].includes if (found := self._include(current, name))]
        return frozenset(seen)

    def _include(self, path: str, name: str) -> str | None:
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        if beside in self.files:
            return beside
        tail = posixpath.normpath(name).lstrip("./")
        found = [p for p in self._by_base[posixpath.basename(name)] if p == tail or p.endswith("/" + tail)]
        return max(found, key=lambda p: (len(posixpath.commonprefix([p, path])), p), default=None)

    def functions(self, path: str, name: str, owner: str = "") -> list[Place]:
        """Functions of that name that `path` sees; those of the class of `name` or `owner`, where there are any."""
        scope, _, last = name.rpartition("::")
        seen = self.visible(path)
        found = [place for place in self._functions.get(last, ()) if place.path in seen]
        wanted = scope.rpartition("::")[2] or owner
        return [place for place in found if wanted and place.function.owner == wanted] or found

    def constant(self, path: str, name: str, owner: str) -> Expr | None:
        """The value of a constant of the class `owner` or of a namespace."""
        seen = self.visible(path)
        last = name.rpartition("::")[2]
        found = [c for c in self._constants.get(last, ()) if c[0] in seen and c[1] in (owner, "")]
        return found[0][2] if found else None

    def alias(self, path: str, name: str) -> str:
        """What a type alias stands for, or the name itself."""
        seen = self.visible(path)
        for _ in range(8):
            text = next((text for where, text in self._aliases.get(name, ()) if where in seen), None)
            if text is None or text == name:
                break
            name = text
        return name

    def _struct(self, path: str, type_text: str) -> CudaStruct | None:
        """The struct that a type names, template arguments, pointers and qualifiers aside."""
        name = bare_type(type_text)
        seen = self.visible(path)
        for candidate in (name, bare_type(self.alias(path, name))):
            found = [struct for where, struct in self._structs.get(candidate, ()) if where in seen and struct.fields]
            if found:
                return found[0]
        return None

    def field_type(self, path: str, type_text: str, name: str) -> str:
        """The type of a member or (`[]`) an element of a value of that type; empty where it is not known."""
        if name == "[]":
            if type_text.endswith("[]"):
                return type_text[:-2]
            return type_text[:-1] if type_text.endswith("*") else ""
        struct = self.struct(path, type_text)
        for _ in range(8):
            if struct is None:
                break
            for field in struct.fields:
                if field.name == name:
                    return field.type
            struct = self.struct(path, struct.bases[0]) if struct.bases else None
        return ""


def bare_type(type_text: str) -> str:
    """`P` for `const ns::P<T>&`, `P*` and `typename X::P`."""
    return type_text.split("<")[0].rstrip("*[]&").rpartition("::")[2].removeprefix("typename")
