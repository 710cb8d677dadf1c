"""Attributes of torch that are replaced while a guard is open, and put back."""

from __future__ import annotations

from typing import Any

_ABSENT = object()


class Patches:
    """Replaced attributes, put back in reverse. `undo` leaves every owner's own attributes as they were."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Replaces or adds an attribute of a module or class."""
        self._replaced.append((owner, name, vars(owner).get(name, _ABSENT)))
        setattr(owner, name, value)

    def undo(self) -> None:
        """Puts everything back."""
        while self._replaced:
            owner, name, value = self._replaced.pop()
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
