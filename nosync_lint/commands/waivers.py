"""`waivers`: the ledger of what a project has accepted."""

from __future__ import annotations

import argparse
from dataclasses import replace

from nosync_lint.commands.options import add_choice, add_files, add_running, ask, refuse_early, settings_of
from nosync_lint.commands.output import deliver
from nosync_lint.report.ledger import FORMATS, write_ledger


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "list every finding that a comment, a block or the baseline accepts"
    waivers = commands.add_parser("waivers", help=text, description=f"{text[0].upper()}{text[1:]}.")
    waivers.set_defaults(run=run, heat="any")
    waivers.add_argument("paths", nargs="*", metavar="PATH", help="files and folders to report on (default: .)")
    add_choice(waivers)
    add_files(waivers)
    output = waivers.add_argument_group("output")
    output.add_argument("--output-format", choices=FORMATS, default="text", help="default: text")
    output.add_argument("-o", "--output-file", metavar="PATH", help="write the list there")
    add_running(waivers)


def run(options: argparse.Namespace) -> int:
    from nosync_lint.pipeline import run as lint

    settings = settings_of(options)
    refuse_early(options, settings)
    if not options.min_confidence:
        settings = replace(settings, min_confidence="possible")
    report = ask(options, lambda given: lint(options.paths or ["."], settings, **given))
    deliver(options.output_file, lambda out: write_ledger(report, out, options.output_format))
    return 2 if report.failures else 0
