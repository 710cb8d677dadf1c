"""Settings: where they are found, what they may say, and what an error names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nosync_lint.config import KEYS, Census, ConfigError, Contract, Settings, find_config, load_config

ROOT = Path(__file__).resolve().parent.parent


def load(tmp_path: Path, text: str, name: str = "nosync-lint.toml") -> Settings:
    path = tmp_path / name
    path.write_text(text)
    return load_config(path)


def test_an_empty_file_gives_the_defaults(tmp_path: Path) -> None:
    assert load(tmp_path, "") == Settings()
    assert load(tmp_path, "[project]\nname = 'x'\n", "pyproject.toml") == Settings()


def test_every_key_is_read(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        """
select = ["NSL1"]
ignore = ["scalar-index-write"]
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
[[contract]]
base = "B"
method = "m"
argument = "a"
[[census]]
files = "*.cuh"
matches = 3
where = "rank=3"
""",
    )
    assert settings == Settings(
        select=("NSL1",), ignore=("scalar-index-write",), exclude=("gen/*",), hot=("Loop.step",), cold=("Loop.stop",),
            fixable=("NSL101",), unfixable=("NSL104",), unsafe_fixes=True,
        capture=("Loop.record",), waits=("fence",), cures=("upload",), returns_device=("to_gpu",), returns_host=("fetch",),
        waivers=("meant",), heat="warm", min_confidence="certain", target_torch=">=2.13", extra_sources=("../lib",),
        max_file_size=5, cache_dir="/tmp/cache", respect_gitignore=False, contract=(Contract("B", "m", "a", 23),),
        census=(Census("*.cuh", 3, "rank=3", 27),),
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
    assert str(raised.value).startswith(str(tmp_path / "nosync-lint.toml") + ": ")
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


def test_the_readme_explains_every_key() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`([a-z-]+)`", text)) | set(re.findall(r"`\[\[tool\.nosync-lint\.([a-z-]+)\]\]`", text))
    assert [key for key in KEYS if key not in told] == []
