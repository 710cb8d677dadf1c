"""Knowledge about libraries, as data: one TOML file per kind of fact, and the reader."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def load(name: str) -> dict[str, Any]:
    """One bundled model file, without its suffix."""
    return tomllib.loads((files(__package__) / f"{name}.toml").read_text(encoding="utf-8"))
