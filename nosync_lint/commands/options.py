"""Options that several commands share: what is reported, which files are read, how it runs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from nosync_lint.commands import Refused
from nosync_lint.commands.output import ProgressLine, refuse_file
from nosync_lint.config import (
    ConfigError,
    FileIgnore,
    Settings,
    inline_layer,
    load_config,
    project_config,
    settings_from,
    with_flags,
)

T = TypeVar("T")
_FILLED = (
    *("select", "ignore", "extend_select", "extend_ignore", "fixable", "unfixable", "per_file_ignores"),
    *("hot", "root", "target_torch", "exclude", "config", "cache_dir"),
)
_TRUE, _FALSE = frozenset({"1", "true"}), frozenset({"0", "false", ""})


def add_choice(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    choose = parser.add_argument_group("what is reported")
    choose.add_argument(
        "--select", action="append", metavar="RULES", help="only these codes, code prefixes or slugs, comma separated"
    )
    choose.add_argument("--ignore", action="append", metavar="RULES", help="not these codes, code prefixes or slugs")
    choose.add_argument("--extend-select", action="append", metavar="RULES", help="these besides the configured ones")
    choose.add_argument("--extend-ignore", action="append", metavar="RULES", help="not these either")
    choose.add_argument(
        "--per-file-ignores", action="append", metavar="GLOB:RULE", help="rules that say nothing of some files"
    )
    choose.add_argument("--preview", action="store_true", help="run rules that are not stable yet")
    choose.add_argument("--hot", action="append", metavar="NAME", help="one more hot root: a qualified name or its end")
    choose.add_argument("--min-confidence", choices=("certain", "likely", "possible"), help="default: likely")
    choose.add_argument("--target-torch", metavar="X.Y", help="the torch release, or a range of them, to judge for")
    return choose


def add_files(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    files = parser.add_argument_group("which files are read")
    files.add_argument(
        "--exclude",
        "--extend-exclude",
        action="append",
        metavar="GLOB",
        help="leave out files and folders besides the configured ones, comma separated",
    )
    files.add_argument(
        "--config",
        action="append",
        metavar="PATH|KEY=VALUE",
        help="this configuration file instead of the nearest one, or a key with its value in TOML",
    )
    files.add_argument("--isolated", action="store_true", help="read no configuration file")
    return files


def add_running(parser: argparse.ArgumentParser) -> None:
    running = parser.add_argument_group("running")
    running.add_argument("-q", "--quiet", action="store_true", help="print no progress")
    running.add_argument(
        "-j", "--jobs", type=count, default=0, metavar="N", help="worker processes (default: 0, one per processor)"
    )
    running.add_argument("-n", "--no-cache", action="store_true", help="neither read nor write the index cache")
    running.add_argument(
        "--cache-dir", metavar="PATH", help="where the index cache lives (default: .nosync_lint_cache)"
    )


def count(text: str) -> int:
    """A number that is not negative, for argparse."""
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"must be a number from 0, not {text!r}")
    return int(text)


def settings_of(options: argparse.Namespace) -> Settings:
    """The configuration, with the command line over it."""
    _refuse_empty(options)
    settings = _configured(options)
    given: dict[str, object] = {}
    for key in ("select", "ignore", "extend_select", "extend_ignore", "fixable", "unfixable"):
        if getattr(options, key, None):
            given[key] = listed(getattr(options, key))
    if options.per_file_ignores:
        given["per_file_ignores"] = tuple(_file_ignore(pair) for pair in listed(options.per_file_ignores))
    if options.exclude:
        given["extend_exclude"] = listed(options.exclude)
    if options.hot:
        given["hot"] = (*settings.hot, *options.hot)
    for key in ("heat", "min_confidence", "target_torch", "preview", "fail_on", "unsafe_fixes"):
        if getattr(options, key, None):
            given[key] = getattr(options, key)
    if getattr(options, "unsafe_fixes", None) is False:
        given["unsafe_fixes"] = False
    cache = options.cache_dir or os.environ.get("NOSYNC_LINT_CACHE_DIR")
    if cache:
        given["cache_dir"] = os.path.abspath(cache)
    return with_flags(settings, given)


def _refuse_empty(options: argparse.Namespace) -> None:
    """An option that is given without a value would mean what it means to leave it out, or nothing."""
    for key in _FILLED:
        value: str | list[str] | None = getattr(options, key, None)
        values = [value] if isinstance(value, str) else value or []
        if not all(one.strip(" ,") for one in values):
            raise Refused(f"--{key.replace('_', '-')} is empty; give it a value or leave it out")


def _configured(options: argparse.Namespace) -> Settings:
    """The configuration file with what it extends, and `--config KEY=VALUE` over it."""
    given: list[str] = options.config or []
    inline = [text for text in given if "=" in text and not os.path.isfile(text)]
    files = [text for text in given if text not in inline]
    if files and options.isolated:
        raise Refused(
            f"--isolated reads no configuration file and --config {files[0]} names one; leave out one of them"
        )
    if len(files) > 1:
        raise Refused(f"--config names several files: {', '.join(files)}; give one, which may `extend` another")
    path = Path(files[0]) if files else None if options.isolated else project_config(options.paths)
    settings = load_config(path, inline) if path is not None else settings_from(map(inline_layer, inline))
    return replace(settings, nearest=not files and not options.isolated)


def _file_ignore(pair: str) -> FileIgnore:
    glob, _, rule = pair.rpartition(":")
    if not glob.removeprefix("!") or not rule:
        raise Refused(f"--per-file-ignores takes GLOB:RULE, such as 'tests/**:NSL2', not {pair!r}")
    return FileIgnore(glob, (rule,))


def listed(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def refuse_early(options: argparse.Namespace, settings: Settings) -> None:
    """What is wrong with a command can be said before anything is read."""
    from nosync_lint.registry import RulesMissing
    from nosync_lint.selection import check_names, check_words

    try:
        for key in ("select", "ignore", "extend_select", "extend_ignore", "fixable", "unfixable"):
            check_words(listed(getattr(options, key, None) or ()))
        check_words(rule for pair in listed(options.per_file_ignores or ()) for rule in _file_ignore(pair).rules)
        check_names(settings)
    except RulesMissing as error:
        raise Refused(str(error)) from error
    if options.output_file:
        refuse_file(options.output_file)


def ask(options: argparse.Namespace, question: Callable[[dict[str, Any]], T]) -> T:
    """Ask the pipeline a question, with the options about running, while the progress is shown."""
    from nosync_lint.discover import MissingPath
    from nosync_lint.pipeline import Unanswerable
    from nosync_lint.registry import RulesMissing

    progress = ProgressLine(options)
    cache = not options.no_cache and not flag("NOSYNC_LINT_NO_CACHE")
    try:
        with progress:
            return question({"jobs": options.jobs, "cache": cache, "progress": progress.show})
    except (MissingPath, RulesMissing, Unanswerable) as error:
        raise Refused(str(error)) from error


def flag(name: str) -> bool:
    value = os.environ.get(name, "").lower()
    if value not in _TRUE | _FALSE:
        raise ConfigError(f"environment variable {name} must be 1, 0, true or false, not {value!r}")
    return value in _TRUE
