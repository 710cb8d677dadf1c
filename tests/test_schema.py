"""The published JSON Schema and the reader agree on what a configuration may say."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from nosync_lint.config import KEYS, ConfigError, load_config
from nosync_lint.schema import schema
from nosync_lint.selection import check_names

ROOT = Path(__file__).resolve().parent.parent
PUBLISHED = ROOT / "docs" / "nosync-lint.schema.json"

VALID = {
    "nothing": "",
    "choice": 'select = ["NSL1", "item-read"]\nignore = ["nsl101"]\nextend-select = ["NSL"]\nextend-ignore = ["host-copy"]',
    "globs": '[per-file-ignores]\n"tests/**" = ["NSL2"]\n"!a" = []',
    "rules": '[rules.item-read]\nseverity = "info"\n[rules.NSL002]\nleast-words = 3\n[rules.device-tensor-printed]\nignore-calls = ["*.debug"]',
    "an empty rule": "[rules.item-read]",
    "numbers": "max-file-size = 1\nrespect-gitignore = false\npreview = true",
    "words": 'heat = "any"\nmin-confidence = "possible"\nfail-on = "info"\npresets = ["auto", "sglang"]\ncache-dir = "x"',
    "names": 'hot = ["a.b"]\ncold = []\ncapture = ["c"]\nwaits = ["w"]\ncures = ["u"]\nreturns-device = ["d"]\nreturns-host = ["h"]\nwaivers = ["m"]',
    "files": 'exclude = ["a"]\nextend-exclude = ["b"]\nextra-sources = ["../c"]\ntarget-torch = ""',
    "tables": '[[contract]]\nbase = "B"\nmethod = "m"\nargument = "a"\n[[census]]\nfiles = "*"\nmatches = 0\nwhere = "rank=3"',
    "fixes": 'fixable = ["NSL1"]\nunfixable = ["item-read"]\nunsafe-fixes = true',
    "accepted": 'baseline = "known.jsonl"\nrespect-blanket-noqa = true\n[budgets]\n"a.b" = 0',
    "no where": '[[census]]\nfiles = "*"\nmatches = 2\nwhere = ""',
}
INVALID = {
    "unknown key": "hott = []",
    "underscore": 'min_confidence = "likely"',
    "text for a list": 'hot = "a"',
    "numbers in a list": "hot = [1]",
    "empty name": 'hot = [" "]',
    "empty rule": 'select = [""]',
    "unknown word": 'heat = "boiling"',
    "unknown preset": 'presets = ["keras"]',
    "unknown severity": '[rules.item-read]\nseverity = "off"',
    "empty severity": '[rules.item-read]\nseverity = ""',
    "unknown option": "[rules.item-read]\nwords = 3",
    "wrong option": '[rules.NSL002]\nleast-words = "three"',
    "true for a number": "[rules.unexplained-suppression]\nleast-words = true",
    "negative option": "[rules.NSL002]\nleast-words = -1",
    "text for a list option": '[rules.device-tensor-printed]\nignore-calls = "*.debug"',
    "no table": "rules = 3",
    "no table of a rule": "[rules]\nitem-read = 3",
    "no globs": 'per-file-ignores = ["a"]',
    "text for rules of a glob": '[per-file-ignores]\n"a" = "NSL1"',
    "empty glob": '[per-file-ignores]\n"" = ["NSL1"]',
    "empty negated glob": '[per-file-ignores]\n"! " = ["NSL1"]',
    "text for a number": 'max-file-size = "1"',
    "true for bytes": "max-file-size = true",
    "no bytes": "max-file-size = 0",
    "number for truth": "respect-gitignore = 1",
    "empty folder": 'cache-dir = " "',
    "lacking": '[[census]]\nfiles = "a"',
    "too much": '[[census]]\nfiles = "a"\nmatches = 1\nmatch = 2',
    "wrong where": '[[census]]\nfiles = "a"\nmatches = 1\nwhere = "rank<3"',
    "wrong count": '[[census]]\nfiles = "a"\nmatches = "1"',
    "a budget that is no number": '[budgets]\n"a.b" = "2"',
    "a negative budget": '[budgets]\n"a.b" = -1',
    "a budget without quotes": "[budgets]\na.b = 2",
    "a list for a baseline": 'baseline = ["a"]',
    "a table for an array": '[contract]\nbase = "B"',
}


def said_by_the_reader(tmp_path: Path, text: str) -> bool:
    path = tmp_path / "nosync-lint.toml"
    path.write_text(text)
    try:
        check_names(load_config(path))
    except ConfigError:
        return False
    return True


def said_by_the_schema(text: str) -> bool:
    return Draft202012Validator(schema()).is_valid(tomllib.loads(text))


@pytest.mark.parametrize("name", VALID)
def test_both_accept_what_is_right(tmp_path: Path, name: str) -> None:
    assert said_by_the_reader(tmp_path, VALID[name])
    assert said_by_the_schema(VALID[name])


@pytest.mark.parametrize("name", INVALID)
def test_both_refuse_what_is_wrong(tmp_path: Path, name: str) -> None:
    assert not said_by_the_reader(tmp_path, INVALID[name])
    assert not said_by_the_schema(INVALID[name])


def test_the_valid_samples_use_every_key_but_extend() -> None:
    used = {key for text in VALID.values() for key in tomllib.loads(text)}
    assert used == set(KEYS) - {"extend"}


def test_only_the_reader_knows_which_rules_are_installed(tmp_path: Path) -> None:
    text = '[rules.rule-of-a-plugin]\nseverity = "info"'
    assert said_by_the_schema(text)
    assert not said_by_the_reader(tmp_path, text)


def test_the_schema_is_one_and_is_published() -> None:
    Draft202012Validator.check_schema(schema())
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == schema()
    assert list(schema()["properties"]) == list(KEYS)


def test_this_project_and_the_demo_follow_the_schema() -> None:
    for path in (ROOT / "pyproject.toml", ROOT / "demo" / "pyproject.toml", *ROOT.glob("fixtures/**/nosync-lint.toml")):
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        table = table["tool"].get("nosync-lint", {}) if path.name == "pyproject.toml" else table
        assert list(Draft202012Validator(schema()).iter_errors(table)) == [], path
