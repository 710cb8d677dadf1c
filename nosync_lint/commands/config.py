"""`config`: the configuration keys with their defaults."""

from __future__ import annotations

import argparse
import json

from nosync_lint.config import KEYS, Settings


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    config = commands.add_parser("config", help="list the configuration keys with their defaults")
    config.set_defaults(run=run)
    config.add_argument("key", nargs="?", choices=KEYS, metavar="KEY")


def run(options: argparse.Namespace) -> int:
    for key in [options.key] if options.key else KEYS:
        value = getattr(Settings(), key.replace("-", "_"))
        print(f"{key} = {json.dumps(list(value) if isinstance(value, tuple) else value)}")
    return 0
