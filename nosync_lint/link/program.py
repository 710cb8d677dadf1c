"""The linked program: the questions that a rule may ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar

from nosync_lint.finding import Hop
from nosync_lint.index.cuda_records import CudaIndex
from nosync_lint.index.records import CallSite, FunctionRecord, IndexWrite, ModuleIndex, row_of, unpack
from nosync_lint.link.contracts import Contract, Contracts, DroppedPosition, Leak, LostOverride, Sinks, hops_of
from nosync_lint.link.evaluation import At
from nosync_lint.link.heat import HeatMap, Roots
from nosync_lint.link.indexing import IndexShape
from nosync_lint.link.inference import Inference
from nosync_lint.link.kernels import Census, Kernels, MatchContract, UnmatchedArguments
from nosync_lint.link.operations import Operations
from nosync_lint.link.project import Class, Function, Module, Project, called_name
from nosync_lint.link.semantics import CallModel, Semantics, Verdict
from nosync_lint.link.values import UNKNOWN, Value
from nosync_lint.link.wording import wording
from nosync_lint.source import SourceFile, Span

Fact = TypeVar("Fact", IndexWrite, CallSite)


class WriteSite(NamedTuple):
    """An index write in a function, with what is known of its parts."""

    function: Function
    write: IndexWrite
    target: Value
    shape: IndexShape
    value: Value
    verdict: Verdict


class CallRef(NamedTuple):
    """A call that the model knows, on the operand it would synchronise with."""

    function: Function
    site: CallSite
    model: CallModel
    operand: Value
    verdict: Verdict


class ClassSite(NamedTuple):
    """A class that lost an override."""

    cls: Class
    lost: LostOverride


class DropSite(NamedTuple):
    """A call through which a known position is lost."""

    function: Function
    dropped: DroppedPosition


class Program:
    """Everything linked. Facts are computed when a rule first asks for them."""

    def __init__(
        self,
        python: Sequence[tuple[SourceFile, ModuleIndex]],
        cuda: Sequence[tuple[SourceFile, CudaIndex]],
        hot: Sequence[str] = (),
        cold: Sequence[str] = (),
        targets: Sequence[str] | None = None,
        contracts: Sequence[Contract] = (),
        censuses: Sequence[Census] = (),
        root: Path | None = None,
    ) -> None:
        self.project = Project(python, root)
        self.operations = Operations()
        self.semantics = Semantics(targets)
        self.roots = Roots(self.project, hot, cold)
        self.inference = Inference(self.project, self.operations, self.roots.is_hot, self.roots.other_platform)
        self.cuda, self._hot, self._cold = tuple(cuda), tuple(hot), tuple(cold)
        self._contracts, self._censuses = tuple(contracts), tuple(censuses)
        self._reported = frozenset(file.name for file, _ in cuda if file.reported)

    @cached_property
    def kernels(self) -> Kernels:
        return Kernels({file.name: index for file, index in self.cuda})

    @cached_property
    def heat(self) -> HeatMap:
        return HeatMap(self.project, self.inference, self.roots)

    @cached_property
    def writes(self) -> tuple[WriteSite, ...]:
        """Every index write of the project that may synchronise. Asked of all files, so that what is inferred does
        not depend on which of them are reported."""
        found = []
        for function, write in self._running(lambda record: record.writes):
            at = At(function, write.seq, write.block)
            target = self.inference.value(write.base, at)
            if target.kind != "tensor":
                continue
            value = self.inference.value(write.value, at)
            shape = self.inference.index_shape(write.subscript, at)
            verdict = self.semantics.index_write(target, shape, value, write.op)
            if verdict.row:
                found.append(WriteSite(function, write, target, shape, value, verdict))
        return tuple(found)

    @cached_property
    def calls(self) -> tuple[CallRef, ...]:
        """Every call of the linked project that the model knows to synchronise, by name and operand."""
        names = self._known_names()
        called = (one for one in self._running(lambda record: record.calls) if called_name(one[1].call) in names)
        return tuple(ref for function, site in called if (ref := self._call_ref(function, site)) is not None)

    def _running(self, facts: Callable[[FunctionRecord], Sequence[Fact]]) -> Iterator[tuple[Function, Fact]]:
        """Facts of all functions, without code that never runs on CUDA, in project order."""
        for function in self.project.functions:
            if not self.roots.elsewhere(function):
                for fact in facts(function.record):
                    if not self.roots.other_platform(function, fact.block):
                        yield function, fact

    def _known_names(self) -> frozenset[str]:
        """The last names of calls that the model knows, and what the project calls them."""
        known = self.semantics.call_names
        aliases = {
            name
            for function in self.project.functions
            for name, definitions in function.record.definitions.items()
            for one in definitions
            if (one.value[0] == "import" and one.value[2] in known)
            or (one.value[0] == "attr" and one.value[2] in known)
        }
        return known | aliases

    def _call_ref(self, function: Function, site: CallSite) -> CallRef | None:
        func, args = site.call[1], site.call[2]
        place = At(function, site.seq, site.block)
        value_of = self.inference.value
        model: CallModel | None = None
        operand = UNKNOWN
        if func[0] == "attr":
            base = value_of(func[1], place)
            if base.kind == "tensor":
                model, operand = self.semantics.methods.get(func[2]), base
        if model is None:
            callee = value_of(func, place)
            if callee.kind == "extern":
                model = self.semantics.functions.get(callee.ref)
                given = next((value for name, value in site.call[3] if name == "input"), None)
                first = args[0] if args else given
                operand = value_of(first, place) if first is not None else UNKNOWN
        if model is None or operand.where in ("host", "pinned", "meta") or operand.kind not in ("tensor", "unknown"):
            return None
        has_dim = any(name == "dim" and value != ("const", None) for name, value in site.call[3])
        trust = operand.trust if operand.accelerated else 0
        verdict = self.semantics.call(model, has_dim, trust)
        return CallRef(function, site, model, operand, verdict) if verdict.synchronises else None

    @cached_property
    def sinks(self) -> Sinks:
        """De-duplications and other counted shapes by function, where they are at least likely and not debugging."""
        found: dict[int, tuple[CallSite, ...]] = {}
        for ref in self.calls:
            if ref.verdict.trust and self.roots.rare_block(ref.function, ref.site.block) is None:
                found[ref.function.number] = (*found.get(ref.function.number, ()), ref.site)
        return found

    @cached_property
    def lost_overrides(self) -> tuple[LostOverride, ...]:
        return tuple(self._finder.lost_overrides(self._contracts))

    @cached_property
    def dropped_positions(self) -> tuple[DroppedPosition, ...]:
        return tuple(self._finder.dropped_positions(self.lost_overrides))

    @cached_property
    def _finder(self) -> Contracts:
        return Contracts(self.project, self.inference, self.heat, self.sinks)

    @cached_property
    def has_roots(self) -> bool:
        """Whether any hot root matches something in the project."""
        return any(self.roots.is_hot(function) for function in self.project.functions)

    @cached_property
    def unmatched_roots(self) -> tuple[str, ...]:
        """The given hot roots and cold stops that name no function."""
        return tuple(self.roots.unmatched((*self._hot, *self._cold)))

    @property
    def call_counts(self) -> tuple[int, int]:
        """How many calls on the way from hot roots were resolved, and how many were not; zero before heat is asked."""
        heat = self.__dict__.get("heat")
        return (heat.resolved, heat.unresolved) if heat is not None else (0, 0)

    def keeps(self, contract: Contract) -> bool:
        """Whether a configured contract names a class of the project, a method of it, and a parameter of that."""
        named = [c for c in self.project.classes if c.name == contract.base or c.name.endswith("." + contract.base)]
        methods = [method for cls in named if (method := cls.method(contract.method)) is not None]
        return any(method.parameter(contract.argument) is not None for method in methods)

    def sites(self, kind: str) -> Sequence[object]:
        """The sites of one kind, in project order. Kinds: index-write, call, class, drop, matcher, unmatched."""
        if kind == "index-write":
            return [site for site in self.writes if site.function.module.file.reported]
        if kind == "call":
            return [ref for ref in self.calls if ref.function.module.file.reported]
        if kind == "class":
            return [ClassSite(lost.cls, lost) for lost in self.lost_overrides if lost.cls.module.file.reported]
        if kind == "drop":
            return [DropSite(d.method, d) for d in self.dropped_positions if d.method.module.file.reported]
        if kind == "matcher":
            return [pair for pair in self.kernels.contracts() if pair.path in self._reported]
        if kind == "unmatched":
            return [one for one in self.kernels.unmatched_arguments() if one.path in self._reported]
        if kind == "census":
            return self._censuses
        return ()

    def hop(self, function: Function, note: str) -> Hop:
        """The first row of a function, with a note."""
        return Hop(function.module.file.name, row_of(function.record.pos), note)

    def call_hop(self, function: Function, site: CallSite, note: str) -> Hop:
        """The row of a call, with a note."""
        return Hop(function.module.file.name, row_of(site.call[4]), note)

    def path(self, leak: Leak) -> tuple[Hop, ...]:
        """The calls that lead to a sink, and the sink."""
        return hops_of(leak, lambda function: function.module.file.name)

    def sink(self, function: Function, site: CallSite) -> str:
        """A name for a place that several findings lead to."""
        return f"{function.module.file.name}:{row_of(site.call[4])}"

    def evidence(self, value: Value) -> tuple[Hop, ...]:
        """Why a value is believed to be what it is: where it was made, or how it came in."""
        hops = []
        why = value.why
        while why is not None:
            module = self.project.modules[why.module]
            hops.append(Hop(module.file.name, why.row, why.note or _made(module, why.row)))
            why = why.before
        return tuple(reversed(hops))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a site stands. `pos` and `statement` are packed places of Python files, `span` a ready one."""

    filename: str
    row: int
    pos: int | None = None
    span: Span | None = None
    statement: int | None = None
    function: Function | None = None
    block: int = 0


def place_of(site: object) -> Place | None:
    """The place of a site, or None where the rule says it itself."""
    match site:
        case WriteSite(function=function, write=write):
            return _place(function, write.pos, write.statement, write.block)
        case CallRef(function=function, site=call):
            return _place(function, call.call[4], call.statement, call.block)
        case DropSite(function=function, dropped=dropped):
            return _place(function, dropped.call.call[4], dropped.call.statement, dropped.call.block)
        case ClassSite(cls=cls):
            row, column, _, _ = unpack(cls.record.pos)
            span = Span(row, column + 1, row, column + len("class ") + len(cls.record.name) + 1)
            return Place(cls.module.file.name, row, span=span)
        case MatchContract() | UnmatchedArguments() | Census():
            return Place(site.path, site.span.row, span=site.span)
    return None


def _place(function: Function, pos: int, statement: int, block: int) -> Place:
    return Place(function.module.file.name, row_of(pos), pos, None, statement, function, block)


def _made(module: Module, row: int) -> str:
    """The assignment that stands in a row, in words."""
    for function in module.functions:
        for write in function.record.attributes:
            if write.row == row:
                return f"`{wording(write.base)}.{write.name} = {wording(write.value)}`"
        for name, definitions in function.record.definitions.items():
            for found in definitions:
                if found.row == row and "~" not in name:
                    return f"`{name} = {wording(found.value)}`"
    return "made here"
