"""What has changed since a revision, by git. Nothing is written, and nothing is fetched."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from nosync_lint.config import ConfigError


class RevisionError(ConfigError):
    """The changes since a revision cannot be told; the message says why and what cures it."""


def changed_since(revision: str, folder: Path) -> frozenset[str]:
    """The files that differ from where this work left a revision, as real paths: changed, added, deleted, untracked.

    What others have changed on a branch since then does not count. Raises `RevisionError`.
    """
    told = f"--since {revision}"
    done = _git(folder, "rev-parse", "--show-toplevel")
    if done.returncode:
        raise RevisionError(f"{told}: {folder} is in no git work tree, so nothing is known of its revisions")
    top = Path(os.fsdecode(done.stdout.rstrip(b"\n")))
    shallow = _git(top, "rev-parse", "--is-shallow-repository").stdout.strip() == b"true"
    deeper = (
        "; this clone is shallow: fetch the history (`git fetch --unshallow`, or fetch-depth: 0)" if shallow else ""
    )
    named = _git(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if named.returncode:
        raise RevisionError(f"{told}: git knows no such revision{deeper}")
    base = _git(top, "merge-base", named.stdout.decode().strip(), "HEAD")
    if base.returncode:
        raise RevisionError(f"{told}: has no commit in common with HEAD{deeper}")
    changed = _names(top, "diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", base.stdout.decode().strip())
    untracked = _names(top, "ls-files", "--others", "--exclude-standard", "-z")
    return frozenset(os.path.realpath(top / name) for name in (*changed, *untracked))


def _names(top: Path, *command: str) -> list[str]:
    done = _git(top, *command)
    if done.returncode:
        raise RevisionError(f"git {command[0]} failed in {top}: {done.stderr.decode(errors='replace').strip()}")
    return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]


def _git(folder: Path, *command: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", "-C", str(folder), *command], capture_output=True, check=False)
    except OSError as error:
        raise RevisionError(f"--since needs git, which cannot be run: {error.strerror}") from error
