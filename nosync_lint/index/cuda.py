"""Reads one C++ or CUDA file into a `CudaIndex`.

The parser is tree-sitter with the CUDA grammar, imported only when such a file is met. Its tree repairs
what it cannot read, so nothing under an ERROR node is believed: the row is kept in `untrusted` instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nosync_lint.index.cuda_body import Body
from nosync_lint.index.cuda_macros import CallableMacro, blank_macros, callable_macros
from nosync_lint.index.cuda_nodes import (
    declared_name,
    parameters_of,
    parser,
    preprocessor_guards,
    text_of,
    type_text,
)
from nosync_lint.index.cuda_records import (
    CudaConstant,
    CudaField,
    CudaFunction,
    CudaGuard,
    CudaIndex,
    CudaStruct,
    Expr,
)
from nosync_lint.index.pragmas import FOREIGN, has_pragmas, read_pragmas
from nosync_lint.index.records import Pragma
from nosync_lint.source import Span

if TYPE_CHECKING:
    from tree_sitter import Node

_CONTAINERS = frozenset({
    "translation_unit", "namespace_definition", "declaration_list", "linkage_specification", "template_declaration",
    "preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "field_declaration_list", "export_declaration",
})  # fmt: skip
_LITERAL = re.compile(
    r"""R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![\da-fA-F])'(?:\\.|[^'\\\n])+'"""
    r"""|//[^\n]*|/\*.*?\*/""",
    re.S,
)
_CLASSES = frozenset({"struct_specifier", "class_specifier", "union_specifier"})


def index_cuda(text: str) -> CudaIndex:
    """The facts of one C++ or CUDA file. Never fails: what cannot be read is left out and counted."""
    code = blank_macros(text)
    data = code.encode("utf-8", "replace")
    tree = parser().parse(data)
    reader = _Reader(data, callable_macros(code))
    reader.read(tree.root_node)
    return CudaIndex(
        tuple(reader.includes), tuple(reader.functions), tuple(reader.structs), tuple(reader.constants),
        tuple(reader.aliases), cuda_pragmas(text), tuple(sorted(reader.untrusted)), tuple(reader.guards),
        tuple(reader.calls),
    )  # fmt: skip


def cuda_pragmas(text: str, words: Sequence[str] = FOREIGN) -> tuple[Pragma, ...]:
    """The pragmas of a C++ or CUDA file: whatever follows `//` is taken for a comment."""
    if not has_pragmas(text, words):
        return ()
    return tuple(
        pragma
        for row, line in enumerate(text.split("\n"), 1)
        if (start := line.find("//")) >= 0
        for pragma in read_pragmas(line[start:], row, not line[:start].strip(), start + 1, words)
    )


def cuda_comment_places(text: str) -> frozenset[int]:
    """The rows of a C++ or CUDA file at whose end a comment may begin: not those that end in a string or a comment of
    several lines, or with a backslash."""
    inside = {
        text.count("\n", 0, match.start()) + number + 1
        for match in _LITERAL.finditer(text)
        for number in range(match.group().count("\n"))
    }
    return frozenset(
        row for row, line in enumerate(text.split("\n"), 1) if row not in inside and not line.rstrip().endswith("\\")
    )


class _Reader:
    """Collects the declarations of a file; nested scopes are walked with an explicit stack."""

    def __init__(self, data: bytes, macros: Mapping[str, CallableMacro]) -> None:
        self._macros = macros
        self.includes: list[str] = []
        self.functions: list[CudaFunction] = []
        self.structs: list[CudaStruct] = []
        self.constants: list[CudaConstant] = []
        self.aliases: list[tuple[str, str]] = []
        self.untrusted: set[int] = set()
        self.guards: list[CudaGuard] = []
        self.calls: list[Expr] = []
        self._lines = None if data.isascii() else data.split(b"\n")

    def read(self, root: Node) -> None:
        """Everything declared under `root`."""
        pending: list[tuple[Node, str, tuple[str, ...]]] = [(root, "", ())]
        while pending:
            node, owner, template = pending.pop()
            kind = node.type
            if kind == "ERROR":
                self.untrusted.add(node.start_point[0] + 1)
            elif kind == "preproc_include":
                path = node.child_by_field_name("path")
                if path is not None:
                    self.includes.append(text_of(path).strip('<>"'))
            elif kind == "function_definition":
                self._function(node, owner, template)
            elif kind == "alias_declaration":
                name, aliased = node.child_by_field_name("name"), node.child_by_field_name("type")
                if name is not None and aliased is not None:
                    self.aliases.append((text_of(name), "".join(text_of(aliased).split())))
            elif kind in _CLASSES:
                pending += self._class(node, template)
            elif kind in ("declaration", "field_declaration"):
                holder = node.child_by_field_name("type")
                if holder is not None and holder.type in _CLASSES:
                    pending += self._class(holder, template)
                self._constants(node, owner)
            elif kind == "type_definition":
                holder = node.child_by_field_name("type")
                if holder is not None and holder.type in _CLASSES:
                    pending += self._class(holder, template, declared_name(node.child_by_field_name("declarator"))[0])
            elif kind == "expression_statement":
                steps = Body(self.untrusted, self._macros).steps(node)
                self.calls += [step[1] for step in steps if step[1][0] == "call"]
            elif kind in _CONTAINERS:
                if kind.startswith("preproc_if") or kind == "preproc_elif":
                    self.guards += preprocessor_guards(node)
                if kind == "template_declaration":
                    template = (*template, *_template_names(node.child_by_field_name("parameters")))
                pending += [(child, owner, template) for child in reversed(node.named_children)]

    def _class(self, node: Node, template: tuple[str, ...], alias: str = "") -> list[tuple[Node, str, tuple[str, ...]]]:
        body, name_node = node.child_by_field_name("body"), node.child_by_field_name("name")
        if body is None:
            return []
        if name_node is not None and name_node.type == "template_type":
            name_node = name_node.child_by_field_name("name")
        name = text_of(name_node) if name_node is not None else alias
        bases = [child for child in node.named_children if child.type == "base_class_clause"]
        named = tuple(
            text_of(base).split("<")[0]
            for clause in bases
            for base in clause.named_children
            if "specifier" not in base.type
        )
        self.structs.append(CudaStruct(name, tuple(_fields(body)), named, node.start_point[0] + 1))
        return [(child, name, template) for child in reversed(body.named_children)]

    def _constants(self, node: Node, owner: str) -> None:
        for name, value in _initialised(node):
            lowered = Body(self.untrusted, self._macros).lower(value)
            if lowered[0] in ("name", "cond", "unary", "lit", "bin"):
                self.constants.append(CudaConstant(owner, name, lowered))

    def _function(self, node: Node, owner: str, template: tuple[str, ...]) -> None:
        body, declarator = node.child_by_field_name("body"), node.child_by_field_name("declarator")
        for _ in range(16):
            if declarator is None or declarator.type == "function_declarator":
                break
            declarator = declarator.child_by_field_name("declarator") or next(iter(declarator.named_children), None)
        if body is None or declarator is None:
            return
        name, holder = declared_name(declarator.child_by_field_name("declarator"))
        if "::" in name and not owner:
            owner, name = name.rsplit("::", 1)
            owner = owner.split("<")[0].rsplit("::", 1)[-1]
        lowering = Body(self.untrusted, self._macros, self.guards)
        steps = lowering.steps(body)
        lambdas = tuple(lowering.lambdas)
        words = {child.type for child in node.children}
        parameters = parameters_of(declarator.child_by_field_name("parameters"))
        returns = type_text(node.child_by_field_name("type"), node.child_by_field_name("declarator"))
        span, at = self._place(node), self._place(holder if holder is not None else node)
        function = CudaFunction(
            name.split("<")[0], owner, template, returns, parameters, "__global__" in words, span, at, steps, lambdas,
            "__device__" in words,
        )  # fmt: skip
        self.functions.append(function)

    def _place(self, node: Node) -> Span:
        (row, column), (end_row, end_column) = node.start_point, node.end_point
        return self._span((row + 1, column, end_row + 1, end_column))

    def _span(self, place: tuple[int, int, int, int]) -> Span:
        row, column, end_row, end_column = place
        return Span(row, self._column(row, column), end_row, self._column(end_row, end_column))

    def _column(self, row: int, offset: int) -> int:
        if self._lines is None:
            return offset + 1
        return len(self._lines[row - 1][:offset].decode("utf-8", "replace")) + 1


def _template_names(parameters: Node | None) -> list[str]:
    names = []
    for child in parameters.named_children if parameters is not None else ():
        if "type_parameter" in child.type or child.type.startswith("template_template"):
            inner = child.child_by_field_name("name") or next(iter(reversed(child.named_children)), None)
            names.append(text_of(inner if inner is not None else child))
        elif child.type.endswith("parameter_declaration"):
            declarator = child.child_by_field_name("declarator")
            constrained = child.child_by_field_name("type")
            if declarator is not None:
                names.append(declared_name(declarator)[0])
            elif constrained is not None:
                names.append(text_of(constrained))
    return names


def _fields(body: Node) -> list[CudaField]:
    fields = []
    pending = list(reversed(body.named_children))
    while pending:
        node = pending.pop()
        if node.type.startswith("preproc_"):
            pending += reversed(node.named_children)
        if node.type != "field_declaration" or any(text_of(child) == "static" for child in node.named_children):
            continue
        for declarator in node.children_by_field_name("declarator"):
            name, holder = declared_name(declarator)
            if (
                holder is not None
                and holder.type == "field_identifier"
                and "function_declarator" not in declarator.type
            ):
                spelled = type_text(node.child_by_field_name("type"), declarator)
                fields.append(CudaField(name, spelled, declarator.start_point[0] + 1))
    return fields


def _initialised(node: Node) -> list[tuple[str, Node]]:
    """Names of a declaration outside functions with their initial values."""
    default = node.child_by_field_name("default_value")
    if default is not None:
        return [(declared_name(node.child_by_field_name("declarator"))[0], default)]
    found = []
    for declarator in node.children_by_field_name("declarator"):
        value = declarator.child_by_field_name("value")
        if declarator.type == "init_declarator" and value is not None:
            found.append((declared_name(declarator.child_by_field_name("declarator"))[0], value))
    return found
