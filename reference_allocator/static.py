"""Full attention and a sliding window in memory of their own: a fixed split, and a table from full to window tokens.

The counterpart of `SWAComposite` with the same calls. Nothing moves and no byte changes sides, so ids are physical, and
a full token finds its window token in the table instead of a page table. The table is nobody else's: a window token
belongs to a full one only through `set_full_to_swa_mapping`, `clear_full_to_swa_mapping` and the calls that use them.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from reference_allocator import tables
from reference_allocator.arguments import expect_count, expect_ids, expect_translatable
from reference_allocator.error_word import ErrorWord, Fault
from reference_allocator.errors import BudgetError, CapacityError, GroupError, SpecError, StateError
from reference_allocator.host_checks import (
    expect_bound,
    expect_in_none,
    expect_in_table,
    expect_unbound,
    host_values,
)
from reference_allocator.pages import Pages
from reference_allocator.specs import MAX_TOKEN_IDS
from reference_allocator.tables import Request
from reference_allocator.two_sides import Release, TwoSidedAllocator

UNMAPPED = 0
"""What the table says of a token without a window: the padding sink."""


class FixedPages:
    """The pages of one side, numbered from 1; page 0 is the padding sink. Queues fills; never blocks the host."""

    def __init__(self, name: str, pages: int, device: torch.device) -> None:
        self.name = name
        self.pages = pages
        self.error = ErrorWord(device)
        self._all = torch.arange(1, pages + 1, device=device)
        self.clear()

    def clear(self) -> None:
        """Frees every page and forgets errors. One fill; never blocks the host."""
        self.free = self._all
        self.live = 0
        self.error.clear()

    def take(self, count: int) -> Tensor:
        """The next free pages: int64 `[count]`, a view that stays as it is. There are as many. Host only."""
        taken, self.free = self.free[:count], self.free[count:]
        self.live += count
        return taken

    def give(self, pages: Tensor) -> None:
        """Makes pages (int64 `[k]`) free. One launch on the current stream; never blocks the host."""
        self.free = torch.cat((self.free, pages))
        self.live -= pages.numel()

    def take_back(self, free: Tensor) -> None:
        """Returns to an earlier list of free pages, since which pages were only taken. Host only."""
        self.live -= free.numel() - self.free.numel()
        self.free = free


class StaticState(NamedTuple):
    """What `backup` remembers."""

    full: Tensor
    swa: Tensor
    changes: int


class StaticSWAComposite(TwoSidedAllocator):
    """Token ids with keys and values on two sides of a fixed size: `full` for good, `swa` while in the window.

    size, swa_size: tokens of each side beside its sink page; their buffers have `size + page_size` slots.
    checked: report misuse; by default on a CPU, where it raises before any write.
    In a group pages lose their window token at once, and only their return to the lists waits: a later call may give
    the same ids another one. Raises `BudgetError` for sizes that are no whole pages, `SpecError` at 2^31 ids. Queues
    fills; never blocks the host.
    """

    swa: FixedPages

    def __init__(
        self,
        size: int,
        swa_size: int,
        *,
        page_size: int,
        device: torch.device | str = "cpu",
        checked: bool | None = None,
    ) -> None:
        expect_count("full+swa", "static", size=size, swa_size=swa_size, page_size=page_size)
        for name, tokens in (("full", size), ("swa", swa_size)):
            if page_size < 1 or tokens < page_size or tokens % page_size:
                raise BudgetError(name, "static", "no whole number of pages", tokens=tokens, page_size=page_size)
            if tokens + page_size >= MAX_TOKEN_IDS:
                raise SpecError(name, "static", "token ids do not fit in 31 bits", tokens=tokens, page_size=page_size)
        self._full_to_swa = torch.empty(size + page_size + 1, dtype=torch.int64, device=device)
        on = self._full_to_swa.device
        super().__init__("full+swa", page_size, on, checked=on.type == "cpu" if checked is None else checked)
        self.size = size
        self.swa_size = swa_size
        self.full = FixedPages("full", size // page_size, on)
        self.swa = FixedPages("swa", swa_size // page_size, on)
        # The table by page: all tokens of each, and the first ones with the last entry behind them.
        self._rows = self._full_to_swa[:-1].view(-1, page_size)
        self._held = self._full_to_swa[::page_size]
        self._offsets = torch.arange(page_size, device=on)
        self._minted = torch.empty(self._held.numel(), dtype=torch.int64, device=on)
        self._changes = 0
        self.clear()

    @property
    def sides(self) -> tuple[FixedPages, FixedPages]:
        """The pages of full and of the window side. Host only."""
        return self.full, self.swa

    @property
    def error_words(self) -> tuple[ErrorWord, ...]:
        """See `TokenAllocator`. Host only."""
        return self.full.error, self.swa.error

    # Capacity.

    def fits(self, full_pages: int, swa_pages: int) -> bool:
        """Whether both sides have these pages now. Host only, never blocks."""
        return full_pages <= self.full.free.numel() and swa_pages <= self.swa.free.numel()

    def available_size(self) -> int:
        """Tokens that `alloc` can hand out now, on both sides. Host only, never blocks."""
        return min(side.free.numel() for side in self.sides) * self.page_size

    def schedulable_size(self) -> int:
        """As `available_size`: no side can give room to the other. Host only."""
        return self.available_size()

    def admit(self, pages: int) -> bool:
        """See `TokenAllocator`. Applies deferred frees."""
        return self.admit_each(pages, pages)

    def admit_each(self, full_pages: int, swa_pages: int) -> bool:
        """See `TwoSidedAllocator`. Applies deferred frees; never blocks the host."""
        if not self.fits(full_pages, swa_pages):
            self.apply_deferred()
        return self.fits(full_pages, swa_pages)

    # Handing out.

    def hand_out(self, request: Request, pages: int) -> Tensor:
        """See `TokenAllocator`. Raises `CapacityError`, with nothing changed, for pages that were not admitted."""
        tokens = request.tokens(self.full.free[:pages], self._offsets)
        if pages:
            self._map(*self._take(pages, pages))
        return tokens

    def hand_out_runs(self, request: Request, pages: int, runs: list[tuple[int, int]]) -> Tensor:
        """See `TwoSidedAllocator`. Errors as `hand_out`."""
        tokens = request.tokens(self.full.free[:pages], self._offsets)
        if pages:
            full, swa = self._take(pages, sum(last - first for first, last in runs))
            self._map(torch.cat([full[first:last] for first, last in runs]), swa)
        return tokens

    def _take(self, full_pages: int, swa_pages: int) -> tuple[Tensor, Tensor]:
        if not self.fits(full_pages, swa_pages):
            raise CapacityError(
                self.name, "hand_out", "pages that were not admitted",
                full=full_pages, swa=swa_pages, free=self.full.free.numel(), free_swa=self.swa.free.numel(),
            )  # fmt: skip
        full, swa = self.full.take(full_pages), self.swa.take(swa_pages)
        if self.checked:
            self.full.error.expect_positive(Fault.SINK_HANDED_OUT, full)
            self.swa.error.expect_positive(Fault.SINK_HANDED_OUT, swa)
            self._minted.index_fill_(0, full, 1)
        return full, swa

    def _map(self, pages: Tensor, window: Tensor) -> None:
        """Gives full pages all tokens of as many window pages. Two launches."""
        tokens = tables.tokens_of(window, self._offsets)
        self._rows.index_copy_(0, pages, tokens.view(-1, self.page_size))

    # Freeing.

    def expect_freeable(self, release: Release, operation: str, pages: Pages) -> None:
        """See `TwoSidedAllocator`. Host only."""
        if not self.raises:
            return
        if release == "full":
            expect_unbound(self.swa.name, operation, self._held, pages.tensor, 1, set())
        else:
            expect_bound(self.swa.name, operation, self._held, pages.tensor, 1)
        if release != "swa":
            expect_bound(self.full.name, operation, self._minted, pages.tensor, 1)

    def free_pages(self, release: Release, pages: Pages) -> None:
        """See `TwoSidedAllocator`. Never blocks."""
        self._release(release, self._known(pages.tensor))

    def _known(self, pages: Tensor) -> Tensor:
        """The pages; in a checked pool ids outside the table stand for its last entry, as over page tables."""
        return pages.clamp(tables.TOMBSTONE, self._held.numel() - 1) if self.checked else pages

    def _release(self, release: Release, pages: Tensor) -> None:
        self._changes += 1
        if release != "full":
            self._give(self.swa, self._unmap(pages))
        elif self.checked:
            self.swa.error.expect_positive(Fault.SWA_STILL_BOUND, 1 - self._held[pages])
        if release != "swa":
            self._give(self.full, self._retired(pages))

    def _unmap(self, pages: Tensor) -> Tensor:
        """Takes the window pages from full pages and returns them: in a checked pool the sink where there was none."""
        held = self._held[pages]
        if self.checked:
            self.swa.error.expect_positive(Fault.SWA_NOT_BOUND, held)
            pages, held = pages * (held > 0), held.clamp_min(0)
        self._rows.index_fill_(0, pages, UNMAPPED)
        return tables.pages_of(held, self.page_size)

    def _retired(self, pages: Tensor) -> Tensor:
        """Full pages that may be minted again: the same, or in a checked pool the sink for those that were free."""
        if not self.checked:
            return pages
        minted = self._minted[pages]
        self.full.error.expect_positive(Fault.DOUBLE_FREE, minted)
        self._minted.index_fill_(0, pages, tables.TOMBSTONE)
        return pages * (minted > 0)

    def _give(self, side: FixedPages, pages: Tensor) -> None:
        if self._group is None:
            side.give(pages)
        else:
            self._group.hold_pages(side.name, pages)

    def free_by_value(self, release: Release, operation: str, tokens: Tensor) -> None:
        """See `TwoSidedAllocator`. Blocks in a group, too: whose window token it is must be known at once."""
        pages = self.distinct_pages(tokens)
        if self.raises:
            expect_bound(self.full.name, operation, self._minted, pages, 1)
            if release == "full":
                self.expect_freeable(release, operation, Pages(pages))
        pages = self._known(pages)
        if release == "full":
            self._release("full", pages)
            return
        # nosync-lint: ignore[NSL303] without a cursor only the device knows which pages are in the window
        alive = pages[self._held[pages] > UNMAPPED]
        self._release("swa", alive)
        if release == "both":
            self._give(self.full, self._retired(pages))

    def free_group_end(self) -> None:
        """Puts what the group holds on the lists. Raises `GroupError` without a group.

        Queues at most two launches per side on the current stream; never blocks the host.
        """
        group = self._detach_group()
        for side in self.sides:
            if side.name in group.pages:
                side.give(torch.cat(group.pages[side.name]))

    def dump(self) -> tuple[Tensor, Tensor]:
        """Copies of the mapping, and of the record of minted pages that a checked pool keeps, for `verify`.

        Two launches on the current stream; never blocks the host.
        """
        return self._full_to_swa.clone(), self._minted.clone()

    @property
    def deferred(self) -> dict[str, list[Tensor]]:
        """Pages, by side, that wait for the end of a group. Host only."""
        return {} if self._group is None else self._group.pages

    # Reading.

    def translate(self, tokens: Tensor, out: Tensor | None = None) -> Tensor:
        """Physical token ids on full, which are the ids; negative ones give 0. `out` may be `tokens`.

        Raises `ArgumentError` for other dtypes, shapes and devices. One launch on the current stream; never blocks the
        host.
        """
        expect_translatable(self.name, "translate", tokens, out, self.device)
        return torch.clamp_min(tokens, 0, out=out)

    def translate_loc_from_full_to_swa(self, tokens: Tensor, out: Tensor | None = None) -> Tensor:
        """Physical token ids on the window side (int64, same shape): 0 for those out of it, -1 for -1 and foreign ids.

        `out` may be `tokens`. Raises `ArgumentError` for other dtypes, shapes and devices. Queues 2 launches on the
        current stream, 3 with `out`; never blocks the host.
        """
        expect_translatable(self.name, "translate_loc_from_full_to_swa", tokens, out, self.device)
        found = self._full_to_swa[tokens.clamp(tables.TOMBSTONE, self._full_to_swa.numel() - 1)]
        return found if out is None else out.copy_(found)

    # The mapping.

    def set_full_to_swa_mapping(self, full: Tensor, swa: Tensor) -> None:
        """Gives full tokens physical window tokens (both int64 `[n]`), page by page, at equal places of their pages.

        For ids without one, and window tokens that `clear_full_to_swa_mapping` has released, so that every page stays
        accounted for. Raises `ArgumentError`, on a checked CPU pool `BindingError` for ids that are not so. Queues 4
        launches on the current stream; never blocks the host.
        """
        operation = "set_full_to_swa_mapping"
        paired = self.pairs_to_map(operation, full, swa)
        if paired is not None:
            self._expect_mappable(operation, *paired)
        self._changes += 1
        # Tokens of one page write the same row, so that it does not matter which is last.
        self._map(tables.pages_of(full, self.page_size), tables.pages_of(swa, self.page_size))

    def _expect_mappable(self, operation: str, pages: Tensor, window: Tensor) -> None:
        expect_bound(self.full.name, operation, self._minted, pages, 1)
        expect_unbound(self.swa.name, operation, self._held, pages, 1, set())
        waiting = self.deferred.get(self.swa.name, [])
        taken = {
            "mapped": {token // self.page_size for token in host_values(self._held[:-1]) if token > UNMAPPED},
            "free": {page for given in (self.swa.free, *waiting) for page in host_values(given)},
        }
        expect_in_none(self.swa.name, operation, window, self.swa.pages + 1, taken)

    def clear_full_to_swa_mapping(self, full: Tensor) -> None:
        """Takes the window tokens from full ones (int64 `[n]`), page by page, and frees none. First this, then `set`.

        Raises `ArgumentError`, on a checked CPU pool `BindingError` for foreign ids. Queues 2 launches on the current
        stream; never blocks the host.
        """
        self.expect_clean("clear_full_to_swa_mapping")
        expect_ids(self.name, "clear_full_to_swa_mapping", full, self.device)
        if self.raises:
            expect_in_table(self.name, "clear_full_to_swa_mapping", self._held, full, self.page_size, 1)
        self._changes += 1
        self._rows.index_fill_(0, tables.pages_of(full, self.page_size), UNMAPPED)

    def transfer_window(self, operation: str, kept: Pages, incoming: Pages) -> None:
        """See `TwoSidedAllocator`. What is in both keeps its window page.

        Raises `BindingError` on a checked CPU pool where `incoming` has no window, or `kept` still has one of its own.
        On a device the error word takes that, and such lanes give nothing. 9 launches (27 checked) on the current
        stream; never blocks the host.
        """
        to, source = kept.tensor, self._known(incoming.tensor)
        if self.raises:
            expect_bound(self.swa.name, operation, self._held, incoming.tensor, 1)
            expect_unbound(self.swa.name, operation, self._held, kept.tensor, 1, set(host_values(incoming.tensor)))
            expect_bound(self.full.name, operation, self._minted, kept.tensor, 1)
        window = self._held[source]
        if self.checked:
            self.swa.error.expect_positive(Fault.SWA_NOT_BOUND, window)
            source = source * (window > 0)
        # Clear, then set: the other way round, ids that are in both would lose what they were given.
        self.clear_full_to_swa_mapping(source * self.page_size)
        if self.checked:
            # The sink, and what is no page at all, is given nothing.
            to = to * ((to > 0) & (to < self._held.numel() - 1))
            before = self._held[to]
            self.swa.error.expect_positive(Fault.UNKNOWN_ID, to)
            self.swa.error.expect_positive(Fault.KEPT_STILL_BOUND, 1 - before)
            right = (window > 0) & (before <= 0)
            to, window = to * right, window * right
        self.set_full_to_swa_mapping(to * self.page_size, window)
        if self.checked:
            self._rows[:1].fill_(UNMAPPED)  # where lanes that are wrong have written

    # Starting over.

    def clear(self) -> None:
        """Frees everything, drops an open group, and recovers a poisoned pool. Queues 5 fills; never blocks."""
        self._full_to_swa.fill_(UNMAPPED)
        self._full_to_swa[-1:].fill_(tables.TOMBSTONE)
        self._minted.fill_(tables.TOMBSTONE)
        for side in self.sides:
            side.clear()
        self._changes += 1
        self._group = None

    def backup(self) -> StaticState:
        """The present state in O(1), for `restore`. Raises `GroupError` in a group. Queues nothing, never blocks."""
        self.expect_clean("backup")
        if self._group is not None:
            raise GroupError(self.name, "backup", "a group is open")
        return StaticState(self.full.free, self.swa.free, self._changes)

    def restore(self, state: StaticState) -> None:
        """Takes back every allocation since `state`. Raises `StateError` after a free or another change of the mapping,
        and in a group.

        Queues 1 launch (2 checked) on the current stream; never blocks the host.
        """
        self.expect_clean("restore")
        if self._group is not None:
            raise StateError(self.name, "restore", "a group is open")
        if state.changes != self._changes:
            raise StateError(
                self.name, "restore", "pages were freed or mapped since the backup",
                changes=self._changes - state.changes,
            )  # fmt: skip
        minted = state.full[: state.full.numel() - self.full.free.numel()]
        self._rows.index_fill_(0, minted, UNMAPPED)
        if self.checked:
            self._minted.index_fill_(0, minted, tables.TOMBSTONE)
        self.full.take_back(state.full)
        self.swa.take_back(state.swa)
