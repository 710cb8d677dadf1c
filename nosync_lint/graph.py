"""The call trees from hot roots to findings: judges the program, and asks which calls lead to what was found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from nosync_lint.answers import CallTree, Leaf
from nosync_lint.finding import Finding, Heat
from nosync_lint.index.records import span_of
from nosync_lint.judge import Texts
from nosync_lint.link.call_tree import CallTrees
from nosync_lint.link.program import Program
from nosync_lint.link.project import Function
from nosync_lint.link.wording import outline
from nosync_lint.source import Span


def graph(program: Program, findings: Sequence[Finding], texts: Texts, names: Sequence[str]) -> CallTree:
    """The tree of the calls from hot roots, all or those that are named, to the hot findings."""
    owners = _owners(program, findings, texts)
    leaves: dict[int, list[Leaf]] = defaultdict(list)
    for finding in findings:
        owner = owners.get((finding.filename, finding.span))
        if owner is not None and finding.heat is Heat.HOT:
            function, text = owner
            span = finding.span
            leaf = Leaf(finding.code, finding.name, span.row, span.column, finding.confidence, text)
            leaves[_hot(program, function).number].append(leaf)
    return CallTrees(program.project, program.heat).of(leaves, names)


def _owners(
    program: Program, findings: Sequence[Finding], texts: Texts
) -> dict[tuple[str, Span], tuple[Function, str]]:
    """The functions that findings stand in, by their places, with the expression that waits."""
    files = {finding.filename for finding in findings}
    places = [(sync.function, sync.pos, sync.expr) for sync in program.syncs]
    places += [(drop.method, drop.call.call[4], drop.call.call) for drop in program.dropped_positions]
    return {
        (function.module.file.name, span_of(pos, texts.lines(function.module.file.name))): (function, outline(expr))
        for function, pos, expr in places
        if function.module.file.name in files
    }


def _hot(program: Program, function: Function) -> Function:
    """The function whose heat a finding has: a lambda that nothing is known to call runs where it stands."""
    while function.record.form == "lambda" and function.parent is not None and function.number not in program.heat.hot:
        function = function.parent
    return function
