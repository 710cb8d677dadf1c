"""`init`: write a configuration to begin with, with every key explained."""

from __future__ import annotations

import argparse
import re
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nosync_lint.commands import Refused
from nosync_lint.config import FILES, TABLE, Key, default_toml, find_config, toml_value

_IMPORT = re.compile(rb"^[ \t]*(?:from|import)[ \t]+(\w+)", re.M)
_WIDTH = 100
_LEFT_OUT = ("extend",)
"""Keys whose example would be wrong in every project."""


class Choice(NamedTuple):
    """What fits a project: the presets of the frameworks that it is or imports, and its requirement for torch."""

    presets: tuple[str, ...]
    torch: str


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    init = commands.add_parser("init", help="write a configuration to begin with")
    init.set_defaults(run=run)
    init.add_argument("path", nargs="?", default=".", metavar="PATH", help="the folder of the project (default: .)")
    init.add_argument("--dry-run", action="store_true", help="print it and write nothing")


def run(options: argparse.Namespace) -> int:
    folder = Path(options.path).resolve()
    if not folder.is_dir():
        raise Refused(f"{options.path}: is no folder; name the folder of the project")
    _refuse_second(folder)
    target = folder / ("pyproject.toml" if (folder / "pyproject.toml").is_file() else FILES[0])
    choice = _choose(folder)
    added = _added(target, "".join(_lines(choice, target.name == "pyproject.toml")))
    if options.dry_run:
        print(added, end="")
        return 0
    above = find_config(folder.parent)
    with target.open("ab") as file:  # what is there stays as it is, byte for byte
        file.write(added.encode())
    print(f"written: {Path(options.path) / target.name}")
    print(f"presets: {', '.join(choice.presets) or 'none of the frameworks that have one is imported'}")
    print(f"torch: {choice.torch or 'the project requires no release, so all that are known are judged for'}")
    if above is not None:
        print(f"note: {above} no longer governs runs in {folder}")
    print("".join(f"{line}\n" for line in _advice(folder)), end="")
    print("next: nosync-lint check")
    return 0


def _refuse_second(folder: Path) -> None:
    """A project has one configuration."""
    for name in FILES:
        path = folder / name
        if path.is_file() and (name != "pyproject.toml" or "nosync-lint" in _tool(path)):
            table = "" if name != "pyproject.toml" else ": [tool.nosync-lint]"
            raise Refused(
                f"{path}{table} is there already; edit it (`nosync-lint config KEY` explains a key), or remove it first"
            )


def _tool(path: Path) -> dict[str, object]:
    try:
        tool = tomllib.loads(path.read_text(encoding="utf-8-sig")).get("tool", {})
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Refused(f"{path}: is not valid TOML: {error}; repair it first") from error
    if not isinstance(tool, dict):
        raise Refused(f"{path}: `tool` is no table; repair it first")
    return tool


def _added(target: Path, text: str) -> str:
    """What is added to a file, in its line ends. Refuses where the file would not be TOML any more."""
    before = target.read_bytes().decode("utf-8-sig") if target.is_file() else ""
    gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    added = gap + text
    if "\r\n" in before:
        added = added.replace("\n", "\r\n")
    try:
        tomllib.loads(before + added)
    except tomllib.TOMLDecodeError as error:
        raise Refused(
            f"{target}: a table [tool.nosync-lint] cannot be added: {error}; write {FILES[0]} beside it instead"
        ) from error
    return added


def _lines(choice: Choice, in_pyproject: bool) -> Iterator[str]:
    if in_pyproject:
        yield "[tool.nosync-lint]\n"
    yield "# What a key means: `nosync-lint config KEY`. Behind a # stands an example, and the default holds.\n"
    chosen = {"presets": choice.presets, "target-torch": choice.torch}
    chosen = {name: value for name, value in chosen.items() if value}
    for name, value in chosen.items():
        yield from _key(TABLE[name], toml_value(value), "")
    for key in TABLE.values():
        told = (key.name == "presets" and choice.presets) or (key.name == "target-torch" and choice.torch)
        if key.name not in _LEFT_OUT and not told:
            yield from _key(key, key.example or default_toml(key.name), "# ")


def _key(key: Key, value: str, mark: str) -> Iterator[str]:
    choices = f": {', '.join(key.form.choices)}" if key.form.choices else ""
    yield "\n"
    for line in textwrap.wrap(f"{key.about[0].upper()}{key.about[1:]}{choices}.", _WIDTH):
        yield f"# {line}\n"
    yield f"{mark}{key.name} = {value}\n"


def _choose(folder: Path) -> Choice:
    from nosync_lint.link.semantics import known_releases
    from nosync_lint.models import load
    from nosync_lint.target import stated_requirement

    used = _packages(folder)
    presets = {name for name, preset in load("presets").items() if used & set(preset.get("when", ()))}
    return Choice(tuple(sorted(presets)), stated_requirement(folder, known_releases()))


def _packages(folder: Path) -> set[str]:
    """The packages that a project holds or imports, by a look at its import lines."""
    from nosync_lint.discover import discover

    used: set[str] = set()
    for file in discover([str(folder)]).files:
        if file.is_python and file.path.is_relative_to(folder):
            used.update(part for part in file.path.relative_to(folder).parts[:2])
            try:
                used.update(name.decode() for name in _IMPORT.findall(file.path.read_bytes()))
            except OSError:
                continue  # a check tells of it
    return used


def _advice(folder: Path) -> Iterator[str]:
    """What to say to ruff, which else takes `# noqa: NSL...` away."""
    from nosync_lint.ruff_settings import EXTERNAL, ruff_settings

    ruff = ruff_settings(folder)
    if ruff is not None and not ruff.keeps:
        where = f"under {ruff.table} in {ruff.path}"
        yield f"ruff: add `{EXTERNAL}` {where}, or its rule RUF102 takes `# noqa: NSL...` away"
