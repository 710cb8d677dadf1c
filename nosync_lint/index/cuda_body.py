"""Lowers the body of one C++ function to the steps and expressions of `cuda_records`.

Only shapes that carry values survive: names, fields, subscripts, calls, casts, arithmetic and braces.
Statements are walked with an explicit stack and expressions to a bounded depth, so that nesting costs
no recursion; what lies deeper, or under an error node, becomes `OPAQUE` and its row is kept as untrusted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from nosync_lint.index.cuda_macros import CallableMacro
from nosync_lint.index.cuda_nodes import (
    DEEPEST,
    declared_name,
    leaves,
    only_fails,
    parameters_of,
    parser,
    place_of,
    preprocessor_guards,
    text_of,
    type_text,
)
from nosync_lint.index.cuda_records import OPAQUE, CudaGuard, CudaLambda, CudaParameter, Expr, Step

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST = 512  # items of one initializer list that are kept
LONGEST_TEXT = 200  # characters of one string that are kept
_CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast", "dynamic_cast", "bit_cast", "std::bit_cast"})
_CHECKS = re.compile(r"check|assert|enforce|require", re.IGNORECASE)
_WHOLE = frozenset({"declaration", "expression_statement", "return_statement"})  # trusted as a whole or not at all
_SKIPPED = frozenset({
    "comment", "string_literal", "type_definition", "using_declaration", "alias_declaration",
    "static_assert_declaration", "preproc_def", "preproc_call",
    "preproc_include", "preproc_function_def", "gnu_asm_expression", "struct_specifier",
    "class_specifier", "enum_specifier", "union_specifier", "break_statement", "continue_statement",
})  # fmt: skip


class Body:
    """One lowering: steps are appended in text order; lambdas are numbered as they are met.

    A call of one of `macros` becomes a call of a lambda with the macro's body, unless its name says that it
    checks something: what is checked stands in the arguments.
    """

    def __init__(
        self, untrusted: set[int], macros: Mapping[str, CallableMacro], guards: list[CudaGuard] | None = None
    ) -> None:
        self.guards = guards if guards is not None else []
        self.lambdas: list[CudaLambda] = []
        self.untrusted = untrusted
        self._macros = macros
        self._expanded: dict[str, int] = {}
        self._depth = 0

    def steps(self, root: Node) -> tuple[Step, ...]:
        """The steps of a statement."""
        steps: list[Step] = []
        pending = [root]
        while pending:
            node = pending.pop()
            kind = node.type
            if kind == "ERROR" or (kind in _WHOLE and node.has_error and _broken(node)):
                self.untrusted.add(node.start_point[0] + 1)
            elif kind == "declaration":
                self._declaration(node, steps)
            elif kind in ("expression_statement", "co_await_expression"):
                steps += [("do", self.lower(child), child.start_point[0] + 1) for child in node.named_children]
            elif kind in ("if_statement", "while_statement", "do_statement", "switch_statement"):
                condition, branch = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
                if condition is not None:
                    test = self._test(condition, branch, steps)
                    if kind == "if_statement":
                        self._branches(node, branch, test)
                pending += [child for child in reversed(node.named_children) if child != condition]
            elif kind == "for_range_loop":
                self._range_loop(node, steps)
                body = node.child_by_field_name("body")
                pending += [body] if body is not None else []
            elif kind == "for_statement":
                self._for_head(node, steps, pending)
            elif kind == "return_statement":
                steps += [("return", self.lower(child), child.start_point[0] + 1) for child in node.named_children[:1]]
            elif kind in ("preproc_if", "preproc_ifdef", "preproc_elif"):
                self.guards += preprocessor_guards(node)
                condition = node.child_by_field_name("condition") or node.child_by_field_name("name")
                pending += [child for child in reversed(node.named_children) if child != condition]
            elif kind not in _SKIPPED:
                if kind.endswith("_expression") or kind in ("identifier", "comma_expression"):
                    steps.append(("do", self.lower(node), node.start_point[0] + 1))
                else:
                    pending += reversed(node.named_children)
        return tuple(steps)

    def _test(self, condition: Node, branch: Node | None, steps: list[Step]) -> Expr:
        fails = branch is not None and only_fails(branch)
        tested = OPAQUE
        for child in condition.named_children:
            if child.type == "init_statement":
                steps += self.steps(child)
            elif child.type == "declaration":
                self._declaration(child, steps)
            elif child.has_error and _broken(child):
                self.untrusted.add(child.start_point[0] + 1)
            else:
                tested = self.lower(child)
                steps.append(("test", tested, child.start_point[0] + 1, fails))
        return tested

    def _branches(self, node: Node, branch: Node | None, test: Expr) -> None:
        """Keeps the branches of a condition as guards."""
        other = node.child_by_field_name("alternative")
        for form, held in (("if", branch), ("else", other)):
            if held is not None:
                self.guards.append(CudaGuard(form, test, place_of(held), leaves(held)))

    def _range_loop(self, node: Node, steps: list[Step]) -> None:
        name, holder = declared_name(node.child_by_field_name("declarator"))
        right = node.child_by_field_name("right")
        row = node.start_point[0] + 1
        element: Expr = ("index", self.lower(right), (), row) if right is not None else OPAQUE
        if holder is not None and holder.type == "structured_binding_declarator":
            steps.append(("bind", _bound_names(holder), element, row))
        else:
            steps.append(("let", name, type_text(node.child_by_field_name("type")), element, row))

    def _for_head(self, node: Node, steps: list[Step], pending: list[Node]) -> None:
        body = node.child_by_field_name("body")
        pending += [body] if body is not None else []
        for child in node.named_children:
            if child == body or child.type in _SKIPPED:
                continue
            if child.type == "declaration":
                self._declaration(child, steps)
            else:
                steps.append(("do", self.lower(child), child.start_point[0] + 1))

    def _declaration(self, node: Node, steps: list[Step]) -> None:
        base = node.child_by_field_name("type")
        row = node.start_point[0] + 1
        if any(child.type == "storage_class_specifier" and text_of(child) == "static" for child in node.children):
            self.guards.append(CudaGuard("static", OPAQUE, place_of(node), False))
        for declarator in node.children_by_field_name("declarator"):
            value: Expr = OPAQUE
            inner: Node | None = declarator
            if declarator.type == "init_declarator":
                given = declarator.child_by_field_name("value")
                inner = declarator.child_by_field_name("declarator")
                if given is not None and given.type == "argument_list":
                    value = self._call_of(("name", type_text(base), ()), given, node)
                elif given is not None:
                    value = self.lower(given)
            name, holder = declared_name(inner)
            if holder is not None and holder.type == "structured_binding_declarator":
                steps.append(("bind", _bound_names(holder), value, row))
                continue
            spelled = type_text(base, inner)
            if value[0] == "list" and not value[1]:
                value = ("list", spelled, *value[2:])
            if name:
                steps.append(("let", name, spelled, value, row))

    def lower(self, node: Node) -> Expr:
        """An expression; `OPAQUE` for what carries no value, lies under an error or is nested too deeply."""
        handler = _HANDLERS.get(node.type)
        if handler is None:
            if node.type == "ERROR":
                self.untrusted.add(node.start_point[0] + 1)
            return OPAQUE
        if self._depth >= DEEPEST:
            self.untrusted.add(node.start_point[0] + 1)
            return OPAQUE
        self._depth += 1
        try:
            return handler(self, node)
        finally:
            self._depth -= 1

    def _field(self, node: Node, name: str) -> Expr:
        child = node.child_by_field_name(name)
        return OPAQUE if child is None else self.lower(child)

    def _name(self, node: Node) -> Expr:
        return ("name", text_of(node), ())

    def _qualified(self, node: Node) -> Expr:
        last = node
        for _ in range(DEEPEST):
            inner = last.child_by_field_name("name")
            if last.type != "qualified_identifier" or inner is None:
                break
            last = inner
        scope = text_of(node)[: last.start_byte - node.start_byte]
        scope = scope.split("<")[0] + ("::" if "<" in scope else "")
        if last.type == "dependent_name":
            last = next(iter(last.named_children), last)
        if last.type == "template_function":
            _, name, arguments = self.lower(last)
            return ("name", scope + name, arguments)
        return ("name", scope + text_of(last), ())

    def _template(self, node: Node) -> Expr:
        name = node.child_by_field_name("name")
        return ("name", text_of(name) if name is not None else "", self._template_arguments(node))

    def _template_arguments(self, node: Node) -> tuple[str, ...]:
        arguments = node.child_by_field_name("arguments")
        if arguments is None:
            return ()
        return tuple("".join(text_of(child).split()) for child in arguments.named_children if child.type != "comment")

    def _literal(self, node: Node) -> Expr:
        return ("lit", text_of(node))

    def _text(self, node: Node) -> Expr:
        parts = node.named_children if node.type == "concatenated_string" else [node]
        held = [child for part in parts for child in part.named_children if child.type == "string_content"]
        value = "".join(text_of(child) for child in held)
        return ("text", value) if len(value) <= LONGEST_TEXT else OPAQUE

    def _member(self, node: Node) -> Expr:
        base, field = self._field(node, "argument"), node.child_by_field_name("field")
        targs: tuple[str, ...] = ()
        if field is not None and field.type == "dependent_name":
            field = next(iter(field.named_children), None)
        if field is not None and field.type in ("template_method", "template_function"):
            targs = self._template_arguments(field)
            field = field.child_by_field_name("name")
        return ("field", base, text_of(field) if field is not None else "", targs)

    def _subscript(self, node: Node) -> Expr:
        indices = node.child_by_field_name("indices")
        items = tuple(self.lower(child) for child in indices.named_children) if indices is not None else ()
        return ("index", self._field(node, "argument"), items, node.start_point[0] + 1)

    def _call(self, node: Node) -> Expr:
        callee, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if callee is None or arguments is None:
            return OPAQUE
        if callee.type == "template_function" and text_of(callee).split("<")[0] in _CASTS:
            return self._named_cast(callee, arguments, node)
        if callee.type == "qualified_identifier" and text_of(callee).startswith("std::bit_cast"):
            return self._named_cast(callee, arguments, node)
        if callee.type == "primitive_type":
            values = [self.lower(child) for child in arguments.named_children if child.type != "comment"]
            return ("cast", text_of(callee), values[0] if values else OPAQUE, node.start_point[0] + 1)
        lowered = self.lower(callee)
        if lowered[0] == "name" and lowered[1] in self._macros and not _CHECKS.search(lowered[1]):
            lowered = ("lambda", self._expand(lowered[1]))
        return self._call_of(lowered, arguments, node)

    def _expand(self, name: str) -> int:
        """The number of the lambda that stands for a macro."""
        place = self._expanded.get(name)
        if place is None:
            macro = self._macros[name]
            parameters = tuple(CudaParameter(parameter, "", False) for parameter in macro.parameters)
            place = self._expanded[name] = len(self.lambdas)
            self.lambdas.append(CudaLambda(parameters, ()))
            code = "\n" * (macro.row - 1) + "void f() {" + macro.body + ";}"
            tree = parser().parse(code.encode("utf-8", "replace"))
            self.lambdas[place] = CudaLambda(parameters, self.steps(tree.root_node))
        return place

    def _call_of(self, callee: Expr, arguments: Node, node: Node) -> Expr:
        values = tuple(self.lower(child) for child in arguments.named_children if child.type != "comment")
        launch = any(child.type == "kernel_call_syntax" for child in node.children)
        return ("call", callee, values, node.start_point[0] + 1, launch, place_of(node))

    def _named_cast(self, callee: Node, arguments: Node, node: Node) -> Expr:
        while callee.type == "qualified_identifier":
            inner = callee.child_by_field_name("name")
            if inner is None:
                return OPAQUE
            callee = inner
        given = callee.child_by_field_name("arguments")
        descriptor = next(iter(given.named_children), None) if given is not None else None
        value = next((child for child in arguments.named_children if child.type != "comment"), None)
        lowered = self.lower(value) if value is not None else OPAQUE
        return "cast", _descriptor_text(descriptor), lowered, node.start_point[0] + 1

    def _c_cast(self, node: Node) -> Expr:
        kind = _descriptor_text(node.child_by_field_name("type"))
        return ("cast", kind, self._field(node, "value"), node.start_point[0] + 1)

    def _binary(self, node: Node) -> Expr:
        operator = node.child_by_field_name("operator")
        spelled = text_of(operator) if operator is not None else "?"
        return ("bin", spelled, self._field(node, "left"), self._field(node, "right"), node.start_point[0] + 1)

    def _fold(self, node: Node) -> Expr:
        operands = [self.lower(child) for child in node.named_children]
        if not operands:
            return OPAQUE
        return ("bin", "+", operands[0], operands[-1] if len(operands) > 1 else OPAQUE, node.start_point[0] + 1)

    def _unary(self, node: Node) -> Expr:
        operator = node.child_by_field_name("operator")
        return (
            "unary",
            text_of(operator) if operator is not None else "?",
            self._field(node, "argument"),
            node.start_point[0] + 1,
        )

    def _conditional(self, node: Node) -> Expr:
        return (
            "cond",
            self._field(node, "condition"),
            self._field(node, "consequence"),
            self._field(node, "alternative"),
        )

    def _assignment(self, node: Node) -> Expr:
        operator = node.child_by_field_name("operator")
        spelled = text_of(operator) if operator is not None else "="
        return ("assign", spelled, self._field(node, "left"), self._field(node, "right"), node.start_point[0] + 1)

    def _list(self, node: Node) -> Expr:
        items: list[tuple[str, Expr, int]] = []
        for child in node.named_children[:LONGEST]:
            row = child.start_point[0] + 1
            if child.type == "initializer_pair":
                designator = child.child_by_field_name("designator")
                items.append((text_of(designator).lstrip(".") if designator else "", self._field(child, "value"), row))
            elif child.type == "ERROR":
                self.untrusted.add(row)
            elif child.type != "comment":
                items.append(("", self.lower(child), row))
        return ("list", "", tuple(items), node.start_point[0] + 1)

    def _compound(self, node: Node) -> Expr:
        value = self._field(node, "value")
        if value[0] != "list":
            return OPAQUE
        return ("list", type_text(node.child_by_field_name("type")), value[2], value[3])

    def _first(self, node: Node) -> Expr:
        children = [child for child in node.named_children if child.type != "comment"]
        return self.lower(children[0]) if len(children) == 1 else OPAQUE

    def _comma(self, node: Node) -> Expr:
        return (
            "call",
            OPAQUE,
            tuple(self.lower(child) for child in node.named_children),
            node.start_point[0] + 1,
            False,
            0,
        )

    def _lambda(self, node: Node) -> Expr:
        declarator, body = node.child_by_field_name("declarator"), node.child_by_field_name("body")
        parameters = parameters_of(declarator.child_by_field_name("parameters")) if declarator is not None else ()
        place = len(self.lambdas)
        self.lambdas.append(CudaLambda(parameters, ()))
        if body is not None:
            self.lambdas[place] = CudaLambda(parameters, self.steps(body))
        return ("lambda", place)


def _broken(statement: Node) -> bool:
    """Whether a statement holds an error outside the blocks of its lambdas, which are judged by themselves."""
    pending = [statement]
    while pending:
        node = pending.pop()
        if node.type == "ERROR":
            return True
        pending += [child for child in node.children if child.has_error and child.type != "compound_statement"]
    return False


def _bound_names(holder: Node) -> tuple[str, ...]:
    return tuple(text_of(child) for child in holder.named_children if child.type == "identifier")


def _descriptor_text(node: Node | None) -> str:
    if node is None:
        return ""
    if node.type != "type_descriptor":
        return "".join(text_of(node).split())
    return type_text(node.child_by_field_name("type"), node.child_by_field_name("declarator"))


_HANDLERS: dict[str, Callable[[Body, Node], Expr]] = {
    "identifier": Body._name,
    "field_identifier": Body._name,
    "type_identifier": Body._name,
    "this": Body._name,
    "qualified_identifier": Body._qualified,
    "template_function": Body._template,
    "template_type": Body._template,
    "number_literal": Body._literal,
    "true": Body._literal,
    "false": Body._literal,
    "null": Body._literal,
    "char_literal": Body._literal,
    "string_literal": Body._text,
    "concatenated_string": Body._text,
    "field_expression": Body._member,
    "subscript_expression": Body._subscript,
    "call_expression": Body._call,
    "cast_expression": Body._c_cast,
    "binary_expression": Body._binary,
    "fold_expression": Body._fold,
    "unary_expression": Body._unary,
    "pointer_expression": Body._unary,
    "update_expression": Body._unary,
    "conditional_expression": Body._conditional,
    "assignment_expression": Body._assignment,
    "initializer_list": Body._list,
    "compound_literal_expression": Body._compound,
    "parenthesized_expression": Body._first,
    "comma_expression": Body._comma,
    "lambda_expression": Body._lambda,
    "parameter_pack_expansion": Body._first,
    "condition_clause": Body._first,
    "init_statement": Body._first,
}
