"""What consumers ask of a family of classes, and the class of it that cannot answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nosync_lint.index.records import CallSite, Expr
from nosync_lint.link.flow import enclosing, holding
from nosync_lint.link.heat import Roots
from nosync_lint.link.inference import Inference
from nosync_lint.link.instances import Instances, Made, fact
from nosync_lint.link.names import At
from nosync_lint.link.parts import statements, tested, within
from nosync_lint.link.project import Class, Function, Project
from nosync_lint.models import load

FORWARDS = 2
"""A class that hands at least this many of its methods on to a member stands for it."""


class MissingMethod(NamedTuple):
    """A call of a method that instances of some classes do not have, though they may get there. `missing` holds one
    instance for each class, `siblings` the method where others have it."""

    function: Function
    site: CallSite
    missing: tuple[Made, ...]
    siblings: tuple[Function, ...]


class UnwrittenMethod(NamedTuple):
    """A class that declares nothing abstract itself, and inherits `method` as a declaration without a body, which
    `siblings` have written. None of its heirs has either."""

    cls: Class
    method: Function
    siblings: tuple[Function, ...]


class Pools:
    """Compares what is asked of the instances that reach a place with what their classes have."""

    def __init__(self, project: Project, inference: Inference, roots: Roots) -> None:
        self._project, self._inference, self._roots = project, inference, roots
        self._instances = Instances(project, inference, roots)
        self._families = _families(project)
        words = load("contracts")
        self._harmless = frozenset(words["classes"]["harmless_bases"])
        self._questions = frozenset(words["classes"]["asks_first"])
        self._closed: dict[int, bool] = {}
        self._handed: dict[int, list[str]] = {}
        self._asked: dict[tuple[int, int, str], frozenset[str]] = {}

    # -- missing methods --

    def missing_methods(self) -> Iterator[MissingMethod]:
        """The calls that some instance cannot answer, in project order."""
        partial = self._partial_methods()
        for function in self._project.reported:
            if self._roots.elsewhere(function) or self._roots.cold_module(function):
                continue
            for site in function.record.calls:
                func = site.call[1]
                if func[0] == "attr" and func[2] in partial and func[1][0] in ("name", "attr"):
                    found = self._missing(function, site, partial[func[2]])
                    if found is not None:
                        yield found

    def unwritten_methods(self) -> Iterator[UnwrittenMethod]:
        """What classes lack of what a base of theirs declares, in project order; of heirs that lack it, the first."""
        for cls in self._project.classes:
            if not cls.module.file.reported or self._declares(cls) or not self._is_closed(cls):
                continue
            declared = {name: m for one in reversed(cls.mro) for name, m in one.methods.items() if _is_abstract(m)}
            lacking = [m for name, m in declared.items() if cls.method(name) is m and not self._written(cls, m)]
            if len(lacking) == len(declared):
                continue  # no implementation, but another base
            for method in lacking:
                assert method.cls is not None
                above = [one for one in cls.mro[1:] if method.cls in one.mro[1:] and not self._declares(one)]
                written = [one.methods.get(method.record.name) for one in method.cls.descendants()]
                siblings = tuple(one for one in written if one is not None and not _is_abstract(one))
                if siblings and not above:
                    yield UnwrittenMethod(cls, method, siblings)

    @staticmethod
    def _declares(cls: Class) -> bool:
        return any(_is_abstract(method) for method in cls.methods.values())

    def _written(self, cls: Class, method: Function) -> bool:
        """Whether a class, or one of its heirs, has a member where another one only declares a method."""
        name = method.record.name
        writes = self._project.own_writes.get(name, {})
        below = [one for cls in (cls, *cls.descendants()) for one in cls.mro if one is not method.cls]
        return any(
            one.number in writes or name in one.module.functions[one.record.body].record.definitions for one in below
        )

    def _partial_methods(self) -> dict[str, set[int]]:
        """Methods that some classes of a family have and others lack, with those families: where two have one of their
        own, or one that lacks it stands for another. A class lacks a method only where all its members are known."""
        members: dict[int, list[Class]] = {}
        for cls in self._project.classes:
            members.setdefault(self._families[cls.number], []).append(cls)
        found: dict[str, set[int]] = {}
        for family, classes in members.items():
            closed = [cls for cls in classes if len(classes) > 1 and self._is_closed(cls)]
            facades = [cls for cls in closed if self._forwards(cls)]
            owners: dict[str, set[Class]] = {}
            for cls in classes if closed else ():
                for name in cls.methods:
                    owners.setdefault(name, set()).add(cls)
            for name, own in owners.items():
                having = own.union(*(cls.descendants() for cls in own))
                many = len(_tops(own)) > 1 and any(cls not in having for cls in closed)
                if many or any(cls not in having and self._stands_for(cls, name) for cls in facades):
                    found.setdefault(name, set()).add(family)
        outside = self._project.writes_by_attribute
        return {
            name: families
            for name, families in found.items()
            if all(function.is_self(write.base) for function, write in outside.get(name, ()))
        }

    def _missing(self, function: Function, site: CallSite, families: set[int]) -> MissingMethod | None:
        at = At(function, site.seq, site.block)
        receiver, name = site.call[1][1], site.call[1][2]
        if function.is_self(receiver):
            return None
        value = self._inference.value(receiver, at)
        declared = (
            [self._project.classes[ref] for ref in value.ref if isinstance(ref, int)] if value.kind == "object" else []
        )
        if all(self._has(cls, name) or self._families[cls.number] not in families for cls in declared):
            return None
        if self._asks_first(function, site):
            return None
        made = [one for one in self._instances.of(receiver, at) if not self._is_part(one)]
        known = self._instances.facts(at)
        if not self._decidable(function, site, {word for one in made for word, _ in one.facts}):
            return None
        reaching = [one for one in made if not any((word, not outcome) in known for word, outcome in one.facts)]
        refuted = {one.cls for one in made} - {one.cls for one in reaching}
        having = {one.cls for one in reaching if self._has(one.cls, name)}
        lacking = {one.cls for one in reaching} - having
        lacking = {cls for cls in lacking if not any(base in refuted for base in cls.mro[1:])}
        if not having or not any(self._is_closed(cls) for cls in lacking):
            return None
        asked = self._asked_of(function, receiver) - {name}
        lacking = {cls for cls in lacking if not any(self._refuses(cls, other) for other in asked)}
        answered = {other for other in asked if any(self._has(cls, other) for cls in having)}
        suited = {cls for cls in lacking if self._is_closed(cls) and all(self._has(cls, other) for other in answered)}
        if len(_tops(lacking)) > 1:
            return None
        siblings = _tops(self._definers({one.cls for one in made if self._has(one.cls, name)}, name))
        if len(siblings) < 2:
            suited = {cls for cls in suited if self._stands_for(cls, name)}
        missing = {one.cls.number: one for one in reversed(reaching) if one.cls in suited}
        listed = sorted(siblings, key=lambda cls: cls.number)
        methods = tuple(method for cls in listed if (method := cls.method(name)) is not None)
        return MissingMethod(function, site, tuple(missing[n] for n in sorted(missing)), methods) if missing else None

    def _asks_first(self, function: Function, site: CallSite) -> bool:
        """Whether code around a call asks what the object has, or catches that it lacks something."""
        blocks = function.record.blocks
        if any(blocks[number].form == "try" for number in enclosing(blocks, site.block)):
            return True
        tests = tested(function.record, site.seq, site.block)
        return any(one[0] == "call" and one[1][-1] in self._questions for one in tests)

    @staticmethod
    def _decidable(function: Function, site: CallSite, words: set[str]) -> bool:
        """Whether all tests that hold at a call are asked where the instances are made, too. That several things are
        not all true says little, and is let pass."""
        for test, outcome in holding(function.record, site.seq, site.block):
            simple = fact(test, outcome)
            if simple is None:
                if outcome or test[:2] != ("bool", "and"):
                    return False
            elif simple[0] not in words:
                return False
        return True

    def _is_part(self, made: Made) -> bool:
        """Whether an instance is made by a class of its own family, as a part of it; or by a test."""
        owner: Function | None = made.function
        while owner is not None and owner.cls is None:
            owner = owner.parent
        family = self._families[made.cls.number]
        inside = owner is not None and owner.cls is not None and self._families[owner.cls.number] == family
        return inside or self._roots.cold_module(made.function) is not None

    def _asked_of(self, function: Function, receiver: Expr) -> frozenset[str]:
        """All members that a class, or a module outside its classes, asks of what goes by the same last name."""
        owner: Function | None = function
        while owner is not None and owner.cls is None:
            owner = owner.parent
        cls = owner.cls if owner is not None else None
        key = (function.module.number, cls.number if cls is not None else -1, receiver[-1])
        if key not in self._asked:
            classes = cls.mro if cls is not None else (None,)
            inside = [one for each in classes for one in (each or function).module.functions if one.cls in (each, None)]
            self._asked[key] = frozenset(
                part[2]
                for one in inside
                for seq, expr in statements(one.record)
                for part in within(expr)
                if part[0] == "attr" and part[1][0] in ("name", "attr") and part[1][-1] == receiver[-1]
            )
        return self._asked[key]

    # -- what classes have --

    def _has(self, cls: Class, name: str) -> bool:
        """Whether instances of a class have a member of this name."""
        if cls.method(name) is not None:
            return True
        own = self._project.own_writes.get(name, {})
        return any(
            own.get(one.number) or name in one.module.functions[one.record.body].record.definitions for one in cls.mro
        )

    @staticmethod
    def _refuses(cls: Class, name: str) -> bool:
        method = cls.method(name)
        return method is not None and "stub" in method.record.flags

    def _is_closed(self, cls: Class) -> bool:
        """Whether all members of a class are written in the project."""
        if cls.number not in self._closed:
            self._closed[cls.number] = not (cls.externs - self._harmless) and all(
                "__getattr__" not in one.methods
                and "__getattribute__" not in one.methods
                and all(self._is_known(one, base) for base in one.record.bases)
                for one in cls.mro
            )
        return self._closed[cls.number]

    def _is_known(self, cls: Class, base: Expr) -> bool:
        path = base[1] if base[0] == "sub" else base
        if path == ("name", "object"):
            return True
        value = self._project.static_path(cls.module, path, cls.record.scope)
        return value is not None and (value.kind == "class" or (value.kind == "extern" and value.ref in self._harmless))

    @staticmethod
    def _definers(classes: set[Class], name: str) -> set[Class]:
        """The classes in which a method of these classes is written."""
        return {one for cls in classes if (one := next((c for c in cls.mro if name in c.methods), None)) is not None}

    def _stands_for(self, cls: Class, name: str) -> bool:
        """Whether a class holds a member that has the method, and hands other methods on to it."""
        return any(self._member_has(cls, member, name) for member in self._forwards(cls))

    def _forwards(self, cls: Class) -> list[str]:
        """The members to which a class hands methods on."""
        if cls.number not in self._handed:
            handed: dict[str, set[str]] = {}
            for name, method in {
                name: method for one in reversed(cls.mro) for name, method in one.methods.items()
            }.items():
                for site in method.record.calls:
                    func = site.call[1]
                    if func[0] == "attr" and func[2] == name and func[1][0] == "attr" and method.is_self(func[1][1]):
                        handed.setdefault(func[1][2], set()).add(name)
            self._handed[cls.number] = [member for member, names in handed.items() if len(names) >= FORWARDS]
        return self._handed[cls.number]

    def _member_has(self, cls: Class, member: str, name: str) -> bool:
        value = self._inference.solver.read(("attr", cls.number, member))
        refs = value.ref if value.kind == "object" else ()
        return any(isinstance(ref, int) and self._has(self._project.classes[ref], name) for ref in refs)


def _is_abstract(method: Function) -> bool:
    return "abstract" in method.record.flags


def _families(project: Project) -> list[int]:
    """For each class, the first class that it is connected to by inheritance."""
    family = list(range(len(project.classes)))

    def find(number: int) -> int:
        while family[number] != number:
            number = family[number]
        return number

    for cls in project.classes:
        for base in cls.bases:
            one, other = find(cls.number), find(base.number)
            family[max(one, other)] = min(one, other)
    return [find(number) for number in range(len(family))]


def _tops(classes: set[Class]) -> set[Class]:
    """The classes of a set that inherit from no other of it."""
    return {cls for cls in classes if not any(other is not cls and other in cls.mro for other in classes)}
