"""Makes edits of what a rule says about a site. What the rule does not change keeps every character.

libcst finds the parts of the statement, and is imported only here and in `judge`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from string import Formatter
from typing import TYPE_CHECKING, NamedTuple

from nosync_lint.finding import Edit, Fix
from nosync_lint.fix.lines import hoisted, removal
from nosync_lint.index.records import span_of
from nosync_lint.rule import Rewrite
from nosync_lint.source import Span

if TYPE_CHECKING:
    import libcst as cst


class Part(NamedTuple):
    """A part of the old text: where it starts and ends in it, and whether a `.` may follow it, or it be an argument."""

    start: int
    end: int
    atom: bool = True
    argument: bool = True


def fix_of(rewrite: Rewrite, lines: list[str], pos: int, statement: int) -> Fix | None:
    """The edits of a rewrite of the expression or statement at packed places. None where the source does not have the
    parts that it names, where a comment would be lost, or where the result would not parse."""
    inner, outer = span_of(pos, lines), span_of(statement, lines)
    edits = hoisted(lines, outer) if rewrite.hoisted else _rewritten(rewrite, lines, inner, outer)
    gone = [removal(lines, span_of(one, lines)) for one in rewrite.removed]
    if not edits or not all(gone):
        return None
    made = (*edits, *(edit for edit in gone if edit is not None))
    return Fix(rewrite.recipe, rewrite.applicability, rewrite.message, made)


def _rewritten(rewrite: Rewrite, lines: list[str], inner: Span, outer: Span) -> tuple[Edit, ...]:
    """The edits that make a template of an expression, or of the statement around it; none where that cannot be."""
    whole = rewrite.statement
    span = outer if whole else inner
    text = _text(lines, span)
    old = _parsed(text, whole) if text else None
    parts = _parts(text, old, _relative(inner, span) if whole else None) if old is not None else None
    replaced = _replaced(rewrite.template, text, parts) if parts is not None else None
    made = _applied(text, replaced) if replaced else ""
    new = _parsed(made, whole) if made else None
    if old is None or new is None or not replaced or _comments(old) != _comments(new):
        return ()
    if not whole and _parsed(made, True) is None and _parsed(text, True) is not None:
        return ()  # a line would break where no bracket holds it together
    return tuple(Edit(_absolute(text, span, start, end), content) for start, end, content in replaced)


# -- places: rows and columns of a file, offsets in the text of a statement --


def _text(lines: Sequence[str], span: Span) -> str:
    taken = list(lines[span.row - 1 : span.end_row])
    if not taken or len(taken) < span.end_row - span.row + 1:
        return ""
    taken[-1] = taken[-1][: span.end_column - 1]
    taken[0] = taken[0][span.column - 1 :]
    return "\n".join(taken)


def _offset(text: str, row: int, column: int) -> int:
    """The offset of a 1-based row and 0-based column."""
    start = 0
    for _ in range(row - 1):
        start = text.index("\n", start) + 1
    return start + column


def _relative(inner: Span, outer: Span) -> tuple[int, int]:
    """Where a place starts in the text of another one: 1-based row, 0-based column."""
    row = inner.row - outer.row + 1
    return row, inner.column - (outer.column if row == 1 else 1)


def _absolute(text: str, span: Span, start: int, end: int) -> Span:
    def place(offset: int) -> tuple[int, int]:
        row = text.count("\n", 0, offset)
        column = offset - (text.rfind("\n", 0, offset) + 1)
        return span.row + row, column + (span.column if row == 0 else 1)

    return Span(*place(start), *place(end))


# -- the old text --

_Locate = Callable[..., Part]


def _parsed(text: str, statement: bool) -> cst.Module | None:
    """The tree of a statement, or of an expression in brackets."""
    import libcst

    try:
        return libcst.parse_module(f"{text}\n" if statement else f"({text})\n")
    except libcst.ParserSyntaxError:
        return None


def _comments(tree: cst.Module) -> Counter[str]:
    import libcst.matchers as m

    return Counter(tree.code_for_node(found) for found in m.findall(tree, m.Comment()))


def _parts(text: str, tree: cst.Module, at: tuple[int, int] | None) -> Mapping[str, Part] | None:
    """The parts of a statement by the names that templates have for them. `at` is where its target starts; None where
    the text is an expression of its own."""
    import libcst
    from libcst.metadata import MetadataWrapper, WhitespaceInclusivePositionProvider

    wrapper = MetadataWrapper(tree, unsafe_skip_copy=True)
    places = wrapper.resolve(WhitespaceInclusivePositionProvider)
    shift = 1 if at is None else 0  # the bracket that was put around it

    def part(node: cst.CSTNode, last: cst.CSTNode | None = None) -> Part:
        start, end = places[node].start, places[last or node].end
        return Part(
            _offset(text, start.line, start.column - (shift if start.line == 1 else 0)),
            _offset(text, end.line, end.column - (shift if end.line == 1 else 0)),
            last is None and _is_atom(node),
            last is None and _is_argument(node),
        )

    line = tree.body[0] if len(tree.body) == 1 else None
    if not isinstance(line, libcst.SimpleStatementLine) or len(line.body) != 1:
        return None
    small = line.body[0]
    if at is None:
        return dict(_of_expression(small.value, part)) if isinstance(small, libcst.Expr) else None
    if not isinstance(small, libcst.Assign) or len(small.targets) != 1:
        return None
    target, value = small.targets[0].target, dict(_of_expression(small.value, part, "value."))
    if isinstance(target, libcst.Name) and _offset(text, *at) == part(small.value).start:
        return {"name": part(target), "value": part(small.value), **value}
    if isinstance(target, libcst.Subscript) and _offset(text, *at) == part(target).start:
        return {**dict(_of_expression(target, part)), "value": part(small.value), **value}
    return None


def _of_expression(node: cst.CSTNode, part: _Locate, prefix: str = "") -> Iterator[tuple[str, Part]]:
    """The parts of an expression, and of those in it that are subscripts, calls or lists themselves."""
    import libcst

    named: list[tuple[str, cst.CSTNode]] = []
    while isinstance(node, libcst.Index):
        node = node.value
    if isinstance(node, libcst.Subscript):
        items = [element.slice for element in node.slice]
        if len(items) > 1:
            yield f"{prefix}index", part(items[0], items[-1])
        named = [("target", node.value), *(("index", item) for item in items if len(items) == 1)]
        named += [(f"index[{number}]", item) for number, item in enumerate(items)]
    elif isinstance(node, libcst.Call):
        named = [("function", node.func)]
        if isinstance(node.func, libcst.Attribute):
            named.append(("receiver", node.func.value))
        for number, given in enumerate(node.args):
            key = given.keyword.value if given.keyword is not None else number
            named.append((f"args[{key}]", given.value))
    elif isinstance(node, libcst.List):
        named = [(f"item[{number}]", element.value) for number, element in enumerate(node.elements)]
    for name, child in named:
        yield f"{prefix}{name}", part(child)
        yield from _of_expression(child, part, f"{prefix}{name}.")


def _is_atom(node: cst.CSTNode) -> bool:
    """Whether `.name` or `[index]` may follow it as it stands."""
    import libcst

    while isinstance(node, libcst.Index):
        node = node.value
    atoms = (
        libcst.Name,
        libcst.Attribute,
        libcst.Call,
        libcst.Subscript,
        libcst.List,
        libcst.Dict,
        libcst.SimpleString,
    )
    return isinstance(node, atoms) or bool(getattr(node, "lpar", ()))


def _is_argument(node: cst.CSTNode) -> bool:
    """Whether it may stand between the commas of a call as it stands."""
    import libcst

    while isinstance(node, libcst.Index):
        node = node.value
    loose = (libcst.Tuple, libcst.Yield, libcst.NamedExpr, libcst.StarredElement, libcst.GeneratorExp, libcst.Slice)
    return not isinstance(node, loose) or bool(getattr(node, "lpar", ()))


# -- the new text --


def _replaced(template: str, text: str, parts: Mapping[str, Part]) -> list[tuple[int, int, str]] | None:
    """What is replaced by what, in order: the text between the parts of the template. None where a part is missing,
    or where one would be lost that holds a comment."""
    pieces = _pieces(template, text, parts)
    if pieces is None:
        return None
    found, last, closed = list[tuple[int, int, str]](), 0, False
    for literal, part in pieces:
        end = part.start if part is not None else len(text)
        if end < last:
            return None
        old = text[last:end]
        # the line break before the end belongs to a bracket that may be closed by now
        new = literal if closed and part is None and "#" not in old else _between(old, literal, part is None)
        if new != old:
            found.append((last, end, new))
            closed = closed or ")" in literal
        last = part.end if part is not None else end
    return found


def _pieces(template: str, text: str, parts: Mapping[str, Part]) -> list[tuple[str, Part | None]] | None:
    """A template as the text before each part, and that after the last one. A part that stands there a second time, or
    before one that comes later in the old text, is spelled out."""
    listed = list(Formatter().parse(template))
    order = list[tuple[str, Part | None]]()
    literal, last = "", 0
    for number, (before, name, _, _) in enumerate(listed):
        literal += before
        if name is None:
            continue
        part = parts.get(name)
        if part is None:
            return None
        after = listed[number + 1][0] if number + 1 < len(listed) else ""
        enclosed = bool(re.search(r"[(\[,=] ?$", literal)) and not after.startswith((".", "["))
        loose = not part.atom if after.startswith((".", "[")) else enclosed and not part.argument
        loose = loose and not literal.endswith("[")  # where it stood between brackets, too
        literal += "(" if loose else ""
        if part.start < last or _earlier(listed[number + 1 :], parts, part):
            literal += text[part.start : part.end]
        else:
            order.append((literal, part))
            literal, last = "", part.end
        literal += ")" if loose else ""
    return [*order, (literal, None)]


def _earlier(
    rest: Sequence[tuple[str, str | None, str | None, str | None]], parts: Mapping[str, Part], part: Part
) -> bool:
    """Whether a later piece of the template stands before this part in the old text."""
    return any(name in parts and parts[name].start < part.start for _, name, _, _ in rest if name is not None)


_TRIVIA = re.compile(r"#[^\n]*|\\\n|\s+")


def _between(old: str, new: str, last: bool) -> str:
    """What takes the place of the text between two parts. Nothing changes where the tokens are the same; where the
    new text starts or ends like the old one, that is kept; comments always are."""
    tokens, wanted = _tokens(old), _tokens(new)
    if tokens == wanted:
        return old
    if tokens and wanted.endswith(tokens):
        start = next(at for at in range(len(new), -1, -1) if _tokens(new[at:]) == tokens)
        added = new[:start].rstrip(" ")
        return added + old if _keeps_apart(added, old) else new[:start] + old
    if tokens and wanted.startswith(tokens):
        end = next(at for at in range(len(new) + 1) if _tokens(new[:at]) == tokens)
        added = new[end:].lstrip(" ")
        return old + added if _keeps_apart(old, added) else old + new[end:]
    if "#" not in old:
        return new
    kept = "".join(_TRIVIA.findall(old))
    return f"{new[:-1]}{kept.rstrip(' ')}{new[-1:]}" if last else f"{new.rstrip()}{kept}"


def _keeps_apart(before: str, after: str) -> bool:
    """Whether nothing is needed where two texts meet: there is a space of the old one, or a mark."""
    return re.search(r"\w$", before) is None or re.match(r"\w", after) is None


def _tokens(text: str) -> str:
    """The text without spaces, line breaks, comments and trailing commas."""
    return re.sub(r",(?=[)\]])", "", _TRIVIA.sub("", text))


def _applied(text: str, replaced: Sequence[tuple[int, int, str]]) -> str:
    for start, end, content in reversed(replaced):
        text = text[:start] + content + text[end:]
    return text
