"""How files are called, and which of them a glob of the configuration means: with `/` on every system."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import TypeVar

WINDOWS = os.name == "nt"
AnyPath = TypeVar("AnyPath", bound=PurePath)


def display(path: PurePath, here: PurePath) -> str:
    """A path as the user sees it: relative to a folder, with `/`; on another drive in full."""
    if path.anchor.lower() != here.anchor.lower():
        return path.as_posix()
    folders = (here, *here.parents)
    up = next(number for number, folder in enumerate(folders) if path.is_relative_to(folder))
    return "/".join([*[".."] * up, *path.relative_to(folders[up]).parts]) or "."


def common_folder(paths: Sequence[AnyPath]) -> AnyPath | None:
    """The nearest folder that is, or is above, each of these paths; None where they are on different drives."""
    first, *others = paths
    folders = (first, *first.parents)
    return next((one for one in folders if all(path.is_relative_to(one) for path in others)), None)


def matches(name: str, glob: str, windows: bool = WINDOWS) -> bool:
    """Whether a glob means a file, by its name with `/`: the whole name, one of its parts, or a folder that it is in.

    `*` stands for anything, folders included; `**/` may stand for no folder at all. On Windows case does not count,
    and `\\\\` is `/`.
    """
    if windows:
        name, glob = name.replace("\\", "/").lower(), glob.replace("\\", "/").lower()
    glob = glob.removeprefix("./").rstrip("/")
    parts = name.split("/")
    leading = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    wanted = {glob, glob.removeprefix("**/"), glob.replace("/**/", "/")}
    return any(fnmatchcase(one, form) for form in wanted for one in (*leading, *parts))
