"""`server`: diagnostics, fixes and explanations for editors, by the Language Server Protocol."""

from __future__ import annotations

import argparse
import gc
import importlib.util

from nosync_lint.commands import Refused


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    server = commands.add_parser(
        "server",
        help="serve an editor",
        description="Serve an editor by the Language Server Protocol, on standard input and output.",
    )
    server.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if importlib.util.find_spec("pygls") is None:
        raise Refused("the server needs pygls, which is not installed: `pip install 'nosync-lint[lsp]'`")
    from nosync_lint.server.serve import serve

    gc.enable()  # other commands end before it matters
    return serve()
