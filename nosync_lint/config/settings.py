"""What a run is told: the settings, each with what it means. Reader, schema and documents are made from this table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from nosync_lint.models import load

MAX_FILE_SIZE = 10_000_000
AUTO = "auto"
"""The preset that stands for those of the packages which the project imports."""


class ConfigError(Exception):
    """The configuration cannot be used; the message names the file, the key and the cure. Exit code 2."""


@dataclass(frozen=True, slots=True)
class Contract:
    """`[[contract]]`: every concrete subclass of `base` overrides `method` and reads `argument`."""

    base: str
    method: str
    argument: str
    row: int = 1
    file: Path | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Census:
    """`[[census]]`: the number of (matcher, argument) pairs in the files that a glob matches."""

    files: str
    matches: int
    where: str = ""
    row: int = 1
    file: Path | None = field(default=None, compare=False)


class Budget(NamedTuple):
    """`[budgets]`: how many syncs there may be below a hot root."""

    root: str
    syncs: int
    row: int = 1
    file: Path | None = None


class FileIgnore(NamedTuple):
    """`[per-file-ignores]`: rules that say nothing of the files that a glob matches, or with `!` before it does not."""

    glob: str
    rules: tuple[str, ...]


class RuleTable(NamedTuple):
    """`[rules.NAME]`: the severity of a rule, empty where it keeps its own, and its options."""

    rule: str
    severity: str = ""
    options: tuple[tuple[str, Any], ...] = ()


class Form(NamedTuple):
    """What the value of a key looks like in TOML. `record` is the shape of the entries of an array of tables."""

    name: str  # strings, names (of rules), string, integer, boolean, tables, globs, rules, budgets
    choices: tuple[str, ...] = ()
    record: type[Contract] | type[Census] | None = None
    minimum: int = 0
    filled: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the configuration: its form, what it means in one sentence, and an example in TOML."""

    name: str
    form: Form
    default: Any
    about: str
    example: str

    @property
    def attribute(self) -> str:
        """The field of `Settings` that holds it."""
        return self.name.replace("-", "_")


def preset_names() -> tuple[str, ...]:
    """The presets that can be named."""
    return (AUTO, *sorted(name for name, preset in load("presets").items() if "when" in preset))


def _key(default: Any, about: str, example: str = "", **form: Any) -> Any:
    kinds = {bool: "boolean", int: "integer", str: "string", tuple: "strings"}
    name = form.pop("form", kinds[type(default)])
    return field(default=default, metadata={"form": Form(name, **form), "about": about, "example": example})


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run is told. Each field made by `_key` is the configuration key of that name with `-` for `_`."""

    select: tuple[str, ...] = _key(
        (), "rules to run in place of the default ones: codes, starts of codes, slugs", '["NSL1", "NSL2"]', form="names"
    )
    extend_select: tuple[str, ...] = _key((), "rules to run besides", '["NSL10"]', form="names")
    ignore: tuple[str, ...] = _key(
        (), "rules to leave out; of `select` and `ignore` the closer name wins", '["NSL30"]', form="names"
    )
    fixable: tuple[str, ...] = _key((), "rules whose findings are fixed, in place of all", '["NSL10"]', form="names")
    unfixable: tuple[str, ...] = _key((), "rules whose findings are not fixed", '["NSL2"]', form="names")
    unsafe_fixes: bool = _key(False, "make fixes that may change what the program does as well", "true")
    extend_ignore: tuple[str, ...] = _key((), "rules to leave out besides", '["NSL40"]', form="names")
    per_file_ignores: tuple[FileIgnore, ...] = _key(
        (),
        "rules that say nothing of some files: globs with their rules; `!` before a glob stands for all other files",
        '{ "tests/**" = ["NSL2"], "!serving/**" = ["NSL4"] }',
        form="globs",
    )
    rules: tuple[RuleTable, ...] = _key(
        (),
        "a table for a rule, by its slug or code: its `severity` and its options",
        '{ item-read = { severity = "warning" } }',
        form="rules",
    )
    preview: bool = _key(False, "run rules that are not stable yet", "true")
    fail_on: str = _key(
        "warning", "least severity of a finding that makes the run exit with 1", choices=("error", "warning", "info")
    )
    exclude: tuple[str, ...] = _key((), "globs of files and folders to leave out, named files included", '["vendored"]')
    extend_exclude: tuple[str, ...] = _key((), "globs of files and folders to leave out besides", '["generated"]')
    extra_sources: tuple[str, ...] = _key(
        (), "folders that are linked and not reported, relative to the configuration", '["../common"]'
    )
    respect_gitignore: bool = _key(True, "leave out what git ignores", "false")
    max_file_size: int = _key(MAX_FILE_SIZE, "bytes; larger files are reported as unreadable", "20_000_000", minimum=1)
    presets: tuple[str, ...] = _key(
        (AUTO,),
        "frameworks whose entry points are hot roots; `auto` stands for those that the project is or imports",
        '["sglang"]',
        choices=preset_names(),
    )
    hot: tuple[str, ...] = _key(
        (), "functions that are hot roots: qualified names or their ends", '["Engine.step", "sample_*"]'
    )
    cold: tuple[str, ...] = _key((), "functions where heat stops: qualified names or their ends", '["Engine.warm_up"]')
    capture: tuple[str, ...] = _key(
        (), "functions that run while a CUDA graph is captured, besides those that are found", '["Runner.record"]'
    )
    waits: tuple[str, ...] = _key((), "functions that stop the host: a call of one is reported", '["fence"]')
    cures: tuple[str, ...] = _key(
        (), "functions that know what they do: nothing in them is reported, and heat stops at them", '["staged_upload"]'
    )
    returns_device: tuple[str, ...] = _key(
        (), "functions whose results are device tensors, whatever is inferred", '["to_gpu"]'
    )
    returns_host: tuple[str, ...] = _key(
        (), "functions whose results are host tensors, whatever is inferred", '["fetch"]'
    )
    waivers: tuple[str, ...] = _key(
        (),
        "context managers, decorators, and words of comments, that say a wait is meant, besides those that are known",
        '["sync_is_meant", "sync-is-meant"]',
    )
    heat: str = _key("hot", "least heat of the lines that are shown", choices=("hot", "warm", "any"))
    min_confidence: str = _key(
        "likely", "least confidence of the findings that are shown", choices=("certain", "likely", "possible")
    )
    target_torch: str = _key(
        "",
        "a torch release or range to judge for; without it that of the project's own requirement",
        '">=2.11,<2.15"',
    )
    cache_dir: str = _key(
        ".nosync_lint_cache", "where the index cache lives, relative to the configuration", '"/tmp/cache"', filled=True
    )
    extend: str = _key(
        "", "another configuration file whose keys hold where this one has none, relative to it", '"../base.toml"'
    )
    contract: tuple[Contract, ...] = _key(
        (),
        "`base`, `method`, `argument`: every concrete subclass must override the method and use the argument",
        '[{ base = "Pool", method = "free_segment", argument = "start_pos" }]',
        form="tables",
        record=Contract,
    )
    census: tuple[Census, ...] = _key(
        (),
        '`files`, `matches`, optionally `where = "rank=3"`: how many matched arguments of kernels there must be',
        '[{ files = "kernels/*.cuh", matches = 7, where = "rank=3" }]',
        form="tables",
        record=Census,
    )
    budgets: tuple[Budget, ...] = _key(
        (), "how many syncs there may be below a hot root", '{ "Scheduler.step" = 2 }', form="budgets"
    )
    baseline: str = _key("", "the file of findings that are accepted, relative to the configuration", '"known.jsonl"')
    respect_blanket_noqa: bool = _key(False, "let `# noqa` without codes cover findings", "true")
    # where it came from; not keys
    configured_hot: tuple[str, ...] = field(default=(), compare=False)
    nearest: bool = field(default=False, compare=False)
    """Whether the nearest file was looked for, so that others further down are worth a note."""
    path: Path | None = field(default=None, compare=False)
    rows: tuple[tuple[str, int], ...] = field(default=(), compare=False)
    files: tuple[tuple[str, Path], ...] = field(default=(), compare=False)
    today: date = field(default_factory=date.today, compare=False)
    """The day on which suppressions are judged."""

    def row(self, key: str) -> int:
        """The row of a key in its configuration file, 1 where it is not there."""
        return dict(self.rows).get(key, 1)

    def file(self, key: str) -> Path | None:
        """The file that gives a key: another one than `path` where `extend` brought it in."""
        return dict(self.files).get(key, self.path)

    def place(self, key: str) -> str:
        """The file and row of a key, to put in front of a message; empty where it comes from the command line."""
        known = dict(self.files).get(key)
        return f"{known}:{self.row(key)}: " if known is not None else ""


TABLE: Mapping[str, Key] = {
    (name := one.name.replace("_", "-")): Key(
        name, one.metadata["form"], one.default, one.metadata["about"], one.metadata["example"]
    )
    for one in fields(Settings)
    if "form" in one.metadata
}
KEYS = tuple(TABLE)
