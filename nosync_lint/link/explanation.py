"""What the program knows of one line: each place on it that could wait, with its operands and the row of the model that
decides it, how hot the line is, and which calls are not known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nosync_lint.answers import LineFacts, Operand, SiteAnswer, Wait
from nosync_lint.finding import Hop
from nosync_lint.index.records import CallSite, Expr, IndexWrite, Site, row_of, rows_of, span_of
from nosync_lint.link.names import At
from nosync_lint.link.program import Program
from nosync_lint.link.project import Function, Module
from nosync_lint.link.reachability import Reachability
from nosync_lint.link.silence import Silence
from nosync_lint.link.sources import Sources
from nosync_lint.link.summary_sources import called
from nosync_lint.link.syncs import Spot, Sync
from nosync_lint.link.trail import Trails
from nosync_lint.link.wording import outline

SHOWN = 5
"""At most this many unresolved calls of a function, and waiting places that a call leads to, are told."""
NEAREST = 3
INNER = 60
"""What waits below a call is looked for in about this many functions."""

_FORMS = {
    "read": "index read", "test": "truth test", "compare": "comparison", "format": "text", "operate": "operator",
}  # fmt: skip


class Explanations:
    """Answers about lines of a linked program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        sources = Sources(program.project, program.inference, program.roots.other_platform)
        self._trails = Trails(program.project, program.inference, sources)
        self._silence = Silence(program.inference, program.judged, self._trails)
        self._reachability = Reachability(program.project, program.inference, program.heat, sources)

    def line(self, module: Module, row: int, lines: list[str]) -> LineFacts:
        """What is known of a row of a module, whose lines are given."""
        found = _on_row(module, row)
        function, block = self._holder(module, row, found)
        sites = tuple(self._site(owner, spot, lines) for owner, spot in found)
        told = {spot for _, spot in found if isinstance(spot, CallSite) and self._silence.parts(function, spot)}
        asked = [site for site in function.record.calls if site not in told]
        unresolved = self._trails.all_unresolved(function, asked)
        return LineFacts(
            called(function),
            sites,
            () if sites else self._nearest(module, function, row),
            self._reachability.of(function, block, row),
            tuple(unresolved[:SHOWN]),
            sum(self._trails.is_unresolved(function, site) for site in asked),
            sum(self._trails.is_unresolved(one, site) for one in self._way(function) for site in one.record.calls),
        )

    def _way(self, function: Function) -> Iterator[Function]:
        """The functions of the chain from a hot root, without the last one."""
        hot = self._program.heat.hot
        step = hot.get(function.number)
        while step is not None and step.caller is not None:
            yield step.caller
            step = hot.get(step.caller.number)

    @staticmethod
    def _holder(module: Module, row: int, found: Sequence[tuple[Function, Spot]]) -> tuple[Function, int]:
        """The function that a row belongs to, and the block in it."""
        if found:
            function, spot = found[0]
            return function, spot.block
        inside = [one for one in module.functions if one.record.form != "module" and _covers(one, row)]
        function = max(inside, key=lambda one: one.record.pos, default=module.functions[0])
        before = [spot for spot in _places(function) if row_of(spot.statement) <= row]
        return function, max(before, key=lambda spot: spot.seq).block if before else 0

    def _nearest(self, module: Module, function: Function, row: int) -> tuple[Hop, ...]:
        """The sites closest to a row: those of its function before others of the file."""
        found = {
            (owner is not function, abs(row_of(_pos(spot)) - row), row_of(_pos(spot)), outline(_expr(spot)))
            for owner in module.functions
            for spot in _places(owner)
            if self._silence.parts(owner, spot)
        }
        return tuple(Hop(module.file.name, at, f"`{text}`") for _, _, at, text in sorted(found)[:NEAREST])

    # -- sites --

    def _site(self, function: Function, spot: Spot, lines: list[str]) -> SiteAnswer:
        syncs = list(self._program.judged.at(function, spot))
        waits = tuple(dict.fromkeys(self._wait(one) for one in syncs))
        active = any(one.verdict.synchronises for one in syncs)
        operands = self._operands(function, spot, syncs)
        silent, undecided = "", False
        runs: tuple[Hop, ...] = ()
        below: tuple[Hop, ...] = ()
        if not active:
            silent, undecided = self._silent(function, spot, waits)
        if isinstance(spot, CallSite) and not waits:
            runs, below = self._runs(function, spot)
        place = span_of(_pos(spot), lines), rows_of(spot.statement)
        unresolved = isinstance(spot, CallSite) and self._trails.is_unresolved(function, spot)
        return SiteAnswer(
            _form(spot), _spelled(spot), *place, waits, silent, undecided, unresolved, operands, runs, below
        )  # fmt: skip

    def _silent(self, function: Function, spot: Spot, waits: tuple[Wait, ...]) -> tuple[str, bool]:
        """Why a spot is believed not to wait, and whether that is because something is not known."""
        roots = self._program.roots
        elsewhere = roots.why_elsewhere(function)
        if elsewhere is not None:
            return f"`{called(function)}` never runs on a CUDA host: {elsewhere}", False
        if roots.other_platform(function, spot.block):
            return f"it stands {self._reachability.guard(function, spot.block)}", False
        if waits:
            row = self._program.semantics.rows[waits[0].row]
            held = f"before torch {row['until']}" if row.get("until") else f"from torch {row['since']}"
            return f"it waits {held} only, and no such release is targeted", False
        return self._silence.of(function, spot)

    def _wait(self, sync: Sync) -> Wait:
        verdict = sync.verdict
        row = self._program.semantics.rows[verdict.row]
        releases = self._program.when(verdict) if verdict.releases else ""
        return Wait(
            verdict.row, verdict.rule, releases, verdict.confidence, verdict.because,
            row.get("construct", ""), row.get("condition", ""), row.get("evidence", ""),
        )  # fmt: skip

    def _operands(self, function: Function, spot: Spot, syncs: Sequence[Sync]) -> tuple[Operand, ...]:
        """The parts that decide: those that verdicts rest on come first."""
        at = At(function, spot.seq, spot.block)
        decisive = [one.spelled for one in syncs]
        found: dict[Expr, str] = {}
        for role, expr in self._silence.parts(function, spot):
            if expr[0] not in ("const", "opaque", "ellipsis"):
                found.setdefault(expr, role)
        ordered = sorted(found, key=lambda expr: expr not in decisive)
        return tuple(self._trails.operand(found[expr], expr, at) for expr in ordered)

    def _runs(self, function: Function, site: CallSite) -> tuple[tuple[Hop, ...], tuple[Hop, ...]]:
        """The functions that a call runs, and the nearest places below them that wait as often as they run."""
        program, roots = self._program, self._program.roots
        functions = program.project.functions
        pending = sorted(
            (functions[target.function] for target in program.inference.targets(function, site)), key=_order
        )
        direct = tuple(program.hop(callee, f"`{called(callee)}`") for callee in pending[:SHOWN])
        seen = {one.number for one in pending}
        waiting: dict[Hop, None] = {}
        for callee in pending:  # grows while it is walked
            if roots.elsewhere(callee):
                continue
            for sync in program.judged.of(callee):
                usual = roots.rare_block(callee, sync.block) is None
                if sync.verdict.synchronises and sync.verdict.trust and usual:
                    note = f"`{outline(sync.expr)}` in `{called(callee)}`"
                    waiting[Hop(callee.module.file.name, row_of(sync.pos), note)] = None
            if len(waiting) >= SHOWN:
                break
            for inner in callee.record.calls if len(pending) < INNER else ():
                if roots.rare_block(callee, inner.block) is None:
                    targets = {target.function for target in program.inference.targets(callee, inner)} - seen
                    seen |= targets
                    pending += sorted((functions[number] for number in targets), key=_order)
        return direct, tuple(waiting)[:SHOWN]


def _on_row(module: Module, row: int) -> list[tuple[Function, Spot]]:
    """The places that begin in a row; where none does, those of expressions that reach over it."""
    every = [(function, spot) for function in module.functions for spot in _places(function)]
    starting = [(function, spot) for function, spot in every if row_of(_pos(spot)) == row]
    if not starting:
        starting = [(f, spot) for f, spot in every if rows_of(_pos(spot))[0] <= row <= rows_of(_pos(spot))[1]]
        smallest = min((_height(spot) for _, spot in starting), default=0)
        starting = [(function, spot) for function, spot in starting if _height(spot) == smallest]
    unique: dict[tuple[int, str, str], tuple[Function, Spot]] = {}
    for function, spot in starting:
        form = spot.form if isinstance(spot, Site) else type(spot).__name__
        unique.setdefault((_pos(spot), form, repr(_expr(spot))), (function, spot))
    return sorted(unique.values(), key=lambda one: _pos(one[1]))


def _places(function: Function) -> Iterator[Spot]:
    record = function.record
    yield from record.writes
    yield from record.calls
    yield from record.sites


def _form(spot: Spot) -> str:
    if isinstance(spot, Site):
        return _FORMS[spot.form]
    return "index write" if isinstance(spot, IndexWrite) else "call"


def _pos(spot: Spot) -> int:
    pos: int = spot.call[4] if isinstance(spot, CallSite) else spot.pos
    return pos


def _height(spot: Spot) -> int:
    first, last = rows_of(_pos(spot))
    return last - first


def _expr(spot: Spot) -> Expr:
    if isinstance(spot, IndexWrite):
        return ("sub", spot.base, spot.subscript, spot.pos)
    return spot.call if isinstance(spot, CallSite) else spot.value


def _spelled(spot: Spot) -> str:
    text = outline(_expr(spot))
    return f"{text} {spot.op or ''}= {outline(spot.value)}" if isinstance(spot, IndexWrite) else text


def _order(function: Function) -> tuple[str, int]:
    return function.module.file.name, function.record.pos


def _covers(function: Function, row: int) -> bool:
    first, last = rows_of(function.record.pos)
    return first <= row <= last
