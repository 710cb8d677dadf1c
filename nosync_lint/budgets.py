"""Budgets of syncs: how many there are below a hot root, in functions that run as often as it does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from nosync_lint.config import Budget, display
from nosync_lint.finding import Finding, Heat, Hop
from nosync_lint.link.program import Program
from nosync_lint.link.project import Function
from nosync_lint.rule import BudgetCheck
from nosync_lint.source import Span


def check_budgets(
    program: Program, budgets: Sequence[Budget], findings: Iterable[Finding], root: Path
) -> Iterator[tuple[BudgetCheck, frozenset[str]]]:
    """Each budget with the syncs below its root, and the files that these may stand in.

    A sync counts once for every root that reaches it, and also where a comment or the baseline accepts it: the budget
    is about what runs. Where functions below the root lie in files that were not judged, the outcome is not complete.
    """
    hot = [finding for finding in findings if finding.heat is Heat.HOT]
    for budget in budgets:
        roots = [
            one for one in program.roots.named(program.project.functions, budget.root) if program.roots.is_hot(one)
        ]
        below = [program.project.functions[number] for number in sorted(program.heat.below(roots))]
        places = {(one.module.file.name, one.record.qualname) for one in below}
        names = {one.name for one in roots} | {budget.root}
        syncs = {
            (finding.filename, finding.span): finding
            for finding in hot
            if _stands_in(finding, places) or finding.root in names
        }
        hops = tuple(
            Hop(one.filename, one.span.row, f"{one.code} {one.name}")
            for one in sorted(syncs.values(), key=lambda one: one.order)
        )
        check = BudgetCheck(
            _name(budget.file), Span(budget.row, 1, budget.row, 1), budget.root, budget.syncs, hops,
            bool(roots) and program.touched is None and all(_is_judged(one, root) for one in below),
        )  # fmt: skip
        yield check, frozenset(one.module.file.name for one in below)


def _stands_in(finding: Finding, places: set[tuple[str, str]]) -> bool:
    scope = finding.scope
    while (finding.filename, scope) not in places and scope.endswith(".<lambda>"):
        scope = scope.removesuffix(".<lambda>")
    return (finding.filename, scope) in places


def _name(path: Path | None) -> str:
    """The configuration file as findings name it."""
    return display(path.resolve(), Path.cwd()) if path is not None else ""


def _is_judged(function: Function, root: Path) -> bool:
    """Whether syncs of a function would be reported; what lies outside the project never is."""
    file = function.module.file
    return file.reported or not file.path.is_relative_to(root)
