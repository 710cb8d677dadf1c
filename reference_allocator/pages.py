"""Pages that calls are about, and lists of pages: the same for both profiles.

Ids are int64 and on the device of the tables. Nothing here blocks the host.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor


class Pages:
    """Pages, given as the tokens (int64 `[n]`) of a stretch that starts with a page, or as themselves.

    `tokens` is not copied, and is divided when somebody asks for the pages. With a page size of 1 it lists the pages.
    """

    __slots__ = ("_tensor", "count", "page_size", "tokens")

    def __init__(self, tokens: Tensor, page_size: int = 1) -> None:
        self.tokens = tokens
        self.page_size = page_size
        self.count = -(-tokens.numel() // page_size)
        self._tensor = tokens if page_size == 1 else None

    @property
    def tensor(self) -> Tensor:
        """The pages, int64 `[count]`; with a page size of 1 the tokens themselves. One launch the first time or none.

        Never blocks.
        """
        if self._tensor is None:
            self._tensor = torch.div(self.tokens[:: self.page_size], self.page_size, rounding_mode="floor")
        return self._tensor


class ListState(NamedTuple):
    """A list as it was: `length` entries of `storage` (int64) from `at`, going on at its start behind its end."""

    storage: Tensor
    at: int
    length: int


class PageList(ABC):
    """A list of pages of which the host knows the length. Pages leave at the head and come in at the end."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many there are. Host only."""

    @property
    @abstractmethod
    def values(self) -> Tensor:
        """All of them, int64 `[count]`: a value that stays as it is. Never blocks."""

    @abstractmethod
    def head(self, count: int) -> Pages:
        """The first `count`, which stay in the list. Good for calls before the next append. No launch."""

    @abstractmethod
    def take(self, count: int) -> Pages:
        """The first `count`, which leave the list. As `head`."""

    @abstractmethod
    def append(self, pages: Tensor) -> None:
        """Adds pages (int64 `[k]`) at the end. At most 2 launches; never blocks."""

    @abstractmethod
    def sort(self, *, descending: bool) -> None:
        """Puts the list in order. Earlier backups keep theirs. At most 2 launches; never blocks."""

    @abstractmethod
    def reset(self, pages: Tensor) -> None:
        """Takes exactly these pages (int64 `[k]`, never written by anybody). At most one launch; never blocks."""

    @abstractmethod
    def backup(self) -> ListState:
        """The present list in O(1). It can be restored until something is appended. Host only."""

    @abstractmethod
    def restore(self, state: ListState) -> None:
        """Takes the list back as it was, where pages have only been taken, and sorted, since. Host only."""

    @abstractmethod
    def taken_since(self, state: ListState) -> Pages:
        """The pages that have left since a backup: the head of its list. No launch."""


class ListValue(PageList):
    """A list that is replaced and never written: what was handed out, or backed up, stays as it is."""

    def __init__(self, pages: Tensor) -> None:
        self._values = pages

    @property
    def count(self) -> int:
        """See `PageList`."""
        return self._values.numel()

    @property
    def values(self) -> Tensor:
        """See `PageList`: the list itself, no copy."""
        return self._values

    def head(self, count: int) -> Pages:
        """See `PageList`: a view, good for ever."""
        return Pages(self._values[:count])

    def take(self, count: int) -> Pages:
        """See `PageList`: a view, good for ever."""
        taken, self._values = Pages(self._values[:count]), self._values[count:]
        return taken

    def append(self, pages: Tensor) -> None:
        """See `PageList`: one launch."""
        self._values = torch.cat((self._values, pages))

    def sort(self, *, descending: bool) -> None:
        """See `PageList`: one launch."""
        self._values = torch.sort(self._values, descending=descending).values

    def reset(self, pages: Tensor) -> None:
        """See `PageList`: no launch."""
        self._values = pages

    def backup(self) -> ListState:
        """See `PageList`."""
        return ListState(self._values, 0, self.count)

    def restore(self, state: ListState) -> None:
        """See `PageList`."""
        self._values = state.storage

    def taken_since(self, state: ListState) -> Pages:
        """See `PageList`."""
        return Pages(state.storage[: state.length - self.count])
