"""Knowledge about libraries, as data: one TOML file per kind of fact, and the reader."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable
from fnmatch import translate
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def load(name: str) -> dict[str, Any]:
    """One bundled model file, without its suffix."""
    return tomllib.loads((files(__package__) / f"{name}.toml").read_text(encoding="utf-8"))


def any_of(patterns: Iterable[str]) -> Callable[[str], object]:
    """A test whether a name matches one of these patterns, where `*` stands for anything: one search for all."""
    listed = tuple(patterns)
    return cache(re.compile("|".join(translate(one) for one in listed) if listed else r"(?!)").match)
