"""What makes a finding the same one after an edit: its rule, file and function, and the flagged expression.

Rows are no part of it, and neither is how the expression is laid out: white space, line breaks, comments, quotes,
and in Python trailing commas and brackets without which it is the same. It is read by patterns and not by Python's own
tokens, which differ between releases; the parser only says which brackets change nothing.
"""

from __future__ import annotations

import ast
import keyword
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
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
MOST_BRACKETS = 40
"""Where more of them, or of commas before them, may be left out, none are: each is asked of the parser."""
_FORMS = ("({})", "{}", "{} pass")
"""A text as an expression, a statement, or the head of one."""

Token = tuple[str, str]
"""A word, string or mark: its kind and its text."""


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
    tokens = _tokens(text, is_python)
    return _written(_ungrouped(tokens) if is_python else tokens)


def _written(tokens: Sequence[Token]) -> str:
    written = ""
    previous = "mark"
    for kind, token in tokens:
        apart = kind != "mark" and previous != "mark"
        written += f" {token}" if apart or written.endswith(",") else token
        previous = kind
    return written


def _tokens(text: str, is_python: bool) -> list[Token]:
    """The words, strings and marks of a text. Strings that follow each other are one."""
    found: list[Token] = []
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


def _ungrouped(tokens: Sequence[Token]) -> list[Token]:
    """The tokens without the brackets, and the commas before closing ones, that change nothing."""
    candidates = list(_droppable(tokens))
    kept = dict(enumerate(tokens))
    if not 0 < len(candidates) <= MOST_BRACKETS:
        return list(tokens)
    form = next((form for form in _FORMS if _meaning(kept.values(), form)), "")
    meaning = _meaning(kept.values(), form) if form else ""
    for places in candidates if form else ():
        without = {place: token for place, token in kept.items() if place not in places}
        if _meaning(without.values(), form) == meaning:
            kept = without
    return list(kept.values())


def _droppable(tokens: Sequence[Token]) -> Iterator[tuple[int, ...]]:
    """The places of commas before a closing bracket, and of pairs of brackets that call nothing."""
    opened: list[tuple[int, bool]] = []
    pairs: list[tuple[int, ...]] = []
    before = ("mark", "")
    for place, (kind, token) in enumerate(tokens):
        if kind == "mark" and token in _OPEN:
            opened.append((place, token == "(" and not _can_be_called(*before)))
        elif kind == "mark" and token in _CLOSE:
            if before == ("mark", ","):
                yield (place - 1,)
            start, groups = opened.pop() if opened else (place, False)
            if groups:
                pairs.append((start, place))
        before = (kind, token)
    yield from pairs


def _meaning(tokens: Iterable[Token], form: str) -> str:
    """What Python's parser makes of tokens in a form; empty where it makes nothing of them. What strings hold plays no
    part: it is not what brackets are about."""
    text = _written([(kind, '""' if kind == "string" else token) for kind, token in tokens])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.dump(ast.parse(form.format(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""


def _can_be_called(kind: str, token: str) -> bool:
    return (kind == "word" and not keyword.iskeyword(token)) or token in (")", "]")
