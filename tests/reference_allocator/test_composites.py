"""Full attention and a sliding window over one byte budget: joint demand, one-sided frees, the window's ratchet."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from reference_allocator import Floor, PageAllocator, SWAComposite
from reference_allocator.errors import (
    AlignmentError,
    ArgumentError,
    BindingError,
    BudgetError,
    GroupError,
    OverlapError,
    PoisonedError,
    SpecError,
    StateError,
)
from reference_allocator.page_tables import Profile
from reference_allocator.recovery import recover_locked_full, transfer_swa_pages
from reference_allocator.two_sides import window_frontier
from reference_allocator.verify import check, faults, verify
from tests.reference_allocator.pools import CHECKED, RAISES, byte_pool, every, ids, kv, listed, pool_of, twice
from tests.reference_allocator.test_band import Queue


def composite(page_size: int = 4, **options: bool) -> SWAComposite:
    return SWAComposite(byte_pool(page_size), **CHECKED | options)


def got(tokens: Tensor | None) -> Tensor:
    assert tokens is not None
    return tokens


def lists(both: SWAComposite) -> tuple[object, ...]:
    """All state that a refused operation must leave alone."""
    return (
        *(
            (listed(band.v2p), listed(band.p2v), listed(band.holes), band.lo, band.hi, band.live, band.epoch)
            for band in both.bands
        ),
        listed(both.full.free_vids),
        both.group_is_open,
    )


def live(both: SWAComposite) -> tuple[int, int]:
    return both.full.band.live, both.swa.live


def test_the_joint_capacity_of_the_worked_example() -> None:
    both = composite()
    assert both.full.band.gap_bytes == 61440
    assert both.available_size() == both.schedulable_size() == 40
    tokens = got(both.alloc(40))
    assert both.alloc(4) is None
    assert every(both.translate(tokens).gt(0))
    assert every(both.translate_loc_from_full_to_swa(tokens).gt(0))
    assert verify(both) == []


def test_pools_of_one_id_space_have_one_page_size() -> None:
    pool = pool_of(65536, [kv("full", "full", "up", 4, 1), kv("swa", "swa", "down", 8, 1)])
    with pytest.raises(SpecError, match="full=4, swa=8"):
        SWAComposite(pool)


def test_ids_of_a_larger_owner_fit_the_window_table() -> None:
    """The window's entry is larger than full's, so it has fewer pages than there are ids."""
    both = SWAComposite(pool_of(65536, [kv("full", "full", "down", 4, 1), kv("swa", "swa", "up", 4, 3)]))
    assert both.full.band.pages > both.swa.pages
    rows = []
    while (row := both.alloc(4)) is not None:
        rows.append(row)
        both.free_swa_segment(row, start_pos=0)
        both.swa.pack(both.swa.hole_count)
        assert verify(both) == []
    assert max(listed(rows[-1])) // 4 > both.swa.pages


def test_the_predicate_agrees_with_trying() -> None:
    chance = random.Random(7)
    for _ in range(25):
        both = composite()
        rows = [got(both.alloc(4)) for _ in range(chance.randrange(1, 10))]
        for row in rows:
            if (fate := chance.random()) < 0.4:
                both.free_segment(row, start_pos=0)
            elif fate < 0.6:
                both.free_swa_segment(row, start_pos=0)
        full, swa = both.bands
        for full_pages, swa_pages in product(range(0, 16, 3), range(0, 31, 5)):
            grown = [max(0, want - band.hole_count) for want, band in ((full_pages, full), (swa_pages, swa))]
            top, bottom = full.hi + grown[0], swa.lo - grown[1]
            works = (
                top <= full.pages
                and bottom >= swa.min_page
                and top * full.page_bytes <= bottom * swa.page_bytes
                and full_pages <= both.full.free_vids.numel()
            )
            assert both.has_room(full_pages, {full: full_pages, swa: swa_pages}) == works
        available = both.available_size()
        for pages, works in ((available // 4, True), (available // 4 + 1, False)):
            assert both.has_room(pages, both.demand(pages)) == works


@pytest.mark.parametrize("page_size", [1, 4])
def test_frees_act_on_the_sides_they_name(page_size: int) -> None:
    both = composite(page_size)
    row = got(both.alloc(6 * page_size))
    both.free_swa_segment(row[: 3 * page_size], start_pos=0)
    assert live(both) == (6, 3)
    assert listed(both.translate_loc_from_full_to_swa(row).gt(0)) == [False] * 3 * page_size + [True] * 3 * page_size
    assert every(both.translate(row).gt(0))
    both.free_full_segment(row[: 2 * page_size], start_pos=0)
    assert live(both) == (4, 3)
    both.free_segment(row[3 * page_size :], start_pos=3 * page_size)
    assert live(both) == (1, 0)
    assert verify(both) == []


@pytest.mark.parametrize(
    ("dead_lo", "frontier", "segments"),
    [(0, 0, 1), (0, 8, 1), (4, 12, 1), (0, 24, 1), (8, 16, 2), (12, 8, 1)],
)
def test_a_row_is_split_at_its_cursors(dead_lo: int, frontier: int, segments: int) -> None:
    both = composite()
    row = got(both.alloc(24))
    both.free_swa_segment(row[dead_lo:frontier], start_pos=dead_lo)
    parts = [(row, 0)] if segments == 1 else [(row[:12], 0), (row[12:], 12)]
    both.free_row(parts, swa_frontier=frontier, dead_lo=dead_lo)
    assert live(both) == (0, 0)
    assert verify(both) == []


def test_cursors_are_page_aligned() -> None:
    both = composite()
    row = got(both.alloc(8))
    with pytest.raises(AlignmentError, match="start_pos=6"):
        both.free_row([(row, 0)], swa_frontier=6)
    assert live(both) == (2, 2)


@pytest.mark.parametrize("page_size", [1, 4])
def test_frees_without_positions_leave_the_sink_and_tombstones_alone(page_size: int) -> None:
    both = composite(page_size)
    row = got(both.alloc(5 * page_size))
    both.free_swa_segment(row[:page_size], start_pos=0)
    both.free_swa(row[: 2 * page_size])
    assert live(both) == (5, 3)
    both.free(row)
    assert live(both) == (0, 0)
    assert every(both.swa.holes > 0)
    assert verify(both) == []


@pytest.mark.parametrize(
    ("length", "window", "frontier"), [(0, 8, 0), (8, 8, 0), (11, 8, 0), (12, 8, 4), (30, 6, 20), (9, 1, 4)]
)
def test_the_window_frontier(length: int, window: int, frontier: int) -> None:
    assert window_frontier(length, window, 4) == frontier


def test_a_ratchet_keeps_the_window_and_no_more() -> None:
    """S3f: the bounds are page aligned."""
    both = composite()
    row, cursor = got(both.alloc_extend(*twice(0), *twice(2), ids(-1), 2)), 0
    for length in range(3, 40):
        row = torch.cat((row, got(both.alloc_decode(*twice(length), row[-1:]))))
        cursor = both.advance_window(row, cursor, length, window=6)
        assert every(both.translate_loc_from_full_to_swa(row[-6:]).gt(0))
        assert both.swa.live <= 3
        assert verify(both) == []
    both.free_row([(row, 0)], swa_frontier=cursor)
    assert live(both) == (0, 0)
    assert verify(both) == []


@pytest.mark.parametrize("page_size", [1, 4])
def test_a_group_keeps_the_kinds_of_release_apart(page_size: int) -> None:
    both = composite(page_size)
    row, other = got(both.alloc(6 * page_size)), got(both.alloc(2 * page_size))
    third, half = 2 * page_size, page_size
    both.free_group_begin()
    both.free_full_segment(row[:0], start_pos=0)
    both.free_swa_segment(row[:third], start_pos=0)
    both.free_full_segment(row[:half], start_pos=0)
    both.free_segment(row[third : 2 * third], start_pos=third)
    both.free_segment(row[2 * third :], start_pos=2 * third)
    both.free_swa(other[:half])
    both.free(other[half:])
    row.fill_(0)
    other.fill_(0)
    assert live(both) == (8, 8)
    assert verify(both) == []
    both.free_group_end()
    assert live(both) == (2, 0)
    assert verify(both) == []


def test_a_group_on_a_device_reports_nothing_for_a_page_that_leaves_both_sides() -> None:
    both = on_a_device(composite())
    row = got(both.alloc(8))
    both.free_group_begin()
    both.free_swa_segment(row, start_pos=0)
    both.free_full_segment(row, start_pos=0)
    both.free_group_end()
    check(both)
    assert verify(both) == []


def on_a_device(both: SWAComposite) -> SWAComposite:
    """Checked as on a device: misuse goes to the error word."""
    both.raises = both.full.raises = both.full.band.raises = both.swa.raises = False
    return both


@RAISES
@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda c, row: c.free_segment(row, start_pos=0), r"swa\.free_segment: .*not bound"),
        (lambda c, row: c.free_swa_segment(row, start_pos=0), "not bound"),
        (lambda c, row: c.free_full_segment(row, start_pos=0), r"still bound \(pages=\[3, 4\]\)"),
        (lambda c, row: c.free(row + 20), "freed twice or stale"),
        (lambda c, row: c.free_swa(ids(0)), "outside the table"),
    ],
)
@pytest.mark.parametrize("group", [False, True])
def test_a_wrong_declaration_is_refused_on_a_cpu(use, message, group) -> None:  # type: ignore[no-untyped-def]
    both = composite()
    row = got(both.alloc(16))
    both.free_swa_segment(row[:8], start_pos=0)
    if group:
        both.free_group_begin()
    before = lists(both)
    with pytest.raises(BindingError, match=message):
        use(both, row)
    assert lists(both) == before
    if group:
        both.free_group_end()
    assert verify(both) == []


@RAISES
def test_a_group_refuses_a_side_that_it_frees_already() -> None:
    both = composite()
    row = got(both.alloc(16))
    both.free_group_begin()
    both.free_swa_segment(row[:8], start_pos=0)
    with pytest.raises(BindingError, match="group frees already"):
        both.free_segment(row[:8], start_pos=0)
    both.free(row[8:])
    with pytest.raises(BindingError, match="group frees already"):
        both.free(row[8:])
    both.free_group_end()
    assert live(both) == (2, 0)
    assert verify(both) == []


@pytest.mark.parametrize(
    ("use", "fault"),
    [
        (lambda c, row: c.free_segment(row, start_pos=0), "SWA_NOT_BOUND"),
        (lambda c, row: c.free_swa_segment(row, start_pos=0), "SWA_NOT_BOUND"),
        (lambda c, row: c.free_full_segment(row, start_pos=0), "SWA_STILL_BOUND"),
    ],
)
def test_a_wrong_declaration_on_a_device_sets_the_error_word(use, fault) -> None:  # type: ignore[no-untyped-def]
    both = on_a_device(composite())
    row = got(both.alloc(16))
    both.free_swa_segment(row[:8], start_pos=0)
    check(both)
    use(both, row)
    assert fault in repr(faults(both.swa))
    with pytest.raises(PoisonedError, match=f"swa=.*{fault}"):
        check(both)
    with pytest.raises(PoisonedError):
        both.alloc(4)
    both.clear()
    assert verify(both) == []
    assert both.available_size() == 40


def test_on_a_device_a_free_without_positions_leaves_the_sink_alone() -> None:
    both = on_a_device(composite())
    both.alloc(8)
    before = lists(both)
    both.free_swa(ids(0, 1, 2, 3))
    assert [side[:3] for side in lists(both)[:2]] == [side[:3] for side in before[:2]]  # type: ignore[index]
    assert verify(both) == []


@pytest.mark.parametrize("tokens", [ids(4, 5).int(), ids(4, 5).view(1, 2)])
def test_ids_of_the_wrong_kind_are_refused(tokens: Tensor) -> None:
    both = composite()
    for free in (both.free, both.free_swa):
        with pytest.raises(ArgumentError):
            free(tokens)


def test_none_and_empty_tensors_are_no_work() -> None:
    both = composite()
    before = lists(both)
    for nothing in (None, ids()):
        both.free(nothing)
        both.free_swa(nothing)
        for free in (both.free_segment, both.free_swa_segment, both.free_full_segment):
            free(nothing, start_pos=3)
    both.free_row([], swa_frontier=8)
    assert lists(both) == before


def test_relief_packs_spare_holes_only_and_only_if_that_is_enough() -> None:
    both = composite()
    rows = [got(both.alloc(4)) for _ in range(10)]
    for row in rows[1:8]:
        both.free_swa_segment(row, start_pos=0)
    before = lists(both)
    assert (both.available_size(), both.schedulable_size()) == (
        0,
        8,
    )  # 2 pages of full take the bytes of 4 window pages
    assert both.alloc(12) is None
    assert lists(both) == before
    assert got(both.alloc(8)).numel() == 8
    assert (both.full.band.moves, both.swa.moves, both.swa.hole_count) == (0, 1, 7 - 4 - 2)
    assert verify(both) == []


def test_the_memo_notices_each_pool() -> None:
    both = composite()
    row = got(both.alloc(40))
    both.free_segment(row[:8], start_pos=0)
    assert both.available_size() == 8
    assert both.swa.reserve(2) is not None
    assert verify(both) == []
    assert both.available_size() == 0
    both.free_swa_segment(row[8:16], start_pos=8)
    assert verify(both) == []
    assert both.available_size() == 8


def test_a_gate_blocks_relief() -> None:
    both = composite()
    rows = [got(both.alloc(4)) for _ in range(10)]
    for row in rows[1:8]:
        both.free_swa_segment(row, start_pos=0)
    both.swa.gates["transfer"] = lambda: False
    assert both.schedulable_size() == both.available_size() == 0
    assert both.alloc(4) is None
    both.swa.gates.clear()
    assert both.alloc(4) is not None


def test_deferred_frees_are_applied_before_a_shortage() -> None:
    both = composite()
    row = got(both.alloc(40))
    both.free_group_begin()
    both.free_segment(row[:20], start_pos=0)
    assert got(both.alloc(20)).numel() == 20
    assert both.group_is_open
    assert verify(both) == []


def test_restore_takes_both_sides_back() -> None:
    both = composite()
    row = got(both.alloc(12))
    both.free_swa_segment(row[:4], start_pos=0)
    before = lists(both)
    state = both.backup()
    assert both.alloc(16) is not None
    both.restore(state)
    assert [side[:5] for side in lists(both)[:2]] == [side[:5] for side in before[:2]]  # type: ignore[index]
    assert verify(both) == []
    both.free_swa_segment(row[4:8], start_pos=4)
    with pytest.raises(StateError, match="frees=1"):
        both.restore(state)
    both.free_group_begin()
    with pytest.raises(GroupError):
        both.backup()
    with pytest.raises(StateError, match="group"):
        both.restore(state)


@pytest.mark.parametrize("profile", ["portable", "fused"])
def test_a_backup_is_void_once_the_pools_are_cleared(profile: Profile) -> None:
    both = SWAComposite(byte_pool(), profile=profile)
    both.alloc(12)
    state = both.backup()
    both.clear()
    with pytest.raises(StateError, match="frees=1"):
        both.restore(state)
    assert verify(both) == []


def test_resize_needs_empty_pools_and_keeps_the_tables() -> None:
    specs = [kv("full", "full", "up", 4, 2), kv("swa", "swa", "down", 4, 1)]
    both = SWAComposite(pool_of(65536, specs, floor=Floor(context=16, window=8)))
    addresses = [band.v2p.data_ptr() for band in both.bands]
    row = got(both.alloc(8))
    with pytest.raises(StateError, match="full=2, swa=2"):
        both.resize(32768)
    both.free_segment(row, start_pos=0)
    both.free_group_begin()
    with pytest.raises(StateError, match="group=True"):
        both.resize(32768)
    both.free_group_end()
    both.resize(32768)
    assert [band.v2p.data_ptr() for band in both.bands] == addresses
    assert both.available_size() == (32768 - 4096) // 6144 * 4
    assert got(both.alloc(16)).numel() == 16
    assert verify(both) == []
    both.clear()
    with pytest.raises(BudgetError, match="one request cannot run alone"):
        both.resize(8192)
    assert both.pool.total_bytes == 32768
    assert verify(both) == []


@pytest.mark.parametrize("page_size", [1, 4])
def test_eager_frees_leave_no_holes(page_size: int) -> None:
    both = composite(page_size, eager=True)
    rows = [got(both.alloc(2 * page_size)) for _ in range(4)]
    both.free_swa_segment(rows[0], start_pos=0)
    both.free_segment(rows[2], start_pos=0)
    assert [band.hole_count for band in both.bands] == [0, 0]
    assert verify(both) == []


def test_one_call_sets_the_forward_event_of_every_pool() -> None:
    both = composite()
    event = object()
    both.set_forward_event(event)  # type: ignore[arg-type]
    assert all(band.fwd_event is event for band in both.bands)


@pytest.mark.parametrize("page_size", [1, 4])
def test_only_the_tail_of_an_extension_gets_window_pages(page_size: int) -> None:
    both = composite(page_size)
    old = got(both.alloc_extend(*twice(0), *twice(5), ids(-1), 5))
    before, after = twice(5, 0, 0), twice(18, 3, 8)
    last = torch.stack((old[-1], *ids(-1, -1)))
    new = got(both.alloc_extend_swa_tail(*before, *after, last, 24, tail_len=6))
    rows = [torch.cat((old, new[:13])), new[13:16], new[16:]]
    for row, length, had in zip(rows, (18, 3, 8), (5, 0, 0), strict=True):
        first = -(-had // page_size) * page_size
        tail = max(first, (length - min(6, length)) // page_size * page_size)
        bound = listed(both.translate_loc_from_full_to_swa(row).gt(0))
        assert bound == [not first <= position < tail for position in range(length)]
        assert every(both.translate(row).gt(0))
        assert verify(both) == []
        both.free_row([(row, 0)], dead_lo=first, swa_frontier=tail)
    assert live(both) == (0, 0)
    assert verify(both) == []


def test_a_tail_asks_less_of_the_window_pool() -> None:
    both = composite()
    assert both.alloc_extend(*twice(0), *twice(52), ids(-1), 52) is None
    assert got(both.alloc_extend_swa_tail(*twice(0), *twice(52), ids(-1), 52, tail_len=4)).numel() == 52
    assert live(both) == (13, 1)
    assert verify(both) == []
    assert both.alloc_extend_swa_tail(*twice(0), *twice(52), ids(-1), 52, tail_len=4) is None
    assert got(both.alloc_extend_swa_tail(*twice(), *twice(), ids(), 0, tail_len=4)).numel() == 0
    with pytest.raises(ArgumentError, match="tail_len=0"):
        both.alloc_extend_swa_tail(*twice(0), *twice(52), ids(-1), 52, tail_len=0)


@RAISES
@pytest.mark.parametrize("group", [False, True])
def test_free_full_is_for_what_has_left_the_window(group: bool) -> None:
    both = composite()
    row = got(both.alloc(16))
    both.free_swa_segment(row[:8], start_pos=0)
    if group:
        both.free_group_begin()
    with pytest.raises(BindingError, match="still bound"):
        both.free_full(row)
    both.free_full(row[:8].flip(0))
    if group:
        both.free_group_end()
    assert live(both) == (2, 2)
    assert verify(both) == []


@pytest.mark.parametrize("page_size", [1, 4])
def test_the_mapping_moves_by_clear_and_set(page_size: int) -> None:
    """The recipe that a pool with a mapping table uses for recovery: also where the ids overlap."""
    both = composite(page_size)
    row = got(both.alloc(6 * page_size))
    kept, incoming = row[: 3 * page_size], row[3 * page_size :]
    both.free_swa_segment(kept, start_pos=0)
    physical = both.translate_loc_from_full_to_swa(incoming)
    holes = listed(both.swa.holes)
    both.clear_full_to_swa_mapping(incoming)
    both.set_full_to_swa_mapping(kept, physical)
    assert listed(both.translate_loc_from_full_to_swa(kept)) == listed(physical)
    assert every(both.translate_loc_from_full_to_swa(incoming).eq(0))
    assert listed(both.swa.holes) == holes
    assert verify(both) == []
    both.clear_full_to_swa_mapping(kept)
    both.set_full_to_swa_mapping(kept, physical)
    assert verify(both) == []
    with pytest.raises(ArgumentError, match="full=1, swa=2"):
        both.set_full_to_swa_mapping(ids(4), ids(4, 5))
    for use in (
        lambda: both.set_full_to_swa_mapping(ids(4).int(), ids(4)),
        lambda: both.clear_full_to_swa_mapping(ids(4).int()),
    ):
        with pytest.raises(ArgumentError, match="int32"):
            use()


def under_way() -> tuple[SWAComposite, Tensor, Queue]:
    """Pools without room, and a compaction of the window pool that the other queue has not done."""
    queue = Queue()
    both = SWAComposite(byte_pool(), checked=True, side=queue)
    row = got(both.alloc(40))
    both.free_swa_segment(row[:28], start_pos=0)
    both.swa.pack(6)
    assert both.swa.pending_count == 6
    return both, row, queue


def test_a_shortage_waits_on_the_stream_for_compactions_under_way() -> None:
    both, _, queue = under_way()
    assert both.available_size() == 0
    assert got(both.alloc(8)).numel() == 8
    assert queue.events[0].waits == 1
    assert verify(both) == []


@pytest.mark.parametrize(
    "use",
    [
        lambda both, row: both.translate_loc_from_full_to_swa(row),
        lambda both, row: both.free_segment(row[28:], start_pos=28),
        lambda both, row: both.free_full_segment(row[:28], start_pos=0),
        lambda both, row: both.free_swa_segment(row[28:], start_pos=28),
        lambda both, row: both.free(row),
        lambda both, row: both.free_swa(row),
        lambda both, row: both.free_full(row[:28]),
        lambda both, row: both.clear_full_to_swa_mapping(row[28:]),
        lambda both, row: recover_locked_full(both, row[:12], row[28:], start_pos=0),
        lambda both, row: both.clear(),
    ],
)
def test_whatever_reads_or_writes_the_window_table_waits_on_the_stream_for_moves(use) -> None:  # type: ignore[no-untyped-def]
    both, row, queue = under_way()
    with WatchedTable(both, queue) as seen:
        use(both, row)
    assert seen.touched
    assert queue.events[0].waits == 1


class WatchedTable(TorchDispatchMode):
    """Whether the window pool's table was touched; nobody may do so before the stream waits."""

    def __init__(self, both: SWAComposite, queue: Queue) -> None:
        super().__init__()
        self.addresses = {both.swa.v2p.data_ptr(), both.swa.p2v.data_ptr()}
        self.queue = queue
        self.touched = False
        both.raises = both.full.raises = both.full.band.raises = both.swa.raises = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(isinstance(arg, Tensor) and arg.data_ptr() in self.addresses for arg in args):
            assert self.queue.events[0].waits, func
            self.touched = True
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("group", [False, True])
def test_a_row_is_freed_as_a_whole_or_not_at_all(group: bool) -> None:
    """Given a row with an error in its last part, when it is freed, then nothing is, and the right call still works."""
    both = composite()
    row = got(both.alloc(16))
    both.free_swa_segment(row[:8], start_pos=0)
    if group:
        both.free_group_begin()
    before = lists(both)
    for segments, frontier, error in (
        *([([(row, 0)], 4, BindingError)] if both.raises else ()),  # a page without a window is said to have one
        ([(row[:8], 0), (row[4:], 4)], 8, OverlapError),
        ([(row, 0)], 6, AlignmentError),
        ([(row[:8], 0), (row[8:].int(), 8)], 8, ArgumentError),
    ):
        with pytest.raises(error, match="free_row"):
            both.free_row(segments, swa_frontier=frontier)
        assert lists(both) == before
    both.free_row([(row[:12], 0), (row[12:], 12)], swa_frontier=8)
    if group:
        both.free_group_end()
    assert live(both) == (0, 0)
    assert verify(both) == []


def test_a_mapping_is_changed_after_the_frees_that_wait() -> None:
    """Given a window free that waits in a group, when the tokens get other window pages, then those stay."""
    both = on_a_device(composite())
    kept, incoming = got(both.alloc(8)), got(both.alloc(8))
    both.free_group_begin()
    both.free_swa_segment(kept, start_pos=0)
    window = both.translate_loc_from_full_to_swa(incoming)
    both.clear_full_to_swa_mapping(incoming)
    both.set_full_to_swa_mapping(kept, window)
    both.free_full_segment(incoming, start_pos=0)
    both.free_group_end()
    assert listed(both.translate_loc_from_full_to_swa(kept)) == listed(window)
    assert live(both) == (2, 2)
    assert verify(both) == []
    check(both)


@pytest.mark.parametrize("profile", ["portable", "fused"])
@pytest.mark.parametrize("page_size", [1, 4])
def test_window_pages_may_be_named_twice_in_a_group_as_outside_of_it(page_size: int, profile: Profile) -> None:
    for checked in (True, False):
        both = SWAComposite(byte_pool(page_size), checked=checked, profile=profile)
        row = got(both.alloc(4 * page_size))
        both.free_group_begin()
        both.free_swa(row)
        both.free_swa(row[: 2 * page_size])
        both.free_group_end()
        assert live(both) == (4, 0)
        assert verify(both) == []


FREES = {
    "segment": lambda both, row: both.free_segment(row, start_pos=0),
    "swa segment": lambda both, row: both.free_swa_segment(row, start_pos=0),
    "full segment": lambda both, row: both.free_full_segment(row, start_pos=0),
    "free": lambda both, row: both.free(row),
    "swa": lambda both, row: both.free_swa(row),
    "full": lambda both, row: both.free_full(row),
}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(first, second, marks=() if (first[:3], second[:4]) == ("swa", "full") else RAISES)
        for first, second in product(FREES, FREES)
    ],
)
@pytest.mark.parametrize("page_size", [1, 4])
def test_two_frees_mean_the_same_inside_a_group_and_outside(page_size: int, first: str, second: str) -> None:
    """Given two frees of the same tokens, when both are in one group, then they are refused or done as without one."""
    outcomes = []
    for group in (False, True):
        both = composite(page_size)
        row = got(both.alloc(4 * page_size))
        if group:
            both.free_group_begin()
        refused = [refuses(FREES[kind], both, row) for kind in (first, second)]
        if group:
            both.free_group_end()
        assert verify(both) == []
        outcomes.append((refused, live(both)))
    assert outcomes[0] == outcomes[1]


def refuses(free: Any, both: SWAComposite, row: Tensor) -> bool:
    try:
        free(both, row)
    except BindingError:
        return True
    return False


def test_only_a_state_of_the_past_is_restored() -> None:
    for make in (composite, lambda: PageAllocator(byte_pool(), "full")):
        allocator, other = make(), make()
        first = allocator.backup()
        got(allocator.alloc(8))
        second = allocator.backup()
        got(allocator.alloc(8))
        allocator.restore(second)
        allocator.restore(first)
        again = got(allocator.alloc(12))
        with pytest.raises(StateError, match="past"):
            allocator.restore(second)
        with pytest.raises(StateError, match="past"):
            allocator.restore(other.backup())
        assert every(allocator.translate(again).gt(0))
        allocator.restore(first)
        allocator.restore(first)
        assert verify(allocator) == []


@pytest.mark.parametrize("change", ["transfer", "clear", "set"])
def test_a_backup_is_void_once_window_pages_have_other_owners(change: str) -> None:
    both = composite()
    kept, spare = got(both.alloc(8)), got(both.alloc(8))
    both.free_swa_segment(kept, start_pos=0)
    if change == "set":
        window = both.translate_loc_from_full_to_swa(spare)
        both.clear_full_to_swa_mapping(spare)
    state = both.backup()
    if change == "transfer":
        transfer_swa_pages(both, kept, spare, start_pos=0)
    elif change == "clear":
        both.clear_full_to_swa_mapping(spare)
    else:
        both.set_full_to_swa_mapping(kept, window)
    with pytest.raises(StateError, match="transfers=1"):
        both.restore(state)


@RAISES
@pytest.mark.parametrize("profile", ["portable", "fused"])
def test_lengths_of_the_device_and_of_the_host_are_the_same(profile: Profile) -> None:
    """Given lengths that differ, when pages are extended, then nothing changes."""
    both = SWAComposite(byte_pool(), profile=profile)
    row = got(both.alloc(4))
    before = lists(both)
    with pytest.raises(ArgumentError, match=r"device=\[8\], host=\[12\]"):
        both.alloc_extend(*twice(4), ids(8), torch.tensor([12]), row[-1:], 8)
    with pytest.raises(ArgumentError, match=r"device=\[6\], host=\[5\]"):
        both.alloc_decode(ids(6), torch.tensor([5]), row[-1:])
    assert lists(both) == before


@pytest.mark.parametrize("profile", ["portable", "fused"])
def test_on_a_device_no_id_is_made_up_where_lengths_differ(profile: Profile) -> None:
    both = on_a_device(SWAComposite(byte_pool(), checked=True, profile=profile))
    row = got(both.alloc(4))
    new = got(both.alloc_extend(*twice(4), ids(8), torch.tensor([12]), row[-1:], 8))
    assert every((new >= 0) & (new < both.full.band.ids.stop * 4))
