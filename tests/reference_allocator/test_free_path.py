"""S3: frees of segments use the position, and nothing on their path finds out what it says."""

from __future__ import annotations

import random

import pytest
import torch

from reference_allocator import PageAllocator, StaticSWAComposite, SWAComposite, join
from reference_allocator.error_word import Fault
from reference_allocator.errors import PoisonedError
from reference_allocator.page_tables import Profile
from reference_allocator.recovery import transfer_swa_pages
from reference_allocator.token_allocator import TokenAllocator
from reference_allocator.verify import check, faults, verify
from tests.reference_allocator.dispatches import Dispatches
from tests.reference_allocator.pools import Place, byte_pool, ids, listed, twice
from tests.reference_allocator.test_allocator import got

CHURN = 150
"""Calls per case: enough to fill the pools several times."""


class Poisoned(Exception):
    """Somebody asked the device which pages there are."""


@pytest.fixture
def poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise Poisoned

    for place, name in ((torch, "unique"), (torch.Tensor, "unique"), (torch, "nonzero"), (torch.Tensor, "item")):
        monkeypatch.setattr(place, name, refuse)


@pytest.mark.parametrize("kind", [PageAllocator, SWAComposite])
def test_every_allocator_has_its_own_free_segment_that_uses_the_position(
    kind: type[TokenAllocator], poisoned: None
) -> None:
    """S3d."""
    assert kind.free_segment is not TokenAllocator.free_segment
    pool = byte_pool()
    allocator = PageAllocator(pool, "full") if kind is PageAllocator else SWAComposite(pool)
    assert isinstance(allocator, PageAllocator | SWAComposite)
    row = got(allocator.alloc(16))
    allocator.free_segment(row[4:12], start_pos=4)
    allocator.free_group_begin()
    allocator.free_segment(row[:4], start_pos=0)
    allocator.free_group_end()
    with pytest.raises(Poisoned):
        allocator.free(row[12:])


def test_only_the_free_without_a_position_looks_for_pages_in_a_group(poisoned: None) -> None:
    """S3c."""
    allocator = PageAllocator(byte_pool(), "full", checked=False)
    row = got(allocator.alloc(16))
    allocator.free_group_begin()
    allocator.free_segment(row[:4], start_pos=0)
    allocator.free_segment(row[8:16], start_pos=8)
    allocator.free(row[4:8])
    with pytest.raises(Poisoned):
        allocator.free_group_end()


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("page_size", [1, 16, 64, 256])
@pytest.mark.parametrize("pools", [1, 2])
def test_churn_stops_the_host_nowhere(page_size: int, eager: bool, pools: int) -> None:
    """Rows that come, decode, lose their window and go, in groups and out of them, until the pools are full and again."""
    chance = random.Random(page_size)
    pool = byte_pool(page_size, 12 * page_size * 1536)
    if pools == 1:
        allocator: PageAllocator | SWAComposite = PageAllocator(pool, "full", eager=eager, checked=False)
        join(allocator.band, PageAllocator(pool, "swa", checked=False).band)  # type: ignore[union-attr]
    else:
        allocator = SWAComposite(pool, eager=eager, checked=False)
    rows: list[tuple[torch.Tensor, int]] = []
    shortages = 0
    for step in range(CHURN):
        act = chance.random()
        if act < 0.35 or not rows:
            length = chance.randrange(1, 4 * page_size)
            none, lens, last = twice(0), twice(length), ids(-1)
            with Dispatches(none[1], lens[1]) as seen:
                new = allocator.alloc_extend(*none, *lens, last, length)
            rows += [] if new is None else [(new, 0)]
            shortages += new is None
        elif act < 0.6:
            lens, last = twice(*(row.numel() + 1 for row, _ in rows)), torch.stack([row[-1] for row, _ in rows])
            with Dispatches(lens[1]) as seen:
                new = allocator.alloc_decode(*lens, last)
            if new is not None:
                rows = [(torch.cat((row, new[at : at + 1])), cursor) for at, (row, cursor) in enumerate(rows)]
        else:
            row, cursor = rows.pop(chance.randrange(len(rows)))
            with Dispatches() as seen:
                if act > 0.9:
                    allocator.free_group_begin()
                if isinstance(allocator, PageAllocator):
                    allocator.free_segment(row, start_pos=0)
                else:
                    cursor = allocator.advance_window(row, cursor, row.numel(), window=page_size)
                    allocator.free_row([(row, 0)], swa_frontier=cursor)
                if act > 0.9:
                    allocator.free_group_end()
        assert seen.syncs == [], step
        assert verify(allocator) == [], step
    check(allocator)
    assert shortages


FOREIGN = (10**9, -(10**9))


@pytest.mark.parametrize("profile", ["portable", "fused"])
@pytest.mark.parametrize("use", ["free_segment", "free_swa_segment", "free_full_segment"])
def test_ids_outside_the_table_are_reported_on_a_device_and_followed_nowhere(use: str, profile: Profile) -> None:
    """Given a checked pool on a device, when an id is no page at all, then the error word has it and no row changes.

    An index out of bounds would end the CUDA context before anybody could read why.
    """
    both = SWAComposite(byte_pool(), checked=True, profile=profile)
    fixed = StaticSWAComposite(64, 64, page_size=4, device=Place.device, checked=True)
    for allocator in (both, fixed):
        row = got(allocator.alloc(8))
        allocator.raises = False
        before = listed(allocator.translate_loc_from_full_to_swa(row))
        if isinstance(allocator, SWAComposite):
            both.full.raises = both.full.band.raises = both.swa.raises = False
        for foreign in FOREIGN:
            getattr(allocator, use)(ids(foreign // 4 * 4), start_pos=0)
        with pytest.raises(PoisonedError):
            check(allocator)
        assert listed(allocator.translate_loc_from_full_to_swa(row)) == before
        allocator.clear()
        check(allocator)


@pytest.mark.parametrize("profile", ["portable", "fused"])
def test_transfers_of_ids_outside_the_table_move_nothing(profile: Profile) -> None:
    both = SWAComposite(byte_pool(), checked=True, profile=profile)
    row = got(both.alloc(8))
    both.raises = both.full.raises = both.full.band.raises = both.swa.raises = False
    before = listed(both.swa.v2p)
    for foreign in FOREIGN:
        transfer_swa_pages(both, ids(foreign // 4 * 4), row[:1], start_pos=0)
        transfer_swa_pages(both, row[:1], ids(foreign // 4 * 4), start_pos=0)
    assert faults(both.swa) == Fault.UNKNOWN_ID | Fault.SWA_NOT_BOUND | Fault.KEPT_STILL_BOUND
    assert listed(both.swa.v2p) == before


def test_transfers_of_a_fixed_split_are_held_to_its_table_too() -> None:
    fixed = StaticSWAComposite(64, 64, page_size=4, device=Place.device, checked=True)
    row = got(fixed.alloc(8))
    fixed.raises = False
    before = listed(fixed.translate_loc_from_full_to_swa(row))
    for foreign in (*FOREIGN, 0):
        transfer_swa_pages(fixed, ids(foreign // 4 * 4), row[4:5], start_pos=0)
        transfer_swa_pages(fixed, row[:1], ids(foreign // 4 * 4), start_pos=0)
    assert faults(fixed.swa) == Fault.UNKNOWN_ID | Fault.SWA_NOT_BOUND | Fault.KEPT_STILL_BOUND
    assert listed(fixed.translate_loc_from_full_to_swa(row))[:4] == before[:4]
