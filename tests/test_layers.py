"""Which way imports point, and what the parts of the engine never do. Read from the code."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
ENGINE = sorted((ROOT / "nosync_lint").rglob("*.py"))
RULES = sorted((ROOT / "rules").glob("*.py"))
ALL = [*ENGINE, *RULES]
RUNNING = ROOT / "nosync_lint" / "guard" / "sources.py"
"""The text of code that runs: the guard looks at the statement and the expression that it is in."""
EXPRESSIONS = ROOT / "nosync_lint" / "fingerprint.py"
"""Asks the parser which brackets of a flagged expression change nothing."""
GUARD = ROOT / "nosync_lint" / "guard"
WITH_TORCH = (GUARD / "operations", GUARD / "simulated", GUARD / "measured")
"""The folders that work on tensors: they are imported when a guard is opened."""

MAY_IMPORT = {
    "__init__": set(),
    "models": set(),
    "plural": set(),
    "ruff_settings": set(),
    "source": set(),
    "config": {"models"},
    "finding": {"source"},
    "fingerprint": {"source"},
    "notebook": {"source"},
    "owners": {"source"},
    "answers": {"finding", "source"},
    "baseline": {"config", "finding", "fingerprint"},
    "discover": {"config", "source"},
    "in_cells": {"finding", "source"},
    "index": {"notebook", "source"},
    "rule": {"finding", "source"},
    "since": {"config"},
    "target": {"config"},
    "touching": {"finding", "source"},
    "link": {"answers", "finding", "index", "models", "source"},
    "registry": {"finding", "rule"},
    "report": {"answers", "finding", "plural", "source"},
    "suppression": {"finding", "index", "rule", "source"},
    "budgets": {"config", "finding", "link", "rule", "source"},
    "configured_names": {"config", "link", "rule", "source"},
    "fix": {"config", "finding", "index", "report", "rule", "source"},
    "guard": {
        "baseline",
        "finding",
        "fingerprint",
        "index",
        "link",
        "models",
        "plural",
        "registry",
        "report",
        "source",
        "suppression",
    },
    "rules": {"finding", "link", "rule"},
    "schema": {"config", "registry", "rule"},
    "selection": {"config", "finding", "registry", "rule"},
    "cures": {"finding", "link", "rule"},
    "notes": {
        "config",
        "finding",
        "index",
        "link",
        "plural",
        "report",
        "ruff_settings",
        "rule",
        "selection",
        "source",
        "touching",
    },
    "add_ignore": {"finding", "fix", "index", "registry", "source", "suppression"},
    "judge": {
        "config",
        "finding",
        "fingerprint",
        "fix",
        "index",
        "link",
        "notebook",
        "registry",
        "report",
        "rule",
        "selection",
        "source",
        "suppression",
        "touching",
    },
    "explain": {
        "answers",
        "config",
        "finding",
        "index",
        "judge",
        "link",
        "registry",
        "rule",
        "selection",
        "suppression",
    },
    "graph": {"answers", "finding", "index", "judge", "link", "rule", "source"},
    "ratchet": {
        "baseline",
        "budgets",
        "config",
        "finding",
        "fingerprint",
        "judge",
        "link",
        "plural",
        "registry",
        "rule",
        "since",
        "source",
        "touching",
    },
    "pipeline": {
        "answers",
        "config",
        "configured_names",
        "cures",
        "discover",
        "explain",
        "finding",
        "fix",
        "graph",
        "in_cells",
        "index",
        "judge",
        "link",
        "notes",
        "owners",
        "ratchet",
        "plural",
        "registry",
        "report",
        "rule",
        "selection",
        "source",
        "suppression",
        "target",
        "touching",
    },
    "api": {"config", "pipeline", "report", "source"},
    "server": {
        "answers",
        "config",
        "discover",
        "finding",
        "fix",
        "index",
        "pipeline",
        "ratchet",
        "registry",
        "report",
        "source",
    },
    "testing": {"config", "finding", "pipeline", "plural", "registry", "rule"},
    "commands": {
        "add_ignore",
        "config",
        "discover",
        "fix",
        "index",
        "link",
        "models",
        "notes",
        "pipeline",
        "plural",
        "registry",
        "report",
        "ruff_settings",
        "rule",
        "schema",
        "selection",
        "server",
        "source",
        "target",
    },
    "cli": {"commands", "config"},
    "__main__": {"cli"},
}
"""Which parts a part may import; a part is a module or folder of the package. Imports under TYPE_CHECKING are free."""

ORDER = ["source", "discover", "index", "link", "judge", "pipeline", "commands", "cli"]


class Import(NamedTuple):
    """An import of a module: its dotted name, whether types alone need it, and the function it stands in."""

    module: str
    typing: bool
    function: str | None


def part_of(path: Path) -> str:
    relative = path.relative_to(ROOT)
    if relative.parts[0] == "rules":
        return "rules"
    return relative.parts[1].removesuffix(".py")


def imports(path: Path) -> Iterator[Import]:
    """Every import of a file."""
    package = ".".join(path.relative_to(ROOT).with_suffix("").parts)

    def visit(node: ast.AST, typing: bool, function: str | None) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, typing, function)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{package}: relative import"
            yield Import(node.module or "", typing, function)
            for alias in node.names:
                yield Import(f"{node.module}.{alias.name}", typing, function)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        if isinstance(node, ast.If):
            for child in node.body:
                yield from visit(child, typing or ast.unparse(node.test) == "TYPE_CHECKING", function)
            for child in node.orelse:
                yield from visit(child, typing, function)
            return
        for child in ast.iter_child_nodes(node):
            yield from visit(child, typing, function)

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), False, None)


def parts_imported(path: Path) -> set[str]:
    """The parts of the package that a file imports when it runs."""
    names = {part_of(one) for one in ENGINE} - {"__init__"}
    found = set()
    for one in imports(path):
        words = one.module.split(".")
        if one.typing or words[0] != "nosync_lint":
            continue
        found.add(words[1] if len(words) > 1 and words[1] in names else "__init__")
    own = part_of(path)
    return found - {own} - ({"__init__"} if found - {own, "__init__"} else set())


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_point_one_way(path: Path) -> None:
    assert parts_imported(path) <= MAY_IMPORT[part_of(path)]


def test_the_allowed_arrows_make_no_circle() -> None:
    settled: set[str] = set()
    while remaining := {part for part in MAY_IMPORT if part not in settled}:
        free = {part for part in remaining if MAY_IMPORT[part] <= settled}
        assert free, f"parts that import each other: {sorted(remaining)}"
        settled |= free


def test_a_stage_imports_no_later_one() -> None:
    for number, stage in enumerate(ORDER):
        assert MAY_IMPORT[stage] & set(ORDER[number + 1 :]) == set()


def test_every_part_has_its_arrows() -> None:
    assert {part_of(path) for path in ALL} == set(MAY_IMPORT)


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_rules_never_import_each_other(path: Path) -> None:
    assert [one.module for one in imports(path) if one.module.startswith(("nosync_lint.rules", "rules"))] == []


@pytest.mark.parametrize(
    "path",
    [path for path in ALL if not set(WITH_TORCH) & set(path.parents)],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_nothing_but_open_guards_imports_torch(path: Path) -> None:
    assert [one.module for one in imports(path) if one.module.split(".")[0] in ("torch", "numpy")] == []


def test_only_judge_and_the_shapes_of_rules_import_libcst() -> None:
    for path in ALL:
        for one in imports(path):
            if one.module.split(".")[0] != "libcst" or one.typing:
                continue
            where = part_of(path), one.function
            assert where[0] in ("judge", "fix") or where == ("rules", "shape"), (path, one)
            assert one.function is not None, f"{path}: libcst is imported with the module"


def test_only_index_parses_whole_files() -> None:
    parsers = re.compile(r"\b(ast\.parse|tokenize\.\w+|(?<!re\.)compile|exec|eval)\(|\bParser\(")
    for path in ALL:
        if part_of(path) == "index" or path in (RUNNING, EXPRESSIONS):
            continue
        assert part_of(path) == "source" or parsers.search(_code(path)) is None, path
        roots = {one.module.split(".")[0] for one in imports(path) if not one.typing}
        assert roots & {"tree_sitter", "tree_sitter_cuda", "ast"} == set(), path


def test_the_engine_names_no_rule() -> None:
    slugs = {path.stem.replace("_", "-") for path in RULES} - {"--init--"}
    for path in ENGINE:
        text = _code(path)
        assert [slug for slug in slugs if f'"{slug}"' in text] == [], path
        assert re.findall(r"\"NSL\d{3}\"", text) == [], path


def test_the_engine_names_no_torch_function() -> None:
    """What torch offers, and what of it waits, are rows of the models. An open guard watches torch and stands in for it."""
    named = re.compile(r"[\"']torch\.\w+|\btorch\.\w+\(")
    words = _model_words()
    for path in (path for path in ENGINE if not set(WITH_TORCH) & set(path.parents)):
        for number, line in enumerate(_code(path).splitlines(), 1):
            assert named.search(line) is None, f"{path}:{number}: {line.strip()}"
            quoted = set(re.findall(r"\"([a-z_]+)\"", line))
            assert quoted & words == set(), f"{path}:{number}: {line.strip()}"


OURS = frozenset(
    [
        "graph",
        "log",
        "select",
        "any",
        "array",
        "where",
        "error",
        "warning",
        "info",
        "tensor",
        "numpy",
        "str",
        "sub",
        "float",
        "bool",
        "to",
        "cuda",
        "cpu",
        "int",
        "item",
        "equal",
        "index",
        "add",
        "split",
        "min",
        "max",
        "cond",
        "format",
        "full",
        "range",
        "type",
        "nonzero",
        "broadcast",
        "pin_memory",
        "view",
        "wait",
    ]
)
"""Words of the models that are also kinds of values, forms of expressions or results, or words of the command line."""


def _model_words() -> set[str]:
    """Functions and methods that the models say synchronise."""
    with (ROOT / "nosync_lint" / "models" / "calls.toml").open("rb") as file:
        rows = tomllib.load(file)
    listed = [
        name for row in (*rows["call"], *rows["copy"]) for key in ("functions", "methods") for name in row.get(key, ())
    ]
    return {name.rpartition(".")[2] for name in listed} - OURS


def _code(path: Path) -> str:
    """A file without its comments and docstrings."""
    return ast.unparse(_without_docstrings(ast.parse(path.read_text(encoding="utf-8")))).replace("'", '"')


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [
                part
                for part in node.body
                if not (
                    isinstance(part, ast.Expr)
                    and isinstance(part.value, ast.Constant)
                    and isinstance(part.value.value, str)
                )
            ] or [ast.Pass()]
    return tree
