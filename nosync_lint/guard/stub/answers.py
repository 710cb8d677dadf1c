"""Writes the functions of the stub libraries in C, as `libraries.toml` says what they answer."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from nosync_lint.guard.stub.errors import StubError

PREAMBLE = """\
#include <stddef.h>
#include <stdint.h>
typedef uintptr_t Any; /* numbers and pointers are passed alike */
extern void record(const char *name);
static uint64_t handle[512];
static int part(int release, Any which) {
    int parts[] = {release / 10000, release / 100 % 100, release % 100};
    return which < 3 ? parts[which] : 0;
}
"""
_TYPES = {"int": "int", "size": "size_t", "handle": "void *", "string": "const char *"}


class Answers:
    """The rows of the file. `releases` are the numbers that rows may name."""

    def __init__(self, releases: Mapping[str, int]) -> None:
        rows = tomllib.loads(Path(__file__).with_name("libraries.toml").read_text(encoding="utf-8"))
        self._releases = releases
        self._libraries: list[str] = rows["libraries"]
        self._prefixes: dict[str, str] = rows["prefixes"]
        self._rows: list[dict[str, Any]] = rows["answer"]

    def stands_in_for(self, soname: str) -> bool:
        """Whether a library gets a stub."""
        return any(fnmatchcase(soname, pattern) for pattern in self._libraries)

    def library(self, symbol: str) -> str | None:
        """The stem of the library that a symbol without a version belongs to."""
        return next((stem for prefix, stem in self._prefixes.items() if symbol.startswith(prefix)), None)

    def function(self, name: str, recorded: bool = False) -> str:
        """A function in C. `recorded`: without a row it tells the recorder of its calls."""
        row = next((row for row in self._rows if any(fnmatchcase(name, one) for one in row["functions"])), None)
        if row is None:
            return f"long {name}(void) {{{' record(__func__);' * recorded} return 0; }}\n"
        writes = {
            int(position): f"*({written} *)a{position} = {self._value(kind, value)};"
            for kind, written in _TYPES.items()
            for position, value in row.get(kind, {}).items()
        }
        if "part" in row:
            writes[2] = f"*(int *)a2 = part({self._number(row['part'])}, a1);"
        parameters = ", ".join(f"Any a{number}" for number in range(1, max(writes, default=0) + 1)) or "void"
        guarded = "".join(f" if (a{position}) {write}" for position, write in writes.items())
        if "text" in row:
            return f"const char *{name}({parameters}) {{{guarded} return {json.dumps(row['text'])}; }}\n"
        return f"long {name}({parameters}) {{{guarded} return {self._number(row.get('returns', 0))}; }}\n"

    def _value(self, kind: str, value: int | str) -> str:
        if kind == "handle":
            return "handle"
        return json.dumps(value) if kind == "string" else str(self._number(value))

    def _number(self, value: int | str) -> int:
        if isinstance(value, int):
            return value
        if value not in self._releases:
            raise StubError(
                f"the release of {value} that torch was built for is not known: its distribution does not say so; "
                "install a wheel of torch that requires its libraries by version"
            )
        return self._releases[value]
