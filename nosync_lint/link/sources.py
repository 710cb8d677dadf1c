"""What a value follows from, one step back: definitions that reach, parts of an operation, what a call gives back.

Asks the same questions as `inference` does, one at a time, so that a reader can follow where an answer comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from nosync_lint.index.records import Expr, FunctionRecord, row_of
from nosync_lint.link.flow import holding, reaching, tested_place
from nosync_lint.link.inference import Inference
from nosync_lint.link.names import FILLED, At
from nosync_lint.link.project import Function, Project
from nosync_lint.link.summary_sources import Asked, Node, Source, SummarySources, plain
from nosync_lint.link.values import Value
from nosync_lint.link.wording import wording


class Found(NamedTuple):
    """The sources of a value, and why there are no more."""

    sources: list[Source]
    ends: list[str]


class Sources(SummarySources):
    """Finds the sources of expressions."""

    def __init__(
        self, project: Project, inference: Inference, elsewhere: Callable[[Function, int], bool] = lambda f, b: False
    ) -> None:
        super().__init__(project, inference, elsewhere)
        self._forms: dict[str, Callable[[Expr, At], Asked]] = {
            "name": self._of_name, "attr": self._of_member, "call": self._of_call, "opaque": self._of_opaque,
        }  # fmt: skip

    def of(self, node: Node) -> Found:
        """The sources of an expression."""
        at = At(self._project.functions[node.function], node.seq, node.block)
        sources: list[Source] = []
        ends: list[str] = []
        for one in self._of_expr(node.expr, at):
            if isinstance(one, str):
                ends.append(one)
            elif one not in sources:
                sources.append(one)
        return Found(sources, list(dict.fromkeys(ends)))

    # -- expressions --

    def _of_expr(self, expr: Expr, at: At) -> Asked:
        found = self._forms.get(expr[0])
        yield from found(expr, at) if found is not None else self._of_parts(expr, _parts(expr), at)

    def _of_parts(self, expr: Expr, parts: Iterable[Expr], at: At) -> Asked:
        """The sources of those parts of an expression that make it what it is."""
        value = self._value(expr, at)
        valued = [(part, self._value(part, at)) for part in parts if part[0] != "const"]
        if not value.known:
            unknown = [(part, one) for part, one in valued if not one.known]
            if not unknown:
                inside = expr[0] in ("sub", "elem", "item", "rest", "star")
                text = f"what `{wording(expr[1])}` holds" if inside else f"what `{wording(expr)}` gives"
                yield f"{text} is not known"
            valued = unknown or valued
        elif value.kind == "tensor":
            tensors = [(part, one) for part, one in valued if one.kind in ("tensor", "batch")]
            held = [(part, one) for part, one in valued if one.kind in FILLED and _holds_tensor(one)]
            valued = tensors or held or [(part, one) for part, one in valued if one.kind == "device"]
        for part, _ in valued:
            yield from self._of_expr(part, at)

    def _of_opaque(self, expr: Expr, at: At) -> Asked:
        yield "this form of expression is not followed"

    def _of_name(self, expr: Expr, at: At) -> Asked:
        name, function = expr[1], at.function
        record = function.record
        yield from self._tests(expr, at)
        yield from self._announced(plain(name), expr, at)
        index = function.parameter(name)
        if name in record.definitions and name not in record.globals:
            found, entry = reaching(record, name, at.seq, at.block)
            here = [one for one in found if not self._elsewhere(function, one.block)]
            for definition in here or found:
                yield self._definition(name, definition, function)
            for fill in function.local_fills(name) if self._value(expr, at).kind in FILLED else ():
                note = f"`{plain(name)}` holds `{wording(fill.value)}`"
                yield self._source(function, self._row(function, fill.seq), note, fill.value, fill.seq, fill.block)
            if not entry:
                return
            if index is None and (found or record.form not in ("class", "module")):
                return
        if index is not None:
            yield from self._of_parameter(function.number, index)
            return
        yield from self._of_outer(name, function)

    def _of_outer(self, name: str, function: Function) -> Asked:
        """A name of an enclosing function, or of the module."""
        parent = function.parent
        while parent is not None:
            if parent.record.form not in ("class", "module"):
                index = parent.parameter(name)
                definitions = parent.record.definitions.get(name, ())
                for definition in definitions:
                    yield self._definition(name, definition, parent)
                if index is not None:
                    yield from self._of_parameter(parent.number, index)
                if definitions or index is not None:
                    return
            parent = parent.parent
        yield from self._of_symbol(name, self._project.symbol(function.module, name))

    def _of_symbol(self, name: str, value: Value | None) -> Asked:
        """A module-level name, which stands for `value`."""
        if value is None:
            yield f"`{name}` is bound nowhere in the file: a builtin, or a name that is made at run time"
        elif value.known:
            yield from self._library(value)
        elif value.ref is not None:
            yield from self._of_global(*value.ref)
        else:
            yield f"`{name}` is imported from a module of the project that does not define it"

    @staticmethod
    def _library(value: Value) -> Asked:
        if value.kind == "extern" and not value.ref.startswith("builtins."):
            yield f"`{value.ref}` is of a library, and the models say nothing of it"

    def _tests(self, expr: Expr, at: At) -> Asked:
        """Tests that hold at a place and say what an expression is."""
        record = at.function.record
        for test, outcome in holding(record, at.seq, at.block):
            where = tested_place(test, expr, outcome)
            typed = outcome and test[0] == "call" and test[1] == ("name", "isinstance") and test[2][:1] == (expr,)
            if where is not None or typed:
                held = "holds" if outcome else "does not hold"
                yield Source(
                    at.function, _row_of_test(record, test), f"`{wording(test)}` {held} here", self._value(expr, at)
                )

    def _announced(self, name: str, expr: Expr, at: At) -> Asked:
        """What a name like `lens_cpu` says of its value."""
        if self._inference.operations.convention(name) in ("host", "numpy"):
            value = self._value(expr, at)
            if value.kind in ("tensor", "numpy") and value.trust < 2:
                row = self._row(at.function, at.seq)
                yield Source(at.function, row, f"the name `{name}` says that it lives on the host", value.weaker(0))

    def _of_member(self, expr: Expr, at: At) -> Asked:
        """`base.name`."""
        yield from self._tests(expr, at)
        yield from self._announced(expr[2], expr, at)
        base, name = self._value(expr[1], at), expr[2]
        if base.kind == "module":
            yield from self._of_symbol(name, self._project.member(base.ref, name, at.function.module))
        elif base.kind == "extern":
            yield from self._library(Value("extern", ref=f"{base.ref}.{name}"))
        elif base.kind in ("object", "class") and any(isinstance(ref, int) for ref in base.ref):
            classes = [self._project.classes[ref] for ref in base.ref if isinstance(ref, int)]
            for cls in sorted(classes, key=lambda one: one.name):
                yield from self._of_attribute(cls.number, name)
        elif base.kind == "object":
            owner = f"an instance of `{base.ref[0]}`, of a library"
            yield f"`{wording(expr[1])}` is {owner}: the models do not know `.{name}`"
        elif base.kind == "unknown":
            family = self._inference.dispatch.family(name)
            if family is not None:
                yield from self._of_attribute(family.number, name)
            else:
                yield from self._of_expr(expr[1], at)
        elif self._value(expr, at).known:
            yield from self._of_expr(expr[1], at)
        elif base.kind == "none":
            yield f"nothing but None is known to be in `{wording(expr[1])}`"
            yield from self._of_expr(expr[1], at)
        else:
            yield f"the models do not say what `.{name}` of {_kind(base)} is"

    def _of_call(self, expr: Expr, at: At) -> Asked:
        """What a call gives back."""
        func = expr[1]
        if func[0] == "attr":
            base = self._value(func[1], at)
            if base.kind == "object" and (methods := self._inference.dispatch.callees(base, func[2])):
                yield from self._of_functions(methods)
                return
            if base.kind not in ("object", "class", "module", "extern", "unknown"):
                yield from self._of_parts(expr, (func[1], *_arguments(expr)), at)
                return
            callee = self._inference.attribute(base, func[2], at)
        else:
            callee = self._value(func, at)
        yield from self._of_callee(callee, expr, at)

    def _of_callee(self, callee: Value, expr: Expr, at: At) -> Asked:
        known = self._value(expr, at).known
        name = wording(expr[1])
        if callee.kind in ("function", "method"):
            yield from self._of_functions(self._project.functions[number] for number in callee.ref)
        elif callee.kind == "object" and (targets := self._inference.dispatch.instances_run(callee)):
            yield from self._of_functions(targets)
        elif callee.kind == "extern":
            if known or callee.ref.startswith("builtins."):
                yield from self._of_parts(expr, _arguments(expr), at)
            else:
                yield f"`{callee.ref}` is of a library, and the models do not say what it gives back"
        elif not known:
            yield f"the call of `{name}` cannot be resolved" + (
                f": {_kind(callee)} is called" if callee.known and callee.kind != "object" else ""
            )
            yield from self._of_expr(expr[1], at)


def _parts(expr: Expr) -> tuple[Expr, ...]:
    """The parts of an expression that its value is made of."""
    form = expr[0]
    if form in ("bin", "aug"):
        return expr[2:4]
    if form == "unary":
        return expr[2:3]
    if form in ("bool", "dict"):
        return tuple(expr[2])
    if form == "cmp":
        return (expr[2], *expr[3])
    if form == "ifexp":
        return expr[2:4]
    if form in ("tuple", "list", "set", "fstr"):
        return tuple(expr[1])
    if form == "comp":
        return expr[2:3]
    if form == "slice":
        return expr[1:4]
    return expr[1:2] if form in ("sub", "star", "elem", "await", "enter", "buffer", "item", "rest") else ()


def _arguments(call: Expr) -> tuple[Expr, ...]:
    return (*call[2], *(value for _, value in call[3]))


def _holds_tensor(container: Value) -> bool:
    held = container.items if isinstance(container.items, tuple) and not isinstance(container.items, Value) else ()
    return any(isinstance(one, Value) and one.kind == "tensor" for one in (*held, container.items))


def _kind(value: Value) -> str:
    return {"none": "None", "int": "an int"}.get(value.kind, f"a {value.kind}")


def _row_of_test(record: FunctionRecord, test: Expr) -> int:
    """The row in which a condition stands."""
    return next((row_of(site.pos) for site in record.sites if site.value == test), row_of(record.pos))
