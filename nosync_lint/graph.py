"""The call trees from hot roots to findings: judges the program, and asks which calls lead to what was found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from nosync_lint.answers import CallTree, Leaf
from nosync_lint.finding import Finding, Heat
from nosync_lint.index.records import span_of
from nosync_lint.judge import Texts
from nosync_lint.link.call_tree import CallTrees
from nosync_lint.link.program import DropSite, Program, place_of
from nosync_lint.link.project import Function
from nosync_lint.link.syncs import Sync
from nosync_lint.link.wording import outline
from nosync_lint.rule import Rule
from nosync_lint.source import Span

Owner = tuple[Function, str]
"""The function that a finding stands in, and the expression that waits."""


def graph(
    program: Program, rules: Sequence[Rule], findings: Sequence[Finding], texts: Texts, names: Sequence[str]
) -> CallTree:
    """The tree of the calls from hot roots, all or those that are named, to the hot findings that rules have made."""
    hot = [finding for finding in findings if finding.heat is Heat.HOT]
    owners = _owners(program, rules, hot, texts)
    leaves: dict[int, list[Leaf]] = defaultdict(list)
    homeless = 0
    for finding in hot:
        owner = owners.get((finding.filename, finding.span))
        if owner is None:
            homeless += 1
            continue
        function, text = owner
        span = finding.span
        leaf = Leaf(finding.code, finding.name, span.row, span.column, finding.confidence, text)
        leaves[_hot(program, function).number].append(leaf)
    tree = CallTrees(program.project, program.heat).of(leaves, names)
    notes = (f"{homeless} hot findings stand outside the functions of this tree",) if homeless else ()
    return replace(tree, notes=(*tree.notes, *notes))


def _owners(
    program: Program, rules: Sequence[Rule], findings: Sequence[Finding], texts: Texts
) -> dict[tuple[str, Span], Owner]:
    """The owners of findings, by the places of the sites that the rules were asked about."""
    files = {finding.filename for finding in findings}
    owners: dict[tuple[str, Span], Owner] = {}
    for kind in dict.fromkeys(kind for rule in rules for kind in rule.sites):
        for site in program.sites(kind):
            place = place_of(site)
            if place is not None and place.filename in files and place.function is not None and place.pos is not None:
                lines = texts.lines(place.filename)
                span = span_of(place.pos, lines)
                owners.setdefault((place.filename, span), (place.function, _spelled(site, span, lines)))
    return owners


def _spelled(site: object, span: Span, lines: Sequence[str]) -> str:
    """The expression of a site; where the index has none of it, what stands there."""
    if isinstance(site, Sync):
        return outline(site.expr)
    if isinstance(site, DropSite):
        return outline(site.dropped.call.call)
    line = lines[span.row - 1] if span.row <= len(lines) else ""
    return line[span.column - 1 : span.end_column - 1 if span.end_row == span.row else None].strip()


def _hot(program: Program, function: Function) -> Function:
    """The function whose heat a finding has: a lambda that nothing is known to call runs where it stands."""
    while function.record.form == "lambda" and function.parent is not None and function.number not in program.heat.hot:
        function = function.parent
    return function
