"""`config`: the configuration keys, what they mean, and their defaults; or the JSON Schema of the configuration."""

from __future__ import annotations

import argparse
import json

from nosync_lint.config import KEYS, TABLE, default_toml


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    config = commands.add_parser("config", help="list the configuration keys with their defaults")
    config.set_defaults(run=run)
    config.add_argument("key", nargs="?", choices=KEYS, metavar="KEY", help="only this key, and what it means")
    config.add_argument(
        "--output-format", choices=("text", "json", "schema"), default="text", help="schema: as JSON Schema"
    )


def run(options: argparse.Namespace) -> int:
    from nosync_lint.schema import described, schema

    if options.output_format == "schema":
        print(json.dumps(schema(), indent=2))
    elif options.output_format == "json":
        rows = [described(TABLE[key]) for key in ([options.key] if options.key else KEYS)]
        print(json.dumps(rows[0] if options.key else rows, indent=2))
    elif options.key:
        key = TABLE[options.key]
        print(f"{key.name} = {default_toml(key.name)}\n\n{key.about}")
        if key.form.choices:
            print(f"One of: {', '.join(key.form.choices)}")
        if key.example:
            print(f"Example: {key.name} = {key.example}")
    else:
        for name in KEYS:
            print(f"{name} = {default_toml(name)}")
    return 0
