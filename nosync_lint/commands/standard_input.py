"""Source code on standard input: `-` as the only path, with the name of the file that it stands for."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from nosync_lint.commands import Refused
from nosync_lint.report import Report

DASH = "-"
WRITING = ("add_ignore", "write_baseline", "prune_baseline")
"""Options that change files by what was found in them."""


def add(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--stdin-filename", metavar="PATH", help="read from standard input what stands for this file; PATH may be `-`"
    )


def take(options: argparse.Namespace) -> dict[Path, bytes]:
    """What standard input holds, by the path it stands for, which becomes the only given path; nothing where neither
    `-` nor a name for it is given. Without a name it is a script of the working directory, called `-`."""
    name: str | None = options.stdin_filename
    if name is None and DASH not in options.paths:
        return {}
    writing = [flag for flag in WRITING if getattr(options, flag) not in (None, False)]
    if writing:
        raise Refused(f"--{writing[0].replace('_', '-')} is about files on disk, and standard input stands for one")
    if any(path not in (DASH, name) for path in options.paths):
        raise Refused("standard input stands for one file: give `-` alone, with its name as --stdin-filename")
    name = name or DASH
    if Path(name).is_dir():
        raise Refused(f"--stdin-filename {name}: is a folder; name the file that standard input stands for")
    if sys.stdin is None:
        raise Refused("standard input is closed; give it the source code to read")
    options.paths = [name]
    return {Path(name).resolve(): sys.stdin.buffer.read()}


def give_back(overlay: Mapping[Path, bytes], report: Report) -> int:
    """Print what standard input held, with its fixes made. Gives the exit code."""
    (content,) = overlay.values()
    for text in report.failures:
        print(f"failed: {text}", file=sys.stderr)
    sys.stdout.flush()
    sys.stdout.buffer.write(next((new for _, new in report.changed.values()), content))
    return 2 if report.failures else 0
