"""The mutants still fit the tree: each applies, and what must catch it exists."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.mutants.evidence import read_outcomes
from benchmarks.mutants.mutant import ROOT, TESTED, Edit, Mutant, MutantError, load
from nosync_lint.registry import find

MUTANTS, EXCUSED = load()
TESTS = ROOT / "tests/reference_allocator"
LISTED = {"A": 25, "B": 18, "C": 15, "D": 15, "E": 9, "G": 4, "K": 19}
"""The rows of the specification, by group."""


def functions(file: str) -> set[str]:
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_there_are_a_hundred_and_every_row_is_there_or_excused() -> None:
    known = [one.id for one in (*MUTANTS, *EXCUSED)]
    assert len(set(known)) == len(known)
    assert len(MUTANTS) >= 100
    assert {f"{group}{at:02}" for group, count in LISTED.items() for at in range(1, count + 1)} <= set(known)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.id)
def test_a_mutant_applies_once(mutant: Mutant) -> None:
    for name, text in mutant.applied(ROOT).items():
        assert text != (ROOT / name).read_text(encoding="utf-8")
        if name.endswith(".py"):
            compile(text, name, "exec")


def test_what_must_catch_a_mutant_exists() -> None:
    names: dict[str, set[str]] = {}
    for mutant in MUTANTS:
        assert all(find(rule) for rule in mutant.rules), mutant.id
        for witness in (test for tests in mutant.witnesses.values() for test in tests):
            file, _, test = witness.partition("::")
            assert test.partition("[")[0] in names.setdefault(file, functions(file)), (mutant.id, witness)
        assert set(mutant.witnesses) <= set(TESTED)


def test_a_text_that_is_not_there_once_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\nx = 1\n")
    for edit, said in (
        (Edit("a.py", "x = 1", "x = 2"), "T01: the old text stands 2 times in a.py, not once"),
        (Edit("a.py", "y", "x = 2"), "T01: the old text stands 0 times in a.py, not once"),
        (Edit("b.py", "y", "x = 2"), "T01: there is no b.py"),
    ):
        with pytest.raises(MutantError, match=said):
            Mutant("T01", "", (edit,), (), {}).applied(tmp_path)


def outcome(test: str, *kinds: str, when: str = "call", outcome: str = "failed") -> dict[str, str]:
    test = f"tests/reference_allocator/{test}"
    return {"test": test, "when": when, "outcome": outcome, "kinds": " ".join(kinds), "text": "said"}


def test_only_a_test_that_fails_by_itself_has_caught_a_mutant() -> None:
    one = "test_a.py::test_one"
    assert read_outcomes([outcome(f"{one}[1]", "AssertionError", "Exception")], [one]) == (
        {one}, (), {one: "AssertionError: said"},
    )  # fmt: skip
    for wrong in (
        [],
        [outcome(one, outcome="skipped")],
        [outcome(one, "AssertionError", when="setup")],
        [outcome(one, "NameError", "Exception")],
        [outcome(one, "ModuleNotFoundError", "ImportError")],
        [outcome(one, "BuildError", "RuntimeError")],
        [outcome("test_a.py", when="collect")],
    ):
        failed, broken, _ = read_outcomes(wrong, [one])
        assert failed == set()
        assert broken
    assert read_outcomes([outcome(one, outcome="passed")], [one]) == (set(), (), {})
