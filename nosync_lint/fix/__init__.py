"""Fixes: from what a rule says of a site to text on disk. `rewrite` makes edits, `apply` makes text of them, `loop`
makes fixes until nothing changes, `repair` has them written, `write` puts content into a file."""

from __future__ import annotations

from enum import Enum


class Fixing(Enum):
    """What is done with fixes: nothing, see what they change, or write them."""

    NOTHING = "nothing"
    LOOK = "look"
    WRITE = "write"
