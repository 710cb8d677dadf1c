"""Options that several commands share: what is reported, which files are read, how it runs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from nosync_lint.commands import Refused
from nosync_lint.commands.output import ProgressLine
from nosync_lint.config import ConfigError, Settings, find_config, load_config

T = TypeVar("T")
_TRUE, _FALSE = frozenset({"1", "true"}), frozenset({"0", "false", ""})


def add_choice(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    choose = parser.add_argument_group("what is reported")
    choose.add_argument(
        "--select", action="append", metavar="RULES", help="only these codes, code prefixes or slugs, comma separated"
    )
    choose.add_argument("--ignore", action="append", metavar="RULES", help="not these codes, code prefixes or slugs")
    choose.add_argument("--hot", action="append", metavar="NAME", help="one more hot root: a qualified name or its end")
    choose.add_argument("--min-confidence", choices=("certain", "likely", "possible"), help="default: likely")
    choose.add_argument("--target-torch", metavar="X.Y", help="the torch release, or a range of them, to judge for")
    return choose


def add_files(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    files = parser.add_argument_group("which files are read")
    files.add_argument(
        "--exclude", action="append", metavar="GLOB", help="leave out files and folders, comma separated"
    )
    files.add_argument("--config", metavar="PATH", help="this configuration file instead of the nearest one")
    files.add_argument("--isolated", action="store_true", help="read no configuration file")
    return files


def add_running(parser: argparse.ArgumentParser) -> None:
    running = parser.add_argument_group("running")
    running.add_argument("-q", "--quiet", action="store_true", help="print no progress")
    running.add_argument(
        "-j", "--jobs", type=int, default=0, metavar="N", help="worker processes (default: one per processor)"
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
    settings = Settings()
    path = Path(options.config) if options.config else None if options.isolated else _project_config(options.paths)
    if path is not None:
        settings = load_config(path)
    given: dict[str, object] = {}
    for key in ("select", "ignore", "fixable", "unfixable"):
        if getattr(options, key, None):
            given[key] = listed(getattr(options, key))
    if options.exclude:
        given["exclude"] = (*settings.exclude, *listed(options.exclude))
    if options.hot:
        given["hot"] = (*settings.hot, *options.hot)
    for key in ("heat", "min_confidence", "target_torch", "unsafe_fixes"):
        if getattr(options, key, None) not in (None, ""):
            given[key] = getattr(options, key)
    cache = options.cache_dir or os.environ.get("NOSYNC_LINT_CACHE_DIR")
    if cache:
        given["cache_dir"] = os.path.abspath(cache)
    return replace(settings, **given)  # type: ignore[arg-type]


def _project_config(paths: Sequence[str]) -> Path | None:
    """The configuration nearest to the given paths; where they have different ones, that of all of them together."""
    found: dict[Path | None, str] = {}
    for path in paths or ["."]:
        folder = Path(path) if os.path.isdir(path) else Path(path).parent
        found[find_config(folder.resolve())] = path
    if len(found) > 1:
        common = find_config(Path(os.path.commonpath([os.path.abspath(path) for path in paths])))
        if common is not None:
            return common
        named = ", ".join(sorted(f"{path} ({config or 'none'})" for config, path in found.items()))
        raise ConfigError(f"the paths have different configurations: {named}; check them apart or give --config")
    return next(iter(found))


def listed(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def refuse_early(options: argparse.Namespace, settings: Settings) -> None:
    """What is wrong with a command can be said before anything is read."""
    from nosync_lint.discover import is_source
    from nosync_lint.registry import RulesMissing, named, rules

    try:
        for name in (*settings.select, *settings.ignore, *settings.fixable, *settings.unfixable):
            if not any(named(rule, name) for rule in rules()):
                words = (getattr(options, key, None) or [] for key in ("select", "ignore", "fixable", "unfixable"))
                typed = listed([word for given in words for word in given])
                where = "" if name in typed or settings.path is None else f"{settings.path}: "
                raise Refused(
                    f"{where}no rule is called `{name}`{nearest_rule(name)}; `nosync-lint rule --all` lists them"
                )
    except RulesMissing as error:
        raise Refused(str(error)) from error
    if options.output_file and is_source(Path(options.output_file)):
        raise Refused(f"{options.output_file}: is source code by its name; give the report another one")


def ask(options: argparse.Namespace, question: Callable[[dict[str, Any]], T]) -> T:
    """Ask the pipeline a question, with the options about running, while the progress is shown."""
    from nosync_lint.discover import MissingPath
    from nosync_lint.pipeline import Unanswerable
    from nosync_lint.registry import RulesMissing

    progress = ProgressLine(options)
    cache = not options.no_cache and not flag("NOSYNC_LINT_NO_CACHE")
    try:
        with progress:
            return question({"jobs": max(options.jobs, 0), "cache": cache, "progress": progress.show})
    except (MissingPath, RulesMissing, Unanswerable) as error:
        raise Refused(str(error)) from error


def nearest_rule(name: str) -> str:
    import difflib

    from nosync_lint.registry import rules

    words = [word for rule in rules() for word in (rule.code, rule.slug())]
    close = difflib.get_close_matches(name, words, 1, 0.5)
    return f", did you mean `{close[0]}`?" if close else ""


def flag(name: str) -> bool:
    value = os.environ.get(name, "").lower()
    if value not in _TRUE | _FALSE:
        raise ConfigError(f"environment variable {name} must be 1, 0, true or false, not {value!r}")
    return value in _TRUE
