"""State slots of requests, beside the tokens of the same byte budget: one slot for a request, more for checkpoints."""

from __future__ import annotations

import torch
from torch import Tensor

from reference_allocator import chain
from reference_allocator.allocator import AllocatorState, PageAllocator
from reference_allocator.arguments import expect_count, expect_ids, has_ids
from reference_allocator.composites import SWAComposite
from reference_allocator.errors import ArgumentError, BindingError, GroupError, SpecError, StateError
from reference_allocator.host_checks import host_values
from reference_allocator.page_tables import Profile
from reference_allocator.pages import Pages
from reference_allocator.pooled import PooledAllocator
from reference_allocator.specs import BytePool, StateSpec
from reference_allocator.streams import SideQueue


class StateSlots(PageAllocator):
    """Virtual slots over a state pool, the owner of their ids; kernels take `translate(slots)`.

    What a slot holds is whatever its last owner left: `reset` clears it when a request takes it up.
    Arguments as `PageAllocator`. Raises `SpecError` for a pool of keys and values. Queues fills; never blocks the host.
    """

    def __init__(
        self,
        pool: BytePool,
        name: str,
        *,
        eager: bool = False,
        checked: bool | None = None,
        side: SideQueue | None = None,
        profile: Profile = "portable",
    ) -> None:
        if not isinstance(pool.specs.get(name), StateSpec):
            raise SpecError(name, "slots", "no state pool", pools=sorted(pool.specs))
        super().__init__(pool, name, eager=eager, checked=checked, side=side, profile=profile)
        self._ready: Tensor | None = None

    # Allocations that come one by one.

    @property
    def set_aside(self) -> int:
        """Slots that are set aside. Host only."""
        return 0 if self._ready is None else self._ready.numel()

    def alloc_group_begin(self, count: int) -> bool:
        """Sets `count` slots aside, so that every `alloc` until `alloc_group_end` takes some of them for nothing.

        False, and nothing changed, where there is no room. Raises `GroupError` if some are set aside already. The
        launches of one `alloc`; never blocks the host.
        """
        self.expect_clean("alloc_group_begin")
        expect_count(self.name, "alloc_group_begin", count=count)
        if self._ready is not None:
            raise GroupError(self.name, "alloc_group_begin", "slots are set aside already", left=self.set_aside)
        self._ready = super().alloc(count)
        if self._ready is None:
            return False
        self.band.transfers += 1  # no backup across the beginning or the end: slots set aside are nobody's yet
        return True

    def alloc(self, count: int) -> Tensor | None:
        """As `PageAllocator.alloc`; first come the slots that are set aside, which takes no launch. Never blocks."""
        self.expect_clean("alloc")
        expect_count(self.name, "alloc", count=count)
        ready = self._ready
        if ready is None or not 0 < count <= self.set_aside:
            return super().alloc(count)
        self._ready = ready[count:]
        return ready[:count]

    def alloc_group_end(self) -> None:
        """Frees what is left of the slots set aside. Raises `GroupError` without any.

        The launches of one free; never blocks the host.
        """
        self.expect_clean("alloc_group_end")
        if self._ready is None:
            raise GroupError(self.name, "alloc_group_end", "no slots are set aside")
        left, self._ready = self._ready, None
        self.band.transfers += 1
        if left.numel():
            self.release_pages(Pages(left))

    def recycle_all(self) -> None:
        """See `PooledAllocator`; slots set aside are forgotten. Host only."""
        super().recycle_all()
        self._ready = None

    def free(self, tokens: Tensor | None) -> None:
        """See `PageAllocator`; on a checked CPU pool `BindingError` for a slot that is set aside. Never blocks."""
        self.expect_clean("free")
        if has_ids(tokens, self.name, "free"):
            expect_ids(self.name, "free", tokens, self.device)
            self._expect_taken("free", tokens)
        super().free(tokens)

    def _free_pages(self, operation: str, pages: Pages) -> None:
        self._expect_taken(operation, pages.tensor)
        super()._free_pages(operation, pages)

    def _expect_taken(self, operation: str, slots: Tensor) -> None:
        if self.raises and self._ready is not None:
            aside = sorted(set(host_values(slots)) & set(host_values(self._ready)))
            if aside:
                raise BindingError(self.name, operation, "slots that are set aside, and nobody's yet", slots=aside[:8])

    def expect_restorable(self, state: AllocatorState) -> None:
        """See `PageAllocator`; `StateError` also while slots are set aside, or were since `state`. Host only."""
        if self._ready is not None:
            raise StateError(self.name, "restore", "slots are set aside", left=self.set_aside)
        super().expect_restorable(state)

    # What slots hold.

    def reset(self, slots: Tensor) -> None:
        """Zeroes the state of slots (int64 `[n]`). Waits, on the stream, for the forward event.

        Raises `ArgumentError`, on a checked CPU pool `BindingError` for slots that are free or foreign. Queues 4
        launches on the current stream; never blocks the host.
        """
        self.expect_clean("reset")
        expect_ids(self.name, "reset", slots, self.device)
        self._expect_held("reset", slots)
        self.band.zero(self.translate(slots))

    def copy(self, *, src: Tensor, dst: Tensor) -> None:
        """Copies the state of slots `src` to slots `dst` (both int64 `[n]`, no slot in both), as for a checkpoint.

        By name only: which comes first differs from library to library. Raises `ArgumentError`, on a checked CPU pool
        `BindingError` for slots that are free or foreign, in both, or in `dst` twice. Waits, on the stream, for the
        forward event; queues 6 launches and two per megabyte on the current stream; never blocks the host.
        """
        self.expect_clean("copy")
        for slots in (src, dst):
            expect_ids(self.name, "copy", slots, self.device)
        if src.numel() != dst.numel():
            raise ArgumentError(self.name, "copy", "unequal lengths", src=src.numel(), dst=dst.numel())
        self._expect_held("copy", src)
        self.band.expect_bound(Pages(dst), "copy")
        if self.raises and (both := sorted(set(host_values(src)) & set(host_values(dst)))):
            raise BindingError(self.name, "copy", "slots in src and in dst", slots=both[:8])
        self.band.await_forward()
        self.band.copy(self.translate(src), self.translate(dst))

    def _expect_held(self, operation: str, slots: Tensor) -> None:
        """As `Band.expect_bound` for slots that may be named twice. Never blocks on a device."""
        if self.raises:
            self.band.expect_bound(Pages(torch.tensor(sorted(set(host_values(slots))), dtype=torch.int64)), operation)

    def cost_in_tokens(self, bytes_per_token: int) -> int:
        """Tokens whose bytes a slot takes, rounded up: what admission counts a request's state as.

        Raises `ArgumentError` unless the bytes are a positive int. Host only.
        """
        expect_count(self.name, "cost_in_tokens", least=1, bytes_per_token=bytes_per_token)
        return -(-self.band.page_bytes // bytes_per_token)


class WithState(PooledAllocator):
    """What token allocators with state slots in the same budget have in common. Token frees leave `state` alone."""

    state: StateSlots

    def alloc_state(self, count: int) -> Tensor | None:
        """Virtual slots for requests: int64 `[count]`, or None, and nothing changed, where there is no room.

        Relief comes from the token pools too: deferred frees, spare holes, a window pool that moves aside. Launches as
        `StateSlots.alloc`; never blocks the host.
        """
        self.expect_clean("alloc_state")
        expect_count(self.name, "alloc_state", count=count)
        if self.state.set_aside < count and not self.state.has_room(count, self.state.demand(count)):
            self.apply_deferred()
        return self.state.alloc(count)

    def free_state(self, slots: Tensor | None) -> None:
        """Frees slots (int64 `[n]`): see `PageAllocator.free`. A slot is a page, so that this never blocks the host."""
        self.expect_clean("free_state")
        self.state.free(slots)

    def apply_deferred(self) -> None:
        """See `TokenAllocator`: those of slots too. Never blocks, unless tokens without positions wait."""
        self.state.apply_deferred()
        super().apply_deferred()

    def recycle_all(self) -> None:
        """See `PooledAllocator`. Host only."""
        self.state.recycle_all()
        super().recycle_all()

    def reshape(self) -> None:
        """See `PooledAllocator`. Never blocks."""
        self.state.reshape()
        super().reshape()


class MambaComposite(WithState, PageAllocator):
    """Tokens of full attention and state slots, the two ends of one budget. `backup` and `restore` are of the tokens.

    pool: a byte pool; full, state: two of its specs. eager, checked, side, profile: as for `PageAllocator`.
    Raises `SpecError` where the pools are no chain. Queues fills; never blocks the host.
    """

    def __init__(
        self,
        pool: BytePool,
        *,
        full: str = "full",
        state: str = "state",
        eager: bool = False,
        checked: bool | None = None,
        side: SideQueue | None = None,
        profile: Profile = "portable",
    ) -> None:
        PageAllocator.__init__(self, pool, full, eager=eager, checked=checked, side=side, profile=profile)
        self.state = StateSlots(pool, state, eager=eager, checked=checked, side=side, profile=profile)
        self.bands = (*self.bands, *self.state.bands)
        chain.join(*self.bands)


class SWAMambaComposite(WithState, SWAComposite):
    """Three pools in a chain: state slots and full attention at the ends, and between them a window pool that floats.

    Slots are large and full attention grows at every step: both are anchored. The window pool is bounded, and its
    pages are the smallest to copy, so it is the one that moves. `backup` and `restore` are of the tokens.
    Arguments and errors as for `SWAComposite`; state: the name of the state pool.
    """

    def __init__(
        self,
        pool: BytePool,
        *,
        full: str = "full",
        swa: str = "swa",
        state: str = "state",
        eager: bool = False,
        checked: bool | None = None,
        side: SideQueue | None = None,
        profile: Profile = "portable",
    ) -> None:
        self.state = StateSlots(pool, state, eager=eager, checked=checked, side=side, profile=profile)
        SWAComposite.__init__(
            self, pool, full=full, swa=swa, eager=eager, checked=checked, side=side, profile=profile,
            beside=self.state.bands,
        )  # fmt: skip
        self.bands = (*self.bands, *self.state.bands)
