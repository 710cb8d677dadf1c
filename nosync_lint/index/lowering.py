"""Lowers the standard library's tree of one Python file into the tuples of `records`, in a single pass.

Statements are numbered in the order they stand (`seq`) and belong to a block, so that "which assignment
reaches this use" is later a scan over a name's definitions and not a graph.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from nosync_lint.index.records import (
    OPAQUE,
    AttributeWrite,
    Block,
    CallSite,
    ClassRecord,
    Definition,
    Expr,
    FunctionRecord,
    IndexWrite,
    Parameter,
    Site,
    pack,
)

MAX_DEPTH = 200
"""Expressions nested deeper than this become opaque; released code stays below 60."""

_LARGEST = 1 << 64  # no index or size is larger, and integers of thousands of digits cannot be printed
MAX_TEXT = 200
"""String constants longer than this are cut: only names, devices and keys matter."""

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitOr: "|", ast.BitXor: "^", ast.BitAnd: "&", ast.MatMult: "@",
    ast.Invert: "~", ast.Not: "not", ast.UAdd: "+", ast.USub: "-", ast.And: "and", ast.Or: "or",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


def _place(node: Any) -> int:
    return pack(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


class _Scope:
    """The function record that is being filled."""

    def __init__(self, number: int, name: str, qualname: str, form: str, parent: int, owner: int) -> None:
        self.number, self.name, self.qualname, self.form = number, name, qualname, form
        self.parent, self.owner = parent, owner
        self.parameters: list[Parameter] = []
        self.returns: Expr | None = None
        self.decorators: tuple[Expr, ...] = ()
        self.flags: set[str] = set()
        self.pos = 0
        self.seq = 0
        self.statement = 0
        self.block = 0
        self.blocks: list[list[Any]] = [[-1, "body", None, False, 0]]
        self.definitions: dict[str, list[Definition]] = {}
        self.attributes: list[AttributeWrite] = []
        self.writes: list[IndexWrite] = []
        self.calls: list[CallSite] = []
        self.sites: list[Site] = []
        self.results: list[Definition] = []
        self.globals: set[str] = set()
        self.reads: set[str] = set()
        self.renamed: dict[str, str] = {}

    def record(self) -> FunctionRecord:
        return FunctionRecord(
            self.name, self.qualname, self.form, self.parent, self.owner, tuple(self.parameters), self.returns,
            self.decorators, frozenset(self.flags), self.pos, tuple(Block(*block) for block in self.blocks),
            {name: tuple(found) for name, found in self.definitions.items()}, tuple(self.attributes),
            tuple(self.writes), tuple(self.calls), tuple(self.sites), tuple(self.results),
            frozenset(self.globals), frozenset(self.reads),
        )  # fmt: skip


class Lowering:
    """Lowers one tree; afterwards `functions` and `classes` hold its records."""

    def __init__(self, tree: ast.Module) -> None:
        self.scopes: list[_Scope] = []
        self.classes: list[ClassRecord] = []
        self.star_imports: list[tuple[str, int]] = []
        self.depth = 0
        self.renames = 0
        self.scope = self._open("<module>", "", "module", -1)
        self._expressions: dict[type[ast.AST], Callable[[Any], Expr]] = {
            ast.Name: self._name, ast.Attribute: self._attribute, ast.Call: self._call, ast.Constant: self._constant,
            ast.Subscript: self._subscript, ast.Slice: self._slice, ast.Tuple: self._tuple, ast.List: self._list,
            ast.Set: self._set, ast.Dict: self._dict, ast.BinOp: self._binary, ast.UnaryOp: self._unary,
            ast.BoolOp: self._boolean, ast.Compare: self._compare, ast.IfExp: self._conditional,
            ast.ListComp: self._comprehension, ast.SetComp: self._comprehension, ast.GeneratorExp: self._comprehension,
            ast.DictComp: self._comprehension, ast.Lambda: self._lambda, ast.JoinedStr: self._format,
            ast.FormattedValue: self._formatted, ast.Starred: self._starred, ast.Await: self._await,
            ast.NamedExpr: self._walrus, ast.Yield: self._yield, ast.YieldFrom: self._yield,
        }  # fmt: skip
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

    # -- scopes and blocks --

    def _open(self, name: str, qualname: str, form: str, owner: int) -> _Scope:
        parent = self.scope.number if self.scopes else -1
        scope = _Scope(len(self.scopes), name, qualname, form, parent, owner)
        self.scopes.append(scope)
        return scope

    def _close(self, scope: _Scope) -> None:
        scope.blocks[0][4] = scope.seq

    def _enter(self, form: str, test: Expr | None, body: list[ast.stmt]) -> None:
        scope = self.scope
        outer = scope.block
        scope.blocks.append([outer, form, test, False, 0])
        scope.block = number = len(scope.blocks) - 1
        self._body(body)
        scope.blocks[number][3] = _ends(body)
        scope.blocks[number][4] = scope.seq
        scope.block = outer

    def _body(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self.scope.seq += 1
            self.scope.statement = _place(statement)
            lower = self._statements.get(type(statement))
            if lower is not None:
                lower(statement)

    def _define(self, name: str, value: Expr, row: int, annotation: Expr | None = None) -> None:
        scope = self.scope
        name = scope.renamed.get(name, name)
        found = Definition(scope.seq, scope.block, value, row, annotation)
        scope.definitions.setdefault(name, []).append(found)

    # -- expressions --

    def lower(self, node: ast.AST | None) -> Expr:
        """One expression as a tuple; opaque where nothing later could use it."""
        if node is None:
            return ("const", None)
        form = self._expressions.get(type(node))
        if form is None or self.depth > MAX_DEPTH:
            return OPAQUE
        self.depth += 1
        lowered = form(node)
        self.depth -= 1
        return lowered

    def _name(self, node: ast.Name) -> Expr:
        self.scope.reads.add(node.id)
        return ("name", self.scope.renamed.get(node.id, node.id))

    def _attribute(self, node: ast.Attribute) -> Expr:
        return ("attr", self.lower(node.value), node.attr)

    def _constant(self, node: ast.Constant) -> Expr:
        value = node.value
        if isinstance(value, str):
            return ("const", value[:MAX_TEXT])
        if isinstance(value, int) and abs(value) > _LARGEST:
            return ("const", _LARGEST)
        if value is None or isinstance(value, int | float | complex):
            return ("const", value)
        return ("ellipsis",) if value is ... else ("const", "")

    def _call(self, node: ast.Call) -> Expr:
        func = self.lower(node.func)
        args = tuple(self.lower(arg) for arg in node.args)
        kwargs = tuple((word.arg, self.lower(word.value)) for word in node.keywords)
        call = ("call", func, args, kwargs, _place(node))
        scope = self.scope
        scope.calls.append(CallSite(call, scope.seq, scope.block, scope.statement))
        literal = args[1][1] if len(args) > 1 and args[1][0] == "const" and isinstance(args[1][1], str) else None
        if literal is not None and func == ("name", "getattr"):
            return ("attr", args[0], literal)
        self._written_by_call(node, func, args, literal)
        return call

    def _written_by_call(self, node: ast.Call, func: Expr, args: tuple[Expr, ...], literal: str | None) -> None:
        """Calls that assign: `setattr`, `register_buffer`, `__setitem__`, `operator.setitem`."""
        scope = self.scope
        last = func[-1]
        if func == ("name", "setattr") and literal is not None and len(args) == 3:
            scope.attributes.append(AttributeWrite(args[0], literal, args[2], scope.seq, scope.block, node.lineno))
        elif func[0] == "attr" and last == "register_buffer" and len(args) > 1 and args[0][0] == "const":
            buffer = ("buffer", args[1])  # moves with its module
            scope.attributes.append(
                AttributeWrite(func[1], str(args[0][1]), buffer, scope.seq, scope.block, node.lineno)
            )
        elif func[0] == "attr" and last == "__setitem__" and len(args) == 2:
            self._write(node, func[1], args[0], args[1], None)
        elif last == "setitem" and len(args) == 3 and self._is_setitem(func):
            self._write(node, args[0], args[1], args[2], None)

    def _is_setitem(self, func: Expr) -> bool:
        """Whether a name that ends in `setitem` is the one of the operator module."""
        name = func[1][1] if func[0] == "attr" and func[1][0] == "name" else func[1] if func[0] == "name" else ""
        bound = self.scopes[0].definitions.get(name, ())
        return any(one.value[0] == "import" and one.value[1] == "operator" for one in bound)

    def _subscript(self, node: ast.Subscript) -> Expr:
        read = ("sub", self.lower(node.value), self.lower(node.slice), _place(node))
        if read[2][0] != "const":  # an int or a key never synchronises on a read
            self._site("read", read, node)
        return read

    def _slice(self, node: ast.Slice) -> Expr:
        return ("slice", self.lower(node.lower), self.lower(node.upper), self.lower(node.step))

    def _items(self, nodes: list[ast.expr]) -> tuple[Expr, ...]:
        return tuple(self.lower(node) for node in nodes)

    def _tuple(self, node: ast.Tuple) -> Expr:
        return ("tuple", self._items(node.elts))

    def _list(self, node: ast.List) -> Expr:
        return ("list", self._items(node.elts))

    def _set(self, node: ast.Set) -> Expr:
        return ("set", self._items(node.elts))

    def _dict(self, node: ast.Dict) -> Expr:
        keys = tuple(self.lower(key) if key else ("star", OPAQUE) for key in node.keys)
        return ("dict", keys, self._items(node.values))

    def _binary(self, node: ast.BinOp) -> Expr:
        return ("bin", _OPERATORS[type(node.op)], self.lower(node.left), self.lower(node.right))

    def _unary(self, node: ast.UnaryOp) -> Expr:
        value = self.lower(node.operand)
        op = _OPERATORS[type(node.op)]
        if op == "not":
            self._site("test", value, node.operand)
        elif op == "-" and value[0] == "const" and type(value[1]) in (int, float, complex):
            return ("const", -value[1])
        return ("unary", op, value)

    def _boolean(self, node: ast.BoolOp) -> Expr:
        values = self._items(node.values)
        for value, part in zip(values[:-1], node.values, strict=False):
            self._site("test", value, part)
        return ("bool", _OPERATORS[type(node.op)], values)

    def _compare(self, node: ast.Compare) -> Expr:
        ops = tuple(_OPERATORS[type(op)] for op in node.ops)
        compare = ("cmp", ops, self.lower(node.left), self._items(node.comparators))
        if len(ops) > 1 or ops[0] in ("in", "not in"):
            self._site("compare", compare, node)
        return compare

    def _conditional(self, node: ast.IfExp) -> Expr:
        test = self._test(node.test)
        return ("ifexp", test, self.lower(node.body), self.lower(node.orelse))

    def _comprehension(self, node: Any) -> Expr:
        scope = self.scope
        outer = dict(scope.renamed)
        tests: list[Expr] = []
        for generator in node.generators:
            iterable = self.lower(generator.iter)
            for name in (part.id for part in ast.walk(generator.target) if isinstance(part, ast.Name)):
                self.renames += 1
                scope.renamed[name] = f"{name}~{self.renames}"
            self._bind(generator.target, ("elem", iterable))
            tests.extend(self._test(test) for test in generator.ifs)
        form = {ast.ListComp: "list", ast.SetComp: "set", ast.DictComp: "dict"}.get(type(node), "iter")
        if isinstance(node, ast.DictComp):
            self.lower(node.key)
            element = self.lower(node.value)
        else:
            element = self.lower(node.elt)
        scope.renamed = outer
        return ("comp", form, element, tuple(tests))

    def _lambda(self, node: ast.Lambda) -> Expr:
        outer, statement = self.scope, self.scope.statement
        scope = self._open("<lambda>", f"{outer.qualname}.<lambda>".lstrip("."), "lambda", -1)
        scope.pos = _place(node)
        self._parameters(scope, node.args)
        self.scope = scope
        scope.seq, scope.statement = 1, statement
        scope.results.append(Definition(1, 0, self.lower(node.body), node.lineno))
        self._close(scope)
        self.scope = outer
        outer.reads |= scope.reads
        return ("lambda", scope.number)

    def _format(self, node: ast.JoinedStr) -> Expr:
        parts = tuple(self.lower(part) for part in node.values if isinstance(part, ast.FormattedValue))
        text = ("fstr", parts)
        if parts:
            self._site("format", text, node)
        return text

    def _formatted(self, node: ast.FormattedValue) -> Expr:
        if node.format_spec is not None:
            self.lower(node.format_spec)
        return self.lower(node.value)

    def _starred(self, node: ast.Starred) -> Expr:
        return ("star", self.lower(node.value))

    def _await(self, node: ast.Await) -> Expr:
        return ("await", self.lower(node.value))

    def _walrus(self, node: ast.NamedExpr) -> Expr:
        value = self.lower(node.value)
        self._define(node.target.id, value, node.lineno)
        return value

    def _yield(self, node: ast.Yield | ast.YieldFrom) -> Expr:
        scope = self.scope
        scope.flags.add("generator")
        value = self.lower(node.value)
        if isinstance(node, ast.YieldFrom):
            value = ("elem", value)
        scope.results.append(Definition(scope.seq, scope.block, value, node.lineno))
        return OPAQUE

    def _test(self, node: ast.expr) -> Expr:
        test = self.lower(node)
        if test[0] not in ("const", "bool"):
            self._site("test", test, node)
        return test

    def _site(self, form: str, value: Expr, node: ast.AST) -> None:
        scope = self.scope
        scope.sites.append(Site(form, value, _place(node), scope.seq, scope.block, scope.statement))

    # -- statements --

    def _expression_statement(self, node: ast.Expr) -> None:
        self.lower(node.value)

    def _assign(self, node: ast.Assign) -> None:
        value = self.lower(node.value)
        for target in node.targets:
            self._bind(target, value)

    def _bind(self, target: ast.expr, value: Expr, annotation: Expr | None = None) -> None:
        scope = self.scope
        if isinstance(target, ast.Name):
            self._define(target.id, value, target.lineno, annotation)
        elif isinstance(target, ast.Attribute):
            base = self.lower(target.value)
            scope.attributes.append(
                AttributeWrite(base, target.attr, value, scope.seq, scope.block, target.lineno, annotation)
            )
        elif isinstance(target, ast.Subscript):
            base, index = self.lower(target.value), self.lower(target.slice)
            self._write(target, base, index, value, None)
        elif isinstance(target, ast.Starred):
            self._bind(target.value, ("list", (("elem", value),)))
        elif isinstance(target, ast.Tuple | ast.List):
            starred = any(isinstance(part, ast.Starred) for part in target.elts)
            for position, part in enumerate(target.elts):
                self._bind(part, ("elem", value) if starred else ("item", value, position))

    def _write(self, node: ast.expr, base: Expr, index: Expr, value: Expr, op: str | None) -> None:
        scope = self.scope
        scope.writes.append(IndexWrite(base, index, value, op, _place(node), scope.seq, scope.block, scope.statement))

    def _augmented(self, node: ast.AugAssign) -> None:
        value, op, target = self.lower(node.value), _OPERATORS[type(node.op)], node.target
        old = self.lower(target)
        if isinstance(target, ast.Subscript):
            self._write(target, old[1], old[2], value, op)
        else:
            self._bind(target, ("aug", op, old, value))

    def _annotated(self, node: ast.AnnAssign) -> None:
        annotation = self.annotation(node.annotation)
        if node.value is None and not isinstance(node.target, ast.Name | ast.Attribute):
            return
        value = self.lower(node.value) if node.value is not None else OPAQUE
        self._bind(node.target, value, annotation)

    def annotation(self, node: ast.expr | None) -> Expr | None:
        """An annotation as an expression; text (`"Tensor"`) is parsed, unions stay `|` and subscripts."""
        if node is None:
            return None
        scope = self.scope
        kept = len(scope.calls), len(scope.sites), set(scope.reads)
        lowered = self.lower(_unquoted(node))
        del scope.calls[kept[0] :], scope.sites[kept[1] :]  # an annotation is never executed on a hot line
        scope.reads = kept[2]
        return lowered

    def _return(self, node: ast.Return) -> None:
        scope = self.scope
        scope.results.append(Definition(scope.seq, scope.block, self.lower(node.value), node.lineno))

    def _if(self, node: ast.If) -> None:
        depth = 0
        scope = self.scope
        outer = scope.block
        while True:  # `elif` chains nest in the tree: walk them, they can be thousands long
            scope.statement = _place(node.test)
            test = self._test(node.test)
            self._enter("if", test, node.body)
            if not node.orelse:
                break
            follows = node.orelse[0]
            if len(node.orelse) == 1 and isinstance(follows, ast.If) and depth < MAX_DEPTH:
                scope.blocks.append([scope.block, "else", test, False, 0])
                scope.block = len(scope.blocks) - 1
                scope.seq += 1
                depth += 1
                node = follows
                continue
            self._enter("else", test, node.orelse)
            break
        while scope.block != outer:
            block = scope.blocks[scope.block]
            inner = [b for b in scope.blocks[scope.block + 1 :] if b[0] == scope.block and b[1] in ("if", "else")]
            block[3] = len(inner) == 2 and all(b[3] for b in inner)
            block[4] = scope.seq
            scope.block = block[0]

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        scope = self.scope
        scope.statement = _place(node.iter)
        iterable = self.lower(node.iter)
        scope.blocks.append([scope.block, "loop", None, False, 0])
        outer, scope.block = scope.block, len(scope.blocks) - 1
        self._bind(node.target, ("elem", iterable))
        number = scope.block
        self._body(node.body)
        scope.blocks[number][4] = scope.seq
        scope.block = outer
        self._body(node.orelse)

    def _while(self, node: ast.While) -> None:
        self.scope.statement = _place(node.test)
        test = self._test(node.test)
        self._enter("loop", test, node.body)
        self._body(node.orelse)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        scope = self.scope
        managers = []
        for item in node.items:
            scope.statement = _place(item.context_expr)
            manager = self.lower(item.context_expr)
            managers.append(manager)
            if item.optional_vars is not None:
                self._bind(item.optional_vars, ("enter", manager))
        self._enter("with", ("tuple", tuple(managers)), node.body)

    def _try(self, node: ast.Try | ast.TryStar) -> None:
        self._enter("try", None, node.body + node.orelse)
        for handler in node.handlers:
            if handler.name:
                self._define(handler.name, OPAQUE, handler.lineno)
            self._enter("except", None, handler.body)
        if node.finalbody:
            self._enter("finally", None, node.finalbody)

    def _match(self, node: ast.Match) -> None:
        self.scope.statement = _place(node.subject)
        self.lower(node.subject)
        for case in node.cases:
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None) or getattr(part, "rest", None)
                if isinstance(name, str):
                    self._define(name, OPAQUE, case.pattern.lineno)
            test = self._test(case.guard) if case.guard else None
            self._enter("if", test, case.body)

    def _raise(self, node: ast.Raise) -> None:
        self.lower(node.exc)
        self.lower(node.cause)

    def _assert(self, node: ast.Assert) -> None:
        test = self._test(node.test)
        scope = self.scope
        scope.blocks.append([scope.block, "else", test, True, scope.seq])  # what follows knows the test held
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

    # -- definitions --

    def _parameters(self, scope: _Scope, arguments: ast.arguments) -> None:
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + [*arguments.defaults]
        listed: list[tuple[ast.arg, str, ast.expr | None]] = [
            (arg, "only" if number < len(arguments.posonlyargs) else "positional", default)
            for number, (arg, default) in enumerate(zip(positional, defaults, strict=True))
        ]
        if arguments.vararg:
            listed.append((arguments.vararg, "args", None))
        listed += [
            (arg, "keyword", default) for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        ]
        if arguments.kwarg:
            listed.append((arguments.kwarg, "kwargs", None))
        for arg, form, default in listed:
            lowered = self.lower(default) if default is not None else None
            scope.parameters.append(Parameter(arg.arg, form, self.annotation(arg.annotation), lowered))

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        outer = self.scope
        owner = -1
        if outer.form == "class":
            owner = outer.owner
        prefix = f"{outer.qualname}." if outer.qualname else ""
        if outer.form in ("function", "lambda"):
            prefix += "<locals>."
        scope = self._open(node.name, prefix + node.name, "function", owner)
        scope.pos = _place(node)
        scope.decorators = tuple(self.lower(part) for part in node.decorator_list)
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
        outer = self.scope
        prefix = f"{outer.qualname}." if outer.qualname else ""
        number = len(self.classes)
        bases = tuple(self.lower(base) for base in node.bases)
        keywords = tuple((word.arg or "", self.lower(word.value)) for word in node.keywords)
        decorators = tuple(self.lower(part) for part in node.decorator_list)
        scope = self._open(node.name, prefix + node.name, "class", number)
        record = ClassRecord(
            node.name, scope.qualname, outer.number, bases, keywords, decorators, scope.number, {}, _place(node)
        )
        self.classes.append(record)
        self._define(node.name, ("class", number), node.lineno)
        self.scope = scope
        self._body(node.body)
        self._close(scope)
        self.scope = outer
        methods: dict[str, tuple[int, ...]] = {}
        for name, found in scope.definitions.items():
            numbers = tuple(one.value[1] for one in found if one.value[0] == "func")
            if numbers:
                methods[name] = numbers
        self.classes[number] = record._replace(methods=methods)


def _ends(body: list[ast.stmt]) -> bool:
    """Whether control never falls out of the end of these statements."""
    last = body[-1]
    if isinstance(last, ast.Return | ast.Raise | ast.Continue | ast.Break):
        return True
    if isinstance(last, ast.If) and last.orelse:
        return _ends(last.body) and _ends(last.orelse)
    if isinstance(last, ast.With | ast.AsyncWith):
        return _ends(last.body)
    return False


def _is_stub(body: list[ast.stmt]) -> bool:
    """Whether a body does nothing of its own: docstring, `pass`, `...` or a single raise."""
    return all(
        isinstance(part, ast.Pass | ast.Raise) or (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
        for part in body
    )


def _unquoted(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) <= MAX_TEXT:
        try:
            return ast.copy_location(ast.parse(node.value, mode="eval").body, node)
        except (SyntaxError, ValueError):
            return node
    return node
