"""The options of `check` about fixes, and what is told about them besides the report."""

from __future__ import annotations

import argparse
import difflib
from collections import Counter
from typing import TextIO

from nosync_lint.commands import Refused
from nosync_lint.fix import Fixing
from nosync_lint.notes import note_on_notebooks
from nosync_lint.plural import counted
from nosync_lint.report import Report
from nosync_lint.source import decode_python


def add_fixing(parser: argparse.ArgumentParser) -> None:
    fixing = parser.add_argument_group("fixes")
    fixing.add_argument("--fix", action="store_true", help="make the safe fixes, and report what is left")
    fixing.add_argument(
        "--unsafe-fixes",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="with --fix or --diff: also fixes that may change what the program does",
    )
    fixing.add_argument("--diff", action="store_true", help="show what --fix would change, and change nothing")
    fixing.add_argument("--fix-only", action="store_true", help="make fixes, and neither report nor fail for the rest")
    fixing.add_argument("--show-fixes", action="store_true", help="list the fixes that were made")
    fixing.add_argument("--fixable", action="append", metavar="RULES", help="fix only findings of these rules")
    fixing.add_argument("--unfixable", action="append", metavar="RULES", help="fix no findings of these rules")
    fixing.add_argument("--exit-non-zero-on-fix", action="store_true", help="exit 1 where something was fixed")


def fixing_of(options: argparse.Namespace) -> Fixing:
    """What is to be done with fixes. Raises `Refused` for options that contradict each other."""
    writes = "--fix" if options.fix else "--fix-only" if options.fix_only else ""
    given = [
        flag
        for flag, on in (
            (writes, writes),
            ("--diff", options.diff),
            ("--show-fixes", options.show_fixes),
            ("--exit-non-zero-on-fix", options.exit_non_zero_on_fix),
        )
        if on
    ]
    if options.explain is not None and given:
        raise Refused(f"--explain fixes nothing; leave out {given[0]}")
    if writes and options.diff:
        raise Refused(f"{writes} writes and --diff does not; leave out one of them")
    if given and not writes and not options.diff:
        raise Refused(f"{given[0]} is about fixes that are made; add --fix")
    form = next((value for option, value in options.outputs or () if option != "-o"), "full")
    if options.diff and form != "full":
        raise Refused(f"--diff writes a diff and no {form}; leave out --output-format")
    return Fixing.WRITE if writes else Fixing.LOOK if options.diff else Fixing.NOTHING


def write_diff(report: Report, out: TextIO) -> None:
    """What the fixes change, as a unified diff that `patch` understands."""
    encoding = getattr(out, "encoding", None) or "utf-8"
    for name, (old, new) in report.changed.items():
        before, after = (_lines(decode_python(data)) for data in (old, new))
        for line in difflib.unified_diff(before, after, name, name):
            ended = line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            out.write(ended.encode(encoding, "backslashreplace").decode(encoding))


def _lines(text: str) -> list[str]:
    """Lines with their ends, which are line feeds alone: other line breaks stand in the middle of a line of a diff."""
    return [line + "\n" for line in text.split("\n")[:-1]] + ([last] if (last := text.rpartition("\n")[2]) else [])


def write_fixes(report: Report, out: TextIO) -> None:
    """The fixes that were made, counted by file and rule."""
    for name in report.changed:
        out.write(f"{name}:\n")
        made = [one for one in report.fixed if one.filename == name]
        counted = Counter((one.code, one.name, one.fix.recipe if one.fix is not None else "") for one in made)
        for (code, rule, recipe), count in sorted(counted.items()):
            out.write(f"    {count} x {code} {rule} ({recipe})\n")


def told(report: Report, fixing: Fixing) -> str:
    """One sentence about what was fixed."""
    count = len(report.fixed)
    left = f"; {text}" if (text := next(note_on_notebooks(report), "")) else ""
    if not count:
        return f"nothing to fix{left}"
    done = "fixed" if fixing is Fixing.WRITE else "would fix"
    return f"{done} {counted(count, 'finding')} in {counted(len(report.changed), 'file')}{left}"
