"""Comments addressed to this tool. Only files whose bytes hold the words are tokenised."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from datetime import date
from typing import NamedTuple

from nosync_lint.index.records import Pragma

_OURS = re.compile(
    r"(?:#|//)\s*nosync-lint(?=\s*:|\s+(?:ignore|off|on|hot|cold|skip-file)\s*(?:\[|$))(?P<rest>.*)", re.I
)
_FORM = re.compile(r"\s*:\s*(?P<form>[a-z-]+)(?:\[(?P<names>[^\]\[]*)\])?(?![\w\[])[:\s]*(?P<text>.*)", re.I)
_NOQA = re.compile(
    r"(?:#|//)\s*noqa:\s*(?P<names>[A-Z]{1,4}\d{2,4}(?:[,\s]+[A-Z]{1,4}\d{2,4})*)(?![A-Z\d])[\s:-]*(?P<text>.*)", re.I
)
_BLANKET = re.compile(r"(?:#|//)\s*noqa(?!\s*:|\w)[\s-]*(?P<text>.*)", re.I)
_WAIVER = r"(?:#|//)\s*(?:{words})\s*:\s*(?P<text>\S.*)"
_COMMENT = {
    "#": re.compile(r"(?:^|\s)#+(?!\d)|#(?=\s*(?:nosync-lint|noqa)\b)", re.I),
    "//": re.compile(r"(?:^|\s)/{2,}|//(?=\s*(?:nosync-lint|noqa)\b)", re.I),
}
"""Where comments begin in a comment. `#12` is the number of an issue, `https://` an address."""
_KEYS = re.compile(r"(?P<key>until|owner)=(?P<value>\S*)\s*", re.I)
_OTHER_KEY = re.compile(r"(?P<key>[a-z][\w-]*)=(?:\d{4}-\d|@)", re.I)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_CODE = re.compile(r"nsl\d")
_DEFINITIONS = frozenset({"def", "class", "async"})
FOREIGN = ("gpu-sync-ok", "sync-ok", "allow-sync")
"""Words by which comments of other projects say that a wait is meant: `# gpu-sync-ok: reason`."""
FORMS = frozenset({"ignore", "hot", "cold", "off", "on", "skip-file"})
COVERING = frozenset({"ignore", "noqa", "waiver", "off", "skip-file"})
"""The forms that cover findings."""


_STARTS = {getattr(tokenize, name, -1) for name in ("FSTRING_START", "TSTRING_START")}
_ENDS = {getattr(tokenize, name, -1) for name in ("FSTRING_END", "TSTRING_END")}
"""Tokens that Python 3.12 and later make of strings with expressions in them."""


class Unusable(Exception):
    """A comment is addressed to us and cannot be used; the text says why."""


def has_pragmas(text: str, words: Sequence[str] = FOREIGN) -> bool:
    """Whether a file is worth looking at comment by comment."""
    lowered = text.lower()  # plain searches for words: a pattern without regard to case takes ten times as long
    if "nosync-lint" in lowered or any(word.lower() in lowered for word in words):
        return True
    return "nsl" in lowered and _CODE.search(lowered) is not None


def read_pragmas(
    comment: str, row: int, alone: bool, column: int = 1, words: Sequence[str] = FOREIGN
) -> Iterator[Pragma]:
    """The pragmas in one comment, which begins in a column. Several comments may follow each other in it."""
    mark = "#" if comment.startswith("#") else "//"
    starts = [match.end() - len(mark) for match in _COMMENT[mark].finditer(comment)]
    for start, end in zip(starts, [*starts[1:], len(comment)], strict=True):
        part = comment[start:end].rstrip()
        read = _read(part, words)
        if read is not None:
            form, names, text = read
            until, owner, reason = "", "", text.strip()
            if form in COVERING:
                try:
                    until, owner, reason = _keys(text)
                except Unusable as error:
                    form, reason = "unknown", str(error)
            columns = (column + start, column + start + len(part))
            yield Pragma(
                row, form, names, reason, alone, until, owner, columns, (0, 0) if form == "off" else (row, row)
            )


def _read(part: str, words: Sequence[str]) -> tuple[str, tuple[str, ...], str] | None:
    """The form, the names and the rest of one comment, or None where it is not for us."""
    ours = _OURS.match(part)
    if ours:
        known = _FORM.fullmatch(ours["rest"])
        if known is None or known["form"].lower() not in FORMS:
            unclosed = "[" in ours["rest"] and "]" not in ours["rest"]
            why = "its list of rules is not closed by `]`" if unclosed else "it has no known form: "
            return "unknown", (), why + ("" if unclosed else ", ".join(sorted(FORMS)))
        return known["form"].lower(), named(known["names"] or ""), known["text"]
    noqa = _NOQA.match(part)
    if noqa:
        codes = tuple(name for name in named(noqa["names"].upper()) if name.startswith("NSL"))
        return ("noqa", codes, noqa["text"]) if codes else None
    foreign = words and re.match(_WAIVER.format(words="|".join(map(re.escape, words))), part, re.I)
    return ("waiver", (), foreign["text"]) if foreign else None


def named(text: str) -> tuple[str, ...]:
    """The names in a list of rules."""
    return tuple(part for part in re.split(r"[,\s]+", text) if part)


def _keys(text: str) -> tuple[str, str, str]:
    """The last day, the owner and the reason in what follows the rules. Raises `Unusable`."""
    found = {"until": "", "owner": ""}
    while match := _KEYS.match(text):
        key, value = match["key"].lower(), match["value"]
        if found[key]:
            raise Unusable(f"it gives `{key}` twice")
        if not value:
            raise Unusable(f"`{key}=` has no value")
        if key == "until" and not _is_day(value):
            raise Unusable(f"`{value}` is no day: write until=YYYY-MM-DD")
        found[key], text = value, text[match.end() :]
    other = _OTHER_KEY.match(text)
    if other:
        raise Unusable(f"`{other['key']}` is no key: known are until=YYYY-MM-DD and owner=NAME")
    return found["until"], found["owner"], text.strip()


def _is_day(text: str) -> bool:
    try:
        return _DATE.fullmatch(text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


def without(text: str, names: Sequence[str]) -> str:
    """The text of one pragma without some of its rules; empty where none is left in it."""
    gone = {name.lower() for name in names}
    ours = _OURS.match(text)
    match = re.search(r"\[(?P<names>[^\]\[]*)\]", text) if ours else _NOQA.match(text)
    if match is None:
        return ""
    kept = [name for name in named(match["names"]) if name.lower() not in gone]
    return text[: match.start("names")] + ", ".join(kept) + text[match.end("names") :] if kept else ""


def python_pragmas(text: str, words: Sequence[str] = FOREIGN) -> tuple[Pragma, ...]:
    """The pragmas of a Python file that has been parsed already."""
    if not has_pragmas(text, words):
        return ()
    return tuple(
        pragma._replace(rows=_reach(pragma, comment))
        for comment in python_comments(text)
        for pragma in read_pragmas(comment.text, comment.row, comment.alone, comment.column, words)
    )


def blanket_pragmas(text: str) -> tuple[Pragma, ...]:
    """Every `# noqa` without codes in a Python file that has been parsed already, as one that names no rule."""
    if "noqa" not in text.lower():
        return ()
    found = ((comment, _BLANKET.search(comment.text)) for comment in python_comments(text))
    return tuple(
        Pragma(comment.row, "noqa", (), match["text"].strip(), comment.alone, rows=comment.rows)
        for comment, match in found
        if match is not None
    )


def _reach(pragma: Pragma, comment: Comment) -> tuple[int, int]:
    """The rows that a pragma covers by where it stands. `off` behind the header of a block covers the block, and
    elsewhere what follows."""
    if pragma.form != "off":
        return comment.rows
    return (comment.rows[0], comment.end) if comment.end else (0, 0)


class Comment(NamedTuple):
    """A comment of a Python file. `rows` are the first and last one of the logical line that it stands in, `end` is
    the last row of the block that this line opens, or 0."""

    row: int
    column: int
    text: str
    alone: bool
    rows: tuple[int, int]
    end: int = 0


def python_comments(text: str) -> list[Comment]:
    """The comments of a Python file that has been parsed already, in order."""
    reader = _Comments()
    for token in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
        reader.take(token)
    return reader.found


class _Comments:
    """Follows the tokens of a file: which logical line is open, and which blocks. Comments are kept by number."""

    def __init__(self) -> None:
        self.found: list[Comment] = []
        self._first = 0  # row where the open logical line begins, 0 where none is open
        self._line: list[int] = []  # its comments; once it is read, those of what may be a header
        self._blocks: list[list[int]] = []  # the comments of the header of each open block
        self._ended = 0  # row where the last token ended

    def take(self, token: tokenize.TokenInfo) -> None:
        kind, (row, column) = token.type, token.start
        if kind == tokenize.COMMENT:
            if self._first:
                self._line.append(len(self.found))
            self.found.append(Comment(row, column + 1, token.string, self._ended < row, (row, row)))
        elif kind == tokenize.NEWLINE:
            for number in self._line:
                self.found[number] = self.found[number]._replace(rows=(self._first, row))
            self._first = 0
        elif kind == tokenize.INDENT:
            self._blocks.append(self._line)
            self._line = []
        elif kind == tokenize.DEDENT:
            for number in self._blocks.pop():
                self.found[number] = self.found[number]._replace(end=self._ended)
        elif kind not in (tokenize.NL, tokenize.ENDMARKER):
            if not self._first:
                self._first, self._line = row, []
            self._ended = token.end[0]


def comment_places(text: str) -> dict[int, int]:
    """Where a comment about each row of code may stand, in a Python file that has been parsed already: at the end of
    that row, or of the next one of the same statement whose end lies in no string and behind no backslash."""
    found: dict[int, int] = {}
    waiting = depth = 0
    for token in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
        if token.type in _STARTS:
            depth += 1
        elif token.type in _ENDS:
            depth -= 1
        row = token.start[0]
        if token.type in (tokenize.NEWLINE, tokenize.NL):
            if waiting and not depth:
                found.update(dict.fromkeys(range(waiting, row + 1), row))
                waiting = 0 if token.type == tokenize.NEWLINE else row + 1
        elif token.type not in (tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
            waiting = waiting or row
    return found
