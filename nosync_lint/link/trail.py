"""How an expression is known, or where the trail of an unknown one ends: the sources of its value, followed back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nosync_lint.answers import Operand, Step
from nosync_lint.index.records import CallSite, Expr, row_of
from nosync_lint.link.inference import Inference
from nosync_lint.link.names import At
from nosync_lint.link.project import Function, Project
from nosync_lint.link.sources import Sources
from nosync_lint.link.summary_sources import Node, Source
from nosync_lint.link.values import ACCELERATED, HOST, Origin, Value, alternatives
from nosync_lint.link.wording import describe, outline, wording

LONGEST = 9
"""The trail of something unknown is followed at most this many steps back."""
PLAIN = 6
"""The trail of something known is followed at most this many steps back."""
ASIDE = 2
"""Further voices are followed this many steps back."""
ENDS = 2
"""At most this many reasons for the end of one trail are told."""
SHOWN = 3
"""At most this many sources of one value are told."""


class Trails:
    """Follows expressions back over a linked program."""

    def __init__(self, project: Project, inference: Inference, sources: Sources) -> None:
        self._project, self._inference, self._sources = project, inference, sources

    def operand(self, role: str, expr: Expr, at: At) -> Operand:
        """An expression that decides whether a site waits, with all that is known of it."""
        value = self._inference.value(expr, at)
        length = PLAIN if value.known else LONGEST
        steps, end = self._steps(self._sources.node(expr, at), value, length)
        said = self.words(value)
        placed = value.kind != "tensor" or value.where is not None
        if not placed:
            said += ", and it is not known where it lives"
        elif value.kind in ("tensor", "batch", "device"):
            said += f" ({value.confidence.value})"
        return Operand(role, wording(expr), said, value.known and placed, steps, end)

    def unresolved(self, function: Function, site: CallSite) -> Step | None:
        """A call of which it is not known what it runs, with the trail of what is called; None where it is known."""
        if not self.is_unresolved(function, site):
            return None
        func, at = site.call[1], At(function, site.seq, site.block)
        asked = func
        if func[0] == "attr" and not self._inference.value(func[1], at).known:
            asked = func[1]
        steps, end = self._steps(self._sources.node(asked, at), self._inference.value(asked, at), ASIDE)
        note = f"`{outline(site.call)}`: `{outline(asked)}` is not known"
        return Step(function.module.file.name, row_of(site.call[4]), note, "", steps, end)

    def all_unresolved(self, function: Function, sites: Sequence[CallSite]) -> list[Step]:
        """The calls among some of which it is not known what they run; several of one thing as one."""
        found: dict[str, list[Step]] = {}
        for site in sites:
            step = self.unresolved(function, site)
            if step is not None:
                found.setdefault(step.note.rpartition("`: `")[2], []).append(step)
        return [
            replace(first, more=f"and {len(others)} more calls of it" if others else "")
            for first, *others in found.values()
        ]

    def is_unresolved(self, function: Function, site: CallSite) -> bool:
        """Whether it is not known what a call runs."""
        return not self._inference.targets(function, site) and not self._is_outside(function, site)

    def _is_outside(self, function: Function, site: CallSite) -> bool:
        """Whether a call runs a builtin, a library, a tensor operation, or a class without a constructor."""
        func, at = site.call[1], At(function, site.seq, site.block)
        callee = self._inference.value(func, at)
        if callee.known:
            return True
        if func[0] != "attr":
            return False
        if func[1][:2] == ("call", ("name", "super")):
            return True
        base = self._inference.value(func[1], at)
        if base.kind in ("object", "class"):
            classes = [self._project.classes[ref] for ref in base.ref or () if isinstance(ref, int)]
            return not classes or any(cls.externs for cls in classes)
        return base.known

    # -- steps --

    def _steps(
        self, node: Node, value: Value, left: int, seen: frozenset[Node] = frozenset(), alone: bool = True
    ) -> tuple[tuple[Step, ...], str]:
        """What a value follows from, and why the trail ends here if it does. Below a place where several voices are
        told (then it is not `alone`), one of each is enough."""
        found = self._sources.of(node)
        fresh = [one for one in found.sources if one.node is None or one.node not in seen]
        if not fresh:
            return (), self._end(value, found.ends, bool(found.sources))
        if left <= 0:
            return (), "" if value.known else "followed no further"
        agreeing, others = _divided(fresh, value)
        width = SHOWN if alone else 1
        if not value.known:
            chosen = [*agreeing[:width], *_dissent(others, value)][:width]
        elif (alone and value.trust < 2) or not agreeing:
            chosen = agreeing[:1] + _dissent(others, value)[:width]
        else:
            chosen = agreeing[:1]
        alone = alone and len(chosen) == 1
        steps = [
            self._step(one, left - 1 if one is chosen[0] else min(left - 1, ASIDE), seen | {node}, alone)
            for one in chosen
        ]
        told = sum(one in agreeing for one in chosen)
        if len(agreeing) > told:
            steps[told - 1] = replace(steps[told - 1], more=f"and {len(agreeing) - told} more like it")
        return tuple(steps), "" if agreeing else self._end(value, found.ends, False)

    def _step(self, source: Source, left: int, seen: frozenset[Node], alone: bool) -> Step:
        steps: tuple[Step, ...] = ()
        end = ""
        if source.node is not None:
            steps, end = self._steps(source.node, source.value, left, seen, alone)
        said = self.words(source.value)
        return Step(source.function.module.file.name, source.row, source.note, said, steps, end)

    def _end(self, value: Value, ends: Sequence[str], circular: bool) -> str:
        """Why a trail ends: for a value that is known all the same, the convention or story behind it."""
        if not value.known:
            told = "; ".join(ends[:ENDS]) + (f"; and {len(ends) - ENDS} more" if len(ends) > ENDS else "")
            return told or ("it leads back to a place above" if circular else "")
        origin = value.why
        return f"{self._place(origin)} {origin.note}" if origin is not None and origin.note else ""

    def _place(self, origin: Origin) -> str:
        return f"{self._project.modules[origin.module].file.name}:{origin.row}"

    # -- words --

    def words(self, value: Value) -> str:
        """A value in words, with its article."""
        kind = value.kind
        if kind in ("unknown", "bottom"):
            return "unknown"
        if kind in ("tensor", "numpy"):
            return describe(value)
        if kind == "none":
            return "None"
        if kind in ("int", "float", "bool", "str"):
            if value.ref is None:
                return "a str" if kind == "str" else f"a{'n' if kind == 'int' else ''} {kind}"
            texts = [repr(one) for one in alternatives(value.ref)]
            return f"the {kind} " + " or ".join(texts)
        if kind in ("object", "class", "function", "method", "module", "extern"):
            return self._named(value)
        if kind == "device":
            return f"a device{_PLACES.get(value.where or '', '')}"
        if kind == "dtype":
            return f"a dtype ({value.dtype})" if value.dtype else "a dtype"
        if kind == "batch":
            return f"a batch: {self.words(value.items)}, or a record of such" if value.items is not None else "a batch"
        return self._container(value)

    def _named(self, value: Value) -> str:
        kind = value.kind
        if kind in ("module", "extern"):
            name = str(value.ref)
            return f"the module `{name}`" if kind == "module" else f"`{name.removeprefix('builtins.')}`"
        if kind in ("object", "class"):
            names = [
                self._project.classes[ref].record.qualname if isinstance(ref, int) else ref for ref in value.ref or ()
            ]
            text = " or ".join(f"`{name}`" for name in names[:SHOWN]) + (" or others" if len(names) > SHOWN else "")
            return f"an instance of {text}" if kind == "object" else f"the class {text}"
        functions = [self._project.functions[number] for number in value.ref or ()]
        text = " or ".join(f"`{one.record.qualname}`" for one in functions[:SHOWN])
        return f"the {kind} {text}" + (" or others" if len(functions) > SHOWN else "")

    def _container(self, value: Value) -> str:
        kind, items = value.kind, value.items
        name = {"iter": "an iterable", "number": "a number"}.get(kind, f"a {kind}")
        if isinstance(items, Value):
            return f"{name}, each item {self.words(items)}" if items.known else name
        if items:
            inner = ", ".join(self.words(one) for one in items[:SHOWN])
            return f"{name} ({inner}{', ...' if len(items) > SHOWN else ''})"
        return name


_PLACES = {
    "device": " of the accelerator",
    "parametrised": " that is given as parameter",
    "host": " of the host",
    "loaded": " of the host",
}


def _divided(sources: Sequence[Source], value: Value) -> tuple[list[Source], list[Source]]:
    """The sources that say what the value is, the best first, and the others."""
    agreeing = [one for one in sources if _says(one.value) == _says(value)]
    if value.known:
        agreeing = agreeing or [one for one in sources if one.value.kind == value.kind]
        agreeing.sort(key=lambda one: -one.value.trust)
    return agreeing, [one for one in sources if one not in agreeing]


def _dissent(sources: Sequence[Source], value: Value) -> list[Source]:
    """One source for each other thing that is said; not those that say the same and less, or nothing."""
    first: dict[tuple[str, str | None], Source] = {}
    for one in sources:
        said = _says(one.value)
        less = said == (_says(value)[0], None) or one.value.kind == "none"
        if not less:
            first.setdefault(said, one)
    return list(first.values())


def _says(value: Value) -> tuple[str, str | None]:
    """What of a value matters to a reader: its kind and its place."""
    if value.kind in ("unknown", "bottom"):
        return "unknown", None
    where = "device" if value.where in ACCELERATED else "host" if value.where in HOST else value.where
    return "number" if value.kind in ("int", "float", "bool") else value.kind, where
