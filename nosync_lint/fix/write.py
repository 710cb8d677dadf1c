"""Puts new content into a source file, which is at every moment the old one or the new one."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path


class NotWritten(Exception):
    """A file that was left as it was; the text says why and what cures it."""


def replace_content(path: Path, old: bytes, new: bytes) -> None:
    """Put new content in the place of the one that was judged, with the same mode and owner. Raises `NotWritten`.

    The content is written beside the file, and takes its name when it is complete. A link stays a link; another name
    of the same file keeps the old content.
    """
    path = path.resolve()
    beside = path.parent / f".{path.name}.{secrets.token_hex(6)}.nosync-lint"
    try:
        found = path.stat()
        if not found.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(path, os.W_OK):
            raise NotWritten("is read-only; make it writable and run again")
        try:
            _write(beside, new, found)
            if path.read_bytes() != old:
                raise NotWritten("has changed since it was read; run again")
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise NotWritten(f"cannot be written: {error.strerror or error}; it is unchanged") from error


def _write(path: Path, data: bytes, like: os.stat_result) -> None:
    """A new file with the mode and the owner of another one, complete on the disk."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        made = os.fstat(file.fileno())
        if (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
            os.fchown(file.fileno(), like.st_uid, like.st_gid)
        os.chmod(path, stat.S_IMODE(like.st_mode))
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
