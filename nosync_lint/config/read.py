"""Reads configuration: the nearest file with what it extends, and `KEY=VALUE` of the command line."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from nosync_lint.config.globs import common_folder
from nosync_lint.config.rows import Rows
from nosync_lint.config.settings import KEYS, TABLE, Budget, ConfigError, FileIgnore, Key, RuleTable, Settings

FILES = ("nosync-lint.toml", ".nosync-lint.toml", "pyproject.toml")
TOOL = "nosync-lint"
WHERE = r"rank=\d+|"
"""What `where` of a census may say."""
SEVERITIES = ("error", "warning", "info")
CLOSE = 0.7
"""How alike a word and a known one must be, of 1, to ask whether that is meant."""
_ADDING = ("extend_select", "extend_ignore", "extend_exclude")
_CHOICE = ("ignore", "extend_select", "extend_ignore")
"""What a configuration says besides `select` of the rules that run."""


class Layer(NamedTuple):
    """What one source says: values by the fields of `Settings`, and the file and row of each key that is in a file."""

    values: Mapping[str, Any]
    places: Mapping[str, tuple[Path, int]] = {}


class Source(NamedTuple):
    """Where a table comes from, for messages. Without a file it is the command line."""

    name: str
    file: Path | None = None
    rows: Rows = Rows("")

    def at(self, *path: str, number: int = 0) -> str:
        """What a message about a key begins with."""
        return f"{self.name}:{self.rows.row(*path, number=number)}" if self.file is not None else self.name


def find_config(start: Path) -> Path | None:
    """The nearest configuration file at or above a folder. A pyproject.toml without our table does not count. Raises
    `ConfigError` where something else has the name that only a configuration has."""
    for folder in (start, *start.parents):
        for name in FILES:
            path = folder / name
            if is_config(path):
                return path
            if name.endswith(FILES[0]) and os.path.lexists(path):
                raise ConfigError(f"{path}: is the name of a configuration, and no file; remove or rename it")
    return None


def is_config(path: Path) -> bool:
    """Whether a path is a configuration file. A pyproject.toml without our table is none."""
    return path.name in FILES and os.path.isfile(path) and (path.name != "pyproject.toml" or _has_table(path))


def project_config(paths: Sequence[str]) -> Path | None:
    """The configuration nearest to the given paths; where they have different ones, that of all of them together."""
    found: dict[Path | None, str] = {}
    for path in paths or ["."]:
        folder = Path(path) if os.path.isdir(path) else Path(path).parent
        found[find_config(folder.resolve())] = path
    if len(found) > 1:
        above = common_folder([Path(os.path.abspath(path)) for path in paths])
        common = find_config(above) if above is not None else None
        if common is not None:
            return common
        named = ", ".join(sorted(f"{path} ({config or 'none'})" for config, path in found.items()))
        raise ConfigError(f"the paths have different configurations: {named}; check them apart or give --config")
    return next(iter(found))


def _has_table(path: Path) -> bool:
    """Whether a pyproject.toml holds our table. One that is broken and mentions it is taken, and told about later."""
    try:
        data = path.read_bytes()
    except OSError:
        return False
    if TOOL.encode() not in data:
        return False
    try:
        tool = tomllib.loads(data.decode("utf-8-sig")).get("tool", {})
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        return True
    return not isinstance(tool, dict) or TOOL in tool


def load_config(path: Path, inline: Sequence[str] = ()) -> Settings:
    """The settings of a configuration file, and of `KEY=VALUE` over it. Raises `ConfigError` for all that is wrong."""
    return settings_from([_file_layer(path, ()), *map(inline_layer, inline)], path)


def settings_from(layers: Iterable[Layer], path: Path | None = None) -> Settings:
    """Settings from what several sources say, the last one first heard. `path` is the file that governs the run."""
    merged = Layer({})
    configured_hot: tuple[str, ...] = ()
    for layer in layers:
        merged = _over(layer, merged)
        if layer.places:
            configured_hot = merged.values.get("hot", ())
    return Settings(**_fields(merged), configured_hot=configured_hot, path=path)


def _over(layer: Layer, base: Layer) -> Layer:
    """A layer over the one that it extends.

    Keys replace those of the base; what `extend-...` keys list is added, and so are the entries of tables by their
    names. Who says `select` chooses anew: what the base leaves out or adds no longer counts.
    """
    dropped = _CHOICE if "select" in layer.values else ()
    values = {name: () if name in dropped else value for name, value in base.values.items()}
    for name, value in layer.values.items():
        known = values.get(name)
        if known is None:
            values[name] = value
        elif name in _ADDING:
            values[name] = (*known, *value)
        elif name == "rules":
            values[name] = _joined_rules(known, value)
        elif name == "per_file_ignores":
            values[name] = tuple({one.glob: one for one in (*known, *value)}.values())
        elif name == "budgets":
            values[name] = tuple({one.root: one for one in (*known, *value)}.values())
        else:
            values[name] = value
    places = {key: at for key, at in base.places.items() if _keeps(values[TABLE[key].attribute], base, TABLE[key])}
    return Layer(values, {**places, **layer.places})


def _keeps(value: Any, base: Layer, key: Key) -> bool:
    """Whether what the base says of a key still counts."""
    known = base.values[key.attribute]
    return bool(value[: len(known)] == known if isinstance(known, tuple) and known else value == known)


def _joined_rules(base: Iterable[RuleTable], over: Iterable[RuleTable]) -> tuple[RuleTable, ...]:
    found = {one.rule: one for one in base}
    for one in over:
        known = found.get(one.rule, RuleTable(one.rule))
        options = {**dict(known.options), **dict(one.options)}
        found[one.rule] = RuleTable(one.rule, one.severity or known.severity, tuple(options.items()))
    return tuple(found.values())


def _file_layer(path: Path, extending: tuple[Path, ...]) -> Layer:
    """What a file says, over what it extends. `extending` are the files on the way to it."""
    real = path.resolve()
    if real in extending:
        circle = " -> ".join(str(one) for one in (*extending[extending.index(real) :], real))
        raise ConfigError(f"{extending[-1]}: `extend` leads in a circle: {circle}; remove one of them")
    text, table, prefix = _table_of(path)
    source = Source(str(path), path, Rows(text, prefix))
    layer = _layer(table, source)
    base = layer.values.get("extend", "")
    if extending:
        layer = _rebased(layer, path)
    if not base:
        return layer
    target = path.parent / os.path.expanduser(base)
    if not target.is_file():
        raise ConfigError(f"{source.at('extend')}: `extend` names {target}, which is no file; correct the path")
    return _over(layer, _file_layer(target, (*extending, real)))


def _rebased(layer: Layer, path: Path) -> Layer:
    """The layer of a file that another one extends: its paths are relative to itself, and are made absolute."""
    values = dict(layer.values)
    folder = path.resolve().parent
    if "extra_sources" in values:
        values["extra_sources"] = tuple(str(folder / one) for one in values["extra_sources"])
    for name in ("cache_dir", "baseline"):
        if values.get(name):
            values[name] = str(folder / values[name])
    values.pop("extend", None)
    return Layer(values, {key: place for key, place in layer.places.items() if key != "extend"})


def _table_of(path: Path) -> tuple[str, dict[str, Any], tuple[str, ...]]:
    """The text of a file, our table in it, and where in the file that table is."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        data = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not valid TOML: {error}") from error
    if path.name != "pyproject.toml":
        if "tool" in data:
            raise ConfigError(f"{path}: keys stand at the top level here; leave out the prefix [tool.{TOOL}]")
        return text, data, ()
    tool = data.get("tool", {})
    if not isinstance(tool, dict):
        raise ConfigError(f"{path}: `tool` must be a table, not {tool!r}")
    table = tool.get(TOOL, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: [tool.{TOOL}] must be a table")
    return text, table, ("tool", TOOL)


def inline_layer(text: str) -> Layer:
    """What `KEY=VALUE` of the command line says; the value is TOML. Raises `ConfigError`."""
    key = text.partition("=")[0].strip()
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        cure = f"such as --config '{key}={_sample(key)}'"
        raise ConfigError(f"--config {text!r}: is no KEY=VALUE with a TOML value: {error}; {cure}") from error
    if "extend" in table:
        raise ConfigError("--config extend: only a file can extend another one; give --config FILE")
    return _layer(table, Source(f"--config {text!r}"))


def _sample(key: str) -> str:
    known = TABLE.get(key)
    if known is None:
        return '"..."'
    return known.example or f'"{known.form.choices[0]}"'


def _layer(table: Mapping[str, Any], source: Source) -> Layer:
    """A decoded table, checked. Unknown keys and wrong types are errors that name the nearest known key."""
    values: dict[str, Any] = {}
    places = {}
    for key, value in table.items():
        known = TABLE.get(key)
        if known is None:
            guess = nearest(key, KEYS)
            told = f"{guess} Known" if guess else "; known"
            raise ConfigError(f"{source.at(key)}: unknown key `{key}`{told} keys: {', '.join(KEYS)}")
        values[known.attribute] = _READERS[known.form.name](known, value, source)
        if source.file is not None:
            places[key] = (source.file, source.rows.row(key))
    return Layer(values, places)


def _strings(key: Key, value: Any, source: Source) -> tuple[str, ...]:
    for one in _listed(value, source.at(key.name), key.name):
        if key.form.choices and one not in key.form.choices:
            raise ConfigError(
                f"{source.at(key.name)}: `{key.name}` may hold {', '.join(key.form.choices)}, not {one!r}"
                f"{nearest(one, key.form.choices)}"
            )
    return tuple(value)


def _listed(value: Any, where: str, name: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"{where}: `{name}` must be a list of strings, not {value!r}")
    if not all(item.strip() for item in value):
        raise ConfigError(f"{where}: `{name}` holds an empty string; remove it")
    return value


def _plain(key: Key, value: Any, source: Source) -> Any:
    where, name = source.at(key.name), key.name
    if type(value) is not type(key.default):
        raise ConfigError(f"{where}: `{name}` must be of type {type(key.default).__name__}, not {value!r}")
    if key.form.choices and value not in key.form.choices:
        raise ConfigError(f"{where}: `{name}` must be one of {', '.join(key.form.choices)}, not {value!r}")
    if isinstance(value, int) and value < key.form.minimum:
        raise ConfigError(f"{where}: `{name}` must be a positive number of bytes, not {value!r}")
    if key.form.filled and not value.strip():
        raise ConfigError(f"{where}: `{name}` must not be empty")
    return value


def _globs(key: Key, value: Any, source: Source) -> tuple[FileIgnore, ...]:
    if not isinstance(value, dict):
        raise ConfigError(f'{source.at(key.name)}: `{key.name}` must be a table of globs: "tests/**" = ["NSL2"]')
    found = []
    for glob, names in value.items():
        where = source.at(key.name, glob)
        if not glob.removeprefix("!").strip():
            raise ConfigError(f"{where}: `{key.name}` holds an empty glob; remove it")
        found.append(FileIgnore(glob, tuple(_listed(names, where, f'{key.name}."{glob}"'))))
    return tuple(found)


def _rules(key: Key, value: Any, source: Source) -> tuple[RuleTable, ...]:
    if not isinstance(value, dict) or not all(isinstance(table, dict) for table in value.values()):
        raise ConfigError(f"{source.at(key.name)}: `rules` must hold a table for a rule: [rules.item-read]")
    found = []
    for rule, table in value.items():
        severity = table.get("severity", "")
        if "severity" in table and severity not in SEVERITIES:
            where = source.at(key.name, rule, "severity")
            cure = f'; leave it out with ignore = ["{rule}"]' if severity == "off" else ""
            raise ConfigError(f"{where}: `severity` must be one of {', '.join(SEVERITIES)}, not {severity!r}{cure}")
        options = {name: part for name, part in table.items() if name != "severity"}
        found.append(RuleTable(rule, severity, tuple((name, _frozen(part)) for name, part in options.items())))
    return tuple(found)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _tables(key: Key, value: Any, source: Source) -> tuple[Any, ...]:
    record = key.form.record
    assert record is not None
    parts = [one for one in fields(record) if one.name not in ("row", "file")]
    known = tuple(one.name for one in parts)
    name = key.name
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ConfigError(f"{source.at(name)}: `{name}` must be an array of tables, [[tool.{TOOL}.{name}]]")
    found = []
    for number, item in enumerate(value):
        where = source.at(name, number=number)
        for part, given in item.items():
            if part not in known:
                raise ConfigError(f"{where}: unknown key `{name}.{part}`{nearest(part, known)}")
            if part == "where" and not re.fullmatch(WHERE, str(given)):
                raise ConfigError(f"{where}: `census.where` must be of the form `rank=3`, not {given!r}")
            wanted = int if part == "matches" else str
            if type(given) is not wanted:
                raise ConfigError(f"{where}: `{name}.{part}` must be of type {wanted.__name__}, not {given!r}")
        missing = [part.name for part in parts if part.default is MISSING and part.name not in item]
        if missing:
            raise ConfigError(f"{where}: a [[{name}]] table lacks {', '.join(missing)}")
        found.append(record(**item, row=source.rows.row(name, number=number), file=source.file))
    return tuple(found)


def _budgets(key: Key, value: Any, source: Source) -> tuple[Budget, ...]:
    name = key.name
    if not isinstance(value, dict):
        raise ConfigError(f'{source.at(name)}: `{name}` must be a table of hot roots: "Scheduler.step" = 2')
    found = []
    for root, syncs in value.items():
        where = source.at(name, root)
        if isinstance(syncs, dict):
            raise ConfigError(f'{where}: quote the name of a root in `{name}`: "{root}.{next(iter(syncs), "")}" = 2')
        if not root.strip():
            raise ConfigError(f"{where}: `{name}` holds an empty name; remove it")
        if type(syncs) is not int or syncs < 0:
            raise ConfigError(f'{where}: `{name}."{root}"` must be a number of syncs from 0, not {syncs!r}')
        found.append(Budget(root, syncs, source.rows.row(name, root), source.file))
    return tuple(found)


_READERS = {
    "strings": _strings,
    "names": _strings,
    "string": _plain,
    "integer": _plain,
    "boolean": _plain,
    "globs": _globs,
    "rules": _rules,
    "budgets": _budgets,
    "tables": _tables,
}


def nearest(word: str, known: Sequence[str]) -> str:
    """A question whether a known word is meant, or nothing."""
    close = difflib.get_close_matches(word, known, 1, CLOSE)
    return f", did you mean `{close[0]}`?" if close else ""


def with_flags(settings: Settings, given: Mapping[str, Any]) -> Settings:
    """Settings with those of command line flags over them."""
    told = dict(settings.files)
    base = Layer(
        {key.attribute: getattr(settings, key.attribute) for key in TABLE.values()},
        {key: (told[key], settings.row(key)) for key in told},
    )
    return replace(settings, **_fields(_over(Layer(given), base)))


def _fields(layer: Layer) -> dict[str, Any]:
    """A layer as fields of `Settings`."""
    rows = tuple((key, row) for key, (_, row) in layer.places.items())
    return {**layer.values, "rows": rows, "files": tuple((key, file) for key, (file, _) in layer.places.items())}
