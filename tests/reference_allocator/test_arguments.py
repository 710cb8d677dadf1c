"""What calls are given: counts and positions that are no ints, ids that are no tensor of ids, names of nothing."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import pytest
import torch

from reference_allocator import PageAllocator, SWAComposite, SWAMambaComposite
from reference_allocator.errors import AlignmentError, AllocatorError, ArgumentError, SpecError
from reference_allocator.float_band import FloatBand
from reference_allocator.recovery import recover_locked_full, transfer_swa_pages
from reference_allocator.verify import verify
from tests.reference_allocator.dispatches import Dispatches
from tests.reference_allocator.pools import byte_pool, every, ids, listed, twice
from tests.reference_allocator.test_allocator import got, owner
from tests.reference_allocator.test_state import three_pools
from tests.reference_allocator.test_static import lists as static_lists
from tests.reference_allocator.test_static import static


class Index:
    """A number of another library: it is an index, and no int."""

    def __index__(self) -> int:
        return 4


NO_COUNTS = [None, 4.0, True, torch.tensor(4), Index(), "4"]
"""What is no plain int. A bool is one to `isinstance`, and a tensor to `%` and `<`."""
NO_IDS = [[4, 5, 6, 7], array("q", range(4, 8)), 4, torch.tensor(4), torch.arange(4, 8, dtype=torch.int32)]

Call = Callable[[SWAMambaComposite, Any], object]


def state_of(cache: SWAMambaComposite) -> tuple[object, ...]:
    """All state that a refused call must leave alone."""
    bands = [
        (listed(band.v2p), listed(band.p2v), listed(band.holes), band.lo, band.hi, band.live, band.epoch)
        for band in cache.bands
    ]
    ids_left = (listed(cache.full.free_vids), listed(cache.state.free_vids))
    return (*bands, *ids_left, cache.state.set_aside, cache.group_is_open, cache.swa.pool.total_bytes)


def extend(cache: SWAMambaComposite, total: Any) -> object:
    return cache.alloc_extend(*twice(0), *twice(4), ids(-1), total)


def extend_tail(cache: SWAMambaComposite, total: Any) -> object:
    return cache.alloc_extend_swa_tail(*twice(0), *twice(4), ids(-1), total, tail_len=4)


def tail(cache: SWAMambaComposite, length: Any) -> object:
    return cache.alloc_extend_swa_tail(*twice(0), *twice(4), ids(-1), 4, tail_len=length)


def make_room(cache: SWAMambaComposite, needed: Any) -> object:
    assert isinstance(cache.swa, FloatBand)
    return cache.swa.make_room("low", needed)


COUNTED: dict[str, Call] = {
    "alloc": lambda cache, count: cache.alloc(count),
    "alloc_extend": extend,
    "alloc_extend_swa_tail": extend_tail,
    "tail_len": tail,
    "free_segment": lambda cache, start: cache.free_segment(ids(4, 5, 6, 7), start_pos=start),
    "free_segments": lambda cache, start: cache.free_segments([(ids(4, 5, 6, 7), start)]),
    "free_row, start": lambda cache, start: cache.free_row([(ids(4, 5, 6, 7), start)], swa_frontier=0),
    "free_row, frontier": lambda cache, cursor: cache.free_row([(ids(4, 5, 6, 7), 0)], swa_frontier=cursor),
    "free_row, dead_lo": lambda cache, low: cache.free_row([(ids(4, 5, 6, 7), 0)], swa_frontier=8, dead_lo=low),
    "transfer": lambda cache, start: transfer_swa_pages(cache, ids(4, 5), ids(8, 9), start_pos=start),
    "recover": lambda cache, start: recover_locked_full(cache, ids(4, 5), ids(8, 9), start_pos=start),
    "resize": lambda cache, total: cache.resize(total),
    "pool.resize": lambda cache, total: cache.swa.pool.resize(total),
    "reserve": lambda cache, count: cache.swa.reserve(count),
    "pack": lambda cache, count: cache.swa.pack(count),
    "make_room": make_room,
    "alloc_state": lambda cache, count: cache.alloc_state(count),
    "state.alloc": lambda cache, count: cache.state.alloc(count),
    "alloc_group_begin": lambda cache, count: cache.state.alloc_group_begin(count),
    "cost_in_tokens": lambda cache, size: cache.state.cost_in_tokens(size),
}
NAMED: dict[str, Call] = {
    "free": lambda cache, tokens: cache.free(tokens),
    "free_swa": lambda cache, tokens: cache.free_swa(tokens),
    "full.free": lambda cache, tokens: cache.full.free(tokens),
    "full.free_segment": lambda cache, tokens: cache.full.free_segment(tokens, start_pos=0),
    "free_segment": lambda cache, tokens: cache.free_segment(tokens, start_pos=0),
    "free_segments": lambda cache, tokens: cache.free_segments([(tokens, 0)]),
    "free_row": lambda cache, tokens: cache.free_row([(tokens, 0)], swa_frontier=0),
    "free_state": lambda cache, slots: cache.free_state(slots),
    "reset": lambda cache, slots: cache.state.reset(slots),
    "copy": lambda cache, slots: cache.state.copy(src=slots, dst=slots),
    "transfer": lambda cache, tokens: transfer_swa_pages(cache, tokens, tokens, start_pos=0),
    "recover": lambda cache, tokens: recover_locked_full(cache, tokens, ids(4, 5, 6, 7), start_pos=0),
    "set mapping": lambda cache, tokens: cache.set_full_to_swa_mapping(tokens, ids(4, 5, 6, 7)),
    "clear mapping": lambda cache, tokens: cache.clear_full_to_swa_mapping(tokens),
    "decode": lambda cache, lens: cache.alloc_decode(lens, *twice(4, 5, 6, 7)),
}


@pytest.mark.parametrize("given", NO_COUNTS, ids=repr)
@pytest.mark.parametrize("call", COUNTED)
def test_a_count_or_position_that_is_no_int_is_refused_and_changes_nothing(call: str, given: object) -> None:
    cache = SWAMambaComposite(three_pools())
    if call not in ("resize", "pool.resize"):
        got(cache.alloc(16))
    before = state_of(cache)
    with pytest.raises(ArgumentError, match="no int"):
        COUNTED[call](cache, given)
    assert state_of(cache) == before
    assert verify(cache) == []


@pytest.mark.parametrize("given", NO_IDS, ids=repr)
@pytest.mark.parametrize("call", NAMED)
def test_ids_that_are_no_tensor_of_ids_are_refused_and_change_nothing(call: str, given: object) -> None:
    cache = SWAMambaComposite(three_pools())
    got(cache.alloc(16))
    got(cache.alloc_state(8))
    before = state_of(cache)
    with pytest.raises(ArgumentError, match=r"must be (a tensor|int64)|unequal length"):
        NAMED[call](cache, given)
    assert state_of(cache) == before


def test_less_than_nothing_is_not_reserved() -> None:
    cache = SWAMambaComposite(three_pools())
    before = state_of(cache)
    with pytest.raises(ArgumentError, match=r"swa\.reserve: .*count=-1, least=0"):
        cache.swa.reserve(-1)
    assert state_of(cache) == before
    assert cache.swa.may_move()


def test_a_reservation_is_bound_to_ids_alone() -> None:
    allocator = owner()
    held = allocator.band.reserve(2)
    assert held is not None
    for pages in (torch.tensor([3, 4], dtype=torch.int32), [3, 4], torch.tensor([[3, 4]])):
        with pytest.raises(ArgumentError, match=r"full\.bind_reserved"):
            allocator.band.bind_reserved(held, pages)  # type: ignore[arg-type]
    assert allocator.band.reserved == {held.number: held}
    allocator.band.give_up(held)
    assert verify(allocator) == []


@pytest.mark.parametrize("size", [0, -1])
def test_a_token_takes_some_bytes(size: int) -> None:
    with pytest.raises(ArgumentError, match=r"state\.cost_in_tokens: .*least=1"):
        SWAMambaComposite(three_pools()).state.cost_in_tokens(size)


@pytest.mark.parametrize("total", [65536.0, None, True])
def test_a_budget_is_a_number_of_bytes(total: Any) -> None:
    with pytest.raises(ArgumentError, match="total_bytes"):
        byte_pool(total=total)


def test_nothing_among_segments_is_skipped() -> None:
    """None, as for a segment alone."""
    for both in (SWAComposite(byte_pool()), static()):
        row = got(both.alloc(16))
        both.free_segments([(None, 0), (row[:4], 0), (row[:0], 4)])  # type: ignore[list-item]
        both.free_row([(None, 4), (row[4:], 4)], swa_frontier=0)  # type: ignore[list-item]
        both.free_segments([(None, 0)])  # type: ignore[list-item]
        assert verify(both) == []
        assert both.available_size() == both.schedulable_size() > 0


def test_a_fixed_split_refuses_the_same() -> None:
    both = static()
    row = got(both.alloc(16))
    before = static_lists(both)
    for tokens in NO_IDS[:4]:
        with pytest.raises(ArgumentError):
            both.free_segment(tokens, start_pos=0)  # type: ignore[arg-type]
    for start in NO_COUNTS:
        with pytest.raises(ArgumentError):
            both.free_segment(row, start_pos=start)  # type: ignore[arg-type]
    for wrong in (row.int(), listed(row), row.float()):
        with pytest.raises(ArgumentError, match="translate"):
            both.translate(wrong)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="translate"):
        both.translate(row, out=row.int())
    assert static_lists(both) == before
    with pytest.raises(ArgumentError, match="size"):
        static(4.0)  # type: ignore[arg-type]


WRONG_WINDOWS: list[tuple[type[AllocatorError], Any, dict[str, Any]]] = [
    (ArgumentError, lambda row: row[:7], {}),
    (ArgumentError, lambda row: row[0], {}),
    (ArgumentError, lambda row: listed(row), {}),
    (ArgumentError, lambda row: row.int(), {}),
    (ArgumentError, lambda row: row, {"window": 0}),
    (ArgumentError, lambda row: row, {"window": -4}),
    (ArgumentError, lambda row: row, {"window": 4.0}),
    (ArgumentError, lambda row: row, {"length": torch.tensor(16)}),
    (ArgumentError, lambda row: row, {"length": -1}),
    (ArgumentError, lambda row: row, {"old": 0.0}),
    (AlignmentError, lambda row: row, {"old": -4}),
    (AlignmentError, lambda row: row, {"old": 2}),
]


@pytest.mark.parametrize(("error", "cut", "changed"), WRONG_WINDOWS)
def test_a_window_that_cannot_advance_frees_nothing(
    error: type[AllocatorError], cut: Callable[[torch.Tensor], Any], changed: dict[str, Any]
) -> None:
    for both in (SWAComposite(byte_pool()), static()):
        row = got(both.alloc(16))
        with pytest.raises(error, match=r"\+swa\.advance_window"):
            both.advance_window(cut(row), **{"old": 0, "length": 16, "window": 8, **changed})
        assert every(both.translate_loc_from_full_to_swa(row).gt(0))
        assert both.advance_window(row, old=0, length=16, window=8) == 8
        assert both.advance_window(row[:8], old=8, length=16, window=8) == 8
        assert verify(both) == []


@pytest.mark.parametrize("page_size", [1, 4])
def test_ids_beyond_31_bits_are_refused_before_there_is_memory_for_them(page_size: int) -> None:
    pool = byte_pool(page_size)
    for pages in (2**31 // page_size, 2**31, 2**62):
        with Dispatches() as seen, pytest.raises(SpecError, match=rf"full\.ids: .*31 bits \(pages={pages}"):
            PageAllocator(pool, "full", virtual_pages=pages)
        assert seen.count == 0
    for given in NO_COUNTS[1:]:
        with pytest.raises(ArgumentError, match="virtual_pages"):
            PageAllocator(pool, "full", virtual_pages=given)  # type: ignore[arg-type]
