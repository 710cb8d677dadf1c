"""The allocator of one pool: ids, frees, groups, misuse."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
import torch
from torch import Tensor

from reference_allocator import PageAllocator
from reference_allocator.arguments import coalesce
from reference_allocator.errors import (
    AlignmentError,
    AllocatorError,
    ArgumentError,
    BindingError,
    BudgetError,
    CapacityError,
    GroupError,
    OverlapError,
    PoisonedError,
    StateError,
)
from reference_allocator.tables import WholePages
from reference_allocator.verify import check, faults, verify
from tests.reference_allocator.pools import RAISES, byte_pool, every, ids, listed, refusals, twice, two_owners

PAGE_SIZES = [1, 4, 16]


def owner(page_size: int = 4, **options: bool) -> PageAllocator:
    return two_owners(page_size, **options)[0]


def got(tokens: Tensor | None) -> Tensor:
    assert tokens is not None
    return tokens


def lists(allocator: PageAllocator) -> tuple[object, ...]:
    """All state that a refused operation must leave alone."""
    band = allocator.band
    return (
        listed(band.v2p), listed(band.p2v), listed(band.holes), listed(allocator.free_vids),
        band.lo, band.hi, band.live, band.epoch, allocator.group_is_open,
    )  # fmt: skip


def test_a_fresh_allocator_is_sound() -> None:
    for allocator in two_owners():
        assert verify(allocator) == []
        allocator.clear()
        assert verify(allocator) == []


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_tokens_are_whole_pages_in_order_and_bound(page_size: int) -> None:
    allocator = owner(page_size)
    tokens = got(allocator.alloc(3 * page_size))
    assert tokens.dtype is torch.int64
    pages = tokens.view(3, page_size)
    assert listed(pages % page_size) == [list(range(page_size))] * 3
    assert every(allocator.translate(tokens).gt(0))
    assert allocator.available_size() == (65536 // (1024 * page_size) - 1 - 3) * page_size
    assert verify(allocator) == []


@pytest.mark.parametrize("page_size", [1, 4])
def test_what_is_handed_out_is_the_callers(page_size: int) -> None:
    allocator = owner(page_size)
    tokens = got(allocator.alloc(2 * page_size))
    before = lists(allocator)
    tokens.fill_(-7)
    assert lists(allocator) == before
    allocator.clear()
    assert verify(allocator) == []


def test_nothing_is_allocated_for_nothing() -> None:
    allocator = owner()
    before = lists(allocator)
    for count in (0, -4):
        assert got(allocator.alloc(count)).numel() == 0
    assert got(allocator.alloc_extend(*twice(), *twice(), ids(), 0)).numel() == 0
    assert got(allocator.alloc_decode(*twice(), ids())).numel() == 0
    assert lists(allocator) == before


def test_a_shortage_gives_none_and_changes_nothing() -> None:
    allocator = owner()
    before = lists(allocator)
    assert allocator.alloc(64) is None
    assert allocator.alloc_extend(*twice(0), *twice(64), ids(-1), 64) is None
    wanted = twice(*[5] * 16)
    assert allocator.alloc_decode(*wanted, wanted[0] - 2) is None
    assert lists(allocator) == before


def test_room_without_ids_is_a_shortage() -> None:
    allocator = PageAllocator(byte_pool(), "full", virtual_pages=4)
    assert allocator.available_size() == 12
    assert allocator.alloc(16) is None
    assert got(allocator.alloc(12)).numel() == 12
    assert verify(allocator) == []
    with pytest.raises(BudgetError, match="pages=1, min_page=1"):
        PageAllocator(byte_pool(), "full", virtual_pages=1)


def test_minting_what_was_not_admitted_changes_nothing() -> None:
    allocator = PageAllocator(byte_pool(), "full", virtual_pages=40)
    before = lists(allocator)
    with pytest.raises(CapacityError, match=r"pages=16, holes=0, span=0"):
        allocator.hand_out(WholePages(), 16)
    assert lists(allocator) == before


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_a_row_that_grows_token_by_token_is_page_structured(page_size: int) -> None:
    allocator = owner(page_size)
    row = got(allocator.alloc_extend(*twice(0), *twice(5), ids(-1), 5))
    more = got(allocator.alloc_extend(*twice(5), *twice(11), row[-1:], 6))
    row = torch.cat((row, more))
    for length in range(12, 30):
        row = torch.cat((row, got(allocator.alloc_decode(*twice(length), row[-1:]))))
    assert listed(row % page_size) == [position % page_size for position in range(29)]
    pages = listed(row // page_size)
    assert all(pages[at] == pages[at // page_size * page_size] for at in range(29))
    assert allocator.band.live == -(-29 // page_size)
    assert every(allocator.translate(row).gt(0))
    assert verify(allocator) == []
    allocator.free_segment(row, start_pos=0)
    assert allocator.band.live == 0
    assert verify(allocator) == []


def test_a_decode_step_inside_pages_writes_no_table() -> None:
    allocator = owner()
    row = got(allocator.alloc_extend(*twice(0), *twice(5), ids(-1), 5))
    before = lists(allocator)
    assert listed(got(allocator.alloc_decode(*twice(6), row[-1:]))) == listed(row[-1:] + 1)
    assert lists(allocator) == before


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("page_size", [1, 4])
def test_free_segment_frees_its_pages_and_no_others(page_size: int, eager: bool) -> None:
    """S3a: at positions 0, one page and two pages."""
    for start in (0, 1, 2):
        allocator = owner(page_size, eager=eager)
        row = got(allocator.alloc(6 * page_size))
        free = allocator.free_vids.numel()
        allocator.free_segment(row[start * page_size : (start + 3) * page_size], start_pos=start * page_size)
        assert allocator.free_vids.numel() == free + 3
        assert listed(allocator.free_vids[-3:]) == listed((row[::page_size] // page_size)[start : start + 3])
        assert allocator.band.hole_count == (0 if eager else 3)
        assert allocator.band.live == 3
        assert listed(allocator.translate(row).gt(0)).count(True) == 3 * page_size
        assert verify(allocator) == []


def test_the_last_page_goes_whole() -> None:
    allocator = owner()
    row = got(allocator.alloc(12))
    allocator.free_segment(row[4:9], start_pos=4)
    assert allocator.band.live == 1
    assert verify(allocator) == []


@pytest.mark.parametrize("page_size", [1, 4])
def test_free_without_positions_finds_the_pages(page_size: int) -> None:
    allocator = owner(page_size)
    tokens = got(allocator.alloc(5 * page_size))
    some = tokens[page_size:].flip(0)
    allocator.free(some)
    assert allocator.band.live == 1
    assert every(allocator.translate(tokens[:page_size]).gt(0))
    assert verify(allocator) == []


def test_segments_of_a_row_are_freed_together() -> None:
    allocator = owner()
    row = got(allocator.alloc(24))
    allocator.free_segments([(row[16:20], 16), (row[0:7], 0), (row[8:8], 8)])
    assert allocator.band.live == 3
    assert verify(allocator) == []
    allocator.free_segments([])
    allocator.free_segments([(row[:0], 3)])
    assert allocator.band.live == 3


def test_segments_that_split_a_page_are_refused_unless_joined() -> None:
    allocator = owner()
    row = got(allocator.alloc(16))
    before = lists(allocator)
    with pytest.raises(OverlapError, match=r"first=\(0, 5\), second=\(4, 8\), page_size=4"):
        allocator.free_segments([(row[4:8], 4), (row[0:5], 0)])
    split = [(row[6:16], 6), (row[0:6], 0)]
    with pytest.raises(AlignmentError, match="start_pos=6"):
        allocator.free_segments(split)
    assert lists(allocator) == before
    allocator.free_segments(coalesce(split))
    assert allocator.band.live == 0
    assert verify(allocator) == []


def test_no_segments_free_a_page_twice_where_nothing_is_checked() -> None:
    allocator = owner(checked=False)
    row = got(allocator.alloc(16))
    with suppress(OverlapError):
        allocator.free_segments([(row[4:8], 4), (row[0:5], 0)])
    assert verify(allocator) == []


def test_a_group_releases_at_its_end() -> None:
    """S3c: two segments and one free without positions."""
    allocator = owner()
    row, other = got(allocator.alloc(24)), got(allocator.alloc(8))
    allocator.free_group_begin()
    allocator.free_segment(row[:8], start_pos=0)
    allocator.free_segment(row[16:24], start_pos=16)
    allocator.free(other)
    assert (allocator.band.live, allocator.band.hole_count) == (8, 0)
    assert verify(allocator) == []
    allocator.free_group_end()
    assert (allocator.band.live, allocator.band.hole_count) == (2, 6)
    assert verify(allocator) == []


@pytest.mark.parametrize("page_size", [1, 4])
def test_rows_may_change_once_a_free_has_returned(page_size: int) -> None:
    """S3e."""
    allocator = owner(page_size)
    row, other = got(allocator.alloc(4 * page_size)), got(allocator.alloc(page_size))
    allocator.free_group_begin()
    allocator.free_segment(row[: 2 * page_size], start_pos=0)
    allocator.free(other)
    row.fill_(0)
    other.fill_(0)
    allocator.free_group_end()
    assert allocator.band.live == 2
    assert verify(allocator) == []


def test_groups_do_not_nest_and_end_once() -> None:
    allocator = owner()
    with pytest.raises(GroupError, match="no group is open"):
        allocator.free_group_end()
    allocator.free_group_begin()
    with pytest.raises(GroupError, match="open already"):
        allocator.free_group_begin()
    with pytest.raises(GroupError, match="open"):
        allocator.backup()
    allocator.free_group_end()
    state = allocator.backup()
    allocator.free_group_begin()
    with pytest.raises(StateError, match="group is open"):
        allocator.restore(state)


def test_deferred_frees_count_once_they_are_applied() -> None:
    allocator = owner()
    allocator.apply_deferred()
    row = got(allocator.alloc(60))
    allocator.free_group_begin()
    allocator.free_segment(row[:20], start_pos=0)
    assert allocator.available_size() == 0
    allocator.apply_deferred()
    assert allocator.group_is_open
    assert allocator.available_size() == 20
    allocator.free_segment(row[20:40], start_pos=20)
    assert got(allocator.alloc(40)).numel() == 40, "a shortage applies deferred frees by itself"
    assert verify(allocator) == []


def test_a_shortage_packs_the_neighbour_by_what_is_missing() -> None:
    up, down = two_owners()
    row = got(up.alloc(40))
    up.free_segment(row[:32], start_pos=0)
    available = down.available_size()
    assert down.schedulable_size() == available + 8 * 2 * 4
    assert got(down.alloc(available + 12)).numel() == available + 12
    assert up.band.hole_count == 8 - 2
    assert verify(up) + verify(down) == []


def test_none_and_empty_tensors_are_no_work() -> None:
    allocator = owner()
    before = lists(allocator)
    for nothing in (None, ids(), torch.empty(0)):
        allocator.free(nothing)
        allocator.free_segment(nothing, start_pos=3)
    allocator.free_group_begin()
    allocator.free(None)
    allocator.free_segment(ids(), start_pos=0)
    allocator.free_group_end()
    assert lists(allocator) == before


@pytest.mark.parametrize(
    ("use", "error", "message"),
    refusals(
        (lambda a, row: a.alloc(6), AlignmentError, r"full\.alloc: .*count=6, page_size=4"),
        (lambda a, row: a.free_segment(row[2:8], start_pos=2), AlignmentError, "start_pos=2, page_size=4"),
        (lambda a, row: a.free_segment(row, start_pos=-4), AlignmentError, "start_pos=-4"),
        (lambda a, row: a.free_segment(row.int(), start_pos=0), ArgumentError, "int32"),
        (lambda a, row: a.free_segment(row.view(2, 8), start_pos=0), ArgumentError, r"shape=\(2, 8\)"),
        (lambda a, row: a.free(row.double()), ArgumentError, "float64"),
        (lambda a, row: a.free(row.to("meta")), ArgumentError, "device=meta"),
        (lambda a, row: a.free_segments([(row.int(), 0)]), ArgumentError, "int32"),
        (lambda a, row: a.free_segment(row[2:10], start_pos=0), BindingError, "inside a page"),
        (lambda a, row: a.free_segment(ids(0, 1, 2, 3), start_pos=0), BindingError, r"outside the table .*pages=\[0\]"),
        (lambda a, row: a.free(ids(-5)), BindingError, r"pages=\[-2\]"),
        (lambda a, row: a.free(ids(4000)), BindingError, r"pages=\[1000\], table=16"),
        (lambda a, row: a.free_segment(torch.cat((row[:4], row[:4])), start_pos=0), BindingError, "one page twice"),
        (lambda a, row: a.free_segment(row[-4:] + 4, start_pos=0), BindingError, "freed twice or stale"),
        (lambda a, row: a.free_segments([(row[:4], 0), (row[:4], 4)]), BindingError, "twice"),
        (
            lambda a, row: a.alloc_extend(*twice(0), *twice(4), ids(-1), 5),
            ArgumentError, "total=5, lengths=4",
        ),
        (
            lambda a, row: a.alloc_extend(*twice(4), *twice(3), row[3:4], -1),
            ArgumentError, "prefix=4, seq=3",
        ),
        (lambda a, row: a.alloc_extend(ids(0), torch.tensor([0, 0]), *twice(4), ids(-1), 4), ArgumentError, "prefix=2, seq=1"),
        (lambda a, row: a.alloc_extend(*twice(0), *twice(4), ids(), 4), ArgumentError, r"lengths=\[1, 1, 0\]"),
        (lambda a, row: a.alloc_extend(*twice(1), *twice(4), ids(7), 3), BindingError, "last_loc=7, prefix=1"),
        (lambda a, row: a.alloc_decode(ids(5), torch.tensor([5, 5]), ids(7)), ArgumentError, "requests=1, requests_cpu=2"),
        (lambda a, row: a.alloc_decode(ids(5), ids(5).to("meta"), ids(7)), ArgumentError, "in CPU memory"),
        (lambda a, row: a.alloc_decode(*twice(0), ids(7)), ArgumentError, "prefix=-1"),
        (lambda a, row: a.alloc_decode(*twice(5), ids(6)), BindingError, "last_loc=6, prefix=4"),
    ),
)  # fmt: skip
@pytest.mark.parametrize("group", [False, True])
def test_misuse_is_named_and_changes_nothing(use, error, message, group) -> None:  # type: ignore[no-untyped-def]
    allocator = owner()
    row = got(allocator.alloc(16))
    if group:
        allocator.free_group_begin()
    before = lists(allocator)
    with pytest.raises(error, match=message) as raised:
        use(allocator, row)
    assert isinstance(raised.value, AllocatorError)
    assert raised.value.pool == "full"
    assert lists(allocator) == before
    if group:
        allocator.free_group_end()
    assert verify(allocator) == []


@RAISES
def test_a_group_refuses_a_page_it_holds() -> None:
    allocator = owner()
    row = got(allocator.alloc(16))
    allocator.free_group_begin()
    allocator.free_segment(row[:8], start_pos=0)
    for again in (lambda: allocator.free_segment(row[4:8], start_pos=4), lambda: allocator.free(row[4:8])):
        with pytest.raises(BindingError, match=r"this group frees already \(pages=\[2\]\)"):
            again()
    allocator.free_group_end()
    assert allocator.band.live == 2
    assert verify(allocator) == []


@RAISES
def test_a_double_free_is_refused_on_a_cpu() -> None:
    allocator = owner()
    row = got(allocator.alloc(16))
    allocator.free_segment(row[:8], start_pos=0)
    before = lists(allocator)
    with pytest.raises(BindingError, match=r"pages=\[1, 2\]"):
        allocator.free_segment(row, start_pos=0)
    assert lists(allocator) == before


def on_a_device(allocator: PageAllocator) -> PageAllocator:
    """Checked as on a device: misuse goes to the error word."""
    allocator.raises = allocator.band.raises = False
    return allocator


@pytest.mark.parametrize("page_size", [1, 4])
def test_a_double_free_on_a_device_sets_the_error_word_and_touches_only_the_sink(page_size: int) -> None:
    allocator = on_a_device(owner(page_size))
    row, other = got(allocator.alloc(3 * page_size)), got(allocator.alloc(page_size))
    allocator.free_segment(row[:page_size], start_pos=0)
    check(allocator)
    allocator.free_segment(row, start_pos=0)
    assert listed(allocator.band.v2p[-1:]) == listed(allocator.band.p2v[-1:]) == [-1]
    assert listed(allocator.free_vids[-3:]) == [0, *listed(row[page_size::page_size] // page_size)]
    assert listed(allocator.band.holes[-3:])[0] == 0
    assert every(allocator.free_vids >= 0)
    assert every(allocator.band.holes >= 0)
    assert every(allocator.translate(other).gt(0))
    assert "DOUBLE_FREE" in repr(faults(allocator.band))
    assert any("error word" in problem for problem in verify(allocator))
    with pytest.raises(PoisonedError, match=r"full\.check: .*DOUBLE_FREE"):
        check(allocator)
    for use in (
        lambda: allocator.alloc(4),
        lambda: allocator.free(other),
        lambda: allocator.free_segment(other, start_pos=0),
        lambda: allocator.free_segments([(other, 0)]),
        lambda: allocator.alloc_decode(*twice(5), ids(7)),
    ):
        with pytest.raises(PoisonedError, match="only clear"):
            use()
    allocator.clear()
    check(allocator)
    assert verify(allocator) == []
    assert got(allocator.alloc(page_size)).numel() == page_size


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_the_same_calls_give_the_same_ids(page_size: int) -> None:
    def run() -> list[object]:
        chance, allocator, rows, seen = random.Random(3), owner(page_size), [], []
        for _ in range(60):
            if rows and chance.random() < 0.45:
                allocator.free_segment(rows.pop(chance.randrange(len(rows))), start_pos=0)
            else:
                row = allocator.alloc(page_size * chance.randrange(1, 4))
                rows += [] if row is None else [row]
                seen.append(None if row is None else listed(allocator.translate(row)))
            assert verify(allocator) == []
        return seen

    assert run() == run()
