"""What is read: files, places in them, and the text of a file."""

from __future__ import annotations

import codecs
import errno
import io
import re
import stat
import tokenize
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

PYTHON_SUFFIXES = frozenset({".py"})
NOTEBOOK_SUFFIXES = frozenset({".ipynb"})
_CODING = re.compile(rb"[ \t\f]*#.*?coding[:=]")
CUDA_SUFFIXES = frozenset({".cu", ".cuh", ".cpp", ".cc", ".cxx", ".h", ".hpp", ".hh", ".hip", ".inl"})


class Span(NamedTuple):
    """A place in a file: 1-based rows and columns, columns in code points, the end exclusive."""

    row: int
    column: int
    end_row: int
    end_column: int


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of the linked project.

    `name` is how the user sees it: relative to the working directory where possible, with `/`.
    `reported` is false for files that are linked but lie outside the given paths. `content` is what stands for the file
    on disk where something does: standard input, or the open buffer of an editor.
    """

    path: Path
    name: str
    reported: bool = True
    content: bytes | None = field(default=None, repr=False)

    @property
    def is_notebook(self) -> bool:
        return self.path.suffix.lower() in NOTEBOOK_SUFFIXES

    @property
    def is_python(self) -> bool:
        return is_python(self.path)


def is_python(path: Path) -> bool:
    """Whether a file is not C++ or CUDA by its name: scripts need no suffix."""
    return path.suffix.lower() not in CUDA_SUFFIXES


class UnreadableFile(Exception):
    """The file cannot be used; `reason` says why and what cures it, `row` where it is known."""

    def __init__(self, reason: str, row: int = 1) -> None:
        super().__init__(reason)
        self.reason = reason
        self.row = row


def read_source(path: Path, max_size: int, content: bytes | None = None) -> bytes:
    """The bytes of a file of at most `max_size` bytes: its `content`, else what is on disk. Raises `UnreadableFile` for
    everything that stops us."""
    data = _on_disk(path, max_size) if content is None else content
    _check_size(len(data), max_size)
    if b"\0" in data:
        row = data[: data.index(b"\0")].count(b"\n") + 1
        raise UnreadableFile("contains a NUL byte; it is binary or damaged: repair or exclude it", row)
    return data


def _on_disk(path: Path, max_size: int) -> bytes:
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise UnreadableFile("cannot be read: it is no regular file; name files and folders of source code")
        _check_size(found.st_size, max_size)  # before it is in memory
        return path.read_bytes()
    except OSError as error:
        gone = error.errno == errno.ENOENT
        cure = "it went away during the run: run again" if gone else "fix its permissions or exclude it"
        raise UnreadableFile(f"cannot be read: {error.strerror or error}; {cure}") from error


def _check_size(size: int, max_size: int) -> None:
    if size > max_size:
        raise UnreadableFile(
            f"is {size:,} bytes, more than `max-file-size` ({max_size:,}); raise the option or exclude the file"
        )


def encoding_of(data: bytes, is_python: bool) -> str:
    """The encoding of a source file: as Python declares it (PEP 263), else UTF-8. Raises `UnreadableFile`."""
    if not is_python:
        return "utf-8-sig" if data.startswith(codecs.BOM_UTF8) else "utf-8"
    try:
        return tokenize.detect_encoding(io.BytesIO(data).readline)[0]
    except SyntaxError as error:
        declared = next((row for row, line in enumerate(data.split(b"\n")[:2], 1) if _CODING.match(line)), None)
        if declared is None:
            _decode(data, "utf-8")  # which tells the row
        raise UnreadableFile(
            f"has an unusable encoding: {error.msg}; correct the coding line or save as UTF-8", declared or 1
        ) from error


def decode_python(data: bytes) -> str:
    """Python source text by its declared encoding, line ends kept. Raises `UnreadableFile`."""
    encoding = encoding_of(data, is_python=True)
    text = _decode(data, encoding)
    if not encoding.startswith(("utf-8", "iso-8859", "ascii")) and any("\ud800" <= c <= "\udfff" for c in text):
        raise UnreadableFile(f"holds half a character in the encoding {encoding}; save it as UTF-8")
    return text


def encode_python(text: str, like: bytes) -> bytes:
    """Text in the encoding that the bytes of its file have, with their byte order mark."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(like).readline)
    return text.encode(encoding)


def decode_cuda(data: bytes) -> str:
    """C++ and CUDA source text, which has no coding line and is taken as UTF-8. Raises `UnreadableFile`."""
    return _decode(data, encoding_of(data, is_python=False))


def _decode(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        row = data[: error.start].count(b"\n") + 1
        raise UnreadableFile(
            f"is not valid {encoding}: byte 0x{data[error.start]:02x}; save it as UTF-8 or declare its encoding", row
        ) from error
    except (LookupError, UnicodeError) as error:  # codecs that are no text encodings, or refuse to decode
        raise UnreadableFile(f"declares the encoding {encoding}, which cannot be used; save it as UTF-8") from error


def lines_of(text: str) -> list[str]:
    """The lines of a text as parsers and editors count them, without their ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def encode(text: str, is_python: bool) -> bytes:
    """The bytes that `decode` reads as a text. Where its declared encoding cannot hold it, those in UTF-8: their reader
    tells what is wrong."""
    data = text.encode("utf-8", "surrogatepass")
    try:
        encoding = encoding_of(data, is_python)
        return data if encoding.startswith("utf-8") else text.encode(encoding)
    except (UnreadableFile, LookupError, UnicodeError):
        return data


def decode(data: bytes, is_python: bool) -> str:
    """Source text by the rules of its language. Raises `UnreadableFile`."""
    return decode_python(data) if is_python else decode_cuda(data)
