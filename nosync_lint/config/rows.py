"""Where the keys of a TOML file stand. The decoder does not tell, and an error must."""

from __future__ import annotations

import re
from collections.abc import Iterator

_HEADER = re.compile(r"\s*(\[\[?)([^\[\]#]+)\]")
_PART = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*""")


class Rows:
    """The rows of the keys below a table: `row("hot")`, `row("rules", "NAME")`, the n-th `row("census", number=n)`."""

    def __init__(self, text: str, prefix: tuple[str, ...] = ()) -> None:
        self._rows: dict[tuple[str, ...], list[int]] = {}
        for row, path in _keys(text):
            if path[: len(prefix)] == prefix:
                inner = path[len(prefix) :]
                for length in range(1, len(inner) + 1):
                    self._rows.setdefault(inner[:length], []).append(row)
        self._tables = {path: rows for path, rows in _arrays(text) if path[: len(prefix)] == prefix}
        self._prefix = prefix

    def row(self, *path: str, number: int = 0) -> int:
        """The first row that speaks of a key, or the header of the n-th table of an array; 1 where none is found."""
        headers = self._tables.get((*self._prefix, *path), [])
        if number < len(headers):
            return headers[number]
        while path:
            if path in self._rows:
                return self._rows[path][0]
            path = path[:-1]
        return 1


def _arrays(text: str) -> Iterator[tuple[tuple[str, ...], list[int]]]:
    found: dict[tuple[str, ...], list[int]] = {}
    for row, line in _lines(text):
        header = _HEADER.match(line)
        if header and header[1] == "[[":
            found.setdefault(_path(header[2]), []).append(row)
    yield from found.items()


def _keys(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Every header and every `key =` with its full path."""
    table: tuple[str, ...] = ()
    for row, line in _lines(text):
        header = _HEADER.match(line)
        if header:
            table = _path(header[2])
            yield row, table
            continue
        path, rest = _parts(line)
        if path and rest.startswith("="):
            yield row, (*table, *path)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines at which a key may stand: not those inside a string or an array of several lines."""
    open_string, depth = "", 0
    for row, line in enumerate(text.splitlines(), 1):
        if not open_string and not depth:
            yield row, line
        is_header = not open_string and not depth and _HEADER.match(line) is not None
        open_string, depth = _after(line, open_string, 0 if is_header else depth)
        if is_header:
            depth = 0


def _after(line: str, open_string: str, depth: int) -> tuple[str, int]:
    """The string of several lines and the number of brackets that are open at the end of a line."""
    at = 0
    while at < len(line):
        if open_string:
            end = line.find(open_string, at)
            if end < 0:
                return open_string, depth
            at, open_string = end + 3, ""
        elif line[at] == "#":
            break
        elif line.startswith(('"""', "'''"), at):
            open_string = line[at : at + 3]
            at += 3
        elif line[at] in "\"'":
            string = _PART.match(line, at)
            at = string.end() if string else len(line)
        else:
            depth += (line[at] in "[{") - (line[at] in "]}")
            at += 1
    return open_string, depth


def _path(text: str) -> tuple[str, ...]:
    return _parts(text)[0]


def _parts(text: str) -> tuple[tuple[str, ...], str]:
    """A dotted key at the start of a text, in parts, and what follows it."""
    parts: list[str] = []
    at = 0
    while found := _PART.match(text, at):
        parts.append(next(part for part in found.groups() if part is not None))
        at = found.end()
        if not text.startswith(".", at):
            break
        at += 1
    return tuple(parts), text[at:]
