"""The page tables of one pool, as pools use them, and the profile in portable torch.

Two profiles leave the same tables, the same order of lists and the same ids, call by call. Ids are int64 and on the
device of the tables. Every method queues its work on the current stream, and none blocks the host.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from reference_allocator import tables
from reference_allocator.error_word import ErrorWord, Fault
from reference_allocator.pages import ListValue, PageList, Pages
from reference_allocator.records import Taken
from reference_allocator.tables import Request

Profile = Literal["portable", "fused"]
"""`portable` runs wherever torch does; `fused` takes fewer launches, and a compiler when it is first used."""

SCRATCH_BYTES = 1 << 20
"""Memory that moves go through, or one page where a page is larger: a bound, whatever the number of pages moved."""


class PoolFacts(NamedTuple):
    """What tables know of their pool.

    envelopes: all pages as rows, int64 `[pages, page_bytes / 8]`. page_size: tokens of a page.
    error: where misuse is reported, or None in a pool that is not checked. free_fault: a free of an unbound page.
    zeroes: whether pages are filled with zeros when they are bound.
    """

    envelopes: Tensor
    page_size: int
    error: ErrorWord | None
    free_fault: Fault
    zeroes: bool


class PageTables(ABC):
    """The tables of one pool: `v2p` and `p2v`, a row per page and a last row that stays -1.

    `physical` lists the pool's pages and one more, int64. Queues one fill; never blocks the host.
    """

    v2p: Tensor
    p2v: Tensor

    def __init__(self, facts: PoolFacts) -> None:
        self.facts = facts
        self.physical = torch.arange(facts.envelopes.shape[0] + 1, device=facts.envelopes.device)

    def attach(self, v2p: Tensor, p2v: Tensor) -> None:
        """Goes by these rows from now on. Host only."""
        self.v2p, self.p2v = v2p, p2v

    @abstractmethod
    def page_list(self, capacity: int) -> PageList:
        """An empty list for at most so many pages. Host only."""

    @abstractmethod
    def unbind(self, pages: Pages, holes: PageList, ids: PageList | None) -> None:
        """Tombstones bound pages on both sides; where they were goes to `holes`, they themselves go to `ids`.

        In a checked pool a page that is not bound reports, and goes as 0 to both.
        """

    @abstractmethod
    def forget(self, pages: Pages) -> None:
        """Tombstones bound pages on both sides, and that is all."""

    @abstractmethod
    def bind(self, pages: Pages, taken: Taken) -> None:
        """Binds pages to as many taken ones, and zeroes those if the pool does. A checked pool reports the sink."""

    @abstractmethod
    def bind_to(self, pages: Pages, physical: Tensor) -> None:
        """Binds pages to these physical ones (int64 `[k]`), whose contents stay."""

    @abstractmethod
    def hand_out(self, request: Request, ids: Pages, taken: Taken) -> Tensor:
        """The tokens of a request that mints `ids`, which are bound as by `bind`: int64, in storage of their own."""

    @abstractmethod
    def report_bound(self, pages: Pages) -> None:
        """In a checked pool, reports pages that are bound."""

    @abstractmethod
    def rebind(self, kept: Pages, incoming: Pages) -> None:
        """Gives the physical pages of `incoming` to `kept`, lane by lane, and tombstones `incoming`.

        In a checked pool lanes whose `incoming` is not bound, or whose `kept` is, report and change nothing.
        """

    @abstractmethod
    def translate(self, tokens: Tensor, out: Tensor | None) -> Tensor:
        """Physical token ids: see `tables.translate`."""

    @abstractmethod
    def copy(self, source: Tensor, target: Tensor) -> None:
        """Copies what physical pages hold to others: both int64 `[k]`, one id behind another, no page in both."""

    @abstractmethod
    def zero(self, physical: Tensor) -> None:
        """Fills physical pages (int64 `[k]`, one id behind another) with zeros."""

    @abstractmethod
    def pack(self, holes: PageList, low: int, count: int, *, most: int, descending: bool) -> None:
        """Moves what lives in the `count` pages from `low`, at most `most`, to the first of `holes`, and drops `count`.

        The list is in order, the best target first: the highest where it is `descending`, and then targets lie above.
        """

    @abstractmethod
    def shift(self, source: int, target: int, count: int) -> None:
        """Moves `count` live pages from `source` to `target`; the ranges are disjoint."""


class TorchTables(PageTables):
    """In portable torch, with lists that are replaced and never written."""

    def __init__(self, facts: PoolFacts) -> None:
        super().__init__(facts)
        pages, words = facts.envelopes.shape
        self._offsets = torch.arange(facts.page_size, device=facts.envelopes.device)
        self.scratch = facts.envelopes.new_empty((min(max(1, SCRATCH_BYTES // (8 * words)), pages), words))

    def page_list(self, capacity: int) -> PageList:
        """See `PageTables`."""
        return ListValue(self.physical[:0])

    def unbind(self, pages: Pages, holes: PageList, ids: PageList | None) -> None:
        """See `PageTables`: 5 launches for an owner (10 checked), 4 (9 checked) for another pool."""
        freed = self._known(pages)
        held = tables.unbind(self.v2p, self.p2v, freed)
        if self.facts.error is not None:
            self.facts.error.expect_positive(self.facts.free_fault, held)
            freed = freed * (held > 0)
            held = held.clamp_min(0)
        holes.append(held)
        if ids is not None:
            ids.append(freed)

    def _known(self, pages: Pages) -> Tensor:
        """The pages; in a checked pool ids outside the table stand for its last row, which is bound to nothing.

        An index out of bounds would end the CUDA context before the error word could be read.
        """
        if self.facts.error is None:
            return pages.tensor
        return pages.tensor.clamp(tables.TOMBSTONE, self.v2p.numel() - 1)

    def forget(self, pages: Pages) -> None:
        """See `PageTables`: 3 launches."""
        tables.unbind(self.v2p, self.p2v, pages.tensor)

    def bind(self, pages: Pages, taken: Taken) -> None:
        """See `PageTables`: 2 or 3 launches, one more checked, and one more where pages are zeroed."""
        error, envelopes, zeroes = self.facts.error, self.facts.envelopes, self.facts.zeroes
        if error is not None:
            error.expect_positive(Fault.SINK_HANDED_OUT, pages.tensor)
        if taken.drained is None and len(taken.grown) == 1:
            grown = taken.grown[0]
            tables.bind_range(self.v2p, self.p2v, pages.tensor, self.physical, grown.start)
            if zeroes:
                envelopes[grown.start : grown.stop].zero_()
            return
        physical = physical_pages(taken, self.physical)
        tables.bind_pairs(self.v2p, self.p2v, pages.tensor, physical)
        if zeroes:
            self.zero(physical)

    def bind_to(self, pages: Pages, physical: Tensor) -> None:
        """See `PageTables`: 2 launches."""
        tables.bind_pairs(self.v2p, self.p2v, pages.tensor, physical)

    def hand_out(self, request: Request, ids: Pages, taken: Taken) -> Tensor:
        """See `PageTables`: 1 launch for `WholePages`, about 30 for `Growth`, about 10 for a `Step`; then as `bind`."""
        tokens = request.tokens(ids.tensor, self._offsets)
        if ids.count:
            self.bind(ids, taken)
        return tokens

    def report_bound(self, pages: Pages) -> None:
        """See `PageTables`: 4 launches if checked or none."""
        if self.facts.error is not None:
            self.facts.error.expect_positive(Fault.SWA_STILL_BOUND, 1 - self.v2p[self._known(pages)])

    def rebind(self, kept: Pages, incoming: Pages) -> None:
        """See `PageTables`: 4 launches (29 checked)."""
        error = self.facts.error
        if error is None:
            tables.rebind(self.v2p, self.p2v, kept.tensor, incoming.tensor, self.v2p[incoming.tensor])
            return
        to, source = kept.tensor, self._known(incoming)
        # The sink, and what is no page at all, is given nothing.
        to = to * ((to > 0) & (to < self.v2p.numel() - 1))
        held, before = self.v2p[source], self.v2p[to]
        error.expect_positive(Fault.UNKNOWN_ID, to)
        error.expect_positive(Fault.SWA_NOT_BOUND, held)
        error.expect_positive(Fault.KEPT_STILL_BOUND, 1 - before)
        ok = (to > 0) & (held > 0) & (before <= 0)
        tables.rebind_where(ok, self.v2p, self.p2v, to, source, held)

    def translate(self, tokens: Tensor, out: Tensor | None) -> Tensor:
        """See `PageTables`: 6 launches, 3 where a page is one token."""
        return tables.translate(self.v2p, tokens, self.facts.page_size, out)

    def copy(self, source: Tensor, target: Tensor) -> None:
        """See `PageTables`: 2 launches per megabyte."""
        tables.copy_pages(self.facts.envelopes, source, target, self.scratch)

    def zero(self, physical: Tensor) -> None:
        """See `PageTables`: 1 launch."""
        self.facts.envelopes.index_fill_(0, physical, 0)

    def pack(self, holes: PageList, low: int, count: int, *, most: int, descending: bool) -> None:
        """See `PageTables`: about 25 launches, two per megabyte moved more."""
        moves, left = tables.plan_pack(self.p2v, holes.values, self.physical[low : low + count], low, most)
        holes.reset(left)
        if self.facts.error is not None:
            outside = moves.target - (low + count - 1) if descending else low - moves.target
            self.facts.error.expect_positive(Fault.PLAN_OVERFLOW, torch.where(moves.ok, outside, 1))
        self.copy(moves.source, moves.target)
        tables.commit_pack(self.v2p, self.p2v, moves)

    def shift(self, source: int, target: int, count: int) -> None:
        """See `PageTables`: 4 launches."""
        tables.copy_range(self.facts.envelopes, source, target, count)
        tables.rebind_range(self.v2p, self.p2v, self.physical, source, target, count)


def physical_pages(taken: Taken, physical: Tensor) -> Tensor:
    """Taken pages as a list, int64 `[k]`; `physical` lists the pool's pages. One launch or none; never blocks."""
    parts = [] if taken.drained is None else [taken.drained.tensor]
    parts += [physical[pages.start : pages.stop] for pages in taken.grown]
    return torch.cat(parts) if len(parts) > 1 else (*parts, physical[:0])[0]
