"""The calls that lead from hot roots to what waits: a graph of functions, each once, in the order of a walk."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Mapping, Sequence

from nosync_lint.answers import Call, CallTree, Leaf, Node
from nosync_lint.index.records import row_of
from nosync_lint.link.heat import HeatMap
from nosync_lint.link.project import Function, Project
from nosync_lint.link.summary_sources import called

NEAREST = 3


class UnknownRoot(Exception):
    """A name that stands for no hot root; the text says what is near."""


class CallTrees:
    """Cuts the part of the call graph that leads from hot roots to given functions."""

    def __init__(self, project: Project, heat: HeatMap) -> None:
        self._project, self._heat = project, heat
        self._calls: dict[int, dict[int, list[int]]] = {}

    def of(self, leaves: Mapping[int, Sequence[Leaf]], names: Sequence[str] = ()) -> CallTree:
        """The tree from every hot root, or from those that are named, to the functions with leaves."""
        roots = self._roots(names)
        leading = self._leading(set(leaves))
        order: dict[int, int] = {}
        chosen = [one for one in roots if one.number in leading]
        for root in chosen:
            self._walk(root, leading, order)
        nodes = tuple(self._node(self._project.functions[number], leaves, leading, order) for number in order)
        notes = tuple(
            f"`{name}` leads to nothing that waits" for name in names if not self._heat.roots.named(chosen, name)
        )
        return CallTree(tuple(order[one.number] for one in chosen), nodes, notes)

    def _roots(self, names: Sequence[str]) -> list[Function]:
        roots = sorted((one for one in self._project.functions if self._heat.roots.is_hot(one)), key=_order)
        if not names:
            return roots
        found: dict[int, Function] = {}
        for name in names:
            named = self._heat.roots.named(roots, name)
            if not named:
                raise UnknownRoot(self._unknown(name, roots))
            found.update((one.number, one) for one in named)
        return sorted(found.values(), key=_order)

    def _unknown(self, name: str, roots: Sequence[Function]) -> str:
        functions = [one for one in self._project.functions if one.record.form == "function"]
        named = self._heat.roots.named(functions, name)
        if named:
            return f"`{named[0].name}` is no hot root; make it one with `--hot {name}`"
        near = _near(name, roots) or _near(name, functions)
        told = f"; the nearest are {', '.join(f'`{one}`' for one in near)}" if near else ""
        return f"no hot root is called `{name}`{told}"

    def _onward(self, number: int) -> Mapping[int, list[int]]:
        """The functions that a hot one calls, with the rows of the calls."""
        if number not in self._calls:
            rows: dict[int, set[int]] = defaultdict(set)
            for site, callee in self._heat.calls(self._project.functions[number]):
                rows[callee.number].add(row_of(site.call[4]))
            self._calls[number] = {callee: sorted(found) for callee, found in rows.items()}
        return self._calls[number]

    def _leading(self, ends: set[int]) -> set[int]:
        """The hot functions from which one of `ends` is reached, these included."""
        callers: dict[int, list[int]] = defaultdict(list)
        for number in self._heat.hot:
            for callee in self._onward(number):
                callers[callee].append(number)
        found = {number for number in ends if number in self._heat.hot}
        pending = sorted(found)
        for number in pending:  # grows while it is walked
            for caller in callers[number]:
                if caller not in found:
                    found.add(caller)
                    pending.append(caller)
        return found

    def _walk(self, root: Function, leading: set[int], order: dict[int, int]) -> None:
        """Number the functions below a root in the order in which a reader of the tree meets them."""
        pending = [root.number]
        while pending:
            number = pending.pop()
            if number not in order:
                order[number] = len(order)
                pending.extend(reversed([callee for callee, _ in self._children(number, leading)]))

    def _children(self, number: int, leading: set[int]) -> list[tuple[int, list[int]]]:
        """The calls that lead on, by row and then by name."""
        found = [(callee, rows) for callee, rows in self._onward(number).items() if callee in leading]
        return sorted(found, key=lambda one: (one[1], _order(self._project.functions[one[0]])))

    def _node(
        self, function: Function, leaves: Mapping[int, Sequence[Leaf]], leading: set[int], order: Mapping[int, int]
    ) -> Node:
        return Node(
            called(function),
            function.module.file.name,
            row_of(function.record.pos),
            self._heat.roots.why_hot(function) or "",
            tuple(sorted(leaves.get(function.number, ()), key=lambda one: (one.row, one.column, one.code))),
            tuple(Call(tuple(rows), order[callee]) for callee, rows in self._children(function.number, leading)),
        )


def _order(function: Function) -> tuple[str, str, int]:
    return (function.name, function.module.file.name, function.record.pos)


def _near(name: str, functions: Sequence[Function]) -> list[str]:
    """The names closest to one that stands for nothing, cut to as many parts."""
    parts = name.count(".") + 1
    known = sorted({".".join(one.name.split(".")[-parts:]) for one in functions})
    return difflib.get_close_matches(name, known, NEAREST, 0.6)
