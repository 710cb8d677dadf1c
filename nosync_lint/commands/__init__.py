"""The commands, one module each: `add` declares its arguments, `run` carries it out and gives the exit code."""

from __future__ import annotations


class Refused(Exception):
    """A command that cannot be carried out; the text says why and what cures it."""
