"""Where a comment can be put into a file: at the end of rows on which no string and no continuation goes on."""

from __future__ import annotations

import io
import tokenize

_STARTS, _ENDS = ("FSTRING_START", "TSTRING_START"), ("FSTRING_END", "TSTRING_END")


def closed_rows(text: str, is_python: bool) -> frozenset[int]:
    """The rows that take no comment at their end; those of a Python text that has been parsed already."""
    rows = {row for row, line in enumerate(io.StringIO(text, newline=None), 1) if line.rstrip("\n").endswith("\\")}
    if not is_python:
        return frozenset(rows)
    open_strings: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
        form = tokenize.tok_name[token.type]
        if form == "STRING":
            rows.update(range(token.start[0], token.end[0]))
        elif form in _STARTS:
            open_strings.append(token.start[0])
        elif form in _ENDS:
            rows.update(range(open_strings.pop(), token.end[0]))
    return frozenset(rows)
