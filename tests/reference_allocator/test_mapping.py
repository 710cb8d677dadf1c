"""Mappings that are set by hand: what a checked pool in CPU memory refuses, and that it then changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from reference_allocator import StaticSWAComposite, SWAComposite
from reference_allocator.errors import BindingError
from reference_allocator.verify import verify
from tests.reference_allocator.pools import RAISES, byte_pool, ids, listed, put
from tests.reference_allocator.test_allocator import got
from tests.reference_allocator.test_static import lists as static_lists
from tests.reference_allocator.test_static import static

Both = SWAComposite | StaticSWAComposite
MAKES: list[Callable[[], Both]] = [lambda: SWAComposite(byte_pool()), static]
KINDS = pytest.mark.parametrize("make", MAKES, ids=["pooled", "static"])


def state_of(both: Both) -> object:
    if isinstance(both, StaticSWAComposite):
        return static_lists(both)
    bands = [(listed(band.v2p), listed(band.p2v), listed(band.holes), band.live, band.epoch) for band in both.bands]
    return (bands, listed(both.full.free_vids), both.group_is_open)


def cleared(both: Both) -> tuple[Tensor, Tensor]:
    """Two pages of a row whose window pages were taken from them, and the tokens of these; more pages are mapped."""
    row = got(both.alloc(16))
    window = both.translate_loc_from_full_to_swa(row[:8])
    both.clear_full_to_swa_mapping(row[:8])
    return row, window


def expect_refused(both: Both, full: Tensor, swa: Tensor, said: str) -> None:
    before = state_of(both)
    with pytest.raises(BindingError, match=rf"\.set_full_to_swa_mapping: {said}"):
        both.set_full_to_swa_mapping(full, swa)
    assert state_of(both) == before


@KINDS
def test_a_mapping_is_set_where_it_was_cleared(make: Callable[[], Both]) -> None:
    """By all tokens of the pages, or by some of each, in any order."""
    both = make()
    row, window = cleared(both)
    order = put(torch.tensor([5, 0, 3, 4]))
    both.set_full_to_swa_mapping(row[order], window[order])
    both.set_full_to_swa_mapping(ids(), ids())
    assert listed(both.translate_loc_from_full_to_swa(row[:8])) == listed(window)
    assert verify(both) == []


@RAISES
@KINDS
def test_a_mapping_is_not_set_over_another(make: Callable[[], Both]) -> None:
    both = make()
    row, window = cleared(both)
    expect_refused(both, row[8:], window, "pages that are still bound")
    held = both.translate_loc_from_full_to_swa(row[8:])
    expect_refused(both, row[:8], held, "window pages that are (bound|mapped)")
    expect_refused(both, row[:8], torch.cat((window[:4], window[:4])), "one page paired with two")
    expect_refused(both, torch.cat((row[:4], row[:4])), window, "one page paired with two")
    both.set_full_to_swa_mapping(row[:8], window)
    assert verify(both) == []


@RAISES
@KINDS
@pytest.mark.parametrize("far", [-(10**6), 10**6])
def test_a_mapping_names_ids_of_its_pools(make: Callable[[], Both], far: int) -> None:
    both = make()
    row, window = cleared(both)
    expect_refused(both, row[:8] + far, window, "ids outside the table")
    expect_refused(both, row[:8], window + far, "window pages outside the pool")
    expect_refused(
        both, row[:4], window[:4] * 0 + put(torch.arange(4)), "window pages outside the pool|window pages that are"
    )
    expect_refused(both, put(torch.arange(4)), window[:4], "ids outside the table")
    both.free_full_segment(row[:4], start_pos=0)
    expect_refused(both, row[:4], window[:4], "pages that are not bound")


@RAISES
@KINDS
def test_a_mapping_is_set_at_equal_places(make: Callable[[], Both]) -> None:
    both = make()
    row, window = cleared(both)
    expect_refused(both, row[:8], window.roll(1), "ranges that break into pages differently")
    expect_refused(both, row[:8], window + 1, "ranges that break into pages differently")


@RAISES
@KINDS
@pytest.mark.parametrize("group", [False, True])
def test_a_window_page_that_is_free_is_given_to_nobody(make: Callable[[], Both], group: bool) -> None:
    both = make()
    row, _ = cleared(both)
    freed = both.translate_loc_from_full_to_swa(row[8:12])
    if group and isinstance(both, StaticSWAComposite):  # over a byte pool deferred frees are applied first
        both.free_group_begin()
    both.free_swa_segment(row[8:12], start_pos=8)
    expect_refused(both, row[:4], freed, "window pages that are free")


@RAISES
def test_a_window_page_outside_the_region_or_reserved_is_given_to_nobody() -> None:
    both = SWAComposite(byte_pool())
    row, window = cleared(both)
    expect_refused(both, row[:4], window[4:] - 4 * 20, "window pages that are outside the region")
    held = both.swa.reserve(1)
    assert held is not None
    expect_refused(both, row[:4], held.pages * 4 + put(torch.arange(4)), "window pages that are reserved")


@RAISES
@KINDS
@pytest.mark.parametrize("far", [-(10**6), 10**6])
def test_what_is_no_id_is_not_cleared(make: Callable[[], Both], far: int) -> None:
    both = make()
    row = got(both.alloc(8))
    before = state_of(both)
    with pytest.raises(BindingError, match=r"clear_full_to_swa_mapping: ids outside the table"):
        both.clear_full_to_swa_mapping(torch.cat((row, row + far)))
    assert state_of(both) == before
