"""What holds of every rule: its names, its code, its documentation, its samples."""

from __future__ import annotations

import ast
import inspect
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from nosync_lint.finding import Severity
from nosync_lint.registry import PACKAGE, documentation, find, rules, summary
from nosync_lint.rule import Rule

ROOT = Path(__file__).resolve().parent.parent
RULES = {rule.slug(): rule for rule in rules() if type(rule).__module__.startswith(PACKAGE + ".")}
SECTIONS = ["Why it matters", "Instead", "Missed alarms", "False alarms"]
FAMILIES = "01234567"
MAX_RULE, MAX_ENGINE = 120, 500
CURES = ("use-*", "prefer-*", "avoid-*", "no-*", "dont-*", "*-used", "*-check", "*-rule", "bad-*", "possible-*")
"""Shapes of names that tell a cure or nothing: a slug names the defect, and reads well after "allow"."""

each_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _module(rule: Rule) -> str:
    return type(rule).__module__.rpartition(".")[2]


def test_every_rule_file_holds_one_rule() -> None:
    files = {path.stem for path in (ROOT / "rules").glob("*.py")} - {"__init__"}
    assert files == {_module(rule) for rule in RULES.values()}
    assert len(files) == len(RULES)


@each_rule
def test_module_class_and_slug_agree(rule: Rule) -> None:
    assert _module(rule) == rule.slug().replace("-", "_")
    assert type(rule).__name__ == "".join(part.capitalize() for part in rule.slug().split("-"))
    assert not type(rule).__name__.endswith("Rule")


@each_rule
def test_a_slug_names_the_defect_in_two_to_six_words(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+){1,5}", rule.slug())
    assert [shape for shape in CURES if fnmatch(rule.slug(), shape)] == []


def test_codes_are_unique_and_in_their_family() -> None:
    codes = [rule.code for rule in RULES.values()]
    assert len(set(codes)) == len(codes)
    assert [code for code in codes if not re.fullmatch(rf"NSL[{FAMILIES}]\d\d", code)] == []


@each_rule
def test_only_contracts_kernels_and_the_run_itself_are_without_heat(rule: Rule) -> None:
    contract = (rule.code[3] in "067" and rule.code != "NSL611") or rule.code in ("NSL501", "NSL506")
    assert rule.heated != contract


@each_rule
def test_a_rule_says_what_it_is(rule: Rule) -> None:
    assert isinstance(rule.severity, Severity)
    assert re.fullmatch(r"\d+\.\d+\.\d+", rule.since)
    assert rule.sites
    assert type(find(rule.code)) is type(rule)
    assert type(find(rule.slug())) is type(rule)


@each_rule
def test_every_rule_is_documented_in_four_sections(rule: Rule) -> None:
    text = documentation(rule)
    assert re.fullmatch(r"[A-Z`].*\.", summary(rule))
    headings = [line for line in text.splitlines()[1:] if line and not line[0].isspace()]
    assert headings == SECTIONS
    for part in re.split(r"^\S.*$", text, flags=re.M)[2:]:
        assert len(part.strip()) > 5


@each_rule
def test_every_rule_has_a_flagged_and_a_clean_sample(rule: Rule) -> None:
    folder = ROOT / "fixtures" / rule.slug()
    kinds = {path.name.partition(".")[0] for path in folder.iterdir()}
    assert {"flagged", "clean"} <= kinds


@each_rule
def test_a_rule_that_needs_the_program_has_a_sample_of_several_files(rule: Rule) -> None:
    if rule.code[3] in "12345" or rule.code in ("NSL601", "NSL602", "NSL603"):
        files = [path for path in (ROOT / "fixtures" / rule.slug() / "across_modules").rglob("*") if path.is_file()]
        assert len(files) > 1


def test_every_sample_folder_belongs_to_a_rule() -> None:
    assert {path.name for path in (ROOT / "fixtures").iterdir() if path.is_dir()} == set(RULES)


@each_rule
def test_the_changelog_names_every_rule(rule: Rule) -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"\b{rule.code} `{rule.slug()}`", text)


def test_no_document_names_a_code_that_no_rule_has() -> None:
    codes = {rule.code for rule in RULES.values()}
    for path in [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]:
        named = set(re.findall(r"\bNSL\d{3}\b", path.read_text(encoding="utf-8")))
        assert named - codes == set(), path


@each_rule
def test_a_rule_file_is_short(rule: Rule) -> None:
    assert _lines(ROOT / "rules" / f"{_module(rule)}.py") <= MAX_RULE


def test_engine_files_are_of_readable_length() -> None:
    long = {str(path.relative_to(ROOT)): _lines(path) for path in (ROOT / "nosync_lint").rglob("*.py")}
    assert {name: count for name, count in long.items() if count > MAX_ENGINE} == {}


@each_rule
def test_a_rule_holds_nothing_mutable(rule: Rule) -> None:
    own = {name: value for name, value in vars(type(rule)).items() if not name.startswith("_")}
    assert [name for name, value in own.items() if isinstance(value, list | dict | set)] == []
    assert vars(rule) == {}


@each_rule
def test_a_shape_is_made_once_and_matches_something(rule: Rule) -> None:
    shape = rule.shape()
    if shape is None:
        assert "shape" not in vars(type(rule))
        return
    assert rule.shape() is shape
    import libcst
    import libcst.matchers as m

    statement = "t[i] = f(x)\n"
    assert m.findall(libcst.parse_module(statement), shape)


def test_a_rule_judges_in_one_generator() -> None:
    for rule in RULES.values():
        judge = type(rule).judge
        assert inspect.isgeneratorfunction(judge), rule.slug()
        tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(judge)))
        yields = [node for node in ast.walk(tree) if isinstance(node, ast.Yield | ast.YieldFrom)]
        assert len(yields) == 1, rule.slug()
