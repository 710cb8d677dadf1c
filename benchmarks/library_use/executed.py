"""A plugin of pytest that records which lines of one package ran, from the first test to the last."""

from __future__ import annotations

import json
from pathlib import Path

import coverage
import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """The package, and where its lines are written to."""
    parser.addoption("--executed-in", type=Path, metavar="FOLDER")
    parser.addoption("--executed-json", type=Path, metavar="FILE")


def pytest_configure(config: pytest.Config) -> None:
    """Begins with the collection: a package is imported there or later."""
    config.pluginmanager.register(Executed(config.getoption("--executed-in"), config.getoption("--executed-json")))


class Executed:
    """The record of one run: rows by file, relative to where packages are installed."""

    def __init__(self, folder: Path, path: Path) -> None:
        self._folder, self._path = folder, path
        self._coverage = coverage.Coverage(data_file=None, include=[f"{folder}/*"], config_file=False)
        self._coverage.start()

    def pytest_unconfigure(self) -> None:
        """Writes what ran."""
        self._coverage.stop()
        data = self._coverage.get_data()
        rows = {
            Path(name).relative_to(self._folder.parent).as_posix(): sorted(data.lines(name) or ())
            for name in data.measured_files()
            if name.endswith(".py")  # templates are compiled under the names of their own files
        }
        self._path.write_text(json.dumps(rows), encoding="utf-8")
