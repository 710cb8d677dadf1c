"""`completion`: a script that makes a shell complete the command line."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator

from nosync_lint.commands import Refused

SHELLS = ("bash", "zsh", "fish", "tcsh")


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], parser: argparse.ArgumentParser) -> None:
    """`parser` is the whole command line, which the script is about."""
    completion = commands.add_parser(
        "completion",
        help="print a completion script for a shell",
        description='Print a completion script for a shell. In bash: eval "$(nosync-lint completion bash)"',
    )
    completion.set_defaults(run=run, parser=parser)
    completion.add_argument("shell", choices=SHELLS)


def run(options: argparse.Namespace) -> int:
    try:
        import shtab
    except ModuleNotFoundError as error:
        raise Refused(
            "completion needs shtab, which is not installed: `pip install 'nosync-lint[completion]'`"
        ) from error
    rules = shtab.cmd(f"echo {shlex.join(_rule_names())}")
    completed = {"PATH": shtab.FILE, "CODE": rules, "RULES": rules}
    for action in _arguments(options.parser):
        if action.metavar in completed:
            action.complete = shtab.DIRECTORY if action.dest == "cache_dir" else completed[action.metavar]  # type: ignore[attr-defined]
    print(shtab.complete(options.parser, options.shell))
    return 0


def _rule_names() -> list[str]:
    """Every code and slug, as they are now: a shell must not start the linter for each key."""
    from nosync_lint.registry import RulesMissing, rules

    try:
        return [word for rule in rules() for word in (rule.code, rule.slug())]
    except RulesMissing as error:
        raise Refused(str(error)) from error


def _arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Every argument of a command line and of its commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _arguments(inner)
        else:
            yield action
