"""What shared libraries need and what objects define, as `readelf` of binutils tells it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nosync_lint.guard.stub.errors import StubError

_NEEDED = re.compile(r"\(NEEDED\)\s+Shared library: \[(.+)\]$")
_FILE = re.compile(r"  File: (\S+)  Cnt: ")
_VERSION = re.compile(r"  Name: (\S+)  Flags: ")
_SYMBOL = re.compile(r"\s*\d+: \w+\s+\w+ \w+\s+(?:GLOBAL|WEAK)\s+\w+\s+(UND|\d+) ([^\s@]+)(?:@+(\S+))?")


@dataclass
class Needs:
    """What some libraries ask of others: the libraries by soname, symbols with their versions, and who has these."""

    sonames: set[str] = field(default_factory=set)
    symbols: dict[str, str | None] = field(default_factory=dict)
    version_owners: dict[str, str] = field(default_factory=dict)

    def add(self, library: Path) -> None:
        """What one more library needs. Raises `StubError` where `readelf` is missing or cannot read it."""
        owner = ""
        for line in _readelf("--dynamic", "--version-info", "--dyn-syms", library=library):
            if found := _NEEDED.search(line):
                self.sonames.add(found[1])
            elif found := _FILE.search(line):
                owner = found[1]
            elif found := _VERSION.search(line):
                self.version_owners[found[1]] = owner
            elif (found := _SYMBOL.match(line)) and found[1] == "UND":
                self.symbols[found[2]] = found[3] or self.symbols.get(found[2])


def defined(library: Path) -> set[str]:
    """The symbols that an object file or a library defines for others."""
    found = (_SYMBOL.match(line) for line in _readelf("--syms", library=library))
    return {one[2] for one in found if one and one[1] != "UND"}


def _readelf(*options: str, library: Path) -> Iterator[str]:
    command = ["readelf", "--wide", *options, str(library)]
    try:
        english = {**os.environ, "LC_ALL": "C"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=english)
    except FileNotFoundError as error:
        raise StubError("readelf is missing: install binutils (apt install binutils)") from error
    if done.returncode != 0:
        raise StubError(f"readelf cannot read {library}, which should be a library of torch: {done.stderr.strip()}")
    yield from done.stdout.splitlines()
