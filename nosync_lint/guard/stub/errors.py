"""What keeps the stub runtime from being built, loaded or read."""

from __future__ import annotations


class StubError(RuntimeError):
    """The message names the cure."""
