"""`check --show-settings` and `check --show-files`: what a run would do, without one."""

from __future__ import annotations

import argparse

from nosync_lint.commands import Refused
from nosync_lint.config import Settings, settings_toml


def add_shown(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--show-settings", action="store_true", help="print the settings and where they come from, and exit with 0"
    )
    group.add_argument("--show-files", action="store_true", help="print the files that are reported, and exit with 0")


def show(options: argparse.Namespace, settings: Settings) -> bool:
    """Print what is asked for; false where nothing is."""
    from nosync_lint.discover import MissingPath
    from nosync_lint.pipeline import found_files

    if options.show_settings:
        print(f"# configuration file: {settings.path or 'none'}")
        print(settings_toml(settings), end="")
    if options.show_files:
        try:
            found = found_files(options.paths or ["."], settings)
        except MissingPath as error:
            raise Refused(str(error)) from error
        for file in found.files:
            if file.reported:
                print(file.name)
    return bool(options.show_settings or options.show_files)
