"""Compaction planned on the host ends in the same tables as compaction planned on the device, and waits for it."""

from __future__ import annotations

import random

import pytest

from nosync_lint.guard import allow_sync
from reference_allocator import PageAllocator
from reference_allocator.end_band import EndBand
from reference_allocator.errors import ArgumentError
from reference_allocator.naive import pack_host_planned
from reference_allocator.verify import verify
from tests.reference_allocator.dispatches import Dispatches
from tests.reference_allocator.pools import ids, listed, two_owners
from tests.reference_allocator.test_allocator import got
from tests.reference_allocator.test_band import Event

PAGES = 10


def fragmented(seed: int) -> tuple[PageAllocator, PageAllocator]:
    """An up pool and a down pool, each with some of its pages freed in some order; every page holds its number."""
    chance = random.Random(seed)
    owners = two_owners()
    for allocator in owners:
        row = got(allocator.alloc(4 * PAGES))
        envelopes = allocator.band.pool.envelopes(allocator.name)
        envelopes[allocator.translate(row[::4]) // 4] = (row[::4] + 1).unsqueeze(1)
        for page in chance.sample(range(PAGES), chance.randint(0, PAGES)):
            allocator.free_segment(row[4 * page : 4 * page + 4], start_pos=4 * page)
    return owners


def planned_on_host(band: EndBand, pages: int) -> int:
    """By the bad example, which may wait here: where it does, `tests/guard` says."""
    with allow_sync(reason="the bad example waits"):
        return pack_host_planned(band, pages)


def state(band: EndBand) -> tuple[object, ...]:
    """All that a compaction leaves behind, and what the live pages hold."""
    live = [page for page in listed(band.v2p[band.ids.first : -1]) if page > 0]
    held = band.pool.envelopes(band.name)[ids(*live)]
    return (
        listed(band.v2p),
        listed(band.p2v),
        listed(band.holes),
        band.lo,
        band.hi,
        band.live,
        band.moves,
        listed(held),
    )


@pytest.mark.parametrize("seed", range(40))
def test_the_tables_and_contents_are_those_of_a_plan_on_the_device(seed: int) -> None:
    for ours, naive in zip(fragmented(seed), fragmented(seed), strict=True):
        pages = random.Random(-seed).randint(0, ours.band.hole_count)
        assert planned_on_host(naive.band, pages) == ours.band.pack(pages) == pages
        assert state(naive.band) == state(ours.band)
        assert verify(naive) == []


@pytest.mark.parametrize("pages", [-1, 1])
def test_more_than_there_are_holes_is_refused(pages: int) -> None:
    for allocator in two_owners():
        got(allocator.alloc(8))
        with pytest.raises(ArgumentError, match=f"pages={pages}, holes=0"):
            planned_on_host(allocator.band, pages)


def test_a_gate_forbids_it_and_it_waits_for_the_forward() -> None:
    (allocator, _), event = two_owners(), Event()
    allocator.free_segment(got(allocator.alloc(16))[:8], start_pos=0)
    allocator.band.fwd_event = event
    allocator.band.gates["transfer"] = lambda: False
    assert (planned_on_host(allocator.band, 1), event.waits) == (0, 0)
    del allocator.band.gates["transfer"]
    assert (planned_on_host(allocator.band, 1), event.waits) == (1, 1)


@pytest.mark.host("counts what torch dispatches in CPU memory; tests/guard counts the waits on the device")
def test_the_host_waits_three_times_where_the_device_plans_without_a_wait() -> None:
    (naive, _), (ours, _) = two_owners(checked=False), two_owners(checked=False)
    for allocator in (naive, ours):
        allocator.free_segment(got(allocator.alloc(32))[:16], start_pos=0)
    with Dispatches() as seen:
        pack_host_planned(naive.band, 3)
    assert (seen.count, seen.syncs) == (7, ["tolist", "tolist", "lift_fresh"])
    with Dispatches() as seen:
        ours.band.pack(3)
    assert seen.syncs == []
