"""`check`: lint files and folders, or explain one line."""

from __future__ import annotations

import argparse
import re
import sys
from functools import partial
from pathlib import Path
from typing import TextIO

from nosync_lint.commands import Refused, standard_input
from nosync_lint.commands.accepting import add_accepting, asked_of_run, refuse_clashes, save, with_baseline
from nosync_lint.commands.fixes import add_fixing, fixing_of, told, write_diff, write_fixes
from nosync_lint.commands.options import add_choice, add_files, add_running, ask, refuse_early, settings_of
from nosync_lint.commands.output import Output, add_outputs, deliver, outputs_of, use_color, write_reports
from nosync_lint.commands.show import add_shown, show
from nosync_lint.config import SEVERITIES, Settings
from nosync_lint.fix import Fixing
from nosync_lint.report import Report


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    check = commands.add_parser("check", help="lint files and folders", description="Lint files and folders.")
    check.set_defaults(run=run, output_file=None)
    check.add_argument(
        "paths", nargs="*", metavar="PATH", help="files and folders to report on (default: .); - for standard input"
    )
    choose = add_choice(check)
    choose.add_argument("--heat", choices=("hot", "warm", "any"), help="least heat of reported lines (default: hot)")
    files = add_files(check)
    standard_input.add(files)
    files.add_argument(
        "--touching",
        action="store_true",
        help="the PATHs are what changed: report on the whole project what stands in them or leads through them",
    )
    files.add_argument(
        "--force-exclude", action="store_true", help="accepted for hooks: excludes always apply to given files"
    )
    add_shown(files)
    add_accepting(check)
    output = check.add_argument_group("output")
    output.add_argument(
        "--explain", metavar="FILE:LINE", help="say why this line is or is not reported, and exit with 0"
    )
    add_outputs(output)
    output.add_argument("--statistics", action="store_true", help="count findings per rule")
    output.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    output.add_argument("-e", "--exit-zero", action="store_true", help="exit 0 although there are findings")
    output.add_argument(
        "--fail-on", choices=SEVERITIES, help="least severity that makes the run exit with 1 (default: warning)"
    )
    output.add_argument(
        "--error-on-warning",
        action="store_const",
        dest="fail_on",
        const="warning",
        help="the same as --fail-on warning",
    )
    add_fixing(check)
    add_running(check)


def run(options: argparse.Namespace) -> int:
    from nosync_lint.pipeline import run as lint

    refuse_clashes(options)
    overlay = standard_input.take(options)
    fixing = fixing_of(options)
    if options.explain is not None:
        return _explain(options, overlay)
    settings, outputs = with_baseline(options, settings_of(options)), outputs_of(options)
    refuse_early(options, settings)
    if show(options, settings):
        return 0
    (paths, touching), asked = _asked_for(options, settings), asked_of_run(options)
    fix = Fixing.LOOK if overlay and fixing is Fixing.WRITE else fixing  # what came in by standard input goes out
    asked |= {"overlay": overlay, "touching": touching, "fix": fix}
    report = ask(options, lambda given: lint(paths, settings, **given, **asked))
    saved = save(options, report)
    if saved is not None:
        return saved
    if fix is not fixing:
        return standard_input.give_back(overlay, report)
    if fixing is not Fixing.NOTHING and (options.diff or options.fix_only):
        return _fixed_only(options, report, fixing)
    write_reports(report, outputs, options.statistics, options.color)
    if options.show_fixes:
        write_fixes(report, sys.stdout if outputs[0] == Output("full", None) else sys.stderr)
    code = 1 if options.exit_non_zero_on_fix and report.fixed and not report.exit_code else report.exit_code
    return 0 if options.exit_zero and code == 1 else code


def _fixed_only(options: argparse.Namespace, report: Report, fixing: Fixing) -> int:
    """Tell what was or would be fixed, and leave the rest aside."""
    if options.diff:
        deliver(None, lambda out: write_diff(report, out))
    if options.show_fixes:
        write_fixes(report, sys.stderr)
    for text in report.failures:
        print(f"failed: {text}", file=sys.stderr)
    print(told(report, fixing), file=sys.stderr)
    differs = bool(report.changed) and (options.diff or options.exit_non_zero_on_fix)
    return 2 if report.failures else int(differs and not options.exit_zero)


def _asked_for(options: argparse.Namespace, settings: Settings) -> tuple[list[str], list[str] | None]:
    """What is linted, and the changed files where only what touches them is reported. No changed file is no finding."""
    if not options.touching:
        return options.paths or ["."], None
    from nosync_lint.discover import project_roots

    roots = project_roots([Path(path).resolve() for path in options.paths], settings.path)
    return [*map(str, roots), *options.paths], options.paths


def _explain(options: argparse.Namespace, overlay: dict[Path, bytes]) -> int:
    from nosync_lint.pipeline import explain
    from nosync_lint.report.explanation import write_explanation, write_explanation_json

    file, cell, row = _file_and_line(options.explain)
    if not options.paths:  # as a check of the working directory would see it, where it is part of that
        options.paths = ["."] if Path(file).resolve().is_relative_to(Path.cwd()) else [file]
    settings, outputs = with_baseline(options, settings_of(options)), outputs_of(options)
    for output in outputs:
        if output.form not in ("full", "json"):
            raise Refused(f"an explanation is written as full or json, not as {output.form}")
    refuse_early(options, settings)
    told = ask(options, lambda given: explain(options.paths, settings, file, row, cell=cell, overlay=overlay, **given))

    def write(out: TextIO, form: str) -> None:
        if form == "json":
            write_explanation_json(told, out)
        else:
            write_explanation(told, out, color=use_color(options.color, out))

    for output in outputs:
        deliver(output.path, partial(write, form=output.form))
    return 0


def _file_and_line(text: str) -> tuple[str, int | None, int]:
    """FILE:LINE, FILE:LINE:COLUMN as reports print it, or FILE:cell N:LINE in a notebook."""
    found = re.fullmatch(r"(.+?)(?::cell ([0-9]+))?:([0-9]+)(:[0-9]+)?:?", text)
    if found is None or int(found[3]) < 1:
        raise Refused(f"--explain takes FILE:LINE, such as package/module.py:12, not {text!r}")
    return found[1], int(found[2]) if found[2] else None, int(found[3])
