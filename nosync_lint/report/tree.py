"""A call tree as text, as Graphviz DOT, as a Mermaid flowchart, or drawn. What comes from the project is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TextIO

from nosync_lint.answers import Call, CallTree, Leaf, Node
from nosync_lint.finding import Confidence
from nosync_lint.report.svg import Arrow, Block, Card, Line, draw
from nosync_lint.report.text import printable

FORMATS = ("text", "dot", "mermaid", "svg")
_DEEP = 1_000_000


def write_tree(tree: CallTree, out: TextIO, form: str, depth: int | None = None) -> None:
    """Write a tree in one of `FORMATS`, cut `depth` calls below the roots."""
    encoding = getattr(out, "encoding", None) or "utf-8"
    lines = {"text": _text, "dot": _dot, "mermaid": _mermaid, "svg": _svg}[form](
        tree, _DEEP if depth is None else depth
    )
    for line in lines:
        out.write(printable(line, encoding) + "\n")


# -- text --


class _Met(NamedTuple):
    """A function where a walk meets it: told in full where it is nearest to a root, else by reference."""

    number: int
    call: Call | None
    level: int
    full: bool


def _text(tree: CallTree, depth: int) -> Iterator[str]:
    """Each function once, with what waits in it and what it calls; where it comes again, a reference to it."""
    walk = list(_walk(tree, depth))
    again = {one.number for one in walk if not one.full}
    labels = {
        number: f"[{label}]" for label, number in enumerate((m.number for m in walk if m.full and m.number in again), 1)
    }
    for number, call, level, full in walk:
        node = tree.nodes[number]
        start = "  " * level + (f"{_rows(call.rows)} -> " if call is not None else "") + node.name
        if not full:
            yield f"{start}, see {labels[number]}"
            continue
        root = f", hot root: {node.root}" if node.root else ""
        label = f" {labels[number]}" if number in labels else ""
        yield f"{start} {node.filename}:{node.row}{root}{label}"
        inner = "  " * (level + 1)
        for leaf in node.leaves:
            yield f"{inner}{leaf.row}: {leaf.code} {leaf.name} ({leaf.confidence.value}) {leaf.text}"
        if node.calls and level >= depth:
            yield f"{inner}... {_below(tree, number)} below"
    yield from _ending(tree)


def _walk(tree: CallTree, depth: int) -> Iterator[_Met]:
    levels = _levels(tree, depth)
    told: set[int] = set()
    pending = [_Met(root, None, 0, True) for root in reversed(tree.roots)]
    while pending:
        met = pending.pop()
        full = met.number not in told and met.level == levels[met.number]
        yield met._replace(full=full)
        if full:
            told.add(met.number)
            calls = tree.nodes[met.number].calls if met.level < depth else ()
            pending.extend(_Met(one.callee, one, met.level + 1, False) for one in reversed(calls))


def _levels(tree: CallTree, depth: int) -> dict[int, int]:
    """How many calls below a root each function is at least, for those that are told."""
    levels = dict.fromkeys(tree.roots, 0)
    pending = list(tree.roots)
    for number in pending:  # grows while it is walked
        for call in tree.nodes[number].calls if levels[number] < depth else ():
            if call.callee not in levels:
                levels[call.callee] = levels[number] + 1
                pending.append(call.callee)
    return levels


def _ending(tree: CallTree) -> Iterator[str]:
    yield from (f"note: {note}" for note in tree.notes)
    yield _total(tree)


def _total(tree: CallTree) -> str:
    leaves = sum(len(node.leaves) for node in tree.nodes)
    counts = _counted(leaves, "sync"), _counted(len(tree.nodes), "function"), _counted(len(tree.roots), "hot root")
    return "{} in {} below {}".format(*counts)


def _below(tree: CallTree, number: int) -> str:
    seen, pending = {number}, [call.callee for call in tree.nodes[number].calls]
    for one in pending:  # grows while it is walked
        if one not in seen:
            seen.add(one)
            pending.extend(call.callee for call in tree.nodes[one].calls)
    return _counted(sum(len(tree.nodes[one].leaves) for one in seen - {number}), "sync")


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _rows(rows: Sequence[int]) -> str:
    return ", ".join(str(row) for row in rows)


# -- graphs --


def _cut(tree: CallTree, depth: int) -> Iterator[tuple[int, Node, bool]]:
    """The functions at most `depth` calls below a root, with whether their calls are cut off."""
    levels = _levels(tree, depth)
    for number, node in enumerate(tree.nodes):
        if number in levels:
            yield number, node, levels[number] >= depth


def _dot(tree: CallTree, depth: int) -> Iterator[str]:
    yield "digraph nosync {"
    yield "  rankdir=LR;"
    yield '  node [shape=box, fontname="monospace"];'
    for number, node, cut in _cut(tree, depth):
        bold = ", style=bold" if node.root else ""
        yield f"  f{number} [label={_quoted(node.name, f'{node.filename}:{node.row}')}{bold}];"
        for place, leaf in enumerate(node.leaves):
            name = f"f{number}_{place}"
            label = _quoted(f"{leaf.code} {leaf.name}", f"row {leaf.row}, {leaf.confidence.value}", leaf.text)
            yield f"  {name} [label={label}, shape=octagon];"
            yield f"  f{number} -> {name};"
        for call in () if cut else node.calls:
            yield f"  f{number} -> f{call.callee} [label={_quoted(_rows(call.rows))}];"
        if cut and node.calls:
            yield f"  f{number}_cut [label={_quoted(f'{_below(tree, number)} below')}, shape=plaintext];"
            yield f"  f{number} -> f{number}_cut [style=dotted];"
    yield "}"


def _quoted(*lines: str) -> str:
    """A string of DOT: lines are kept apart by its own line break, and nothing in them can end the string."""
    return '"' + "\\n".join(_MARKUP.sub(_numbered, _bare(line).replace("\\", "\\\\")) for line in lines) + '"'


_MARKUP = re.compile(r"[^ -~]|[&<>\"]")


def _numbered(match: re.Match[str]) -> str:
    return f"&#{ord(match.group())};"


def _mermaid(tree: CallTree, depth: int) -> Iterator[str]:
    yield "flowchart LR"
    for number, node, cut in _cut(tree, depth):
        yield f"  f{number}[{_entity(node.name, f'{node.filename}:{node.row}')}]"
        for place, leaf in enumerate(node.leaves):
            label = _entity(f"{leaf.code} {leaf.name}", f"row {leaf.row}, {leaf.confidence.value}", leaf.text)
            yield f"  f{number}_{place}{{{{{label}}}}}"
            yield f"  f{number} --> f{number}_{place}"
        for call in () if cut else node.calls:
            yield f"  f{number} -->|{_entity(_rows(call.rows))}| f{call.callee}"
        if cut and node.calls:
            yield f"  f{number}_cut([{_entity(f'{_below(tree, number)} below')}])"
            yield f"  f{number} -.-> f{number}_cut"


def _entity(*lines: str) -> str:
    """A string of Mermaid: all but letters, digits and plain marks as codes, which are never read as syntax."""
    return '"' + "<br/>".join(_CODED.sub(lambda m: f"#{ord(m.group())};", _bare(line)) for line in lines) + '"'


_CODED = re.compile(r"[^A-Za-z0-9 _.,:()/=+*-]")


def _bare(text: str) -> str:
    """A text on one line, in characters that are only printed."""
    return printable(text, "utf-8")


# -- the drawing --


def _svg(tree: CallTree, depth: int) -> Iterator[str]:
    """Functions as boxes, roots at the left; what waits in one stands right of it, and so does what it calls."""
    shown = list(_cut(tree, depth))
    cards: list[Card] = [(_function(node),) for _, node, _ in shown]
    numbers = {number: place for place, (number, _, _) in enumerate(shown)}
    arrows = []
    for place, (number, node, cut) in enumerate(shown):
        if node.leaves:
            arrows.append(Arrow(place, len(cards)))
            cards.append(tuple(_sync(node, leaf) for leaf in node.leaves))
        if cut and node.calls:
            below = f"{_below(tree, number)} below"
            arrows.append(Arrow(place, len(cards), faint=True))
            cards.append((Block("cut", (Line(below, "place"),), below),))
        arrows += [_calling(place, numbers[call.callee], node, call, tree) for call in (() if cut else node.calls)]
    return draw(cards, arrows, "Calls from hot roots to syncs", (*tree.notes, _total(tree)))


def _function(node: Node) -> Block:
    place = f"{node.filename}:{node.row}"
    lines = [Line(node.name, "name", "end"), Line(place, "place", "end")]
    if node.root:
        lines.append(Line(f"hot root: {node.root}", "why"))
    return Block(
        "root" if node.root else "function",
        tuple(lines),
        f"{node.name}, {place}" + (f", hot root: {node.root}" if node.root else ""),
    )


def _sync(node: Node, leaf: Leaf) -> Block:
    lines = (Line(f"{leaf.code} {leaf.name}", "name"), Line(f"{leaf.row}: {leaf.text}", "place"))
    title = f"{node.filename}:{leaf.row}:{leaf.column} {leaf.code} {leaf.name} ({leaf.confidence.value}) {leaf.text}"
    return Block("unsure" if leaf.confidence is Confidence.POSSIBLE else "sync", lines, title)


def _calling(source: int, target: int, node: Node, call: Call, tree: CallTree) -> Arrow:
    rows = f"row{'s' if len(call.rows) > 1 else ''} {_rows(call.rows)}"
    return Arrow(source, target, _rows(call.rows), f"{node.name} calls {tree.nodes[call.callee].name} in {rows}")
