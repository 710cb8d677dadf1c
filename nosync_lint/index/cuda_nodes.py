"""What one node of the syntax tree of a C++ file says by itself: its text, its place, the name it declares, whether it
is met always."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.index.cuda_records import CudaGuard, CudaParameter, Expr
from nosync_lint.index.records import pack

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

DEEPEST = 100  # levels of one expression; what lies deeper is not trusted
_STOPS = frozenset({"throw_statement"})
_PANICS = ("panic", "Panic", "throw", "abort", "Fail", "fail", "Unreachable", "unreachable")


@cache
def parser() -> Parser:
    """The parser of the CUDA grammar, made when the first C++ file is met."""
    import tree_sitter
    import tree_sitter_cuda

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()))


def text_of(node: Node) -> str:
    """The source text of a node, blanks and comments as written."""
    return (node.text or b"").decode("utf-8", "replace")


def type_text(node: Node | None, declarator: Node | None = None) -> str:
    """A type in one spelling: the bare name, a `*` for each pointer level, then a `[]` for each array dimension."""
    base = "" if node is None else "".join(text_of(node).split())
    stars, arrays = 0, 0
    while declarator is not None:
        stars += declarator.type in ("pointer_declarator", "abstract_pointer_declarator")
        arrays += declarator.type == "array_declarator"
        declarator = declarator.child_by_field_name("declarator")
    return base + "*" * stars + "[]" * arrays


def declared_name(declarator: Node | None) -> tuple[str, Node | None]:
    """The name that a declarator declares and the declarator node that holds it."""
    for _ in range(DEEPEST):
        if declarator is None:
            return "", None
        if declarator.type in (
            "identifier", "field_identifier", "qualified_identifier", "template_function",
            "structured_binding_declarator", "operator_name", "destructor_name", "type_identifier",
        ):  # fmt: skip
            return text_of(declarator), declarator
        inner = declarator.child_by_field_name("declarator")
        if inner is None:
            inner = next((child for child in declarator.named_children if child.type != "type_qualifier"), None)
        declarator = inner
    return "", None


def parameters_of(node: Node | None) -> tuple[CudaParameter, ...]:
    """The parameters of a parameter list."""
    found = []
    for child in node.named_children if node is not None else ():
        if not child.type.endswith("parameter_declaration"):
            continue
        declarator = child.child_by_field_name("declarator")
        name, _ = declared_name(declarator)
        variadic = child.type.startswith("variadic") or (declarator is not None and "..." in text_of(declarator))
        found.append(
            CudaParameter(name.lstrip(".").strip(), type_text(child.child_by_field_name("type"), declarator), variadic)
        )
    return tuple(found)


def place_of(node: Node) -> int:
    """The packed place of a node."""
    (row, column), (end_row, end_column) = node.start_point, node.end_point
    return pack(row + 1, column, end_row + 1, end_column)


def preprocessor_guards(node: Node) -> list[CudaGuard]:
    """The parts of `#if .. #else .. #endif` as guards, an `#elif` by itself."""
    condition = node.child_by_field_name("condition") or node.child_by_field_name("name")
    other = node.child_by_field_name("alternative")
    if condition is None:
        return []
    directive = text_of(node.children[0]).strip()
    test: Expr = ("text", ("!" if directive == "#ifndef" else "") + " ".join(text_of(condition).split()))
    (row, column), (end_row, end_column) = node.start_point, node.end_point
    if other is None:
        return [CudaGuard("define", test, pack(row + 1, column, end_row + 1, end_column), False)]
    (split, at) = other.start_point
    guards = [CudaGuard("define", test, pack(row + 1, column, split + 1, at), False)]
    if other.type == "preproc_else":
        guards.append(CudaGuard("undefined", test, pack(split + 1, at, end_row + 1, end_column), False))
    return guards


def leaves(branch: Node) -> bool:
    """Whether a branch ends by returning, throwing or going elsewhere."""
    statement = branch
    while statement.type in ("compound_statement", "else_clause"):
        inner = [child for child in statement.named_children if child.type != "comment"]
        if not inner:
            return False
        statement = inner[-1]
    return statement.type in ("return_statement", "continue_statement", "break_statement", *_STOPS)


def only_fails(branch: Node) -> bool:
    """Whether a branch does nothing but throw or panic."""
    statement = branch
    while statement.type == "compound_statement":
        inner = [child for child in statement.named_children if child.type not in ("comment", "attributed_statement")]
        if not inner:
            return False
        statement = inner[-1]
    if statement.type in _STOPS:
        return True
    return statement.type == "expression_statement" and any(
        word in text_of(statement).split("(")[0] for word in _PANICS
    )
