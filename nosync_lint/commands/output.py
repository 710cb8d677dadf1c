"""Where commands write: standard output or files, colours, and a line that shows the progress."""

from __future__ import annotations

import argparse
import errno
import os
import secrets
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from nosync_lint.commands import Refused
from nosync_lint.report import Report
from nosync_lint.report.formats import FINDINGS_ONLY, FORMATS, Style, write
from nosync_lint.report.text import printable

_FORMAT, _FILE = "--output-format", "-o"
MAX_JOB_SUMMARY = 1 << 20
"""GitHub refuses the summary of a step that is longer than this many bytes."""


@dataclass(frozen=True, slots=True)
class Output:
    """A report that is asked for: its format, and its file or None for standard output."""

    form: str
    path: str | None


class _InOrder(argparse.Action):
    """Keeps the values of several options in the order in which they stand, each with the name of its option."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest) or ()), (self.option_strings[0], values)])


def add_outputs(group: argparse._ArgumentGroup) -> None:
    """Declare the options that choose reports and their files. `outputs_of` reads them."""
    group.add_argument(
        _FORMAT,
        dest="outputs",
        action=_InOrder,
        choices=tuple(FORMATS),
        help="full by default; again for one more report of the same run",
    )
    group.add_argument(
        _FILE,
        "--output-file",
        dest="outputs",
        action=_InOrder,
        metavar="PATH",
        help="the file of the report whose format stands before it (default: standard output)",
    )


def outputs_of(options: argparse.Namespace) -> list[Output]:
    """The reports that are asked for. Refuses what cannot be written before anything is read.

    With one format and one file their order does not matter. Else a file belongs to the format before it.
    """
    given: list[tuple[str, str]] = options.outputs or []
    forms = [value for option, value in given if option == _FORMAT]
    files = [value for option, value in given if option == _FILE]
    if len(forms) <= 1 and len(files) <= 1:
        outputs = [Output(forms[0] if forms else _default_form(), files[0] if files else None)]
    else:
        outputs = _paired(given)
    for output in outputs:
        if output.path is not None:
            refuse_file(output.path)
    return outputs


def _paired(given: Sequence[tuple[str, str]]) -> list[Output]:
    outputs: list[Output] = []
    for option, value in given:
        if option == _FORMAT:
            outputs.append(Output(value, None))
        elif not outputs:
            raise Refused(f"-o {value} stands before any --output-format; put it after the format that goes there")
        elif outputs[-1].path is not None:
            raise Refused(
                f"--output-format {outputs[-1].form} has two files, {outputs[-1].path} and {value}; "
                "name the format of the second one before it"
            )
        else:
            outputs[-1] = Output(outputs[-1].form, value)
    printed = [output.form for output in outputs if output.path is None]
    if len(printed) > 1:
        raise Refused(f"{' and '.join(printed)} both go to standard output; put -o PATH after all but one of them")
    files = {os.path.realpath(output.path): output.path for output in outputs if output.path is not None}
    if len(files) + len(printed) < len(outputs):
        raise Refused(f"two reports go to {next(reversed(files.values()))}; give each a file of its own")
    return outputs


def _default_form() -> str:
    form = os.environ.get("NOSYNC_LINT_OUTPUT_FORMAT", "full")
    if form not in FORMATS:
        named = ", ".join(FORMATS)
        raise Refused(f"environment variable NOSYNC_LINT_OUTPUT_FORMAT must be one of {named}, not {form!r}")
    return form


def refuse_file(path: str) -> None:
    """Refuse a file that a report must not or cannot go to."""
    from nosync_lint.discover import is_source

    if is_source(Path(path)):
        raise Refused(f"{path}: is source code by its name; give the report another one")
    wrong = None
    if os.path.isdir(path):
        wrong = errno.EISDIR
    elif not os.path.isdir(os.path.dirname(path) or "."):
        wrong = errno.ENOENT
    elif os.path.exists(path) and not os.access(path, os.W_OK):
        wrong = errno.EACCES
    if wrong is not None:
        raise Refused(f"{path}: cannot be written: {os.strerror(wrong)}")


def deliver(path: str | None, write: Callable[[TextIO], None]) -> None:
    """Write to standard output, or into the given file: all of it, or what stood there before stays."""
    try:
        if path is None:
            write(sys.stdout)
            sys.stdout.flush()
        else:
            _write_file(path, write)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Refused(f"{path or 'standard output'}: cannot be written: {error.strerror or error}") from error


def _write_file(path: str, write: Callable[[TextIO], None]) -> None:
    if os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe has nothing to lose
        with open(path, "w", encoding="utf-8") as out:
            write(out)
        return
    path = os.path.realpath(path)
    scratch = os.path.join(os.path.dirname(path), f".nosync-lint-{secrets.token_hex(8)}.tmp")
    try:
        with open(scratch, "x", encoding="utf-8") as out:
            write(out)
        if os.path.exists(path):
            os.chmod(scratch, os.stat(path).st_mode & 0o7777)
        os.replace(scratch, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(scratch)
        raise


def write_reports(report: Report, outputs: Sequence[Output], statistics: bool, color: str) -> None:
    """Write every report. Files come first: a reader of standard output that goes away costs none of them."""
    forms = {output.form for output in outputs}
    if "github" in forms:
        _append_job_summary(report)
    if forms <= FINDINGS_ONLY:
        for text in (*(f"error: {one}" for one in report.failures), *(f"note: {one}" for one in report.notes)):
            print(f"nosync-lint: {printable(text, sys.stderr.encoding)}", file=sys.stderr)

    def written(form: str, out: TextIO) -> None:
        write(report, form, out, Style(statistics, use_color(color, out)))

    for output in sorted(outputs, key=lambda one: one.path is None):
        deliver(output.path, partial(written, output.form))


def _append_job_summary(report: Report) -> None:
    """Append the report to the summary page of a GitHub job, where there is one, as far as it has room."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    from nosync_lint.report.markdown import within

    try:
        with open(path, "ab") as out:
            out.write(within(report, MAX_JOB_SUMMARY - out.tell()).encode())
    except OSError as error:
        raise Refused(f"GITHUB_STEP_SUMMARY {path}: cannot be written: {error.strerror or error}") from error


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
