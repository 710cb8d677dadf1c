"""`graph`: the calls from hot roots to syncs."""

from __future__ import annotations

import argparse

from nosync_lint.commands.options import add_choice, add_files, add_running, ask, count, refuse_early, settings_of
from nosync_lint.commands.output import deliver


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    graph = commands.add_parser(
        "graph", help="show the calls from hot roots to syncs", description="Show the calls from hot roots to syncs."
    )
    graph.set_defaults(run=run, heat=None)
    graph.add_argument("paths", nargs="*", metavar="PATH", help="files and folders whose syncs are shown (default: .)")
    choose = add_choice(graph)
    choose.add_argument("--root", action="append", metavar="NAME", help="only below this hot root: its name or its end")
    choose.add_argument("--depth", type=count, metavar="N", help="at most this many calls below a root")
    add_files(graph)
    output = graph.add_argument_group("output")
    output.add_argument(
        "--output-format", choices=("text", "dot", "mermaid", "svg"), default="text", help="default: text"
    )
    output.add_argument("-o", "--output-file", metavar="PATH", help="write the graph there")
    add_running(graph)


def run(options: argparse.Namespace) -> int:
    from nosync_lint.pipeline import call_tree
    from nosync_lint.report.tree import write_tree

    settings = settings_of(options)
    refuse_early(options, settings)
    roots = tuple(options.root or ())
    tree = ask(options, lambda given: call_tree(options.paths or ["."], settings, roots, **given))
    deliver(options.output_file, lambda out: write_tree(tree, out, options.output_format, options.depth))
    return 0
