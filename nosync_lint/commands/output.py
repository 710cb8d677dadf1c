"""Where commands write: standard output or a file, colours, and a line that shows the progress."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import TextIO

from nosync_lint.commands import Refused


def deliver(options: argparse.Namespace, write: Callable[[TextIO], None]) -> None:
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


def use_color(choice: str, out: TextIO) -> bool:
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or out.isatty()


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
