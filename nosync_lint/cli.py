"""The command line. Exit codes: 0 clean, 1 findings, 2 usage, configuration, I/O or internal failure."""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO, TypeVar

from nosync_lint import __version__
from nosync_lint.config import KEYS, ConfigError, Settings, find_config, load_config

T = TypeVar("T")
_TRUE, _FALSE = frozenset({"1", "true"}), frozenset({"0", "false", ""})


class Refused(Exception):
    """A command that cannot be carried out; the text says why and what cures it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = _parser()
    options = parser.parse_args(argv)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader went away: `nosync-lint check | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except KeyboardInterrupt:
        return 130
    except (ConfigError, Refused) as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{error.filename or 'output'}: {error.strerror or error}")
    except Exception as error:
        if os.environ.get("NOSYNC_LINT_TRACEBACK"):
            raise
        kind = type(error).__name__
        return _fail(f"internal failure: {kind}: {error}; set NOSYNC_LINT_TRACEBACK=1 to see where, and report it")


def run_and_exit() -> None:
    """The `nosync-lint` script: leaves at once, since taking a program of millions of tuples apart takes seconds."""
    if sys.stdout is None:
        os._exit(_fail("standard output is closed; give it a reader or use --output-file"))
    gc.disable()  # a run makes millions of tuples that live to its end: looking through them once takes seconds
    code = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = 2
    os._exit(code)


def _fail(message: str) -> int:
    print(f"nosync-lint: error: {message}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nosync-lint", description="Finds hidden host-device synchronisations in PyTorch code."
    )
    parser.add_argument("--version", action="version", version=f"nosync-lint {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    check = commands.add_parser("check", help="lint files and folders", description="Lint files and folders.")
    check.set_defaults(run=_check)
    check.add_argument("paths", nargs="*", metavar="PATH", help="files and folders to report on (default: .)")
    choose = _add_choice(check)
    choose.add_argument("--heat", choices=("hot", "warm", "any"), help="least heat of reported lines (default: hot)")
    files = _add_files(check)
    files.add_argument(
        "--force-exclude", action="store_true", help="accepted for hooks: excludes always apply to given files"
    )
    output = check.add_argument_group("output")
    output.add_argument(
        "--explain", metavar="FILE:LINE", help="say why this line is or is not reported, and exit with 0"
    )
    output.add_argument("--output-format", choices=("text", "json"), help="default: text")
    output.add_argument("-o", "--output-file", metavar="PATH", help="write the report there")
    output.add_argument("--statistics", action="store_true", help="count findings per rule")
    output.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    output.add_argument("-e", "--exit-zero", action="store_true", help="exit 0 although there are findings")
    _add_running(check)

    graph = commands.add_parser(
        "graph", help="show the calls from hot roots to syncs", description="Show the calls from hot roots to syncs."
    )
    graph.set_defaults(run=_graph, heat=None)
    graph.add_argument("paths", nargs="*", metavar="PATH", help="files and folders whose syncs are shown (default: .)")
    choose = _add_choice(graph)
    choose.add_argument("--root", action="append", metavar="NAME", help="only below this hot root: its name or its end")
    choose.add_argument("--depth", type=_count, metavar="N", help="at most this many calls below a root")
    _add_files(graph)
    output = graph.add_argument_group("output")
    output.add_argument("--output-format", choices=("text", "dot", "mermaid"), default="text", help="default: text")
    output.add_argument("-o", "--output-file", metavar="PATH", help="write the graph there")
    _add_running(graph)

    rule = commands.add_parser("rule", help="explain a rule")
    rule.set_defaults(run=_rule)
    rule.add_argument("name", nargs="?", metavar="CODE", help="a code or slug")
    rule.add_argument("--all", action="store_true", help="every rule")
    rule.add_argument("--output-format", choices=("text", "json"), default="text")

    config = commands.add_parser("config", help="list the configuration keys with their defaults")
    config.set_defaults(run=_config)
    config.add_argument("key", nargs="?", choices=KEYS, metavar="KEY")

    clean = commands.add_parser("clean", help="remove the index cache")
    clean.set_defaults(run=_clean)
    clean.add_argument("--cache-dir", metavar="PATH")

    clean.add_argument(
        "path", nargs="?", default=".", metavar="PATH", help="the project whose cache it is (default: .)"
    )

    version = commands.add_parser("version", help="print the version")
    version.set_defaults(run=_version)
    return parser


def _add_choice(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    choose = parser.add_argument_group("what is reported")
    choose.add_argument(
        "--select", action="append", metavar="RULES", help="only these codes, code prefixes or slugs, comma separated"
    )
    choose.add_argument("--ignore", action="append", metavar="RULES", help="not these codes, code prefixes or slugs")
    choose.add_argument("--hot", action="append", metavar="NAME", help="one more hot root: a qualified name or its end")
    choose.add_argument("--min-confidence", choices=("certain", "likely", "possible"), help="default: likely")
    choose.add_argument("--target-torch", metavar="X.Y", help="the torch release, or a range of them, to judge for")
    return choose


def _add_files(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    files = parser.add_argument_group("which files are read")
    files.add_argument(
        "--exclude", action="append", metavar="GLOB", help="leave out files and folders, comma separated"
    )
    files.add_argument("--config", metavar="PATH", help="this configuration file instead of the nearest one")
    files.add_argument("--isolated", action="store_true", help="read no configuration file")
    return files


def _add_running(parser: argparse.ArgumentParser) -> None:
    running = parser.add_argument_group("running")
    running.add_argument("-q", "--quiet", action="store_true", help="print no progress")
    running.add_argument(
        "-j", "--jobs", type=int, default=0, metavar="N", help="worker processes (default: one per processor)"
    )
    running.add_argument("-n", "--no-cache", action="store_true", help="neither read nor write the index cache")
    running.add_argument(
        "--cache-dir", metavar="PATH", help="where the index cache lives (default: .nosync_lint_cache)"
    )


def _count(text: str) -> int:
    """A number that is not negative, for argparse."""
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"must be a number from 0, not {text!r}")
    return int(text)


def _settings(options: argparse.Namespace) -> Settings:
    """The configuration, with the command line over it."""
    settings = Settings()
    path = Path(options.config) if options.config else None if options.isolated else _project_config(options.paths)
    if path is not None:
        settings = load_config(path)
    given: dict[str, object] = {}
    for key in ("select", "ignore"):
        if getattr(options, key):
            given[key] = _listed(getattr(options, key))
    if options.exclude:
        given["exclude"] = (*settings.exclude, *_listed(options.exclude))
    if options.hot:
        given["hot"] = (*settings.hot, *options.hot)
    for key in ("heat", "min_confidence", "target_torch"):
        if getattr(options, key):
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


def _listed(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _check(options: argparse.Namespace) -> int:
    from nosync_lint.pipeline import run

    if options.explain is not None:
        return _explain(options)
    settings, form = _settings(options), _report_format(options)
    _refuse_early(options, settings)
    report = _ask(options, lambda given: run(options.paths or ["."], settings, **given))

    def write(out: TextIO) -> None:
        if form == "json":
            from nosync_lint.report.json import write_json

            write_json(report, out)
        else:
            from nosync_lint.report.text import write_text

            write_text(report, out, color=_color(options.color, out), statistics=options.statistics)

    _deliver(options, write)
    return 0 if options.exit_zero and report.exit_code == 1 else report.exit_code


def _explain(options: argparse.Namespace) -> int:
    from nosync_lint.pipeline import explain
    from nosync_lint.report.explanation import write_explanation, write_explanation_json

    file, row = _file_and_line(options.explain)
    if not options.paths:  # as a check of the working directory would see it, where it is part of that
        options.paths = ["."] if Path(file).resolve().is_relative_to(Path.cwd()) else [file]
    settings, form = _settings(options), _report_format(options)
    _refuse_early(options, settings)
    told = _ask(options, lambda given: explain(options.paths, settings, file, row, **given))

    def write(out: TextIO) -> None:
        if form == "json":
            write_explanation_json(told, out)
        else:
            write_explanation(told, out, color=_color(options.color, out))

    _deliver(options, write)
    return 0


def _file_and_line(text: str) -> tuple[str, int]:
    """FILE:LINE, or FILE:LINE:COLUMN as reports print it."""
    found = re.fullmatch(r"(.+?):([0-9]+)(:[0-9]+)?:?", text)
    if found is None or int(found[2]) < 1:
        raise Refused(f"--explain takes FILE:LINE, such as package/module.py:12, not {text!r}")
    return found[1], int(found[2])


def _graph(options: argparse.Namespace) -> int:
    from nosync_lint.pipeline import call_tree
    from nosync_lint.report.tree import write_tree

    settings = _settings(options)
    _refuse_early(options, settings)
    roots = tuple(options.root or ())
    tree = _ask(options, lambda given: call_tree(options.paths or ["."], settings, roots, **given))
    _deliver(options, lambda out: write_tree(tree, out, options.output_format, options.depth))
    return 0


def _report_format(options: argparse.Namespace) -> str:
    form: str = options.output_format or os.environ.get("NOSYNC_LINT_OUTPUT_FORMAT", "text")
    if form not in ("text", "json"):
        raise Refused(f"environment variable NOSYNC_LINT_OUTPUT_FORMAT must be text or json, not {form!r}")
    return form


def _refuse_early(options: argparse.Namespace, settings: Settings) -> None:
    """What is wrong with a command can be said before anything is read."""
    from nosync_lint.discover import is_source
    from nosync_lint.registry import RulesMissing, named, rules

    try:
        for name in (*settings.select, *settings.ignore):
            if not any(named(rule, name) for rule in rules()):
                typed = _listed([*(options.select or []), *(options.ignore or [])])
                where = "" if name in typed or settings.path is None else f"{settings.path}: "
                raise Refused(
                    f"{where}no rule is called `{name}`{_nearest_rule(name)}; `nosync-lint rule --all` lists them"
                )
    except RulesMissing as error:
        raise Refused(str(error)) from error
    if options.output_file and is_source(Path(options.output_file)):
        raise Refused(f"{options.output_file}: is source code by its name; give the report another one")


def _ask(options: argparse.Namespace, question: Callable[[dict[str, Any]], T]) -> T:
    """Ask the pipeline a question, with the options about running, while the progress is shown."""
    from nosync_lint.discover import MissingPath
    from nosync_lint.pipeline import Unanswerable
    from nosync_lint.registry import RulesMissing

    progress = ProgressLine(options)
    cache = not options.no_cache and not _flag("NOSYNC_LINT_NO_CACHE")
    try:
        with progress:
            return question({"jobs": max(options.jobs, 0), "cache": cache, "progress": progress.show})
    except (MissingPath, RulesMissing, Unanswerable) as error:
        raise Refused(str(error)) from error


def _deliver(options: argparse.Namespace, write: Callable[[TextIO], None]) -> None:
    """Write to standard output, or into the given file."""
    try:
        with ExitStack() as stack:
            out: TextIO = sys.stdout
            if options.output_file:
                out = stack.enter_context(open(options.output_file, "w", encoding="utf-8"))
            write(out)
            out.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Refused(f"{options.output_file or 'standard output'}: cannot be written: {error.strerror}") from error


def _nearest_rule(name: str) -> str:
    import difflib

    from nosync_lint.registry import rules

    words = [word for rule in rules() for word in (rule.code, rule.slug())]
    close = difflib.get_close_matches(name, words, 1, 0.5)
    return f", did you mean `{close[0]}`?" if close else ""


def _color(choice: str, out: TextIO) -> bool:
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or out.isatty()


def _flag(name: str) -> bool:
    value = os.environ.get(name, "").lower()
    if value not in _TRUE | _FALSE:
        raise ConfigError(f"environment variable {name} must be 1, 0, true or false, not {value!r}")
    return value in _TRUE


class ProgressLine:
    """A line on a terminal that says which stage runs; nothing elsewhere."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._active = sys.stderr.isatty() and not options.quiet
        self._shown = ""

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._active and self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def show(self, stage: str, done: int, total: int) -> None:
        if not self._active:
            return
        text = f"{stage} {done * 100 // total}%" if total > 1 else f"{stage} ..."
        if text != self._shown:
            self._shown = text
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()


def _rule(options: argparse.Namespace) -> int:
    from nosync_lint.registry import RulesMissing, documentation, find, rules, summary

    try:
        if not options.all and not options.name:
            return _fail("name a rule, or give --all")
        chosen = list(rules()) if options.all else [rule for rule in [find(options.name)] if rule is not None]
    except RulesMissing as error:
        return _fail(str(error))
    if not chosen:
        return _fail(
            f"no rule is called `{options.name}`{_nearest_rule(options.name)}; `nosync-lint rule --all` lists them"
        )
    if options.output_format == "json":
        rows = [
            {
                "code": rule.code, "name": rule.slug(), "summary": summary(rule), "severity": rule.severity.value,
                "since": rule.since, "heated": rule.heated, "explanation": documentation(rule),
            }
            for rule in chosen
        ]  # fmt: skip
        print(json.dumps(rows if options.all else rows[0], indent=2))
    elif options.all:
        for rule in chosen:
            print(f"{rule.code}  {rule.slug():32} {rule.severity.value:8} {summary(rule)}")
    else:
        (rule,) = chosen
        print(f"{rule.code} {rule.slug()} ({rule.severity.value}, since {rule.since})\n\n{documentation(rule)}")
    return 0


def _config(options: argparse.Namespace) -> int:
    from nosync_lint.config import Settings as Defaults

    for key in [options.key] if options.key else KEYS:
        value = getattr(Defaults(), key.replace("-", "_"))
        print(f"{key} = {json.dumps(list(value) if isinstance(value, tuple) else value)}")
    return 0


def _clean(options: argparse.Namespace) -> int:
    from nosync_lint.index.cache import clean
    from nosync_lint.pipeline import cache_folder

    path = find_config(Path(options.path).resolve())
    settings = load_config(path) if path else Settings()
    given = options.cache_dir or os.environ.get("NOSYNC_LINT_CACHE_DIR")
    folder = cache_folder(replace(settings, cache_dir=os.path.abspath(given)) if given else settings)
    print(f"removed the cache in {folder}" if clean(folder) else f"{folder}: no cache there")
    return 0


def _version(options: argparse.Namespace) -> int:
    print(f"nosync-lint {__version__}")
    return 0
