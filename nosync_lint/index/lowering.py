"""Lowers one Python file into the tuples of `records`, in a single pass over the standard library's tree.

Statements are numbered in the order they stand (`seq`) and belong to a block, so that "which assignment
reaches this use" is later a scan over a name's definitions and not a graph.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from nosync_lint.index.expressions import OPERATORS, ExpressionLowering, place
from nosync_lint.index.functional_records import made_class, named_by_base
from nosync_lint.index.records import OPAQUE, AttributeWrite, ClassRecord, Definition, Expr


class Lowering(ExpressionLowering):
    """Lowers one tree; afterwards `scopes` and `classes` hold its records."""

    def __init__(self, tree: ast.Module) -> None:
        super().__init__()
        self._statements: dict[type[ast.AST], Callable[[Any], None]] = {
            ast.Expr: self._expression_statement, ast.Assign: self._assign, ast.AugAssign: self._augmented,
            ast.AnnAssign: self._annotated, ast.Return: self._return, ast.If: self._if, ast.For: self._for,
            ast.AsyncFor: self._for, ast.While: self._while, ast.With: self._with, ast.AsyncWith: self._with,
            ast.Try: self._try, ast.TryStar: self._try, ast.Raise: self._raise, ast.Assert: self._assert,
            ast.Delete: self._delete, ast.Import: self._import, ast.ImportFrom: self._import_from,
            ast.FunctionDef: self._function, ast.AsyncFunctionDef: self._function, ast.ClassDef: self._class,
            ast.Global: self._global, ast.Nonlocal: self._global, ast.Match: self._match,
        }  # fmt: skip
        self._body(tree.body)
        self._close(self.scope)

    def _enter(self, form: str, test: Expr | None, body: list[ast.stmt]) -> int:
        scope = self.scope
        outer = scope.block
        scope.blocks.append([outer, form, test, "", 0])
        scope.block = number = len(scope.blocks) - 1
        self._body(body)
        scope.blocks[number][3] = _ends(body)
        scope.blocks[number][4] = scope.seq
        scope.block = outer
        return number

    def _body(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self.scope.seq += 1
            self.scope.statement = place(statement)
            lower = self._statements.get(type(statement))
            if lower is not None:
                lower(statement)

    def _expression_statement(self, node: ast.Expr) -> None:
        self.lower(node.value)

    def _assign(self, node: ast.Assign) -> None:
        made = made_class(node)
        if made is not None:
            self._class(made)
            return
        value = self.lower(node.value)
        for target in node.targets:
            self._bind(target, value)

    def _augmented(self, node: ast.AugAssign) -> None:
        value, op, target = self.lower(node.value), OPERATORS[type(node.op)], node.target
        old = self.lower(target)
        if isinstance(target, ast.Subscript):
            sites = self.scope.sites
            if sites and sites[-1].pos == place(target):
                sites.pop()  # the read is part of the write
            self._write(target, old[1], old[2], value, op)
        elif isinstance(target, ast.Attribute):
            scope = self.scope
            written = AttributeWrite(old[1], target.attr, ("aug", op, old, value), scope.seq, scope.block, node.lineno)
            scope.attributes.append(written)
        else:
            self._bind(target, ("aug", op, old, value))

    def _annotated(self, node: ast.AnnAssign) -> None:
        annotation = self.annotation(node.annotation)
        if node.value is None and not isinstance(node.target, ast.Name | ast.Attribute):
            return
        value = self.lower(node.value) if node.value is not None else OPAQUE
        self._bind(node.target, value, annotation)

    def _return(self, node: ast.Return) -> None:
        scope = self.scope
        scope.results.append(Definition(scope.seq, scope.block, self.lower(node.value), node.lineno))

    def _if(self, node: ast.If) -> None:
        outer, branches, others = self.scope.block, list[int](), list[int]()
        last: int | None = None
        while True:  # `elif` chains nest in the tree: walk them, they can be thousands long
            self.scope.statement = place(node.test)
            test = self._test(node.test)
            branches.append(self._enter("if", test, node.body))
            if not node.orelse:
                break
            follows = node.orelse[0]
            if len(node.orelse) > 1 or not isinstance(follows, ast.If):
                last = self._enter("else", test, node.orelse)
                break
            others.append(self._otherwise(test))
            node = follows
        self._close_chain(outer, branches, others, last)

    def _otherwise(self, test: Expr) -> int:
        """Open the block of everything that runs when a test failed."""
        scope = self.scope
        scope.blocks.append([scope.block, "else", test, "", 0])
        scope.block = len(scope.blocks) - 1
        scope.seq += 1
        return scope.block

    def _close_chain(self, outer: int, branches: list[int], others: list[int], last: int | None) -> None:
        """Close the nested blocks of an `elif` or `case` chain: one ends where its branch and the rest of it do."""
        blocks = self.scope.blocks
        ends = blocks[last][3] if last is not None else ""
        for branch, other in zip(reversed(branches[len(branches) - len(others) :]), reversed(others), strict=True):
            ends = _both(ends, blocks[branch][3])
            blocks[other][3], blocks[other][4] = ends, self.scope.seq
        self.scope.block = outer

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        scope = self.scope
        scope.statement = place(node.iter)
        iterable = self.lower(node.iter)
        scope.blocks.append([scope.block, "loop", None, "", 0])
        outer, scope.block = scope.block, len(scope.blocks) - 1
        self._bind(node.target, ("elem", iterable))
        number = scope.block
        self._body(node.body)
        scope.blocks[number][4] = scope.seq
        scope.block = outer
        self._body(node.orelse)

    def _while(self, node: ast.While) -> None:
        self.scope.statement = place(node.test)
        test = self._test(node.test)
        self._enter("loop", test, node.body)
        self._body(node.orelse)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        scope = self.scope
        managers = []
        for item in node.items:
            scope.statement = place(item.context_expr)
            manager = self.lower(item.context_expr)
            managers.append(manager)
            if item.optional_vars is not None:
                self._bind(item.optional_vars, ("enter", manager))
            elif manager[0] != "call":  # a call is a place of its own
                self._define("", ("enter", manager), item.context_expr.lineno)
        self._enter("with", ("tuple", tuple(managers)), node.body)

    def _try(self, node: ast.Try | ast.TryStar) -> None:
        self._enter("try", None, node.body + node.orelse)
        for handler in node.handlers:
            self.lower(handler.type)
            if handler.name:
                self._define(handler.name, OPAQUE, handler.lineno)
            self._enter("except", None, handler.body)
        if node.finalbody:
            self._enter("finally", None, node.finalbody)

    def _match(self, node: ast.Match) -> None:
        self.scope.statement = place(node.subject)
        subject = self.lower(node.subject)
        outer, others = self.scope.block, list[int]()
        for number, case in enumerate(node.cases):
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None) or getattr(part, "rest", None)
                if isinstance(name, str):
                    self._define(name, OPAQUE, case.pattern.lineno)
            if case.guard is not None:
                self._test(case.guard)
            test = ("case", subject, number)
            self._enter("if", test, case.body)
            others.append(self._otherwise(test))
        for other in others:
            self.scope.blocks[other][4] = self.scope.seq
        self.scope.block = outer

    def _raise(self, node: ast.Raise) -> None:
        scope = self.scope
        outer = scope.block
        scope.blocks.append([outer, "raise", None, "", scope.seq])  # runs when something failed
        scope.block = len(scope.blocks) - 1
        self.lower(node.exc)
        self.lower(node.cause)
        scope.block = outer

    def _assert(self, node: ast.Assert) -> None:
        test = self._test(node.test)
        scope = self.scope
        scope.blocks.append([scope.block, "else", test, "raise", scope.seq])  # what follows knows the test held
        if node.msg is not None:
            outer, scope.block = scope.block, len(scope.blocks) - 1
            self.lower(node.msg)
            scope.block = outer

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                self.lower(target.value)
                self.lower(target.slice)

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            bound = alias.asname or alias.name.split(".")[0]
            module = alias.name if alias.asname else bound
            self._define(bound, ("import", module, None, 0), node.lineno)

    def _import_from(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name == "*":
                self.star_imports.append((node.module or "", node.level))
            else:
                self._define(
                    alias.asname or alias.name, ("import", node.module or "", alias.name, node.level), node.lineno
                )

    def _global(self, node: ast.Global | ast.Nonlocal) -> None:
        self.scope.globals.update(node.names)

    def _alone(self, nodes: list[ast.expr]) -> tuple[Expr, ...]:
        """Expressions before a body, each a statement of its own: a comment in the body is not about them."""
        lowered = []
        for node in nodes:
            self.scope.statement = place(node)
            lowered.append(self.lower(node))
        return tuple(lowered)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        outer = self.scope
        owner = -1
        if outer.form == "class":
            owner = outer.owner
        prefix = f"{outer.qualname}." if outer.qualname else ""
        if outer.form in ("function", "lambda"):
            prefix += "<locals>."
        scope = self._open(node.name, prefix + node.name, "function", owner)
        scope.pos = place(node)
        scope.decorators = self._alone(node.decorator_list)
        self._parameters(scope, node.args)
        scope.returns = self.annotation(node.returns)
        if isinstance(node, ast.AsyncFunctionDef):
            scope.flags.add("async")
        if _is_stub(node.body):
            scope.flags.add("stub")
        if any(part[-1] in ("abstractmethod", "abstractproperty") for part in scope.decorators):
            scope.flags.add("abstract")
        self._define(node.name, ("func", scope.number), node.lineno)
        self.scope = scope
        self._body(node.body)
        self._close(scope)
        self.scope = outer
        outer.reads |= scope.reads

    def _class(self, node: ast.ClassDef) -> None:
        outer, node = self.scope, named_by_base(node)
        prefix = f"{outer.qualname}." if outer.qualname else ""
        number = len(self.classes)
        bases = self._alone(node.bases)
        keywords = tuple((word.arg or "", self.lower(word.value)) for word in node.keywords)
        decorators = self._alone(node.decorator_list)
        scope = self._open(node.name, prefix + node.name, "class", number)
        record = ClassRecord(
            node.name, scope.qualname, outer.number, bases, keywords, decorators, scope.number, {}, place(node)
        )
        self.classes.append(record)
        self._define(node.name, ("class", number), node.lineno)
        self.scope = scope
        self._body(node.body)
        self._close(scope)
        self.scope = outer
        methods: dict[str, tuple[int, ...]] = {}
        for name, found in scope.definitions.items():
            numbers = tuple(one.value[1] for one in found if one.value[0] == "func" and not self._stores(one.value[1]))
            if numbers:
                methods[name] = numbers
        self.classes[number] = record._replace(methods=methods)

    def _stores(self, number: int) -> bool:
        """Whether only a store to an attribute, or a `del`, runs this function: reading the name runs another."""
        return any(part[-1] in ("setter", "deleter") for part in self.scopes[number].decorators)


def _ends(body: list[ast.stmt]) -> str:
    """How control leaves these statements instead of falling out of their end: "raise", "leave", or "" where it may."""
    last = body[-1]
    if isinstance(last, ast.Raise):
        return "raise"
    if isinstance(last, ast.Return | ast.Continue | ast.Break):
        return "leave"
    if isinstance(last, ast.If) and last.orelse:
        return _both(_ends(last.body), _ends(last.orelse))
    if isinstance(last, ast.With | ast.AsyncWith):
        return _ends(last.body)
    return ""


def _both(one: str, other: str) -> str:
    """How control leaves two branches."""
    if not one or not other:
        return ""
    return one if one == other else "leave"


def _is_stub(body: list[ast.stmt]) -> bool:
    """Whether a body does nothing of its own: docstring, `pass`, `...` or a single raise."""
    return all(
        isinstance(part, ast.Pass | ast.Raise) or (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
        for part in body
    )
