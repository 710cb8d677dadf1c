"""Settings: where they are found, what they may say, and what an error names."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from nosync_lint.config import (
    KEYS,
    TABLE,
    Budget,
    Census,
    ConfigError,
    Contract,
    FileIgnore,
    RuleTable,
    Settings,
    find_config,
    inline_layer,
    load_config,
    settings_toml,
)

ROOT = Path(__file__).resolve().parent.parent


def load(tmp_path: Path, text: str, name: str = "nosync-lint.toml") -> Settings:
    path = tmp_path / name
    path.write_text(text)
    return load_config(path)


def test_an_empty_file_gives_the_defaults(tmp_path: Path) -> None:
    assert load(tmp_path, "") == Settings()
    assert load(tmp_path, "[project]\nname = 'x'\n", "pyproject.toml") == Settings()


def test_every_key_is_read(tmp_path: Path) -> None:
    (tmp_path / "base.toml").touch()
    settings = load(
        tmp_path,
        """
select = ["NSL1"]
extend-select = ["NSL2"]
ignore = ["scalar-index-write"]
extend-ignore = ["NSL3"]
per-file-ignores = { "tests/**" = ["NSL2"], "!serve/*" = ["NSL4"] }
preview = true
fail-on = "error"
presets = ["auto", "vllm"]
extend = "base.toml"
extend-exclude = ["old"]
fixable = ["NSL101"]
unfixable = ["NSL104"]
unsafe-fixes = true
exclude = ["gen/*"]
hot = ["Loop.step"]
cold = ["Loop.stop"]
capture = ["Loop.record"]
waits = ["fence"]
cures = ["upload"]
returns-device = ["to_gpu"]
returns-host = ["fetch"]
waivers = ["meant"]
heat = "warm"
min-confidence = "certain"
target-torch = ">=2.13"
extra-sources = ["../lib"]
max-file-size = 5
cache-dir = "/tmp/cache"
respect-gitignore = false
baseline = "known.jsonl"
respect-blanket-noqa = true
[rules.item-read]
severity = "info"
words = ["a", "b"]
[[contract]]
base = "B"
method = "m"
argument = "a"
[[census]]
files = "*.cuh"
matches = 3
where = "rank=3"
[budgets]
"Loop.step" = 2
""",
    )
    assert settings == Settings(
        select=("NSL1",), extend_select=("NSL2",), ignore=("scalar-index-write",), extend_ignore=("NSL3",),
        per_file_ignores=(FileIgnore("tests/**", ("NSL2",)), FileIgnore("!serve/*", ("NSL4",))), preview=True, fail_on="error",
        presets=("auto", "vllm"), extend="base.toml", extend_exclude=("old",),
        fixable=("NSL101",), unfixable=("NSL104",), unsafe_fixes=True,
        rules=(RuleTable("item-read", "info", (("words", ("a", "b")),)),),
        exclude=("gen/*",), hot=("Loop.step",), cold=("Loop.stop",),
        capture=("Loop.record",), waits=("fence",), cures=("upload",), returns_device=("to_gpu",), returns_host=("fetch",),
        waivers=("meant",), heat="warm", min_confidence="certain", target_torch=">=2.13", extra_sources=("../lib",),
        max_file_size=5, cache_dir="/tmp/cache", respect_gitignore=False, contract=(Contract("B", "m", "a", 36),),
        census=(Census("*.cuh", 3, "rank=3", 40),), budgets=(Budget("Loop.step", 2, 45, tmp_path / "nosync-lint.toml"),),
        baseline="known.jsonl", respect_blanket_noqa=True,
    )  # fmt: skip
    assert set(dict(settings.rows)) == set(KEYS)


def test_pyproject_holds_the_same_keys_in_its_table(tmp_path: Path) -> None:
    text = "[tool.nosync-lint]\nheat = 'any'\n[[tool.nosync-lint.census]]\nfiles = 'a'\nmatches = 1\n"
    settings = load(tmp_path, text, "pyproject.toml")
    assert settings.heat == "any"
    assert settings.census == (Census("a", 1, "", 3),)
    assert settings.path == tmp_path / "pyproject.toml"


def test_the_row_of_a_key_is_known(tmp_path: Path) -> None:
    settings = load(tmp_path, "\nheat = 'any'\n# hot = []\nhot = [\n  'a',\n]\n")
    assert settings.row("hot") == 4
    assert settings.row("cold") == 1


WRONG = {
    "hott = []": "unknown key `hott`, did you mean `hot`?",
    "min_confidence = 'likely'": "unknown key `min_confidence`, did you mean `min-confidence`?",
    "path = 'x'": "unknown key `path`",
    "qqqqqq = 1": "unknown key `qqqqqq`; known keys: select, ",
    "hot = 'Loop.step'": "`hot` must be a list of strings, not 'Loop.step'",
    "hot = [1]": "`hot` must be a list of strings, not [1]",
    "heat = 'boiling'": "`heat` must be one of hot, warm, any, not 'boiling'",
    "min-confidence = 'sure'": "`min-confidence` must be one of certain, likely, possible, not 'sure'",
    "max-file-size = 'big'": "`max-file-size` must be of type int, not 'big'",
    "max-file-size = true": "`max-file-size` must be of type int, not True",
    "respect-gitignore = 1": "`respect-gitignore` must be of type bool, not 1",
    "census = 3": "`census` must be an array of tables, [[tool.nosync-lint.census]]",
    "[census]\nfiles = 'a'": "`census` must be an array of tables",
    "[[census]]\nfiles = 'a'\nmatch = 1": "unknown key `census.match`, did you mean `matches`?",
    "[[census]]\nfiles = 'a'\nmatches = '1'": "`census.matches` must be of type int, not '1'",
    "[[census]]\nfiles = 'a'": "a [[census]] table lacks matches",
    "[[contract]]\nbase = 'a'": "a [[contract]] table lacks method, argument",
    "heat =": "is not valid TOML",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_named_with_its_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, text)
    row = "" if "TOML" in WRONG[text] else ":1"
    assert str(raised.value).startswith(str(tmp_path / f"nosync-lint.toml{row}") + ": ")
    assert WRONG[text] in str(raised.value)


def test_a_table_that_is_no_table_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\[tool.nosync-lint\] must be a table"):
        load(tmp_path, "[tool]\nnosync-lint = 3\n", "pyproject.toml")


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path / "missing.toml")
    (tmp_path / "latin.toml").write_bytes(b"hot = ['Z\xfcrich']")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path / "latin.toml")


def test_the_nearest_configuration_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "nosync-lint.toml").touch()
    assert find_config(inner) == tmp_path / "nosync-lint.toml"
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.other]\n")
    assert find_config(inner) == tmp_path / "nosync-lint.toml"
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.nosync-lint]\n")
    assert find_config(inner) == tmp_path / "a" / "pyproject.toml"
    (tmp_path / "a" / ".nosync-lint.toml").touch()
    assert find_config(inner) == tmp_path / "a" / ".nosync-lint.toml"


# Rows


def test_the_row_is_that_of_our_table_and_not_of_another(tmp_path: Path) -> None:
    text = '[tool.ruff]\nselect = ["E"]\nexclude = [\n  "a = 1",\n]\n[tool.nosync-lint]\nexclude = ["a"]\nselect = ["NSL1"]\n'
    settings = load(tmp_path, text, "pyproject.toml")
    assert (settings.row("exclude"), settings.row("select")) == (7, 8)


def test_strings_of_several_lines_and_quoted_keys_mislead_no_row(tmp_path: Path) -> None:
    text = (
        'target-torch = """\n>=2.9\\\n"""\n"per-file-ignores"."a.py" = [\n  "NSL1",  # heat = 3 ] "\n]\nheat = "any"\n'
    )
    settings = load(tmp_path, text)
    assert [settings.row(key) for key in ("target-torch", "per-file-ignores", "heat")] == [1, 4, 7]


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ('heat = "any"\nselect = "NSL1"\n', 2),
        ('heat = "any"\n[rules.item-read]\nseverity = "loud"\n', 3),
        ('heat = "any"\n\n[per-file-ignores]\n"a.py" = []\n"b.py" = [3]\n', 5),
        ('[[census]]\nfiles = "a"\nmatches = 1\n[[census]]\nfiles = "b"\n', 4),
    ],
)
def test_an_error_names_the_row(tmp_path: Path, text: str, row: int) -> None:
    with pytest.raises(ConfigError, match=rf"nosync-lint\.toml:{row}: "):
        load(tmp_path, text)


# Extending


def test_a_file_extends_another_one_key_by_key(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "nosync-lint.toml").write_text(
        'heat = "warm"\nexclude = ["old"]\nextend-exclude = ["a"]\ntarget-torch = "2.13"\n'
        'extra-sources = ["lib"]\ncache-dir = "kept"\n'
        '[rules.item-read]\nseverity = "info"\n[rules.host-copy]\nseverity = "info"\n'
        '[per-file-ignores]\n"tests/**" = ["NSL1"]\n"demo/**" = ["NSL2"]\n'
    )
    settings = load(
        tmp_path,
        'extend = "base/nosync-lint.toml"\nheat = "any"\nexclude = ["new"]\nextend-exclude = ["b"]\n'
        '[rules.item-read]\nseverity = "error"\n[per-file-ignores]\n"tests/**" = ["NSL3"]\n',
    )
    assert (settings.heat, settings.target_torch) == ("any", "2.13")
    assert (settings.exclude, settings.extend_exclude) == (("new",), ("a", "b"))
    assert settings.rules == (RuleTable("item-read", "error"), RuleTable("host-copy", "info"))
    assert settings.per_file_ignores == (FileIgnore("tests/**", ("NSL3",)), FileIgnore("demo/**", ("NSL2",)))
    assert settings.extra_sources == (str(tmp_path / "base" / "lib"),)
    assert settings.cache_dir == str(tmp_path / "base" / "kept")
    assert settings.path == tmp_path / "nosync-lint.toml"
    assert (settings.file("heat"), settings.row("heat")) == (tmp_path / "nosync-lint.toml", 2)
    assert (settings.file("target-torch"), settings.row("target-torch")) == (tmp_path / "base" / "nosync-lint.toml", 4)


def test_who_says_select_chooses_anew(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text('select = ["NSL1"]\nignore = ["NSL101"]\nextend-select = ["NSL3"]\n')
    anew = load(tmp_path, 'extend = "base.toml"\nselect = ["NSL2"]\n')
    assert (anew.select, anew.ignore, anew.extend_select) == (("NSL2",), (), ())
    more = load(tmp_path, 'extend = "base.toml"\nextend-select = ["NSL2"]\n')
    assert (more.select, more.ignore, more.extend_select) == (("NSL1",), ("NSL101",), ("NSL3", "NSL2"))


def test_extending_goes_on_and_may_use_a_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.nosync-lint]\nextend = "far.toml"\nheat = "any"\n')
    (tmp_path / "far.toml").write_text('hot = ["step"]\nheat = "warm"\n')
    settings = load(tmp_path, 'extend = "pyproject.toml"\n')
    assert (settings.heat, settings.hot, settings.configured_hot) == ("any", ("step",), ("step",))


def test_extending_in_a_circle_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('extend = "nosync-lint.toml"\n')
    with pytest.raises(ConfigError, match=r"a\.toml: `extend` leads in a circle: .*nosync-lint\.toml -> .*a\.toml -> "):
        load(tmp_path, 'extend = "a.toml"\n')
    with pytest.raises(ConfigError, match="`extend` leads in a circle"):
        load(tmp_path, 'extend = "nosync-lint.toml"\n')


def test_extending_nothing_and_something_broken_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nosync-lint\.toml:2: `extend` names .*gone\.toml, which is no file"):
        load(tmp_path, '\nextend = "gone.toml"\n')
    (tmp_path / "base.toml").write_text("hott = []\n")
    with pytest.raises(ConfigError, match=r"base\.toml:1: unknown key `hott`"):
        load(tmp_path, 'extend = "base.toml"\n')


# The command line


def test_a_key_and_value_go_before_the_file(tmp_path: Path) -> None:
    path = tmp_path / "nosync-lint.toml"
    path.write_text('heat = "warm"\nhot = ["a"]\n[rules.item-read]\nseverity = "info"\n')
    settings = load_config(path, ['heat = "any"', "rules.item-read.words = 3", "extend-ignore=['NSL2']"])
    assert (settings.heat, settings.hot, settings.extend_ignore) == ("any", ("a",), ("NSL2",))
    assert settings.rules == (RuleTable("item-read", "info", (("words", 3),)),)
    assert (settings.place("heat"), settings.place("hot")) == ("", f"{path}:2: ")


@pytest.mark.parametrize(
    ("text", "told"),
    {
        "heat=any": "is no KEY=VALUE with a TOML value",
        'heat="hotter"': "`heat` must be one of hot, warm, any, not 'hotter'",
        "hott=[]": "unknown key `hott`, did you mean `hot`?",
        'extend="a.toml"': "only a file can extend another one",
    }.items(),
)
def test_a_wrong_key_or_value_is_told(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        inline_layer(text)
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_settings_are_shown_as_toml_that_reads_back(tmp_path: Path) -> None:
    text = (
        'select = ["NSL1"]\nheat = "any"\n[rules.item-read]\nseverity = "info"\nwords = ["ü", "\\"b\\""]\n'
        '[per-file-ignores]\n"!a b/**" = ["NSL2"]\n[[census]]\nfiles = "*.cuh"\nmatches = 3\n'
    )
    settings = load(tmp_path, text)
    shown = settings_toml(settings)
    (tmp_path / "again").mkdir()
    assert load(tmp_path / "again", shown) == replace(
        settings, census=(Census("*.cuh", 3, "", 1 + shown[: shown.index("census = ")].count("\n")),)
    )
    assert f'heat = "any"  # {tmp_path / "nosync-lint.toml"}:2\n' in shown
    assert 'min-confidence = "likely"  # default\n' in shown


def test_the_documents_explain_every_key() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert re.findall(r"^### `([a-z-]+)`$", text, re.M) == list(KEYS)
    assert all(key.about and not key.about.endswith(".") for key in TABLE.values())
