"""Lowers expressions of the standard library's tree into the tuples of `records`, and keeps what stands in them:
calls, sites and definitions, each with the place of its statement."""

from __future__ import annotations

import ast
from collections.abc import Callable
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

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitOr: "|", ast.BitXor: "^", ast.BitAnd: "&", ast.MatMult: "@",
    ast.Invert: "~", ast.Not: "not", ast.UAdd: "+", ast.USub: "-", ast.And: "and", ast.Or: "or",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


def place(node: Any) -> int:
    return pack(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


class Scope:
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
        self.blocks: list[list[Any]] = [[-1, "body", None, "", 0]]
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


class ExpressionLowering:
    """Lowers expressions of one file; `scope` is the function whose body is being read."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.classes: list[ClassRecord] = []
        self.star_imports: list[tuple[str, int]] = []
        self.depth = 0
        self.renames = 0
        self._last_blocks: dict[int, int] = {}  # of `and` and `or` whose last part is evaluated in a block of its own
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
        call = ("call", func, args, kwargs, place(node))
        scope = self.scope
        scope.calls.append(CallSite(call, scope.seq, scope.block, scope.statement))
        literal = args[1][1] if len(args) > 1 and args[1][0] == "const" and isinstance(args[1][1], str) else None
        if literal is not None and func == ("name", "getattr"):
            return ("attr", args[0], literal)
        self._written_by_call(node, func, args, literal)
        return call

    def _written_by_call(self, node: ast.Call, func: Expr, args: tuple[Expr, ...], literal: str | None) -> None:
        """Calls that assign: `setattr`, `register_buffer`, `__setitem__`, `operator.setitem`, `index_put_`."""
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
        elif func[0] == "attr" and last == "index_put_" and len(args) > 1 and args[0][0] in ("tuple", "list"):
            self._write(node, func[1], ("tuple", args[0][1]), args[1], None)
        elif last == "setitem" and len(args) == 3 and self._is_setitem(func):
            self._write(node, args[0], args[1], args[2], None)

    def _is_setitem(self, func: Expr) -> bool:
        """Whether a name that ends in `setitem` is the one of the operator module."""
        name = func[1][1] if func[0] == "attr" and func[1][0] == "name" else func[1] if func[0] == "name" else ""
        bound = self.scopes[0].definitions.get(name, ())
        return any(one.value[0] == "import" and one.value[1] == "operator" for one in bound)

    def _subscript(self, node: ast.Subscript) -> Expr:
        read = ("sub", self.lower(node.value), self.lower(node.slice), place(node))
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
        operation = ("bin", OPERATORS[type(node.op)], self.lower(node.left), self.lower(node.right))
        if self._reads_a_number(operation):
            self._site("operate", operation, node)
        return operation

    @staticmethod
    def _reads_a_number(operation: Expr) -> bool:
        """Whether an operator turns a tensor into a Python number or text: `[x] * t`, `"%f" % t`."""
        _, op, left, right = operation
        if op == "*":
            return "list" in (left[0], right[0])
        return op == "%" and left[0] == "const" and isinstance(left[1], str)

    def _unary(self, node: ast.UnaryOp) -> Expr:
        value = self.lower(node.operand)
        op = OPERATORS[type(node.op)]
        if op == "not":
            self._tested(value, node.operand)
        elif op == "-" and value[0] == "const" and type(value[1]) in (int, float, complex):
            return ("const", -value[1])
        return ("unary", op, value)

    def _boolean(self, node: ast.BoolOp) -> Expr:
        op, scope = OPERATORS[type(node.op)], self.scope
        outer, values = scope.block, list[Expr]()
        for part in node.values:
            value = self.lower(part)
            values.append(value)
            if part is not node.values[-1]:
                self._tested(value, part)
                if _tells(value):
                    scope.block = self._under("if" if op == "and" else "else", value)
        if scope.block != outer:
            self._last_blocks[id(node)] = scope.block
            scope.block = outer
        return ("bool", op, tuple(values))

    def _under(self, form: str, test: Expr) -> int:
        """A block for parts of an expression that are evaluated only where a test came out so."""
        scope = self.scope
        scope.blocks.append([scope.block, form, test, "", scope.seq])
        return len(scope.blocks) - 1

    def _compare(self, node: ast.Compare) -> Expr:
        ops = tuple(OPERATORS[type(op)] for op in node.ops)
        compare = ("cmp", ops, self.lower(node.left), self._items(node.comparators))
        if len(ops) > 1 or ops[0] in ("in", "not in"):
            self._site("compare", compare, node)
        return compare

    def _conditional(self, node: ast.IfExp) -> Expr:
        test, scope = self._test(node.test), self.scope
        if not _tells(test):
            return ("ifexp", test, self.lower(node.body), self.lower(node.orelse))
        outer = scope.block
        scope.block = self._under("if", test)
        body = self.lower(node.body)
        scope.block = outer
        scope.block = self._under("else", test)
        other = self.lower(node.orelse)
        scope.block = outer
        return ("ifexp", test, body, other)

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
        scope.pos = place(node)
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
        self.scope.seq += 1  # what follows in the same statement sees the new value
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
        self._tested(test, node)
        return test

    def _tested(self, test: Expr, node: ast.expr) -> None:
        """A truth test of an expression: of `a and b`, whose first parts are recorded where it is lowered, the last."""
        scope = self.scope
        outer = scope.block
        while isinstance(node, ast.BoolOp) and test[0] == "bool":
            scope.block = self._last_blocks.get(id(node), scope.block)
            test, node = test[2][-1], node.values[-1]
        negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        if test[0] != "const" and not negated and not (test[0] == "cmp" and test[1][0] in ("is", "is not")):
            self._site("test", test, node)
        scope.block = outer

    def _site(self, form: str, value: Expr, node: ast.AST) -> None:
        scope = self.scope
        scope.sites.append(Site(form, value, place(node), scope.seq, scope.block, scope.statement))

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
        elif isinstance(target, ast.Tuple | ast.List):
            behind = 0
            for position, part in enumerate(target.elts):
                if isinstance(part, ast.Starred):
                    behind = len(target.elts)
                    self._bind(part.value, ("rest", value, position, position + 1 - behind))
                else:
                    self._bind(part, ("item", value, position - behind))

    def _write(self, node: ast.expr, base: Expr, index: Expr, value: Expr, op: str | None) -> None:
        scope = self.scope
        scope.writes.append(IndexWrite(base, index, value, op, place(node), scope.seq, scope.block, scope.statement))

    def _define(self, name: str, value: Expr, row: int, annotation: Expr | None = None) -> None:
        scope = self.scope
        name = scope.renamed.get(name, name)
        found = Definition(scope.seq, scope.block, value, row, annotation)
        scope.definitions.setdefault(name, []).append(found)

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

    def _parameters(self, scope: Scope, arguments: ast.arguments) -> None:
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
            if default is not None:
                self.scope.statement = place(default)
            lowered = self.lower(default) if default is not None else None
            scope.parameters.append(Parameter(arg.arg, form, self.annotation(arg.annotation), lowered))

    def _open(self, name: str, qualname: str, form: str, owner: int) -> Scope:
        parent = self.scope.number if self.scopes else -1
        scope = Scope(len(self.scopes), name, qualname, form, parent, owner)
        self.scopes.append(scope)
        return scope

    def _close(self, scope: Scope) -> None:
        scope.blocks[0][4] = scope.seq


def _unquoted(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) <= MAX_TEXT:
        try:
            return ast.copy_location(ast.parse(node.value, mode="eval").body, node)
        except (SyntaxError, ValueError):
            return node
    return node


def _tells(test: Expr) -> bool:
    """Whether a test tells the type or place of a value, so that it matters where its outcome holds."""
    form = test[0]
    if form == "call":
        return bool(test[1][-1] in ("isinstance", "is_tensor"))
    if form == "unary":
        return _tells(test[2])
    if form == "bool":
        return any(_tells(part) for part in test[2])
    if form == "attr":
        return bool(test[2] in ("is_cuda", "is_cpu"))
    return bool(form == "cmp" and test[2][0] == "attr" and test[2][2] == "type")
