"""Settings: `[tool.nosync-lint]` of the nearest pyproject.toml, or nosync-lint.toml, and the command line over it."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

FILES = ("nosync-lint.toml", ".nosync-lint.toml", "pyproject.toml")
MAX_FILE_SIZE = 10_000_000


class ConfigError(Exception):
    """The configuration cannot be used; the message names the file, the key and the cure. Exit code 2."""


@dataclass(frozen=True, slots=True)
class Contract:
    """`[[contract]]`: every concrete subclass of `base` overrides `method` and reads `argument`."""

    base: str
    method: str
    argument: str
    row: int = 1


@dataclass(frozen=True, slots=True)
class Census:
    """`[[census]]`: the number of (matcher, argument) pairs in the files that a glob matches."""

    files: str
    matches: int
    where: str = ""
    row: int = 1


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run is told. Each field is the configuration key of that name with `-` for `_`."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fixable: tuple[str, ...] = ()
    unfixable: tuple[str, ...] = ()
    unsafe_fixes: bool = False
    exclude: tuple[str, ...] = ()
    hot: tuple[str, ...] = ()
    cold: tuple[str, ...] = ()
    capture: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()
    cures: tuple[str, ...] = ()
    returns_device: tuple[str, ...] = ()
    returns_host: tuple[str, ...] = ()
    waivers: tuple[str, ...] = ()
    heat: str = "hot"
    min_confidence: str = "likely"
    target_torch: str = ""
    extra_sources: tuple[str, ...] = ()
    max_file_size: int = MAX_FILE_SIZE
    cache_dir: str = ".nosync_lint_cache"
    respect_gitignore: bool = True
    contract: tuple[Contract, ...] = ()
    census: tuple[Census, ...] = ()
    # where it came from; not keys
    configured_hot: tuple[str, ...] = field(default=(), compare=False)
    path: Path | None = field(default=None, compare=False)
    rows: tuple[tuple[str, int], ...] = field(default=(), compare=False)

    def row(self, key: str) -> int:
        """The row of a key in the configuration file, 1 where it is not there."""
        return dict(self.rows).get(key, 1)


_CHOICES = {"heat": ("hot", "warm", "any"), "min_confidence": ("certain", "likely", "possible")}
_INTERNAL = frozenset({"path", "rows", "configured_hot"})
KEYS = tuple(one.name.replace("_", "-") for one in fields(Settings) if one.name not in _INTERNAL)
_TABLES: dict[str, type[Contract] | type[Census]] = {"contract": Contract, "census": Census}


def find_config(start: Path) -> Path | None:
    """The nearest configuration file at or above a folder. A pyproject.toml without our table does not count."""
    for folder in (start, *start.parents):
        for name in FILES:
            path = folder / name
            if os.path.isfile(path) and (name != "pyproject.toml" or _has_table(path)):
                return path
    return None


def _has_table(path: Path) -> bool:
    """Whether a pyproject.toml holds our table. One that is broken and mentions it is taken, and told about later."""
    try:
        data = path.read_bytes()
    except OSError:
        return False
    if b"nosync-lint" not in data:
        return False
    try:
        tool = tomllib.loads(data.decode("utf-8-sig")).get("tool", {})
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        return True
    return not isinstance(tool, dict) or "nosync-lint" in tool


def load_config(path: Path) -> Settings:
    """The settings of one configuration file. Raises `ConfigError` for everything that is wrong with it."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        data = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not valid TOML: {error}") from error
    table = data
    if path.name == "pyproject.toml":
        tool = data.get("tool", {})
        if not isinstance(tool, dict):
            raise ConfigError(f"{path}: `tool` must be a table, not {tool!r}")
        table = tool.get("nosync-lint", {})
    elif "tool" in data:
        raise ConfigError(f"{path}: keys stand at the top level here; leave out the prefix [tool.nosync-lint]")
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: [tool.nosync-lint] must be a table")
    settings = read_table(table, str(path), text)
    return replace(settings, path=path, configured_hot=settings.hot)


def read_table(table: dict[str, Any], source: str, text: str = "") -> Settings:
    """Settings from a decoded table. Unknown keys and wrong types are errors that name the nearest known key."""
    values: dict[str, Any] = {}
    rows: list[tuple[str, int]] = []
    for key, value in table.items():
        if key not in KEYS:
            raise ConfigError(f"{source}: unknown key `{key}`{_nearest(key, KEYS)}; known keys: {', '.join(KEYS)}")
        name = key.replace("-", "_")
        rows.append((key, _row(text, key)))
        values[name] = _tables(name, value, source, text) if name in _TABLES else _value(name, value, source)
    return Settings(**values, rows=tuple(rows))


def _value(name: str, value: Any, source: str) -> Any:
    default = getattr(Settings(), name)
    key = name.replace("_", "-")
    if isinstance(default, tuple):
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ConfigError(f"{source}: `{key}` must be a list of strings, not {value!r}")
        if not all(item.strip() for item in value):
            raise ConfigError(f"{source}: `{key}` holds an empty string; remove it")
        return tuple(value)
    if type(value) is not type(default):
        raise ConfigError(f"{source}: `{key}` must be of type {type(default).__name__}, not {value!r}")
    if name == "max_file_size" and value <= 0:
        raise ConfigError(f"{source}: `{key}` must be a positive number of bytes, not {value!r}")
    if name == "cache_dir" and not value.strip():
        raise ConfigError(f"{source}: `{key}` must name a folder")
    choices = _CHOICES.get(name)
    if choices and value not in choices:
        raise ConfigError(f"{source}: `{key}` must be one of {', '.join(choices)}, not {value!r}")
    return value


def _tables(name: str, value: Any, source: str, text: str) -> tuple[Any, ...]:
    kind = _TABLES[name]
    known = tuple(one.name for one in fields(kind) if one.name != "row")
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ConfigError(f"{source}: `{name}` must be an array of tables, [[tool.nosync-lint.{name}]]")
    found = []
    for number, item in enumerate(value):
        for key, part in item.items():
            if key not in known:
                raise ConfigError(f"{source}: unknown key `{name}.{key}`{_nearest(key, known)}")
            if key == "where" and not re.fullmatch(r"rank=\d+|", str(part)):
                raise ConfigError(f"{source}: `census.where` must be of the form `rank=3`, not {part!r}")
            wanted = int if key == "matches" else str
            if type(part) is not wanted:
                raise ConfigError(f"{source}: `{name}.{key}` must be of type {wanted.__name__}, not {part!r}")
        try:
            found.append(kind(**item, row=_row(text, name, number)))
        except TypeError as error:
            missing = [key for key in known if key not in item and key != "where"]
            raise ConfigError(f"{source}: a [[{name}]] table lacks {', '.join(missing)}") from error
    return tuple(found)


def _row(text: str, key: str, number: int = 0) -> int:
    """The row where a key or the n-th table of that name stands; the decoder does not tell."""
    seen = 0
    for row, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        is_table = stripped.startswith("[[") and stripped[2:].split("]]")[0].split(".")[-1].strip() == key
        if is_table or stripped.partition("=")[0].strip() == key:
            if seen == number:
                return row
            seen += 1
    return 1


def _nearest(word: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(word, known, 1)
    return f", did you mean `{close[0]}`?" if close else ""
