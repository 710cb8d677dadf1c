"""S4 with a fixed split: the window moves by clearing and setting, and the full pages go back through the composite."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from reference_allocator.errors import AlignmentError, ArgumentError, BindingError, PoisonedError
from reference_allocator.recovery import recover_locked_full, transfer_swa_pages, transfer_swa_tokens
from reference_allocator.static import FixedPages
from reference_allocator.verify import check, verify
from tests.reference_allocator.pools import RAISES, every, ids, listed, refusals
from tests.reference_allocator.test_static import evicted, got, lists, live, on_a_device, static


@pytest.mark.parametrize("page_size", [1, 4])
def test_the_mapping_moves_by_clear_and_set(page_size: int) -> None:
    both = static(page_size)
    kept, incoming = evicted(both, 3)
    window = both.translate_loc_from_full_to_swa(incoming)
    both.clear_full_to_swa_mapping(incoming)
    both.set_full_to_swa_mapping(kept, window)
    assert listed(both.translate_loc_from_full_to_swa(kept)) == listed(window)
    assert every(both.translate_loc_from_full_to_swa(incoming).eq(0))
    assert live(both) == (6, 3)
    assert verify(both) == []


@pytest.mark.parametrize("group", [False, True])
@pytest.mark.parametrize("page_size", [1, 4])
def test_recovery_gives_back_full_pages_and_keeps_window_pages(page_size: int, group: bool) -> None:
    """S4a, S4d, S4e, D11: pairs by position; in a group the full pages wait for its end."""
    both = static(page_size)
    kept, incoming = evicted(both, 3)
    window = listed(both.translate_loc_from_full_to_swa(incoming))
    free = [listed(side.free) for side in both.sides]
    if group:
        both.free_group_begin()
    value = recover_locked_full(both, kept, incoming, start_pos=0)
    if group:
        assert [listed(side.free) for side in both.sides] == free
        both.free_group_end()
    assert listed(value) == listed(both.translate_loc_from_full_to_swa(kept)) == window
    assert every(both.translate_loc_from_full_to_swa(incoming).eq(0))
    assert listed(both.swa.free) == free[1]
    assert both.full.free.numel() == len(free[0]) + 3
    assert verify(both) == []


def test_recovery_is_one_clear_one_set_and_one_free_of_the_composite(monkeypatch: pytest.MonkeyPatch) -> None:
    """S4e."""
    both = static()
    kept, incoming = evicted(both, 3)
    calls = []

    def watch(place: object, name: str) -> None:
        original = getattr(place, name)
        monkeypatch.setattr(place, name, lambda *args, **named: (calls.append(name), original(*args, **named))[1])

    for name in ("clear_full_to_swa_mapping", "set_full_to_swa_mapping", "free_full_segment", "free_segment"):
        watch(both, name)
    watch(FixedPages, "give")
    both.free_group_begin()
    recover_locked_full(both, kept, incoming, start_pos=0)
    assert calls == ["clear_full_to_swa_mapping", "set_full_to_swa_mapping", "free_full_segment"]
    both.free_group_end()
    assert calls[3:] == ["give"]


@pytest.mark.parametrize("page_size", [1, 4])
def test_what_is_kept_and_incoming_keeps_its_window(page_size: int) -> None:
    """S4e, D10: set, then clear would erase it."""
    both = static(page_size)
    kept, incoming = evicted(both, 3)
    shared = torch.cat((kept[:page_size], incoming[page_size:]))
    window = both.translate_loc_from_full_to_swa(incoming)
    transfer_swa_pages(both, shared, incoming, start_pos=0)
    assert listed(both.translate_loc_from_full_to_swa(shared)) == listed(window)
    assert every(both.translate_loc_from_full_to_swa(incoming[:page_size]).eq(0))
    assert verify(both) == []


@RAISES
def test_what_is_kept_is_not_recovered_from_itself() -> None:
    both = static()
    kept, _ = evicted(both, 3)
    before = lists(both)
    with pytest.raises(BindingError, match="incoming tokens that are kept"):
        recover_locked_full(both, kept, kept, start_pos=0)
    assert lists(both) == before


def test_an_eviction_that_waits_in_the_group_frees_the_old_window_pages_only() -> None:
    both = static()
    kept, incoming = got(both.alloc(8)), got(both.alloc(8))
    both.free_group_begin()
    both.free_swa_segment(kept, start_pos=0)
    assert every(recover_locked_full(both, kept, incoming, start_pos=0).gt(0))
    both.free_group_end()
    assert live(both) == (2, 2)
    assert verify(both) == []


@pytest.mark.parametrize(
    ("use", "error", "message"),
    refusals(
        (lambda c, k, i: recover_locked_full(c, k, i[:4], start_pos=0), ArgumentError, "kept=12, incoming=4"),
        (lambda c, k, i: recover_locked_full(c, k, i.int(), start_pos=0), ArgumentError, "int32"),
        (lambda c, k, i: recover_locked_full(c, k[2:6], i[2:6], start_pos=2), AlignmentError, "start_pos=2"),
        (lambda c, k, i: recover_locked_full(c, k[2:6], i[:4], start_pos=0), BindingError, "inside a page"),
        (lambda c, k, i: recover_locked_full(c, i, k, start_pos=0), BindingError, "not bound"),
        (lambda c, k, i: recover_locked_full(c, k[:4], ids(0, 1, 2, 3), start_pos=0), BindingError, "outside the table"),
        (lambda c, k, i: recover_locked_full(c, i[:4], i[4:8], start_pos=0), BindingError, "still bound"),
        (lambda c, k, i: recover_locked_full(c, ids(52, 53), i[:2], start_pos=0), BindingError, r"full\..*not bound"),
    ),
)  # fmt: skip
def test_what_cannot_be_recovered_is_refused_and_nothing_changes(
    use: Any, error: type[Exception], message: str
) -> None:
    """S4b, S4c, S4g."""
    both = static()
    kept, incoming = evicted(both, 3)
    before = lists(both)
    with pytest.raises(error, match=message):
        use(both, kept, incoming)
    assert lists(both) == before


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("page_size", [1, 4])
def test_without_positions_the_window_moves_token_by_token(page_size: int, checked: bool) -> None:
    both = static(page_size, checked=checked)
    kept, incoming = evicted(both, 3)
    window = both.translate_loc_from_full_to_swa(incoming)
    inside = slice(page_size // 2, None)
    transfer_swa_tokens(both, kept[inside], incoming[inside])
    assert listed(both.translate_loc_from_full_to_swa(kept)) == listed(window)
    assert every(both.translate_loc_from_full_to_swa(incoming).eq(0))
    assert live(both) == (6, 3)
    assert verify(both) == []


@RAISES
def test_ranges_that_break_into_pages_differently_are_no_pairs() -> None:
    both = static()
    kept, incoming = evicted(both, 3)
    before = lists(both)
    with pytest.raises(BindingError, match="break into pages differently"):
        transfer_swa_tokens(both, kept[1:5], incoming[:4])
    assert lists(both) == before


def test_on_a_device_the_error_word_learns_of_ranges_that_break_apart() -> None:
    both = on_a_device(static())
    kept, incoming = evicted(both, 3)
    transfer_swa_tokens(both, kept[1:5], incoming[:4])
    with pytest.raises(PoisonedError, match=r"swa=.*PAGES_APART"):
        check(both)


def test_on_a_device_tokens_of_one_page_report_nothing() -> None:
    both = on_a_device(static(checked=True))
    kept, incoming = evicted(both, 3)
    transfer_swa_tokens(both, kept, incoming)
    assert every(both.translate_loc_from_full_to_swa(kept).gt(0))
    check(both)
    assert verify(both) == []
