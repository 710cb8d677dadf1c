"""`clean`: remove the index cache."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

from nosync_lint.config import Settings, find_config, load_config


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    clean = commands.add_parser("clean", help="remove the index cache")
    clean.set_defaults(run=run)
    clean.add_argument("--cache-dir", metavar="PATH")
    clean.add_argument(
        "path", nargs="?", default=".", metavar="PATH", help="the project whose cache it is (default: .)"
    )


def run(options: argparse.Namespace) -> int:
    from nosync_lint.index.cache import clean
    from nosync_lint.pipeline import cache_folder

    path = find_config(Path(options.path).resolve())
    settings = load_config(path) if path else Settings()
    given = options.cache_dir or os.environ.get("NOSYNC_LINT_CACHE_DIR")
    folder = cache_folder(replace(settings, cache_dir=os.path.abspath(given)) if given else settings)
    print(f"removed the cache in {folder}" if clean(folder) else f"{folder}: no cache there")
    return 0
