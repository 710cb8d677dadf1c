"""What makes a finding the same one after an edit: its rule, file and function, and the flagged expression.

Rows are no part of it, and neither is how the expression is laid out: white space, line breaks, comments, quotes,
trailing commas and brackets that only group. It is read by patterns and not by Python's own tokens, which differ
between releases.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from nosync_lint.source import Span

LONGEST = 160
"""A longer expression is cut, with a digest of the rest."""

_TOKEN = re.compile(
    r"""(?P<space>\s+|\\\r?\n)
    | (?P<comment>\#[^\n]*|//[^\n]*|/\*.*?\*/)
    | (?P<string>(?:\b[rbuftRBUFT]{1,2})?(?:'{3}.*?'{3}|"{3}.*?"{3}|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))
    | (?P<word>\d[\w.]*(?:(?<=[eE])[+-]\d+)?|\w+)
    | (?P<mark>.)""",
    re.S | re.X,
)
_NO_SCOPES = frozenset({"<locals>", "<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
"""Parts of qualified names that Python adds, some of them in some releases."""
_OPEN, _CLOSE = "([{", ")]}"


class Identity(NamedTuple):
    """What a finding is known by. Several that are equal are told apart by their number."""

    file: str
    scope: str
    code: str
    snippet: str

    def fingerprint(self, number: int = 1) -> str:
        """A short name for the n-th finding, from 1, of this identity in the order of the file."""
        text = "\0".join([*self, str(number)])
        return blake2b(text.encode(errors="surrogateescape"), digest_size=8).hexdigest()


def scope_of(qualname: str) -> str:
    """The scope that a running function has by its qualified name, as the linter names it."""
    return ".".join(part for part in qualname.split(".") if part not in _NO_SCOPES)


def snippet(lines: Sequence[str], span: Span, is_python: bool, otherwise: str = "") -> str:
    """The flagged expression in its plain form; the row where it has no extent, else what is given."""
    if not 1 <= span.row <= span.end_row <= len(lines):
        return _cut(" ".join(otherwise.split()))
    rows = list(lines[span.row - 1 : span.end_row])
    if (span.row, span.column) < (span.end_row, span.end_column):
        rows[-1] = rows[-1][: span.end_column - 1]
        rows[0] = rows[0][span.column - 1 :]
    text = "\n".join(rows)
    return _cut(normalised(text, is_python) or " ".join(text.split()) or " ".join(otherwise.split()))


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    rest = blake2b(text.encode(errors="surrogateescape"), digest_size=4).hexdigest()
    return f"{text[: LONGEST - 11]}...{rest}"


@lru_cache(4096)
def normalised(text: str, is_python: bool) -> str:
    """An expression in its plain form, one space between words and behind commas."""
    written = ""
    previous = "mark"
    for kind, token in _ungrouped(_tokens(text, is_python)):
        apart = kind != "mark" and previous != "mark"
        written += f" {token}" if apart or written.endswith(",") else token
        previous = kind
    return written


def _tokens(text: str, is_python: bool) -> list[tuple[str, str]]:
    """The words, strings and marks of a text. Strings that follow each other are one."""
    found: list[tuple[str, str]] = []
    position = 0
    while match := _TOKEN.match(text, position):
        position = match.end()
        kind, token = match.lastgroup or "", match.group()
        if kind == "comment" and token.startswith("#") != is_python:
            kind, token, position = "mark", token[0], match.start() + 1  # a division in Python, a directive in C++
        if kind in ("space", "comment"):
            continue
        if kind == "string":
            prefix, body = _string(token)
            before = found.pop()[1][:-1] if found and found[-1][0] == "string" else f'{prefix}"'
            token = f'{before}{body}"'
        elif token[0].isdigit():
            token = token.lower()
        found.append((kind, token))
    return found


def _string(token: str) -> tuple[str, str]:
    """The prefix and the body of a string as double quotes would hold it. Blanks around the braces of an f-string are
    layout, and so are the quotes in it."""
    quote = re.search("[\"']", token)
    assert quote is not None
    prefix = token[: quote.start()].lower().replace("u", "")
    body = token[quote.start() :]
    width = 3 if body[:3] in ("'''", '"""') and len(body) >= 6 else 1
    body = body[width:-width]
    if "r" not in prefix:
        body = body.replace("\\'", "'").replace('\\"', '"')
    if "f" in prefix or "t" in prefix:
        body = re.sub(r"\s*([{}])\s*", r"\1", body).replace('"', "'")
    return "".join(sorted(prefix)), body


def _ungrouped(tokens: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The tokens without brackets that only group and without commas before a closing bracket."""
    kept: list[tuple[str, str]] = []
    opened: list[tuple[bool, int]] = []
    before = ("mark", "")
    for kind, token in tokens:
        if kind == "mark" and token in _OPEN:
            groups = token == "(" and not _can_be_called(*before)
            if not groups:
                kept.append((kind, token))
            opened.append((groups, len(kept)))
        elif kind == "mark" and token in _CLOSE:
            groups, start = opened.pop() if opened else (False, 0)
            if len(kept) > start and kept[-1] == ("mark", ","):
                kept.pop()
            if not groups:
                kept.append((kind, token))
            elif len(kept) == start:
                kept.append(("mark", "()"))
        else:
            kept.append((kind, token))
        before = (kind, token)
    return kept


def _can_be_called(kind: str, token: str) -> bool:
    return (kind == "word" and not keyword.iskeyword(token)) or token in (")", "]")
