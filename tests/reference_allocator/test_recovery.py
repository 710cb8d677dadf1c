"""S4: a cached node whose full pages are pinned takes the window pages of an identical incoming prefix."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from reference_allocator import SWAComposite
from reference_allocator.errors import AlignmentError, ArgumentError, BindingError
from reference_allocator.recovery import recover_locked_full, transfer_swa_pages, transfer_swa_tokens
from reference_allocator.verify import check, faults, verify
from tests.reference_allocator.pools import RAISES, byte_pool, every, ids, listed, put, refusals
from tests.reference_allocator.test_composites import composite, got, lists, on_a_device


def evicted(both: SWAComposite, pages: int) -> tuple[Tensor, Tensor]:
    """A node without window pages, and the incoming tokens of the same text. Ids of both are in no order."""
    size = both.page_size
    spread = got(both.alloc(2 * pages * size)).view(-1, size)
    kept, incoming = spread[1::2].flip(0).reshape(-1), spread[::2].reshape(-1)
    both.free_swa_segment(kept, start_pos=0)
    return kept, incoming


def test_pairs_are_positional() -> None:
    """S4a."""
    both = SWAComposite(byte_pool(1))
    given = got(both.alloc(9))
    pages = sorted(listed(given))
    kept, incoming = (ids(*(pages[at] for at in places)) for places in ((8, 6, 4), (1, 3, 5)))
    both.free_swa_segment(kept, start_pos=0)
    physical = listed(both.swa.v2p[incoming])
    recover_locked_full(both, kept, incoming, start_pos=0)
    assert listed(both.swa.v2p[kept]) == physical
    assert listed(both.swa.p2v[ids(*physical)]) == listed(kept)
    assert listed(both.swa.v2p[incoming]) == [-1, -1, -1]
    assert verify(both) == []


@pytest.mark.parametrize("group", [False, True])
@pytest.mark.parametrize("page_size", [1, 4])
def test_recovery_gives_back_full_pages_and_keeps_window_pages(page_size: int, group: bool) -> None:
    """S4d, S4f: given an evicted node, when it is recovered, then only full has more room."""
    both = composite(page_size)
    kept, incoming = evicted(both, 3)
    swa, holes, free = both.swa.live, listed(both.swa.holes), both.full.free_vids.numel()
    if group:
        both.free_group_begin()
    value = recover_locked_full(both, kept, incoming, start_pos=0)
    if group:
        assert both.full.free_vids.numel() == free
        both.free_group_end()
    assert (both.swa.live, listed(both.swa.holes)) == (swa, holes)
    assert both.full.free_vids.numel() == free + 3
    assert every(value.gt(0))
    assert listed(value) == listed(both.translate_loc_from_full_to_swa(kept))
    assert every(both.translate(kept).gt(0))
    assert every(both.translate(incoming).eq(0))
    assert verify(both) == []


@pytest.mark.parametrize("page_size", [1, 4])
def test_the_node_reads_what_was_written_for_the_incoming_tokens(page_size: int) -> None:
    """S4f: also once a compaction has moved it, which asks p2v for the owner."""
    both = composite(page_size)
    kept, incoming = evicted(both, 3)
    keys, _ = both.pool.kv_layer("swa", 0)
    text = put(torch.arange(1, kept.numel() + 1, dtype=torch.bfloat16))
    keys[both.translate_loc_from_full_to_swa(incoming)] = text.view(-1, 1, 1)
    value = recover_locked_full(both, kept, incoming, start_pos=0)
    assert listed(keys[value][:, 0, 0]) == listed(text)
    assert both.swa.pack(both.swa.hole_count) == 3
    moved = both.translate_loc_from_full_to_swa(kept)
    assert listed(moved) != listed(value)
    assert listed(keys[moved][:, 0, 0]) == listed(text)
    assert verify(both) == []


@pytest.mark.parametrize("checked", [False, True])
def test_a_recovered_node_is_sound(checked: bool) -> None:
    both = composite(checked=checked)
    kept, incoming = evicted(both, 3)
    transfer_swa_pages(both, kept, incoming, start_pos=0)
    assert verify(both) == []
    both.free_full_segment(incoming, start_pos=0)
    assert verify(both) == []


def test_an_eviction_that_waits_in_the_group_is_applied_first() -> None:
    both = composite()
    kept, incoming = got(both.alloc(8)), got(both.alloc(8))
    both.free_group_begin()
    both.free_swa_segment(kept, start_pos=0)
    value = recover_locked_full(both, kept, incoming, start_pos=0)
    both.free_group_end()
    assert every(value.gt(0))
    assert (both.full.band.live, both.swa.live) == (2, 2)
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
        (lambda c, k, i: recover_locked_full(c, i, i, start_pos=0), BindingError, "still bound"),
        (lambda c, k, i: recover_locked_full(c, ids(52, 53), i[:2], start_pos=0), BindingError, r"full\..*not bound"),
    ),
)  # fmt: skip
def test_what_cannot_be_recovered_is_refused_and_nothing_changes(use, error, message) -> None:  # type: ignore[no-untyped-def]
    """S4b, S4c, S4g."""
    both = composite()
    kept, incoming = evicted(both, 3)
    before = lists(both)
    with pytest.raises(error, match=message):
        use(both, kept, incoming)
    assert lists(both) == before
    assert verify(both) == []


def test_recovering_nothing_is_no_work() -> None:
    both = composite()
    before = lists(both)
    assert recover_locked_full(both, ids(), ids(), start_pos=0).numel() == 0
    assert lists(both) == before


@pytest.mark.parametrize(("swap", "faulty"), [((1, 0), "SWA_NOT_BOUND"), ((1, 1), "KEPT_STILL_BOUND")])
def test_on_a_device_a_wrong_pair_sets_the_error_word_and_moves_nothing(swap: tuple[int, int], faulty: str) -> None:
    both = on_a_device(composite())
    pair = evicted(both, 3)
    before = lists(both)
    transfer_swa_pages(both, pair[swap[0]], pair[swap[1]], start_pos=0)
    assert lists(both) == before
    assert faulty in repr(faults(both.swa))


def test_on_a_device_the_sink_gives_nothing() -> None:
    """S4c."""
    both = on_a_device(composite())
    kept, _ = evicted(both, 1)
    before = lists(both)
    transfer_swa_pages(both, kept, ids(0, 1, 2, 3), start_pos=0)
    assert lists(both) == before
    assert "SWA_NOT_BOUND" in repr(faults(both.swa))


def test_on_a_device_a_right_pair_is_transferred() -> None:
    both = on_a_device(composite())
    kept, incoming = evicted(both, 3)
    assert every(recover_locked_full(both, kept, incoming, start_pos=0).gt(0))
    check(both)
    assert verify(both) == []


@pytest.mark.parametrize("page_size", [1, 4])
def test_tokens_without_a_position_move_the_same_pages(page_size: int) -> None:
    """Given two stretches that start and end inside pages, when tokens are paired, then pages are as by position."""
    by_position, by_token = composite(page_size), composite(page_size)
    for both in (by_position, by_token):
        kept, incoming = evicted(both, 3)
        if both is by_position:
            transfer_swa_pages(both, kept, incoming, start_pos=0)
        else:
            part = slice(page_size // 2, kept.numel() - page_size // 4)
            transfer_swa_tokens(both, kept[part].flip(0), incoming[part].flip(0))
        both.free_full_segment(incoming, start_pos=0)
    assert lists(by_position) == lists(by_token)
    assert verify(by_token) == []


@RAISES
def test_tokens_at_different_places_of_their_pages_are_refused() -> None:
    both = composite()
    kept, incoming = evicted(both, 3)
    before = lists(both)
    with pytest.raises(BindingError, match="break into pages differently"):
        transfer_swa_tokens(both, kept[:8], incoming[1:9])
    with pytest.raises(ArgumentError, match="kept=8, incoming=7"):
        transfer_swa_tokens(both, kept[:8], incoming[:7])
    with pytest.raises(BindingError, match="still bound"):
        transfer_swa_tokens(both, incoming[:4], incoming[4:8])
    transfer_swa_tokens(both, kept[:0], incoming[:0])
    assert lists(both) == before


def test_on_a_device_the_error_word_learns_of_pages_that_break_apart() -> None:
    both = on_a_device(composite())
    kept, incoming = evicted(both, 3)
    transfer_swa_tokens(both, kept[1:8], incoming[:7])
    assert "PAGES_APART" in repr(faults(both.swa))
