"""A pool that floats between the ends: where it grows, how it makes room, and what its neighbours see of it."""

from __future__ import annotations

import random
from typing import Literal

import pytest
import torch

from reference_allocator import PageAllocator, join
from reference_allocator.end_band import EndBand
from reference_allocator.errors import ArgumentError, SpecError
from reference_allocator.float_band import FloatBand, Side
from reference_allocator.pages import Pages
from reference_allocator.records import Ids
from reference_allocator.verify import verify, verify_band
from tests.reference_allocator.dispatches import Dispatches
from tests.reference_allocator.pools import every, ids, kv, listed, pool_of, put
from tests.reference_allocator.test_allocator import got
from tests.reference_allocator.test_band import Event

SIDES: tuple[Side, Side] = ("low", "high")


class Three:
    """Three owners of one byte in a chain, with pages of 3, 1 and 2 layers: frontiers meet off each other's grid."""

    def __init__(self, total: int = 65536, *, checked: bool = True) -> None:
        self.pool = pool_of(
            total, [kv("up", "full", "up", 2, 3), kv("middle", "swa", "float", 2, 2), kv("down", "full", "down", 2, 1)]
        )
        self.up, self.middle, self.down = (
            PageAllocator(self.pool, name, checked=checked) for name in ("up", "middle", "down")
        )
        join(self.up.band, self.middle.band, self.down.band)

    @property
    def all(self) -> tuple[PageAllocator, PageAllocator, PageAllocator]:
        return self.up, self.middle, self.down

    @property
    def floating(self) -> FloatBand:
        assert isinstance(self.middle.band, FloatBand)
        return self.middle.band

    def verify(self) -> list[str]:
        return [problem for allocator in self.all for problem in verify(allocator)]


def test_the_first_pages_stand_in_the_middle_and_leave_room_on_both_sides() -> None:
    three = Three()
    got(three.middle.alloc(8))
    low, high = three.floating.gap("low"), three.floating.gap("high")
    assert abs(low - high) <= 2 * three.floating.page_bytes
    assert three.up.band.high_limit == three.floating.lo * three.floating.page_bytes
    assert three.down.band.low_limit == three.floating.hi * three.floating.page_bytes
    assert three.verify() == []


def test_neighbours_look_through_an_empty_one_as_soon_as_its_last_page_dies() -> None:
    three = Three()
    before = three.up.available_size(), three.down.available_size()
    row = got(three.middle.alloc(8))
    assert three.up.available_size() < before[0]
    three.middle.free_segment(row[:4], start_pos=0)
    assert not three.floating.transparent
    three.middle.free_segment(row[4:], start_pos=4)
    assert three.floating.transparent
    assert three.floating.hole_count == 0
    assert (three.up.available_size(), three.down.available_size()) == before
    assert three.verify() == []


def test_what_a_reservation_holds_is_not_nowhere() -> None:
    three = Three()
    row = got(three.middle.alloc(4))
    held = three.floating.reserve(2)
    assert held is not None
    three.middle.free_segment(row, start_pos=0)
    assert not three.floating.transparent
    assert three.floating.make_room("low", 1 << 20) == three.floating.gap("low")
    assert three.verify() == []
    three.floating.give_up(held)
    assert three.floating.transparent
    assert three.verify() == []


def test_it_grows_on_both_sides_when_one_is_not_enough() -> None:
    three = Three()
    got(three.middle.alloc(4))
    room = three.middle.available_size() // 2
    assert three.floating.take(room + 1) is None
    got(three.middle.alloc(room * 2))
    assert three.floating.gap("low") < three.floating.page_bytes
    assert three.floating.gap("high") < three.floating.page_bytes
    assert three.middle.alloc(2) is None
    assert three.verify() == []


def test_capacity_is_measured_on_its_own_grid() -> None:
    """The neighbours' frontiers lie between two pages of the floating pool: raw bytes would promise one page more."""
    pool = pool_of(49152 + 512, [kv("up", "full", "up", 1, 3), kv("middle", "swa", "float", 1, 4), kv("down", "full", "down", 1, 1)])  # fmt: skip
    up, middle, down = (PageAllocator(pool, name) for name in ("up", "middle", "down"))
    join(up.band, middle.band, down.band)
    off = 0
    for turn in range(12):
        got((up, down)[turn % 2].alloc(1))
        gap = middle.band.high_limit - middle.band.low_limit
        promised = middle.available_size()
        off += gap // middle.band.page_bytes > promised
        state = middle.backup()
        assert middle.band.take(promised + 1) is None
        assert middle.alloc(promised) is not None
        assert verify(middle) + verify(up) + verify(down) == []
        middle.restore(state)
    assert off


@pytest.mark.parametrize("side", SIDES)
def test_holes_give_an_exact_number_of_pages_on_either_side(side: Side) -> None:
    three = Three()
    row = got(three.middle.alloc(16))
    keys, _ = three.pool.kv_layer("middle", 1)
    keys[three.middle.translate(row)] = put(torch.arange(16)).view(16, 1, 1).to(torch.bfloat16)
    three.middle.free_segments([(row[2:4], 2), (row[8:12], 8)])
    gap = three.floating.gap(side)
    assert three.floating.pack(3, side) == 3
    assert three.floating.gap(side) == gap + 3 * three.floating.page_bytes
    left = torch.cat((row[:2], row[4:8], row[12:]))
    assert listed(keys[three.middle.translate(left)][:, 0, 0]) == [0, 1, 4, 5, 6, 7, 12, 13, 14, 15]
    assert three.verify() == []


@pytest.mark.parametrize("pages", [-1, 2])
def test_pack_refuses_what_is_not_there(pages: int) -> None:
    three = Three()
    row = got(three.middle.alloc(8))
    three.middle.free_segment(row[:2], start_pos=0)
    with pytest.raises(ArgumentError, match=f"pages={pages}, holes=1"):
        three.floating.pack(pages)


def test_room_that_cannot_be_made_changes_nothing() -> None:
    three = Three()
    row = got(three.middle.alloc(16))
    three.middle.free_segment(row[4:8], start_pos=4)
    before = three.floating.lo, three.floating.hi, listed(three.floating.v2p), three.floating.moves
    most = three.floating.high_limit - three.floating.low_limit - three.floating.live * three.floating.page_bytes
    for side in SIDES:
        assert three.floating.make_room(side, most + 1) == three.floating.gap(side)
    three.floating.gates["transfer"] = lambda: False
    assert three.floating.make_room("low", three.floating.gap("low") + 1) == three.floating.gap("low")
    assert before == (three.floating.lo, three.floating.hi, listed(three.floating.v2p), three.floating.moves)


@pytest.mark.parametrize("side", SIDES)
def test_a_region_does_not_move_into_its_neighbour(side: Side) -> None:
    three = Three()
    for end in (three.up, three.down):
        got(end.alloc(4))
    got(three.middle.alloc(16))
    most = three.floating.high_limit - three.floating.low_limit - three.floating.live * three.floating.page_bytes
    three.floating.make_room(side, most + three.floating.page_bytes)
    assert three.verify() == []


@pytest.mark.parametrize("side", SIDES)
def test_a_region_moves_as_a_whole(side: Side) -> None:
    three = Three()
    row = got(three.middle.alloc(8))
    keys, _ = three.pool.kv_layer("middle", 1)
    keys[three.middle.translate(row)] = put(torch.arange(8)).view(8, 1, 1).to(torch.bfloat16)
    wanted = three.floating.gap(side) + 2 * three.floating.page_bytes
    assert three.floating.make_room(side, wanted) == wanted
    assert three.verify() == []
    assert listed(keys[three.middle.translate(row)][:, 0, 0]) == list(range(8))


def test_an_empty_one_offers_all_that_is_between_its_neighbours() -> None:
    three = Three()
    assert three.floating.make_room("low", 1) == three.floating.high_limit - three.floating.low_limit


def test_moves_wait_for_the_forward() -> None:
    three = Three()
    row = got(three.middle.alloc(8))
    three.middle.free_segment(row[2:4], start_pos=2)
    for needed in (three.floating.page_bytes, 3 * three.floating.page_bytes):
        event = Event()
        three.floating.fwd_event = event
        three.floating.make_room("low", three.floating.gap("low") + needed)
        assert event.waits == 1


@pytest.mark.parametrize("side", SIDES)
def test_room_is_made_in_any_state_without_a_read_and_contents_stay(side: Side) -> None:
    chance = random.Random(side)
    leaps = packed = refused = 0
    for _ in range(250):
        three = Three(chance.randrange(24000, 65536), checked=False)
        for end in (three.up, three.down):
            if (count := chance.randrange(0, 1 + end.available_size() // 3) // 2 * 2) > 0:
                got(end.alloc(count))
        if not (most := three.middle.available_size() // 2):
            continue
        rows = [got(three.middle.alloc(2)) for _ in range(chance.randrange(1, most + 1))]
        keys, values = three.pool.kv_layer("middle", 1)
        kept = [row for row in rows if chance.random() < 0.6] or rows[:1]
        for number, row in enumerate(kept):
            keys.index_fill_(0, three.middle.translate(row), number)
            values.index_fill_(0, three.middle.translate(row), -number)
        for row in rows:
            if not any(row is other for other in kept):
                three.middle.free_segment(row, start_pos=0)
        band = three.floating
        region = band.last_page(band.high_limit) - band.first_page(band.low_limit) - band.live
        asked = chance.randrange(0, max(1, (region + 2) * band.page_bytes))
        before, lo, moves = band.gap(side), band.lo, band.moves
        with Dispatches() as seen:
            opened = band.make_room(side, asked)
        assert seen.syncs == []
        possible = asked <= max(before, region * band.page_bytes)
        assert opened == band.gap(side)
        assert (opened >= asked) or not possible
        if opened < asked:
            refused += 1
            assert (band.lo, band.moves) == (lo, moves)
        leaps += abs(band.lo - lo) >= band.span
        packed += band.moves > moves
        assert three.verify() == []
        for number, row in enumerate(kept):
            at = three.middle.translate(row)
            assert every(keys[at].eq(number))
            assert every(values[at].eq(-number))
    assert leaps
    assert packed
    assert refused


def test_a_shortage_at_either_end_moves_the_floating_pool_aside() -> None:
    for name in ("up", "down"):
        three = Three()
        end = three.up if name == "up" else three.down
        row = got(three.middle.alloc(12))
        three.middle.free_segment(row[4:8], start_pos=4)
        assert end.schedulable_size() > end.available_size()
        promised = end.schedulable_size()
        assert end.alloc(promised + 2) is None
        assert three.floating.moves == 0
        assert end.alloc(promised) is not None
        assert three.verify() == []


def test_a_gate_on_the_floating_pool_leaves_only_what_is_open() -> None:
    three = Three()
    got(three.middle.alloc(12))
    three.floating.gates["transfer"] = lambda: False
    for end in (three.up, three.down):
        assert end.schedulable_size() == end.available_size()
        assert end.alloc(end.available_size() + 2) is None
    assert three.verify() == []


def test_what_the_ends_can_spare_relieves_the_floating_pool() -> None:
    three = Three()
    rows = [got(end.alloc(end.available_size() // 4 * 2)) for end in (three.up, three.down)]
    for end, row in zip((three.up, three.down), rows, strict=True):
        end.free_segment(row[: row.numel() // 4 * 2], start_pos=0)
    promised = three.middle.schedulable_size()
    assert promised > three.middle.available_size()
    assert three.middle.alloc(promised + 2) is None
    assert three.middle.alloc(promised) is not None
    assert three.verify() == []


@pytest.mark.parametrize("grow", ["up", "down"])
def test_each_kind_of_band_refuses_the_other(grow: Literal["up", "down"]) -> None:
    three = Three()
    with pytest.raises(SpecError, match="no end"):
        EndBand(three.pool, "middle", Ids(1, 8, owner=False), eager=False, checked=True)
    with pytest.raises(SpecError, match=f"grow={grow}"):
        FloatBand(three.pool, grow, Ids(1, 8, owner=False), checked=True)


def test_a_chain_has_two_ends_and_at_most_one_pool_between() -> None:
    three, other = Three(), Three()
    middle = three.middle.band
    for bands in (
        (three.up.band, middle),
        (three.up.band, three.up.band, three.down.band),
        (three.up.band, middle, middle, three.down.band),
        (three.up.band, other.down.band),
    ):
        with pytest.raises(SpecError, match="join"):
            join(*bands)


def test_one_alone_has_the_whole_budget() -> None:
    pool = Three().pool
    band = FloatBand(pool, "middle", Ids(1, 40, owner=False), checked=True)
    band.alloc_with_virtual(Pages(ids(3, 4)))
    assert band.gap("low") + band.gap("high") == pool.total_bytes - pool.sink_bytes - 2 * band.page_bytes
    assert verify_band(band) == []
