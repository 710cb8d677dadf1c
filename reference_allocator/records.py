"""What pools hand around and remember."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from reference_allocator.pages import ListState, Pages
from reference_allocator.streams import StreamEvent


class Ids(NamedTuple):
    """The virtual pages that a pool can bind, from `first` up to `stop`. The `owner` mints and recycles them."""

    first: int
    stop: int
    owner: bool


class Span(NamedTuple):
    """Physical pages from `lo` up to `hi`."""

    lo: int
    hi: int

    def widened(self, grown: tuple[range, ...]) -> Span:
        """This region and ranges that touch it, or the range alone where there is no region yet. Host only."""
        whole = [pages for pages in (range(self.lo, self.hi), *grown) if pages]
        return Span(min(pages.start for pages in whole), max(pages.stop for pages in whole)) if whole else self


class Taken(NamedTuple):
    """Physical pages about to be bound: those drained from the holes, then the ranges by which the region grew."""

    drained: Pages | None
    grown: tuple[range, ...]

    @property
    def size(self) -> int:
        """How many there are. Host only."""
        return sum(map(len, self.grown)) + (0 if self.drained is None else self.drained.count)


NOTHING_TAKEN = Taken(None, ())


class Pending(NamedTuple):
    """`pages` pages from `low`, vacated by a compaction that may still be reading them, and the holes it went by.

    The holes are kept so that their memory is not given to somebody else while the other queue reads them.
    """

    low: int
    pages: int
    done: StreamEvent
    holes: ListState


class Reservation(NamedTuple):
    """Physical pages (int64 `[k]`) whose contents come from elsewhere before they are bound. `number` tells which.

    Until then they are neither live nor holes, and nothing in the pool moves: the transfer knows their places.
    """

    number: int
    pages: Tensor


class Moment(NamedTuple):
    """A backup that can be restored: its number, the pool's epoch, and its counts of moves, frees and transfers."""

    number: int
    epoch: int
    counts: tuple[int, int, int]


class BandState(NamedTuple):
    """What `backup` remembers."""

    number: int
    lo: int
    hi: int
    holes: ListState
    live: int
    moves: int
    frees: int
    transfers: int
