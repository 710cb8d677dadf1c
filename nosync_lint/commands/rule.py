"""`rule`: what a rule is about."""

from __future__ import annotations

import argparse
import json
import re
import sys

from nosync_lint.commands import Refused
from nosync_lint.commands.output import use_color
from nosync_lint.rule import Status


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    rule = commands.add_parser("rule", help="explain a rule")
    rule.set_defaults(run=run)
    rule.add_argument("name", nargs="?", metavar="CODE", help="a code or slug")
    rule.add_argument("--all", action="store_true", help="every rule")
    rule.add_argument("--output-format", choices=("text", "json"), default="text")
    rule.add_argument("--color", choices=("auto", "always", "never"), default="auto")


def run(options: argparse.Namespace) -> int:
    from nosync_lint.registry import RulesMissing, documentation, find, find_retired, no_rule, page, rules, summary

    try:
        if not options.all and not options.name:
            raise Refused("name a rule, or give --all")
        chosen = list(rules()) if options.all else [rule for rule in [find(options.name)] if rule is not None]
    except RulesMissing as error:
        raise Refused(str(error)) from error
    former = find_retired(options.name or "")
    if not chosen and former is not None:
        raise Refused(f"`{options.name}` was removed in {former.since}: {former.why}")
    if not chosen:
        raise Refused(no_rule(options.name))
    if options.output_format == "json":
        rows = [
            {
                "code": rule.code, "name": rule.slug(), "summary": summary(rule), "severity": rule.severity.value,
                "since": rule.since, "status": rule.status.value, "default": rule.default, "heated": rule.heated,
                "options": [
                    {"name": one.name, "default": one.default, "description": one.about} for one in rule.options
                ],
                "explanation": documentation(rule), "url": page(rule) or None,
            }
            for rule in chosen
        ]  # fmt: skip
        print(json.dumps(rows if options.all else rows[0], indent=2))
    elif options.all:
        for rule in chosen:
            print(f"{rule.code}  {rule.slug():32} {rule.severity.value:8} {summary(rule)}")
    else:
        (rule,) = chosen
        status = "" if rule.status is Status.STABLE else f"{rule.status.value}, "
        title = f"{rule.code} {rule.slug()} ({rule.severity.value}, {status}since {rule.since})"
        told = [f"Option `{one.name}` ({one.default!r}): {one.about}" for one in rule.options]
        text = "\n\n".join([documentation(rule), *told])
        if use_color(options.color, sys.stdout):
            _render(title, text)
        else:
            print(f"{title}\n\n{text}")
    return 0


def _render(title: str, text: str) -> None:
    """A rule for a terminal: its headings stand out, its code has a colour, and its paragraphs fill the width."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(force_terminal=True, color_system="standard", no_color=False, highlight=False)
    console.print(Text(title, "bold"))
    for part in re.split(r"\n\s*\n", text):
        heading, _, body = part.partition("\n") if re.match(r"\S.*\n\s", part) else ("", "", part)
        console.print()
        if heading:
            console.print(Text(heading, "bold underline"))
        lines = Text(" ".join(line.strip() for line in body.splitlines()))
        lines.highlight_regex(r"`[^`]+`", "cyan")
        console.print(Padding(lines, (0, 0, 0, 4 if part.startswith(" ") or heading else 0)))
