"""`check`: lint files and folders, or explain one line."""

from __future__ import annotations

import argparse
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from nosync_lint.commands import Refused
from nosync_lint.commands.fixes import add_fixing, fixing_of, told, write_diff, write_fixes
from nosync_lint.commands.options import add_choice, add_files, add_running, ask, refuse_early, settings_of
from nosync_lint.commands.output import deliver, use_color
from nosync_lint.fix import Fixing
from nosync_lint.report import Report
from nosync_lint.report.formats import FORMATS


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    check = commands.add_parser("check", help="lint files and folders", description="Lint files and folders.")
    check.set_defaults(run=run)
    check.add_argument("paths", nargs="*", metavar="PATH", help="files and folders to report on (default: .)")
    choose = add_choice(check)
    choose.add_argument("--heat", choices=("hot", "warm", "any"), help="least heat of reported lines (default: hot)")
    files = add_files(check)
    files.add_argument(
        "--force-exclude", action="store_true", help="accepted for hooks: excludes always apply to given files"
    )
    output = check.add_argument_group("output")
    output.add_argument(
        "--explain", metavar="FILE:LINE", help="say why this line is or is not reported, and exit with 0"
    )
    output.add_argument("--output-format", choices=tuple(FORMATS), help="default: text")
    output.add_argument("-o", "--output-file", metavar="PATH", help="write the report there")
    output.add_argument("--statistics", action="store_true", help="count findings per rule")
    output.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    output.add_argument("-e", "--exit-zero", action="store_true", help="exit 0 although there are findings")
    add_fixing(check)
    add_running(check)


def run(options: argparse.Namespace) -> int:
    from nosync_lint.pipeline import run as lint
    from nosync_lint.report.formats import Style, write

    fixing = fixing_of(options)
    if options.explain is not None:
        return _explain(options)
    settings, form = settings_of(options), _report_format(options)
    refuse_early(options, settings)
    report = ask(options, lambda given: lint(options.paths or ["."], settings, fix=fixing, **given))
    if fixing is not Fixing.NOTHING and (options.diff or options.fix_only):
        return _fixed_only(options, report, fixing)

    style = Style(options.statistics)
    deliver(options, lambda out: write(report, form, out, replace(style, color=use_color(options.color, out))))
    if options.show_fixes:
        write_fixes(report, sys.stdout if form == "text" and not options.output_file else sys.stderr)
    code = 1 if options.exit_non_zero_on_fix and report.fixed and not report.exit_code else report.exit_code
    return 0 if options.exit_zero and code == 1 else code


def _fixed_only(options: argparse.Namespace, report: Report, fixing: Fixing) -> int:
    """Tell what was or would be fixed, and leave the rest aside."""
    if options.diff:
        deliver(options, lambda out: write_diff(report, out))
    if options.show_fixes:
        write_fixes(report, sys.stderr)
    for text in report.failures:
        print(f"failed: {text}", file=sys.stderr)
    print(told(report, fixing), file=sys.stderr)
    differs = bool(report.changed) and (options.diff or options.exit_non_zero_on_fix)
    return 2 if report.failures else int(differs and not options.exit_zero)


def _explain(options: argparse.Namespace) -> int:
    from nosync_lint.pipeline import explain
    from nosync_lint.report.explanation import write_explanation, write_explanation_json

    file, row = _file_and_line(options.explain)
    if not options.paths:  # as a check of the working directory would see it, where it is part of that
        options.paths = ["."] if Path(file).resolve().is_relative_to(Path.cwd()) else [file]
    settings, form = settings_of(options), _report_format(options)
    refuse_early(options, settings)
    told = ask(options, lambda given: explain(options.paths, settings, file, row, **given))

    def write(out: TextIO) -> None:
        if form == "json":
            write_explanation_json(told, out)
        else:
            write_explanation(told, out, color=use_color(options.color, out))

    deliver(options, write)
    return 0


def _file_and_line(text: str) -> tuple[str, int]:
    """FILE:LINE, or FILE:LINE:COLUMN as reports print it."""
    found = re.fullmatch(r"(.+?):([0-9]+)(:[0-9]+)?:?", text)
    if found is None or int(found[2]) < 1:
        raise Refused(f"--explain takes FILE:LINE, such as package/module.py:12, not {text!r}")
    return found[1], int(found[2])


def _report_format(options: argparse.Namespace) -> str:
    form: str = options.output_format or os.environ.get("NOSYNC_LINT_OUTPUT_FORMAT", "text")
    if form not in ("text", "json"):
        raise Refused(f"environment variable NOSYNC_LINT_OUTPUT_FORMAT must be text or json, not {form!r}")
    return form
