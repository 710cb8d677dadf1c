"""What is read: files, places in them, and the text of a file."""

from __future__ import annotations

import codecs
import errno
import io
import stat
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

PYTHON_SUFFIXES = frozenset({".py"})
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
    `reported` is false for files that are linked but lie outside the given paths.
    """

    path: Path
    name: str
    reported: bool = True

    @property
    def is_python(self) -> bool:
        """Everything that is not C++ or CUDA by its name: scripts need no suffix."""
        return self.path.suffix.lower() not in CUDA_SUFFIXES


class UnreadableFile(Exception):
    """The file cannot be used; `reason` says why and what cures it, `row` where it is known."""

    def __init__(self, reason: str, row: int = 1) -> None:
        super().__init__(reason)
        self.reason = reason
        self.row = row


def read_source(path: Path, max_size: int) -> bytes:
    """The bytes of a file of at most `max_size` bytes. Raises `UnreadableFile` for everything that stops us."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise UnreadableFile("cannot be read: it is no regular file; name files and folders of source code")
        size = found.st_size
        if size > max_size:
            raise UnreadableFile(
                f"is {size:,} bytes, more than `max-file-size` ({max_size:,}); raise the option or exclude the file"
            )
        data = path.read_bytes()
    except OSError as error:
        gone = error.errno == errno.ENOENT
        cure = "it went away during the run: run again" if gone else "fix its permissions or exclude it"
        raise UnreadableFile(f"cannot be read: {error.strerror or error}; {cure}") from error
    if b"\0" in data:
        row = data[: data.index(b"\0")].count(b"\n") + 1
        raise UnreadableFile("contains a NUL byte; it is binary or damaged: repair or exclude it", row)
    return data


def decode_python(data: bytes) -> str:
    """Python source text by its declared encoding (PEP 263), line ends kept. Raises `UnreadableFile`."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        raise UnreadableFile(
            f"has an unusable encoding: {error.msg}; correct the coding line or save as UTF-8"
        ) from error
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
    return _decode(data, "utf-8-sig" if data.startswith(codecs.BOM_UTF8) else "utf-8")


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


def decode(data: bytes, is_python: bool) -> str:
    """Source text by the rules of its language. Raises `UnreadableFile`."""
    return decode_python(data) if is_python else decode_cuda(data)
