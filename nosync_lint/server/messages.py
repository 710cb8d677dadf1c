"""What the server and its workers say to each other: pickled records, each behind its length."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from nosync_lint.answers import Explanation
from nosync_lint.finding import Finding

_LENGTH = struct.Struct("!Q")
HEAD = _LENGTH.size


@dataclass(frozen=True, slots=True)
class Check:
    """Lint these documents, given as what stands for the files on disk. `cached`: the project has an index cache."""

    documents: Mapping[Path, bytes]
    cached: bool


@dataclass(frozen=True, slots=True)
class Explain:
    """Explain a row of a document of the check before."""

    path: Path
    row: int


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found. Files have absolute paths. `fixable` are the findings that `--fix` would fix, as the project
    is configured. `places` are, for each document that has findings and can be read, the rows at whose end a comment
    about a row may stand. `failures` and `notes` are those of the report. `files` are the documents that this is about;
    where it is not `complete`, another answer tells of the rest."""

    files: frozenset[str]
    complete: bool
    findings: tuple[Finding, ...]
    fixable: frozenset[Finding]
    places: Mapping[str, Mapping[int, int]]
    failures: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why there is no answer, and what cures it."""

    reason: str


Request = Check | Explain
Answer = Checked | Explanation | Trouble


def pack(message: Request | Answer) -> bytes:
    """A message as bytes."""
    payload = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(payload)) + payload


def length(head: bytes) -> int:
    """How many bytes follow the head of a message."""
    (size,) = _LENGTH.unpack(head)
    return int(size)


def unpack(payload: bytes) -> Any:
    """The message in the bytes that follow its head. Both ends of the pipe are ours."""
    return pickle.loads(payload)


def receive(pipe: BinaryIO) -> Any | None:
    """The next message, or None at the end of the pipe."""
    head = pipe.read(HEAD)
    return unpack(pipe.read(length(head))) if len(head) == HEAD else None
