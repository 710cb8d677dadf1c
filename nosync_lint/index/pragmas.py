"""Comments addressed to this tool. Only files whose bytes hold the words are tokenised."""

from __future__ import annotations

import io
import re
import tokenize

from nosync_lint.index.records import Pragma

_OURS = re.compile(r"(?:#|//)\s*nosync-lint(?P<rest>\s*:.*|\s+(?:ignore|off|on|hot|cold|skip-file)\s*(?:\[.*)?$)", re.I)
_FORM = re.compile(r"\s*:\s*(?P<form>[a-z-]+)(?:\[(?P<names>[^\]\[]*)\])?(?![\w\[])[:\s]*(?P<reason>.*)", re.I)
_NOQA = re.compile(
    r"(?:#|//)\s*noqa(?P<colon>:\s*(?P<names>[A-Z]{1,4}\d{2,4}(?:[,\s]+[A-Z]{1,4}\d{2,4})*))?(?P<reason>.*)", re.I
)
_OTHER = re.compile(r"\s*(?:#|//)")  # another tool's comment behind ours is no reason
_FOREIGN = re.compile(r"(?:#|//)\s*(?:gpu-sync-ok|sync-ok|allow-sync)\s*:\s*(?P<reason>\S.*)", re.I)
"""Comments by which other projects say that a wait is meant: `# gpu-sync-ok: reason`."""
_WORDS = ("nosync-lint", "sync-ok", "allow-sync")
_CODE = re.compile(r"nsl\d")
FORMS = frozenset({"ignore", "hot", "cold", "off", "on", "skip-file"})


def has_pragmas(text: str) -> bool:
    """Whether a file is worth looking at comment by comment."""
    lowered = text.lower()  # plain searches for words: a pattern without regard to case takes ten times as long
    return any(word in lowered for word in _WORDS) or ("nsl" in lowered and _CODE.search(lowered) is not None)


def read_pragma(comment: str, row: int, alone: bool) -> Pragma | None:
    """The pragma in one comment, or None. An unknown word gives the form "unknown", which is reported."""
    ours = _OURS.search(comment)
    if ours:
        known = _FORM.fullmatch(ours["rest"])
        if known is None or known["form"].lower() not in FORMS:
            unclosed = "[" in ours["rest"] and "]" not in ours["rest"]
            why = (
                "its list of rules is not closed by `]`"
                if unclosed
                else "it has no known form: " + ", ".join(sorted(FORMS))
            )
            return Pragma(row, "unknown", (), why, alone)
        names = tuple(part.strip() for part in (known["names"] or "").split(",") if part.strip())
        return Pragma(row, known["form"].lower(), names, _OTHER.split(known["reason"], 1)[0].strip(), alone)
    foreign = _FOREIGN.search(comment)
    if foreign:
        return Pragma(row, "waiver", (), foreign["reason"].strip(), alone)
    noqa = _NOQA.search(comment)
    if noqa and noqa["names"]:
        codes = tuple(part for part in re.split(r"[,\s]+", noqa["names"].upper()) if part.startswith("NSL"))
        if codes:
            return Pragma(row, "noqa", codes, noqa["reason"].strip(" -:"), alone)
    return None


def python_pragmas(text: str) -> tuple[Pragma, ...]:
    """The pragmas of a Python file that has been parsed already."""
    if not has_pragmas(text):
        return ()
    found = []
    for token in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            pragma = read_pragma(token.string, row, not token.line[:column].strip())
            if pragma:
                found.append(pragma)
    return tuple(found)
