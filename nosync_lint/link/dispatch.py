"""Which methods a call may run: by the receiver's class and those below it, or by a name only one family has."""

from __future__ import annotations

import io

from nosync_lint.link.calls import Target
from nosync_lint.link.project import Class, Function, Project
from nosync_lint.link.values import Value

OF_BUILTINS = frozenset().union(*map(dir, (str, bytes, list, tuple, dict, set, int, float, io.TextIOWrapper)))
"""What texts, containers, numbers and files answer to, whatever class of a project does as well."""


class Dispatch:
    """Class-hierarchy questions about method calls."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._families: dict[str, Class | None] = {}
        self._only: dict[str, Function | None] = {}

    def callees(self, base: Value, name: str) -> tuple[Function, ...]:
        """The methods that `base.name()` may run: by its class, and by its subclasses unless it is exact."""
        found: dict[int, Function] = {}
        for ref in base.ref:
            if not isinstance(ref, int):
                continue
            cls = self.project.classes[ref]
            method = cls.method(name)
            if method is not None:
                found[method.number] = method
            if not base.exact:
                for one in cls.descendants():
                    if name in one.methods:
                        found[one.methods[name].number] = one.methods[name]
        return tuple(found.values())

    def instances_run(self, called: Value) -> tuple[Function, ...]:
        """The methods that calling an instance itself may run."""
        return self.callees(called, "__call__") or self.callees(called, "forward")

    def with_externs(self, called: Value) -> Value:
        """An instance under the names of the external classes that it is one of, as well as its own."""
        externs = {name for ref in called.ref if isinstance(ref, int) for name in self.project.classes[ref].externs}
        return called._replace(ref=(*called.ref, *sorted(externs)))

    def receivers(self, base: Value, name: str) -> list[Target]:
        """`callees` with the class that each method would run on, where it is exactly known."""
        found = []
        for ref in base.ref:
            if isinstance(ref, int):
                one = base._replace(ref=(ref,))
                exact = ref if base.exact else None
                found += [Target(method.number, method.binds != "", exact) for method in self.callees(one, name)]
        return list(dict.fromkeys(found))

    def only(self, name: str) -> Function | None:
        """The one method of the project with a distinctive name; a call of it needs no receiver to be resolved."""
        if name not in self._only:
            methods = self.project.methods_by_name.get(name, [])
            distinctive = len(methods) == 1 and len(name) > 7 and "_" in name.strip("_") and not name.endswith("__")
            self._only[name] = methods[0] if distinctive and name not in self.project.writes_by_attribute else None
        return self._only[name]

    def family(self, name: str) -> Class | None:
        """The class that an attribute or method of this name belongs to, where only it and its subclasses have one."""
        if name not in self._families:
            writers = {
                function.cls
                for function, write in self.project.writes_by_attribute.get(name, ())
                if function.cls is not None and function.is_self(write.base)
            }
            methods = {method.cls for method in self.project.methods_by_name.get(name, ()) if method.cls is not None}
            owners = sorted(writers | methods, key=lambda cls: cls.number)
            tops = [cls for cls in owners if all(cls in other.mro for other in owners)]
            self._families[name] = tops[0] if tops and len(name) > 2 and name not in OF_BUILTINS else None
        return self._families[name]
