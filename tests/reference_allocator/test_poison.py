"""What a set error word stops, once somebody has looked: every call that changes something, of whatever has the pool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reference_allocator import MambaComposite, PageAllocator, StaticSWAComposite, SWAComposite, SWAMambaComposite
from reference_allocator.error_word import ErrorWord, Fault
from reference_allocator.errors import PoisonedError
from reference_allocator.recovery import transfer_swa_pages
from reference_allocator.verify import check, verify
from tests.reference_allocator.pools import byte_pool, ids, twice
from tests.reference_allocator.test_allocator import got
from tests.reference_allocator.test_state import Composite, three_pools, two_pools
from tests.reference_allocator.test_static import static

Both = SWAComposite | StaticSWAComposite

OF_ALL: dict[str, Callable[[Any], object]] = {
    "alloc": lambda cache: cache.alloc(4),
    "alloc_extend": lambda cache: cache.alloc_extend(*twice(0), *twice(4), ids(-1), 4),
    "alloc_decode": lambda cache: cache.alloc_decode(*twice(2), ids(4)),
    "free": lambda cache: cache.free(ids(4)),
    "free_segment": lambda cache: cache.free_segment(ids(4), start_pos=0),
    "free_segments": lambda cache: cache.free_segments([(ids(4), 0)]),
    "free_group_begin": lambda cache: cache.free_group_begin(),
    "backup": lambda cache: cache.backup(),
    "restore": lambda cache: cache.restore(None),
}
OF_TWO_SIDES: dict[str, Callable[[Any], object]] = {
    "free_row": lambda both: both.free_row([(ids(4), 0)], swa_frontier=0),
    "advance_window": lambda both: both.advance_window(ids(4, 5, 6, 7), old=0, length=4, window=8),
    "set_full_to_swa_mapping": lambda both: both.set_full_to_swa_mapping(ids(4), ids(4)),
    "clear_full_to_swa_mapping": lambda both: both.clear_full_to_swa_mapping(ids(4)),
    "transfer_swa_pages": lambda both: transfer_swa_pages(both, ids(4), ids(8), start_pos=0),
}
OF_STATES: dict[str, Callable[[Any], object]] = {
    "alloc_state": lambda cache: cache.alloc_state(1),
    "free_state": lambda cache: cache.free_state(ids(1)),
}
OF_SLOTS: dict[str, Callable[[Any], object]] = {
    "reset": lambda slots: slots.reset(ids(1)),
    "copy": lambda slots: slots.copy(src=ids(1), dst=ids(2)),
    "alloc_group_begin": lambda slots: slots.alloc_group_begin(1),
    "alloc_group_end": lambda slots: slots.alloc_group_end(),
}


def break_word(word: ErrorWord) -> None:
    """As a free of an unbound page would on a device."""
    word.expect_positive(Fault.DOUBLE_FREE, ids(0))


def expect_stopped(owner: Any, calls: dict[str, Callable[[Any], object]]) -> None:
    for operation, call in calls.items():
        with pytest.raises(PoisonedError, match=rf"\.{operation}: the error word is set"):
            call(owner)


def composites_with_state() -> tuple[Composite, Composite]:
    return MambaComposite(two_pools()), SWAMambaComposite(three_pools())


@pytest.mark.parametrize("at", [0, 1])
def test_poison_stops_tokens_and_slots_until_clear(at: int) -> None:
    """Given a set error word of any pool, when the allocator is checked, then it and its slots change no more."""
    for index in range(len(composites_with_state()[at].bands)):
        cache = composites_with_state()[at]
        got(cache.alloc(8))
        got(cache.alloc_state(3))
        break_word(cache.bands[index].error)
        assert got(cache.alloc(4)).numel() == 4
        with pytest.raises(PoisonedError, match="DOUBLE_FREE"):
            check(cache)
        expect_stopped(cache, OF_ALL | OF_STATES)
        expect_stopped(cache.state, OF_ALL | OF_SLOTS)
        if isinstance(cache, SWAMambaComposite):
            expect_stopped(cache, OF_TWO_SIDES)
            expect_stopped(cache.full, OF_ALL)
        cache.clear()
        assert not cache.poisoned
        assert not cache.state.poisoned
        assert got(cache.alloc_state(1)).numel() == 1
        assert got(cache.alloc(8)).numel() == 8
        assert verify(cache) == []


@pytest.mark.parametrize("at", [0, 1])
def test_poison_of_a_part_is_poison_of_the_whole_and_not_of_its_other_parts(at: int) -> None:
    cache = composites_with_state()[at]
    slots = got(cache.alloc_state(2))
    break_word(cache.state.band.error)
    with pytest.raises(PoisonedError, match=r"state\.check"):
        check(cache.state)
    expect_stopped(cache.state, OF_ALL | OF_SLOTS)
    expect_stopped(cache, OF_ALL | OF_STATES)
    if isinstance(cache, SWAMambaComposite):
        assert not cache.full.poisoned
    assert cache.state.band.live == slots.numel()
    cache.clear()
    assert got(cache.alloc_state(1)).numel() == 1


def test_both_sides_are_stopped_by_the_word_of_either() -> None:
    makes: list[Callable[[], Both]] = [lambda: SWAComposite(byte_pool()), static]
    for make in makes:
        for index in range(2):
            both = make()
            break_word(both.error_words[index])
            with pytest.raises(PoisonedError):
                check(both)
            expect_stopped(both, OF_ALL | OF_TWO_SIDES)
            both.clear()
            assert got(both.alloc(4)).numel() == 4
            assert verify(both) == []


def test_a_group_that_is_open_when_poison_is_found_stays_open_and_is_dropped_by_clear() -> None:
    allocator = PageAllocator(byte_pool(), "full")
    row = got(allocator.alloc(8))
    allocator.free_group_begin()
    allocator.free_segment(row, start_pos=0)
    break_word(allocator.band.error)
    with pytest.raises(PoisonedError):
        check(allocator)
    with pytest.raises(PoisonedError, match="apply_deferred"):
        allocator.apply_deferred()
    with pytest.raises(PoisonedError, match="free_group_end"):
        allocator.free_group_end()
    assert (allocator.group_is_open, allocator.band.live) == (True, 2)
    allocator.clear()
    assert not allocator.group_is_open
    assert verify(allocator) == []
