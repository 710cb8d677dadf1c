"""Options of `check` about what is known and accepted: the baseline, a revision, and comments for all that is shown."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nosync_lint.commands import Refused
from nosync_lint.config import Settings, display
from nosync_lint.plural import counted

if TYPE_CHECKING:
    from nosync_lint.report import Report


def add_accepting(parser: argparse.ArgumentParser) -> None:
    known = parser.add_argument_group("what is known")
    known.add_argument("--since", metavar="REV", help="only what touches a file that changed since this git revision")
    known.add_argument("--baseline", metavar="FILE", help="accept the findings that this file lists")
    known.add_argument("--write-baseline", action="store_true", help="list what is found in the baseline, and exit")
    known.add_argument("--prune-baseline", action="store_true", help="remove what is stale from the baseline")
    known.add_argument("--add-ignore", metavar="REASON", help="add a comment to every line that is shown, and exit")


def refuse_clashes(options: argparse.Namespace) -> None:
    """Refuse options of which one makes no sense beside the other."""
    given = [
        name
        for name in ("--explain", "--write-baseline", "--prune-baseline", "--add-ignore")
        if getattr(options, name[2:].replace("-", "_")) not in (None, False)
    ]
    if len(given) > 1:
        raise Refused(f"{given[0]} and {given[1]} cannot be used together: run one after the other")
    for name in (*given, *(("--since",) if options.since is not None else ())):
        if options.touching and name != "--add-ignore":
            raise Refused(
                f"--touching and {name} cannot be used together: --touching is about the files that are given"
            )
    writing = [name for name in given if name != "--explain"]
    if writing and (options.fix or options.fix_only or options.diff):
        raise Refused(f"{writing[0]} and fixes cannot be used together: run one after the other")
    if writing and "-" in options.paths:
        raise Refused(f"{writing[0]} writes files and cannot be used with standard input; name files and folders")
    if options.explain is not None and options.since is not None:
        raise Refused("--explain and --since cannot be used together: a line is explained whatever has changed")
    for name in ("since", "baseline"):
        if getattr(options, name) is not None and not getattr(options, name).strip():
            raise Refused(f"--{name} is empty: name a {'git revision' if name == 'since' else 'file'}")
    if options.add_ignore is not None:
        from nosync_lint.add_ignore import BadReason, check_reason

        try:
            check_reason(options.add_ignore, Settings().today)
        except BadReason as error:
            raise Refused(f"--add-ignore: {error}") from error


def with_baseline(options: argparse.Namespace, settings: Settings) -> Settings:
    """The settings with the baseline of the command line."""
    return replace(settings, baseline=os.path.abspath(options.baseline)) if options.baseline else settings


def asked_of_run(options: argparse.Namespace) -> dict[str, Any]:
    """What a run is told about what was before."""
    update = "write" if options.write_baseline else "prune" if options.prune_baseline else ""
    return {"since": options.since or "", "update": update}


def save(options: argparse.Namespace, report: Report) -> int | None:
    """Write the baseline, or comments, where that is asked for. Gives the exit code where nothing is left to report."""
    if report.baseline is not None and not report.failures:
        path = report.baseline.path
        count = sum(entry.count for entry in report.baseline.entries)
        _write(path, report.baseline.text().encode())
        name = display(path.resolve(), Path.cwd())
        entries = counted(len(report.baseline.entries), "entry", "entries")
        print(f"{name}: {counted(count, 'finding')} accepted in {entries}", file=sys.stderr)
        if report.baseline.unread:
            lines = counted(report.baseline.unread, "line")
            print(f"{name}: {lines} of the old file could not be read: left out", file=sys.stderr)
        return 0 if options.write_baseline else None
    if options.add_ignore is not None and not report.failures:
        from nosync_lint.add_ignore import add_ignores

        added = add_ignores(report.findings, report.sources, options.add_ignore, Settings().today)
        for text in added.left:
            print(f"not covered: {text}", file=sys.stderr)
        print(f"added {counted(added.comments, 'comment')} in {counted(added.files, 'file')}", file=sys.stderr)
        return 1 if added.left else 0
    return None


def _write(path: Path, content: bytes) -> None:
    """Write a baseline. Raises `Refused`, and then the old one is there."""
    from nosync_lint.fix.write import NotWritten, replace_content

    try:
        if path.exists():
            replace_content(path, path.read_bytes(), content)
        else:
            path.write_bytes(content)
    except NotWritten as error:
        raise Refused(f"{path}: {error}") from error
    except OSError as error:
        raise Refused(f"{path}: cannot be written: {error.strerror}") from error
