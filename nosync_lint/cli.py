"""The command line. Exit codes: 0 clean, 1 findings, 2 usage, configuration, I/O or internal failure."""

from __future__ import annotations

import argparse
import gc
import os
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from nosync_lint import __version__
from nosync_lint.commands import Refused, check, clean, completion, config, graph, init, rule, server, waivers
from nosync_lint.config import ConfigError, nearest


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


class _Parser(argparse.ArgumentParser):
    """Asks, of a word that is none of those that could stand there, whether the nearest of these is meant."""

    def error(self, message: str) -> NoReturn:
        found = re.search(r"invalid choice: '(.*)' \(choose from (.*)\)$", message, re.S)
        if found is not None:
            known = [word.strip(" '") for word in found[2].split(",")]
            message = f"invalid choice: {found[1]!r}{nearest(found[1], known)} (choose from {', '.join(known)})"
            message = f"{found.string[: found.start()]}{message}"
        super().error(message)


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = _Parser(
        prog="nosync-lint", description="Finds hidden host-device synchronisations in PyTorch code."
    )
    parser.add_argument("--version", action="version", version=f"nosync-lint {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in (check, graph, waivers, rule, config, init, clean, server):
        command.add(commands)
    completion.add(commands, parser)
    version = commands.add_parser("version", help="print the version")
    version.set_defaults(run=_version)
    return parser


def _version(options: argparse.Namespace) -> int:
    print(f"nosync-lint {__version__}")
    return 0
