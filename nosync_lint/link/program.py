"""The linked program: the questions that a rule may ask."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from nosync_lint.finding import Heat, Hop
from nosync_lint.index.cuda_records import CudaIndex
from nosync_lint.index.records import CallSite, Expr, ModuleIndex, row_of, unpack
from nosync_lint.link.capture import Capture, Reached
from nosync_lint.link.configured import Told
from nosync_lint.link.contracts import Contract, Contracts, DroppedPosition, Leak, LostOverride, hops_of
from nosync_lint.link.crossing import Crossing
from nosync_lint.link.cxx import Cxx, CxxCall, CxxLine
from nosync_lint.link.dead_arguments import DeadArgument, DeadArguments
from nosync_lint.link.dropped_flags import DroppedFlag, DroppedFlags
from nosync_lint.link.free_groups import FreeGroups, RawTokens
from nosync_lint.link.heat import HeatMap, Roots
from nosync_lint.link.inference import Inference
from nosync_lint.link.kernel_widths import NarrowedOffset
from nosync_lint.link.kernels import Census, Kernels, MatchContract, UnmatchedArguments
from nosync_lint.link.launches import AssumedStride, Launches, ShortSpan, StridedArgument
from nosync_lint.link.layers import Layers, LiteralLayer
from nosync_lint.link.named_calls import NamedCall, argument, called, named_calls
from nosync_lint.link.names import At
from nosync_lint.link.operations import Operations
from nosync_lint.link.pairings import LostPairing, Pairings
from nosync_lint.link.pools import MissingMethod, Pools, UnwrittenMethod
from nosync_lint.link.project import Class, Function, Module, Project
from nosync_lint.link.semantics import Semantics, Verdict
from nosync_lint.link.sharing import waiting
from nosync_lint.link.syncs import Sync, Syncs
from nosync_lint.link.values import Value
from nosync_lint.link.wording import receiver, releases, spelled, wording
from nosync_lint.source import SourceFile, Span


class ClassSite(NamedTuple):
    """A class that lost an override."""

    cls: Class
    lost: LostOverride


class DropSite(NamedTuple):
    """A call through which a known position is lost."""

    function: Function
    dropped: DroppedPosition


class CaptureSync(NamedTuple):
    """A wait that is met while a graph is captured: a sync, or a call into C++. `hops` lead to it from the region, and
    `trust` is 0 where conditions decide on the way."""

    wait: Sync | CxxCall
    hops: tuple[Hop, ...]
    trust: int


BrokenContract = RawTokens | LostPairing | DeadArgument | DroppedFlag | MissingMethod | UnwrittenMethod | LiteralLayer
"""A call that breaks a contract of a pool or a buffer."""


_EARLY = frozenset(
    {"class", "drop", "matcher", "strided-argument", "launch", "unmatched", "offset", "cxx-call", "cxx-line"}
    | {"raw-tokens", "lost-pairing", "dropped-flag", "missing-method", "unwritten-method", "literal-layer"}
)
"""Kinds of sites that can be found before it is known what waits."""


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
        capture: Sequence[str] = (),
        jobs: int = 1,
        told: Told | None = None,
        touched: frozenset[str] | None = None,
    ) -> None:
        self._jobs, self.touched = jobs, touched
        self._sites: dict[str, Sequence[object]] = {}
        self.expected: tuple[str, ...] = ()
        """The kinds of sites that will be asked for."""
        python = sorted(python, key=lambda pair: pair[0].name)  # the order of files must change nothing
        cuda = sorted(cuda, key=lambda pair: pair[0].name)
        self.project = Project(python, root)
        self.operations = Operations()
        self.semantics = Semantics(targets)
        self.roots = Roots(self.project, hot, cold, told)
        self.inference = Inference(self.project, self.operations, self.roots)
        self.cuda, self._hot, self._cold = tuple(cuda), tuple(hot), tuple(cold)
        self.capture = Capture(self.project, self.inference, self.roots, capture)
        self._contracts, self._censuses = tuple(contracts), tuple(censuses)
        self._reported = frozenset(file.name for file, _ in cuda if file.reported)
        self._all_reported = self._reported.union(file.name for file, _ in python if file.reported)

    @cached_property
    def kernels(self) -> Kernels:
        return Kernels({file.name: index for file, index in self.cuda})

    @cached_property
    def cxx(self) -> Cxx:
        return Cxx(self.project, self.inference, lambda: self.heat, self.kernels.sources, self._hot)

    @cached_property
    def launches(self) -> Launches:
        return Launches(self.project, self.inference, self.roots, self.cxx)

    @cached_property
    def heat(self) -> HeatMap:
        return HeatMap(self.project, self.inference, self.roots)

    @cached_property
    def syncs(self) -> tuple[Sync, ...]:
        """Every place of the reported files that may wait in a targeted release. What is inferred of it does not depend
        on which files these are. Where only what touches some files is asked for, flows cannot lead to the others."""
        return waiting(self.judged, self._asked, self._jobs, self._meanwhile)

    @property
    def _asked(self) -> Sequence[Function]:
        """The functions of reported files, or those of them in whose files a flow through the touched ones may end."""
        if self.touched is None:
            return self.project.reported
        crossing = Crossing(self.project, self.inference, self.touched)
        captured = self.captured if "capture-sync" in self.expected else ()
        return crossing.functions(self.heat, captured, callers="dead-argument" in self.expected)

    def _meanwhile(self) -> None:
        """What can be found before all syncs are known, while other processes look for them."""
        # What fails here is met again, and told, where a rule asks for it.
        with suppress(Exception):
            _ = self.heat
        for kind in self.expected:
            with suppress(Exception):
                if kind == "capture-sync":
                    _ = self.captured
                elif kind in _EARLY:
                    self.sites(kind)

    @cached_property
    def judged(self) -> Syncs:
        """The sites of the linked project, with what the models say of them."""
        return Syncs(self.project, self.inference, self.semantics, self.roots)

    @cached_property
    def captured(self) -> tuple[Reached, ...]:
        """Every function that runs while a graph is captured."""
        return tuple(self.capture.reached())

    @cached_property
    def capture_syncs(self) -> tuple[CaptureSync, ...]:
        """Every wait that is met while a graph is captured, at least likely, by the shortest way to it."""
        waits: dict[int, list[Sync | CxxCall]] = defaultdict(list)
        for sync in self.syncs:
            if sync.verdict.trust and self.semantics.waits(sync.verdict.row):
                waits[sync.function.number].append(sync)
        for call in self.cxx.calls:
            if call.trust:
                waits[call.function.number].append(call)
        found: dict[tuple[int, int, str], CaptureSync] = {}
        for one in self.captured:
            for wait in waits.get(one.function.number, ()):
                if self.capture.runs(one, wait.seq, wait.block):
                    row, trust = (wait.verdict.row, wait.verdict.trust) if isinstance(wait, Sync) else ("", wait.trust)
                    last = Hop(wait.function.module.file.name, row_of(wait.pos), "waits here")
                    surely = self.capture.surely_runs(one, wait.seq, wait.block, wait.pos)
                    told = CaptureSync(wait, (*one.hops(), last), trust if surely else 0)
                    known = found.get((one.function.number, wait.pos, row))
                    if known is None or known.trust < told.trust:
                        found[one.function.number, wait.pos, row] = told
        return tuple(found[key] for key in sorted(found))

    @cached_property
    def lost_overrides(self) -> tuple[LostOverride, ...]:
        return tuple(self._finder.lost_overrides(self._contracts))

    @cached_property
    def dropped_positions(self) -> tuple[DroppedPosition, ...]:
        return tuple(self._finder.dropped_positions(self.lost_overrides))

    @cached_property
    def _finder(self) -> Contracts:
        return Contracts(self.project, self.inference, self.heat, self.judged)

    @cached_property
    def has_roots(self) -> bool:
        """Whether any hot root matches something in the project."""
        return any(self.roots.is_hot(function) for function in self.project.functions) or self.cxx.has_roots()

    @cached_property
    def unmatched_roots(self) -> tuple[str, ...]:
        """The given hot roots and cold stops that name no function, of Python or (for roots) of C++."""
        found = self.roots.unmatched((*self._hot, *self._cold))
        return tuple(name for name in found if name not in self._hot or not self.cxx.named(name))

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
        """The sites of one kind, in project order: class, drop, matcher, unmatched, offset, strided-argument,
        launch, census, cxx-call, cxx-line, capture-sync, raw-tokens, lost-pairing, dead-argument, dropped-flag,
        missing-method, unwritten-method, literal-layer, call, or the slug of a rule whose rows of the model say what
        waits."""
        if kind not in self._sites:
            self._sites[kind] = self._look_for(kind)
        return self._sites[kind]

    def _look_for(self, kind: str) -> Sequence[object]:
        if kind == "class":
            return [ClassSite(lost.cls, lost) for lost in self.lost_overrides if lost.cls.module.file.reported]
        if kind == "drop":
            return [DropSite(d.method, d) for d in self.dropped_positions if d.method.module.file.reported]
        if kind == "matcher":
            return [pair for pair in self.kernels.contracts() if pair.path in self._reported]
        if kind == "strided-argument":
            return [one for one in self.launches.strided_arguments() if one.path in self._all_reported]
        if kind == "launch":
            strides, spans = self.launches.assumed_strides(), self.launches.short_spans()
            return [one for found in (strides, spans) for one in found if one.path in self._all_reported]
        if kind == "unmatched":
            return [one for one in self.kernels.unmatched_arguments() if one.path in self._reported]
        if kind == "offset":
            return [one for one in self.kernels.narrow_offsets() if one.path in self._reported]
        if kind == "census":
            return self._censuses
        if kind in self._broken:
            return tuple(self._broken[kind]())
        if kind == "call":
            return list(named_calls(self.project))
        if kind == "capture-sync":
            return [one for one in self.capture_syncs if one.wait.function.module.file.reported]
        if kind == "cxx-call":
            return [one for one in self.cxx.calls if one.function.module.file.reported]
        if kind == "cxx-line":
            return [one for one in self.cxx.lines if one.wait.unit.path in self._reported]
        return self._by_rule.get(kind, ())

    @cached_property
    def _broken(self) -> dict[str, Callable[[], Iterable[BrokenContract]]]:
        """Contracts of pools and buffers that a call breaks, by kind of site."""
        project, inference, roots = self.project, self.inference, self.roots
        return {
            "raw-tokens": lambda: FreeGroups(project, inference).raw_tokens(),
            "lost-pairing": lambda: Pairings(project, inference).lost(),
            "dead-argument": lambda: DeadArguments(project, inference, self.syncs),
            "dropped-flag": lambda: DroppedFlags(project, inference),
            "missing-method": lambda: Pools(project, inference, roots).missing_methods(),
            "unwritten-method": lambda: Pools(project, inference, roots).unwritten_methods(),
            "literal-layer": lambda: Layers(project, inference, roots).literal(),
        }

    @cached_property
    def _by_rule(self) -> dict[str, list[Sync]]:
        found: dict[str, list[Sync]] = defaultdict(list)
        for sync in self.syncs:
            found[sync.verdict.rule].append(sync)
        return found

    def called(self, call: NamedCall) -> tuple[str, ...]:
        """The qualified names of what a call may run: functions of the project, or something from outside of it."""
        return called(call, self.project, self.inference)

    def argument(self, call: NamedCall, position: int, name: str = "") -> Value:
        """What is known of an argument of a call, by its position or its name."""
        return argument(call, position, name, self.inference)

    def when(self, verdict: Verdict) -> str:
        """The releases in which a verdict holds, in words."""
        return releases(verdict.releases, self.semantics.targets)

    def value(self, sync: Sync, expr: Expr) -> Value:
        """What an expression is at the place of a sync."""
        return self.inference.value(expr, At(sync.function, sync.seq, sync.block))

    def local_name(self, sync: Sync, dotted: str) -> str | None:
        """What a module of a library is called at the place of a sync: `th` after `import torch as th`. None where no
        import gives it a name."""
        module = sync.function.module.functions[0].record
        bound = (name for name, found in module.definitions.items() if any(one.value[0] == "import" for one in found))
        for name in (dotted, *bound):
            value = self.value(sync, ("name", name))
            if value.kind in ("extern", "module") and value.ref == dotted:
                return name
        return None

    def cure(self, sync: Sync) -> str:
        """What to write instead, by the row of the model, about the operand that it speaks of."""
        text = spelled(sync.spelled) or "t"
        cure = re.sub(r"\{t\}(?=[.\[])", lambda _: receiver(text), self.semantics.cure(sync.verdict.row))
        return cure.replace("{t}", text)

    def hop(self, function: Function, note: str) -> Hop:
        """The first row of a function, with a note."""
        return Hop(function.module.file.name, row_of(function.record.pos), note)

    def call_hop(self, function: Function, site: CallSite, note: str) -> Hop:
        """The row of a call, with a note."""
        return Hop(function.module.file.name, row_of(site.call[4]), note)

    def path(self, leak: Leak) -> tuple[Hop, ...]:
        """The calls that lead to a sink, and the sink."""
        return hops_of(leak, lambda function: function.module.file.name)

    def sink(self, function: Function, pos: int) -> str:
        """A name for a place that several findings lead to."""
        return f"{function.module.file.name}:{row_of(pos)}"

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
    """Where a site stands. `pos` and `statement` are packed places, `span` a ready one. A place outside Python carries
    its own `heat`, with the root and the chain of calls that lead to it."""

    filename: str
    row: int
    pos: int | None = None
    span: Span | None = None
    statement: int | None = None
    function: Function | None = None
    block: int = 0
    heat: Heat | None = None
    root: str | None = None
    chain: tuple[Hop, ...] = ()


def place_of(site: object) -> Place | None:
    """The place of a site, or None where the rule says it itself."""
    match site:
        case Sync(function=function):
            return _place(function, site.pos, site.statement, site.block)
        case NamedCall(function=function, site=call):
            return _place(function, call.call[4], call.statement, call.block)
        case DropSite(function=function, dropped=dropped):
            return _place(function, dropped.call.call[4], dropped.call.statement, dropped.call.block)
        case ClassSite(cls=cls) | UnwrittenMethod(cls=cls):
            row, column, _, _ = unpack(cls.record.pos)
            span = Span(row, column + 1, row, column + len("class ") + len(cls.record.name) + 1)
            return Place(cls.module.file.name, row, span=span)
        case CaptureSync(wait=wait):
            return place_of(wait)
        case CxxCall(function=function, site=call):
            return _place(function, site.pos, call.statement, call.block)
        case DeadArgument(sync=sync):
            return place_of(sync)
        case RawTokens() | LostPairing() | DroppedFlag() | MissingMethod() | LiteralLayer():
            return _place(site.function, site.site.call[4], site.site.statement, site.site.block)
        case CxxLine(wait=wait):
            pos = wait.pos
            return Place(wait.unit.path, row_of(pos), pos, heat=site.heat, root=site.root, chain=site.chain)
        case StridedArgument(path=path, pos=pos) | ShortSpan(path=path, pos=pos) | MatchContract(path=path, pos=pos):
            return Place(path, row_of(pos), pos)
        case AssumedStride(path=path, row=row) | NarrowedOffset(path=path, row=row):
            return Place(path, row, span=Span(row, 1, row, 1))
        case UnmatchedArguments() | Census():
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
