"""The hot and warm calls of `reference_allocator.costs`, each set up so that only the call itself is left to make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from benchmarks.allocator.pools import byte_pool, got
from reference_allocator import PageAllocator, StaticSWAComposite, SWAComposite, SWAMambaComposite, chain, join
from reference_allocator.float_band import FloatBand
from reference_allocator.naive import NaiveAllocator
from reference_allocator.page_tables import Profile
from reference_allocator.pooled import PooledAllocator
from reference_allocator.recovery import recover_locked_full, transfer_swa_pages

PAGE_SIZE = 4
"""Tokens; the numbers of pages below go with it."""
PAGES = 64
WAITS = ("stream", "device", "event", "blocking")
"""What is recorded that stops the host: waits for three things, and copies that block."""
TwoSided = SWAComposite | StaticSWAComposite
Allocator = PageAllocator | TwoSided
Kind = TypeVar("Kind", PageAllocator, SWAComposite, StaticSWAComposite)
Pooled = TypeVar("Pooled", bound=PooledAllocator)


@dataclass(frozen=True)
class Call:
    """What is left to make, and the tensors in CPU memory that it reads there on every device."""

    run: Callable[[], object]
    host: tuple[Tensor, ...] = ()

    def __call__(self) -> object:
        return self.run()


@dataclass(frozen=True)
class Bench:
    """Where a call is set up: on which device, with or without checks, in which profile.

    On a CPU too, checks report misuse as on a device, where nothing is raised.
    """

    device: str
    checked: bool
    profile: Profile = "portable"

    def ids(self, *values: int) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=self.device)

    def one(self, name: str = "full") -> PageAllocator:
        """One of two neighbours that each own their ids."""
        pool = byte_pool(PAGE_SIZE, PAGES, self.device)
        owners = {
            each: PageAllocator(pool, each, checked=self.checked, profile=self.profile) for each in ("full", "swa")
        }
        join(owners["full"].band, owners["swa"].band)
        return self._reporting(owners[name])

    def three(self) -> SWAMambaComposite:
        pool = byte_pool(PAGE_SIZE, PAGES, self.device, pools=3)
        cache = SWAMambaComposite(pool, checked=self.checked, profile=self.profile)
        self._reporting(cache.full)
        self._reporting(cache.state)
        return self._reporting(cache)

    def both(self) -> SWAComposite:
        pool = byte_pool(PAGE_SIZE, PAGES, self.device)
        cache = SWAComposite(pool, checked=self.checked, profile=self.profile)
        self._reporting(cache.full)
        return self._reporting(cache)

    def fixed(self) -> StaticSWAComposite:
        size = PAGES * PAGE_SIZE
        cache = StaticSWAComposite(size, size, page_size=PAGE_SIZE, device=self.device, checked=self.checked)
        cache.raises = False
        return cache

    def _reporting(self, allocator: Pooled) -> Pooled:
        allocator.raises = False
        for band in allocator.bands:
            band.raises = False
        return allocator


def _host(*values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.int64)


def _alloc(allocator: Allocator) -> Call:
    return Call(lambda: allocator.alloc(12))


def _alloc_from_holes(bench: Bench) -> Call:
    allocator = bench.one("swa")
    allocator.free_segment(got(allocator.alloc(12)), start_pos=0)
    return Call(lambda: allocator.alloc(16))


def _row(bench: Bench, allocator: Allocator, length: int) -> Tensor:
    """A request of that length."""
    none, after, last = bench.ids(0), bench.ids(length), bench.ids(-1)
    return got(allocator.alloc_extend(none, _host(0), after, _host(length), last, length))


def _alloc_extend(bench: Bench, allocator: Allocator) -> Call:
    row = _row(bench, allocator, 5)
    before, after, last = bench.ids(5, 0, 0), bench.ids(12, 3, 9), torch.cat((row[4:], bench.ids(-1, -1)))
    before_cpu, after_cpu = _host(5, 0, 0), _host(12, 3, 9)
    return Call(lambda: allocator.alloc_extend(before, before_cpu, after, after_cpu, last, 19), (before_cpu, after_cpu))


def _alloc_extend_swa_tail(bench: Bench, both: TwoSided) -> Call:
    before, after, last = bench.ids(0, 0), bench.ids(12, 9), bench.ids(-1, -1)
    before_cpu, after_cpu = _host(0, 0), _host(12, 9)
    return Call(
        lambda: both.alloc_extend_swa_tail(before, before_cpu, after, after_cpu, last, 21, tail_len=5),
        (before_cpu, after_cpu),
    )


def _alloc_decode(bench: Bench, allocator: Allocator, length: int) -> Call:
    """The token behind so many."""
    last = _row(bench, allocator, length)[-1:]
    seq, seq_cpu = bench.ids(length + 1), _host(length + 1)
    return Call(lambda: allocator.alloc_decode(seq, seq_cpu, last), (seq_cpu,))


def _free_segment(allocator: Allocator) -> Call:
    row = got(allocator.alloc(16))[4:12]
    return Call(lambda: allocator.free_segment(row, start_pos=4))


def _free_segments(bench: Bench) -> Call:
    allocator = bench.one()
    row = got(allocator.alloc(16))
    return Call(lambda: allocator.free_segments([(row[:4], 0), (row[8:16], 8)]))


def _group(allocator: PageAllocator | StaticSWAComposite) -> Call:
    row = got(allocator.alloc(16))

    def call() -> None:
        allocator.free_group_begin()
        allocator.free_segment(row[:4], start_pos=0)
        allocator.free_segment(row[8:16], start_pos=8)
        allocator.free_group_end()

    return Call(call)


def _free_full_segment(both: TwoSided) -> Call:
    row = got(both.alloc(16))
    both.free_swa_segment(row, start_pos=0)
    return Call(lambda: both.free_full_segment(row[:8], start_pos=0))


def _free_swa_segment(both: TwoSided) -> Call:
    row = got(both.alloc(16))
    return Call(lambda: both.free_swa_segment(row[:8], start_pos=0))


def _free_row(both: TwoSided) -> Call:
    row = got(both.alloc(16))
    both.free_swa_segment(row[:8], start_pos=0)
    return Call(lambda: both.free_row([(row, 0)], swa_frontier=8))


def _advance_window(both: TwoSided) -> Call:
    row = got(both.alloc(16))
    return Call(lambda: both.advance_window(row, 0, 16, window=6))


def _translate(bench: Bench, translate: Callable[[Tensor], Tensor]) -> Call:
    tokens = bench.ids(4, 5, 6, 99)
    return Call(lambda: translate(tokens))


def _set_mapping(both: TwoSided) -> Call:
    row = got(both.alloc(16))
    physical = both.translate_loc_from_full_to_swa(row)
    both.clear_full_to_swa_mapping(row)
    return Call(lambda: both.set_full_to_swa_mapping(row, physical))


def _clear_mapping(both: TwoSided) -> Call:
    row = got(both.alloc(16))
    return Call(lambda: both.clear_full_to_swa_mapping(row))


def with_holes(allocator: Kind) -> Kind:
    """With live pages and two holes."""
    row = got(allocator.alloc(16))
    allocator.free_segment(row[:8], start_pos=0)
    return allocator


def _pack(bench: Bench) -> Call:
    band = with_holes(bench.one()).band
    return Call(lambda: band.pack(2))


def recovery(both: TwoSided, use: Callable[..., object]) -> Call:
    """Of three pages; the ids of both sides are in no order."""
    pages = got(both.alloc(6 * PAGE_SIZE)).view(-1, PAGE_SIZE)
    kept, incoming = pages[1::2].flip(0).reshape(-1), pages[::2].reshape(-1)
    both.free_swa_segment(kept, start_pos=0)
    return Call(lambda: use(both, kept, incoming, start_pos=0))


def _restore(both: Kind) -> Call:
    state = both.backup()
    both.alloc(8)
    return Call(lambda: both.restore(state))


def _free_segments_of_both(bench: Bench) -> Call:
    both = bench.both()
    row = got(both.alloc(16))
    return Call(lambda: both.free_segments([(row[:4], 0), (row[8:16], 8)]))


def _alloc_state(bench: Bench, *, set_aside: bool) -> Call:
    cache = bench.three()
    if set_aside:
        cache.state.alloc_group_begin(2)
    return Call(lambda: cache.alloc_state(1))


def _slots(bench: Bench, use: Callable[[SWAMambaComposite, Tensor], object]) -> Call:
    """Of four slots that are taken."""
    cache = bench.three()
    slots = got(cache.alloc_state(4))
    return Call(lambda: use(cache, slots))


def _make_room(bench: Bench) -> Call:
    """Of three pages, where a window pool with one hole is in the way."""
    cache = bench.three()
    row = got(cache.alloc(32))
    cache.free_segment(row[8:12], start_pos=8)
    floating = cache.swa
    assert isinstance(floating, FloatBand)
    return Call(lambda: floating.make_room("low", floating.gap("low") + 3 * floating.page_bytes))


def _alloc_state_after_relief(bench: Bench) -> Call:
    """Of 16 slots more than there is room for: the window pool packs its hole and moves aside."""
    cache = bench.three()
    row = got(cache.alloc(cache.available_size() - 4 * PAGE_SIZE))
    cache.free_swa_segment(row[8:12], start_pos=8)
    count = chain.most(lambda count: chain.fits({cache.state.band: count}), 10_000) + 4
    return Call(lambda: got(cache.alloc_state(count)))


def naive_free(bench: Bench) -> Call:
    """The bad example, which must be seen to wait."""
    allocator = NaiveAllocator(byte_pool(PAGE_SIZE, PAGES, bench.device), "full", checked=bench.checked)
    return _free_segment(allocator)


CALLS: dict[str, Callable[[Bench], Call]] = {
    "PageAllocator.alloc": lambda bench: _alloc(bench.one()),
    "PageAllocator.alloc, no zeroing": lambda bench: _alloc(bench.one("swa")),
    "PageAllocator.alloc, from holes": _alloc_from_holes,
    "PageAllocator.alloc_extend": lambda bench: _alloc_extend(bench, bench.one()),
    "PageAllocator.alloc_decode": lambda bench: _alloc_decode(bench, bench.one(), 4),
    "PageAllocator.alloc_decode, inside pages": lambda bench: _alloc_decode(bench, bench.one(), 5),
    "PageAllocator.free_segment": lambda bench: _free_segment(bench.one()),
    "PageAllocator.free_segments": _free_segments,
    "PageAllocator group": lambda bench: _group(bench.one()),
    "PageAllocator.translate": lambda bench: _translate(bench, bench.one().translate),
    "PageAllocator.available_size": lambda bench: Call(with_holes(bench.one()).available_size),
    "SWAComposite.alloc": lambda bench: _alloc(bench.both()),
    "SWAComposite.alloc_extend": lambda bench: _alloc_extend(bench, bench.both()),
    "SWAComposite.alloc_extend_swa_tail": lambda bench: _alloc_extend_swa_tail(bench, bench.both()),
    "SWAComposite.alloc_decode": lambda bench: _alloc_decode(bench, bench.both(), 4),
    "SWAComposite.free_segment": lambda bench: _free_segment(bench.both()),
    "SWAComposite.free_segments": _free_segments_of_both,
    "SWAComposite.free_full_segment": lambda bench: _free_full_segment(bench.both()),
    "SWAComposite.free_swa_segment": lambda bench: _free_swa_segment(bench.both()),
    "SWAComposite.free_row": lambda bench: _free_row(bench.both()),
    "SWAComposite.advance_window": lambda bench: _advance_window(bench.both()),
    "SWAComposite.translate_loc_from_full_to_swa": lambda bench: _translate(
        bench, bench.both().translate_loc_from_full_to_swa
    ),
    "SWAComposite.set_full_to_swa_mapping": lambda bench: _set_mapping(bench.both()),
    "SWAComposite.clear_full_to_swa_mapping": lambda bench: _clear_mapping(bench.both()),
    "SWAComposite.available_size": lambda bench: Call(with_holes(bench.both()).available_size),
    "SWAComposite.schedulable_size": lambda bench: Call(with_holes(bench.both()).schedulable_size),
    "SWAMambaComposite.alloc_state": lambda bench: _alloc_state(bench, set_aside=False),
    "SWAMambaComposite.alloc_state, set aside": lambda bench: _alloc_state(bench, set_aside=True),
    "SWAMambaComposite.free_state": lambda bench: _slots(bench, lambda cache, slots: cache.free_state(slots)),
    "StateSlots.reset": lambda bench: _slots(bench, lambda cache, slots: cache.state.reset(slots)),
    "StateSlots.copy": lambda bench: _slots(bench, lambda cache, slots: cache.state.copy(src=slots[:2], dst=slots[2:])),
    "StaticSWAComposite.alloc": lambda bench: _alloc(bench.fixed()),
    "StaticSWAComposite.alloc_extend": lambda bench: _alloc_extend(bench, bench.fixed()),
    "StaticSWAComposite.alloc_extend_swa_tail": lambda bench: _alloc_extend_swa_tail(bench, bench.fixed()),
    "StaticSWAComposite.alloc_decode": lambda bench: _alloc_decode(bench, bench.fixed(), 4),
    "StaticSWAComposite.free_segment": lambda bench: _free_segment(bench.fixed()),
    "StaticSWAComposite.free_full_segment": lambda bench: _free_full_segment(bench.fixed()),
    "StaticSWAComposite.free_swa_segment": lambda bench: _free_swa_segment(bench.fixed()),
    "StaticSWAComposite.free_row": lambda bench: _free_row(bench.fixed()),
    "StaticSWAComposite.advance_window": lambda bench: _advance_window(bench.fixed()),
    "StaticSWAComposite group": lambda bench: _group(bench.fixed()),
    "StaticSWAComposite.translate_loc_from_full_to_swa": lambda bench: _translate(
        bench, bench.fixed().translate_loc_from_full_to_swa
    ),
    "StaticSWAComposite.set_full_to_swa_mapping": lambda bench: _set_mapping(bench.fixed()),
    "StaticSWAComposite.clear_full_to_swa_mapping": lambda bench: _clear_mapping(bench.fixed()),
    "StaticSWAComposite.available_size": lambda bench: Call(with_holes(bench.fixed()).available_size),
    "EndBand.pack": _pack,
    "FloatBand.make_room": _make_room,
    "SWAMambaComposite.alloc_state, after relief": _alloc_state_after_relief,
    "transfer_swa_pages": lambda bench: recovery(bench.both(), transfer_swa_pages),
    "recover_locked_full": lambda bench: recovery(bench.both(), recover_locked_full),
    "SWAComposite.backup": lambda bench: Call(with_holes(bench.both()).backup),
    "SWAComposite.restore": lambda bench: _restore(bench.both()),
    "recover_locked_full, static": lambda bench: recovery(bench.fixed(), recover_locked_full),
    "StaticSWAComposite.backup": lambda bench: Call(with_holes(bench.fixed()).backup),
    "StaticSWAComposite.restore": lambda bench: _restore(bench.fixed()),
}
"""By the name of the row."""
