"""Frees that wait for the end of their group."""

from __future__ import annotations

from torch import Tensor

from reference_allocator.errors import BindingError
from reference_allocator.host_checks import host_values


class FreeGroup:
    """Buffers of one open group, by the kind of release: tokens without a position, and pages.

    Everything that is kept has storage of its own, so rows may be overwritten as soon as a free has returned.
    """

    def __init__(self, page_size: int) -> None:
        self._page_size = page_size
        self.tokens: dict[str, list[Tensor]] = {}
        self.pages: dict[str, list[Tensor]] = {}
        self._seen: set[tuple[str, int]] = set()

    def hold_tokens(self, release: str, tokens: Tensor) -> None:
        """Keeps a copy of tokens whose positions nobody knows. One launch; never blocks."""
        self.tokens.setdefault(release, []).append(tokens.clone())

    def hold_pages(self, release: str, pages: Tensor) -> None:
        """Keeps pages (int64 `[k]`) for one kind of release. One launch where a page is one token, or none."""
        # With a page size of 1 these may be the caller's tokens, and the caller may overwrite them.
        self.pages.setdefault(release, []).append(pages.clone() if self._page_size == 1 else pages)

    def expect_new(self, pool: str, operation: str, sides: tuple[str, ...], pages: Tensor) -> None:
        """Raises `BindingError` if `note` was told of one of `pages`, in CPU memory, for one of `sides` already."""
        twice = sorted(page for _, page in self._asked(sides, pages) & self._seen)
        if twice:
            raise BindingError(pool, operation, "pages that this group frees already", pages=twice[:8])

    def note(self, sides: tuple[str, ...], pages: Tensor) -> None:
        """Remembers that `pages`, in CPU memory, are freed on `sides`."""
        self._seen |= self._asked(sides, pages)

    def _asked(self, sides: tuple[str, ...], pages: Tensor) -> set[tuple[str, int]]:
        return {(side, page) for page in host_values(pages) for side in sides}

    def freed(self, side: str) -> set[int]:
        """Pages that `note` was told of, for one side. Host only."""
        return {page for told, page in self._seen if told == side}
