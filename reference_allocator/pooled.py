"""Token ids over pools of one byte budget: what they have room for, and what concerns every pool alike."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import torch

from reference_allocator import chain
from reference_allocator.arguments import expect_count
from reference_allocator.band import Band
from reference_allocator.chain import Demand
from reference_allocator.error_word import ErrorWord
from reference_allocator.errors import ArgumentError, StateError
from reference_allocator.specs import BytePool
from reference_allocator.streams import StreamEvent
from reference_allocator.token_allocator import TokenAllocator


class PooledAllocator(TokenAllocator):
    """What token allocators over a `BytePool` have in common. `bands` are their pools, the owner of the ids first."""

    bands: tuple[Band, ...] = ()

    def __init__(self, name: str, page_size: int, device: torch.device, *, checked: bool) -> None:
        super().__init__(name, page_size, device, checked=checked)
        self._views: dict[str, tuple[object, int]] = {}

    @property
    @abstractmethod
    def free_ids(self) -> int:
        """Virtual pages that can be minted. Host only."""

    @abstractmethod
    def demand(self, pages: int) -> Demand:
        """What minting so many pages takes from each pool. Host only."""

    @property
    def pool(self) -> BytePool:
        """The byte pool with all its pools. Host only."""
        return self.bands[0].pool

    @property
    def error_words(self) -> tuple[ErrorWord, ...]:
        """See `TokenAllocator`. Host only."""
        return tuple(band.error for band in self.bands)

    # Capacity.

    def available_size(self) -> int:
        """Tokens that `alloc` can hand out now, on every side. Host only, memoised, never blocks."""
        return self._view("available", chain.fits)

    def schedulable_size(self) -> int:
        """Tokens that `alloc` can hand out after relief: what admission and eviction go by.

        Host only, memoised, never blocks.
        """
        return self._view("schedulable", chain.fits_after_relief)

    def count(self, fit: Callable[[Demand], bool]) -> int:
        """Tokens of the largest allocation that fits. Host only, not memoised, never blocks."""
        return chain.most(lambda pages: fit(self.demand(pages)), self.free_ids) * self.page_size

    def _view(self, name: str, fit: Callable[[Demand], bool]) -> int:
        chain.settle(self.bands[0])
        # Gates open and close without a write to any pool, so that epochs alone would not tell.
        key = (self.free_ids, *((band.epoch, band.may_move()) for band in chain.members(self.bands[0])))
        known, value = self._views.get(name, (None, 0))
        if known != key:
            value = self.count(fit)
            self._views[name] = (key, value)
        return value

    def has_room(self, minted: int, demand: Demand) -> bool:
        """Whether so many ids are free and a demand fits as the pools are. Host only, never blocks."""
        return minted <= self.free_ids and chain.fits(demand)

    def make_room(self, minted: int, demand: Demand) -> bool:
        """Whether so many ids and a demand can be had, after relief: deferred frees, then see `chain.relieve`.

        Waits on the stream for compactions; never blocks the host.
        """
        chain.settle(self.bands[0])
        if self.has_room(minted, demand):
            return True
        self.apply_deferred()
        if minted <= self.free_ids:
            chain.relieve(demand)
        return self.has_room(minted, demand)

    # Every pool alike, so that none can be forgotten.

    def set_forward_event(self, event: StreamEvent | None) -> None:
        """What moves and zeroing of every pool wait for, on their stream. Host only."""
        for band in self.bands:
            band.fwd_event = event

    def set_gate(self, name: str, gate: Callable[[], bool] | None) -> None:
        """While `gate` returns False, no page of any pool moves: somebody knows their places. None removes it.

        Raises `ArgumentError` for a gate that cannot be called. Host only.
        """
        if gate is not None and not callable(gate):
            raise ArgumentError(
                self.name, "set_gate", "a gate that cannot be called", gate=name, given=type(gate).__name__
            )
        for band in self.bands:
            band.gates.pop(name, None)
            if gate is not None:
                band.gates[name] = gate

    def clear(self) -> None:
        """Frees everything, drops an open group, and recovers poisoned pools. Queues 5 fills each; never blocks."""
        for band in self.bands:
            band.clear()
        self.recycle_all()

    def recycle_all(self) -> None:
        """Makes every id free and forgets the group. Host only."""
        self._group = None

    def resize(self, total_bytes: int) -> None:
        """Changes the budget of the empty pools, in bytes; tables and buffer keep their storage.

        Raises `StateError` while anything is live, pending or deferred, and where other pools share the budget;
        `BudgetError` above what was reserved or below the floor, `ArgumentError` for what is no int. Queues fills on
        the current stream; never blocks.
        """
        expect_count(self.name, "resize", total_bytes=total_bytes)
        live = {band.name: band.live + band.pending_count for band in self.bands}
        if any(live.values()) or self._group is not None:
            raise StateError(self.name, "resize", "not empty", group=self._group is not None, **live)
        if set(self.bands) != set(chain.members(self.bands[0])):
            raise StateError(self.name, "resize", "other pools share the budget", pools=sorted(live))
        self.bands[0].pool.resize(total_bytes)
        self.reshape()

    def reshape(self) -> None:
        """Takes the present geometry of the byte pool, and clears. Queues fills; never blocks."""
        self.recycle_all()
