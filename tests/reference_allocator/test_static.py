"""A fixed split with a table from full to window tokens: the same calls as over one byte budget, and the same answers."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from torch import Tensor

from reference_allocator import StaticSWAComposite, SWAComposite
from reference_allocator.errors import (
    AlignmentError,
    ArgumentError,
    BindingError,
    BudgetError,
    CapacityError,
    GroupError,
    PoisonedError,
    SpecError,
    StateError,
)
from reference_allocator.pooled import PooledAllocator
from reference_allocator.recovery import recover_locked_full, transfer_swa_pages
from reference_allocator.tables import WholePages
from reference_allocator.token_allocator import TokenAllocator
from reference_allocator.verify import check, faults, verify
from tests.reference_allocator.pools import CHECKED, RAISES, Place, byte_pool, every, ids, listed, twice

FULL, WINDOW = 15, 10
"""Pages."""


def static(page_size: int = 4, full: int = FULL, window: int = WINDOW, **options: bool) -> StaticSWAComposite:
    return StaticSWAComposite(
        full * page_size, window * page_size, page_size=page_size, device=Place.device, **CHECKED | options
    )


def got(tokens: Tensor | None) -> Tensor:
    assert tokens is not None
    return tokens


def lists(both: StaticSWAComposite) -> tuple[object, ...]:
    """All state that a refused operation must leave alone."""
    return (
        *((listed(side.free), side.live) for side in both.sides),
        *(listed(table) for table in both.dump()),
        {side: [listed(pages) for pages in held] for side, held in both.deferred.items()},
        both.group_is_open,
    )


def live(both: StaticSWAComposite) -> tuple[int, int]:
    return both.full.live, both.swa.live


def on_a_device(both: StaticSWAComposite) -> StaticSWAComposite:
    """Checked as on a device: misuse goes to the error words."""
    both.raises = False
    return both


def evicted(both: StaticSWAComposite, pages: int) -> tuple[Tensor, Tensor]:
    """A node without window pages, and the incoming tokens of the same text. Ids of both are in no order."""
    size = both.page_size
    spread = got(both.alloc(2 * pages * size)).view(-1, size)
    kept, incoming = spread[1::2].flip(0).reshape(-1), spread[::2].reshape(-1)
    both.free_swa_segment(kept, start_pos=0)
    return kept, incoming


@pytest.mark.parametrize("page_size", [1, 4])
def test_both_sides_are_spent_page_by_page(page_size: int) -> None:
    both = static(page_size)
    assert both.available_size() == both.schedulable_size() == WINDOW * page_size
    tokens = got(both.alloc(WINDOW * page_size))
    assert both.alloc(page_size) is None
    assert listed(tokens.view(-1, page_size).remainder(page_size)) == [list(range(page_size))] * WINDOW
    assert listed(both.translate(tokens)) == listed(tokens)
    window = both.translate_loc_from_full_to_swa(tokens)
    assert sorted(listed(window)) == list(range(page_size, (WINDOW + 1) * page_size))
    before = lists(both)
    tokens.fill_(-7)
    assert lists(both) == before
    assert verify(both) == []


def test_nothing_is_allocated_for_nothing() -> None:
    both = static()
    before = lists(both)
    assert got(both.alloc(0)).numel() == 0
    assert got(both.alloc_extend(*twice(), *twice(), ids(), 0)).numel() == 0
    assert got(both.alloc_decode(*twice(), ids())).numel() == 0
    with pytest.raises(CapacityError, match="full=11, swa=11, free=15, free_swa=10"):
        both.hand_out(WholePages(), 11)
    with pytest.raises(AlignmentError):
        both.alloc(5)
    assert lists(both) == before


@pytest.mark.parametrize("sizes", [(0, 8), (8, 0), (8, 6), (6, 8)])
def test_a_side_has_whole_pages(sizes: tuple[int, int]) -> None:
    with pytest.raises(BudgetError, match="page_size=4"):
        StaticSWAComposite(*sizes, page_size=4)


def test_ids_fit_in_31_bits() -> None:
    with pytest.raises(SpecError, match="31 bits"):
        StaticSWAComposite(2**31 - 4, 8, page_size=4)


@pytest.mark.parametrize("page_size", [1, 4])
def test_ids_without_a_window_token_are_told_apart(page_size: int) -> None:
    both = static(page_size)
    row = got(both.alloc(2 * page_size))
    both.free_swa_segment(row[:page_size], start_pos=0)
    asked = torch.cat((ids(-1, 10**6), row[:1], ids(0), row[-1:]))
    told = [-1, -1, 0, 0, 3 * page_size - 1]
    assert listed(both.translate_loc_from_full_to_swa(asked)) == told
    assert listed(both.translate(asked)[:1]) == [0]
    out = torch.empty_like(asked)
    assert both.translate_loc_from_full_to_swa(asked, out) is out
    assert listed(out) == told
    both.translate_loc_from_full_to_swa(asked, asked)
    assert listed(asked) == told
    for wrong in (out.int(), out[:2]):
        with pytest.raises(ArgumentError, match="int64, of one shape"):
            both.translate_loc_from_full_to_swa(asked, wrong)


def test_the_table_is_nobody_elses() -> None:
    """D09: what callers do to the mapping, they do through calls that both classes have."""
    both = static()
    assert [name for name in vars(both) if "swa" in name and not name.startswith("_")] == ["swa_size", "swa"]
    entries = 15 * 4 + 4 + 1
    assert not [n for n, v in vars(both).items() if isinstance(v, Tensor) and v.numel() == entries and n[0] != "_"]
    calls = {name for name in dir(SWAComposite) if not name.startswith("_") and callable(getattr(SWAComposite, name))}
    of_bytes = set(vars(PooledAllocator)) - {"available_size", "schedulable_size", "clear"}
    assert calls - of_bytes <= set(dir(StaticSWAComposite))


@pytest.mark.parametrize("page_size", [1, 4])
def test_frees_act_on_the_sides_they_name(page_size: int) -> None:
    both = static(page_size)
    row = got(both.alloc(6 * page_size))
    both.free_swa_segment(row[: 3 * page_size], start_pos=0)
    assert live(both) == (6, 3)
    assert listed(both.translate_loc_from_full_to_swa(row).gt(0)) == [False] * 3 * page_size + [True] * 3 * page_size
    both.free_full_segment(row[: 2 * page_size], start_pos=0)
    assert live(both) == (4, 3)
    both.free_segment(row[3 * page_size :], start_pos=3 * page_size)
    assert live(both) == (1, 0)
    assert verify(both) == []


def test_a_segment_is_freed_by_its_position(monkeypatch: pytest.MonkeyPatch) -> None:
    """S3d."""
    both = static()
    row = got(both.alloc(16))
    monkeypatch.setattr(torch, "unique", lambda *_: pytest.fail("asked the device which pages there are"))
    assert StaticSWAComposite.free_segment is not TokenAllocator.free_segment
    both.free_segment(row[4:12], start_pos=4)
    both.free_segments([(row[:4], 0), (row[12:], 12)])
    assert live(both) == (0, 0)
    with pytest.raises(AlignmentError, match="start_pos=2"):
        both.free_segment(row[2:], start_pos=2)


@pytest.mark.parametrize("page_size", [1, 4])
def test_frees_without_positions_leave_the_sink_alone(page_size: int) -> None:
    both = static(page_size)
    row = got(both.alloc(5 * page_size))
    both.free_swa_segment(row[:page_size], start_pos=0)
    both.free_swa(row[: 2 * page_size].flip(0))
    assert live(both) == (5, 3)
    both.free_full(row[: 2 * page_size])
    assert live(both) == (3, 3)
    both.free(row[2 * page_size :].flip(0))
    assert live(both) == (0, 0)
    assert verify(both) == []


def test_a_ratchet_keeps_the_window_and_no_more() -> None:
    both = static(window=3)
    row, cursor = got(both.alloc_extend(*twice(0), *twice(2), ids(-1), 2)), 0
    for length in range(3, 60):
        row = torch.cat((row, got(both.alloc_decode(*twice(length), row[-1:]))))
        cursor = both.advance_window(row, cursor, length, window=6)
        assert every(both.translate_loc_from_full_to_swa(row[-6:]).gt(0))
        assert both.swa.live <= 3
        assert verify(both) == []
    both.free_row([(row, 0)], swa_frontier=cursor)
    assert live(both) == (0, 0)


def test_only_the_tail_of_an_extension_gets_window_pages() -> None:
    both = static(window=6)
    before, after, last = twice(0, 0), twice(18, 6), ids(-1, -1)
    assert both.alloc_extend(*before, *after, last, 24) is None
    new = got(both.alloc_extend_swa_tail(*before, *after, last, 24, tail_len=5))
    bound = listed(both.translate_loc_from_full_to_swa(new).gt(0))
    assert bound == [position >= 12 for position in range(18)] + [True] * 6
    assert live(both) == (7, 4)
    assert verify(both) == []
    both.free_row([(new[:18], 0)], swa_frontier=12)
    both.free_segment(new[18:], start_pos=0)
    assert live(both) == (0, 0)


@pytest.mark.parametrize("page_size", [1, 4])
def test_the_answers_are_those_of_the_unified_class(page_size: int) -> None:
    """With as many pages on full: the same ids, and the same tokens in the window."""
    chance, total = random.Random(page_size), 65536
    unified = SWAComposite(byte_pool(page_size, total))
    fixed = static(page_size, full=unified.full.free_vids.numel(), window=100)
    rows: list[tuple[Tensor, int]] = []
    for _ in range(150):
        what = chance.random()
        if what < 0.5 or not rows:
            length = chance.randrange(1, 12)
            asked = (*twice(0), *twice(length), ids(-1), length)
            new = unified.alloc_extend(*asked)
            if new is None:
                rows, _ = [], (unified.clear(), fixed.clear())
                continue
            assert listed(got(fixed.alloc_extend(*asked))) == listed(new)
            rows.append((new, 0))
            continue
        row, cursor = rows.pop(chance.randrange(len(rows)))
        for both in (unified, fixed):
            if what < 0.7:
                moved = both.advance_window(row, cursor, row.numel(), window=4)  # type: ignore[attr-defined]
            elif what < 0.85:
                both.free_row([(row, 0)], swa_frontier=cursor)  # type: ignore[attr-defined]
            else:
                both.free(row)  # type: ignore[attr-defined]
        if what < 0.7:
            rows.append((row, moved))
        alive = [listed(both.translate_loc_from_full_to_swa(row).gt(0)) for both in (unified, fixed)]  # type: ignore[attr-defined]
        assert alive[0] == alive[1]
        assert fixed.swa.live == unified.swa.live
        assert verify(fixed) == []


# Groups.


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("page_size", [1, 4])
def test_a_group_returns_pages_at_its_end_and_takes_the_window_at_once(page_size: int, checked: bool) -> None:
    """S3c, S3e: rows may be overwritten as soon as a free has returned."""
    both = static(page_size, checked=checked)
    row, other = got(both.alloc(6 * page_size)), got(both.alloc(2 * page_size))
    third, half = 2 * page_size, page_size
    before = [listed(side.free) for side in both.sides]
    both.free_group_begin()
    both.free_swa_segment(row[:third], start_pos=0)
    both.free_full_segment(row[:half], start_pos=0)
    both.free_segment(row[third : 2 * third], start_pos=third)
    both.free_segment(row[2 * third :], start_pos=2 * third)
    both.free_swa(other[:half])
    both.free(other[half:])
    assert every(both.translate_loc_from_full_to_swa(row).eq(0))
    row.fill_(0)
    other.fill_(0)
    assert [listed(side.free) for side in both.sides] == before
    assert live(both) == (8, 8)
    assert verify(both) == []
    both.free_group_end()
    assert live(both) == (2, 0)
    assert verify(both) == []
    with pytest.raises(GroupError):
        both.free_group_end()


def test_an_id_may_be_mapped_again_while_its_old_window_page_waits() -> None:
    both = static()
    row, donor = got(both.alloc(4)), got(both.alloc(4))
    window = both.translate_loc_from_full_to_swa(donor)
    both.free_group_begin()
    both.free_swa_segment(row, start_pos=0)
    both.clear_full_to_swa_mapping(donor)
    both.set_full_to_swa_mapping(row, window)
    both.free_group_end()
    assert listed(both.translate_loc_from_full_to_swa(row)) == listed(window)
    assert live(both) == (2, 1)
    assert verify(both) == []


def test_deferred_frees_are_applied_before_a_shortage() -> None:
    both = static()
    row = got(both.alloc(40))
    both.free_group_begin()
    both.free_segment(row[:20], start_pos=0)
    assert got(both.alloc(20)).numel() == 20
    assert both.group_is_open
    assert verify(both) == []


# Misuse.

WRONG: list[tuple[Any, str]] = [
    (lambda c, row: c.free_segment(row, start_pos=0), r"swa\.free_segment: .*not bound"),
    (lambda c, row: c.free_swa_segment(row, start_pos=0), r"swa\.free_swa_segment: .*not bound"),
    (lambda c, row: c.free_full_segment(row, start_pos=0), r"still bound \(pages=\[3, 4\]\)"),
    (lambda c, row: c.free_full_segment(row[:8] + 20, start_pos=0), r"full\..*freed twice or stale"),
    (lambda c, row: c.free(row + 20), "freed twice or stale"),
    (lambda c, row: c.free_full(row), "still bound"),
    (lambda c, row: c.free_swa(ids(0)), "outside the table"),
    (lambda c, row: c.free_segment(row[9:], start_pos=8), "inside a page"),
    (lambda c, row: c.alloc_extend(*twice(8), *twice(9), row[6:7], 1), "wrong place of its page"),
]


@RAISES
@pytest.mark.parametrize(("use", "message"), WRONG)
@pytest.mark.parametrize("group", [False, True])
def test_a_wrong_declaration_is_refused_on_a_cpu(use: Any, message: str, group: bool) -> None:
    both = static()
    row = got(both.alloc(16))
    both.free_swa_segment(row[:8], start_pos=0)
    if group:
        both.free_group_begin()
    before = lists(both)
    with pytest.raises(BindingError, match=message):
        use(both, row)
    assert lists(both) == before
    assert verify(both) == []


@RAISES
@pytest.mark.parametrize("group", [False, True])
def test_no_side_of_a_page_is_freed_twice(group: bool) -> None:
    both = static()
    row = got(both.alloc(16))
    if group:
        both.free_group_begin()
    both.free_swa_segment(row[:8], start_pos=0)
    both.free_segment(row[8:], start_pos=8)
    before = lists(both)
    for again in (
        lambda: both.free_segment(row[:8], start_pos=0),
        lambda: both.free_segment(row[8:], start_pos=8),
        lambda: both.free_full_segment(row[8:], start_pos=8),
        lambda: both.free(row[8:]),
    ):
        with pytest.raises(BindingError):
            again()
    assert lists(both) == before
    assert verify(both) == []


@pytest.mark.parametrize(
    ("use", "fault"),
    [
        (lambda c, row: c.free_segment(row, start_pos=0), "swa=.*SWA_NOT_BOUND"),
        (lambda c, row: c.free_swa_segment(row, start_pos=0), "swa=.*SWA_NOT_BOUND"),
        (lambda c, row: c.free_full_segment(row, start_pos=0), "swa=.*SWA_STILL_BOUND"),
        (lambda c, row: [c.free_full_segment(row[:8], start_pos=0) for _ in range(2)], "full=.*DOUBLE_FREE"),
        (lambda c, row: c.free_full_segment(ids(-1, -1), start_pos=0), "full=.*DOUBLE_FREE"),
        (lambda c, row: transfer_swa_pages(c, row[8:12], row[12:], start_pos=0), "swa=.*KEPT_STILL_BOUND"),
        (lambda c, row: transfer_swa_pages(c, row[:4], row[4:8], start_pos=0), "swa=.*SWA_NOT_BOUND"),
    ],
)
def test_misuse_on_a_device_sets_an_error_word_and_only_the_sink_suffers(use: Any, fault: str) -> None:
    both = on_a_device(static(checked=True))
    row = got(both.alloc(16))
    both.free_swa_segment(row[:8], start_pos=0)
    check(both)
    use(both, row)
    table = both.dump()[0]
    assert listed(table[:4]) == [0] * 4
    assert listed(table[-1:]) == [-1]
    assert all(every(side.free >= 0) for side in both.sides)
    assert any("error word" in line for line in verify(both))
    with pytest.raises(PoisonedError, match=fault):
        check(both)
    with pytest.raises(PoisonedError):
        both.alloc(4)
    both.clear()
    assert verify(both) == []
    assert both.available_size() == 40


@pytest.mark.parametrize(
    "use",
    [
        lambda c, row: c.free_segment(ids(-1), start_pos=0),
        lambda c, row: c.free_swa_segment(ids(-1), start_pos=0),
        lambda c, row: c.free_full_segment(ids(-1), start_pos=0),
        lambda c, row: transfer_swa_pages(c, row[8:12], row[12:16], start_pos=0),
        lambda c, row: transfer_swa_pages(c, row[:4], row[4:8], start_pos=0),
        lambda c, row: transfer_swa_pages(c, row[:4], ids(-1, -1, -1, -1), start_pos=0),
    ],
)
def test_misuse_on_a_device_gives_nothing_and_takes_no_other_page(use: Any) -> None:
    """Every page is live, the last one too, which is where an index of -1 would lead."""
    both = on_a_device(static(full=5, checked=True))
    row = got(both.alloc(20))
    both.free_swa_segment(row[:8], start_pos=0)
    before = listed(both.translate_loc_from_full_to_swa(torch.cat((row[:12], row[16:]))))
    use(both, row)
    assert listed(both.translate_loc_from_full_to_swa(torch.cat((row[:12], row[16:])))) == before
    assert all(every(side.free >= 0) for side in both.sides)
    with pytest.raises(PoisonedError):
        check(both)


def test_a_right_use_on_a_device_reports_nothing() -> None:
    both = on_a_device(static(checked=True))
    kept, incoming = evicted(both, 3)
    both.free_group_begin()
    assert every(recover_locked_full(both, kept, incoming, start_pos=0).gt(0))
    both.free_group_end()
    both.free_segment(kept, start_pos=0)
    check(both)
    assert live(both) == (0, 0)
    assert verify(both) == []


@pytest.mark.parametrize("tokens", [ids(4, 5).int(), ids(4, 5).view(1, 2)])
def test_ids_of_the_wrong_kind_are_refused(tokens: Tensor) -> None:
    both = static()
    for use in (
        both.free,
        both.free_swa,
        both.clear_full_to_swa_mapping,
        lambda wrong: both.set_full_to_swa_mapping(wrong, ids(4, 5)),
        lambda wrong: both.set_full_to_swa_mapping(ids(4, 5), wrong),
        lambda wrong: both.free_segment(wrong, start_pos=0),
    ):
        with pytest.raises(ArgumentError):
            use(tokens)
    with pytest.raises(ArgumentError, match="full=1, swa=2"):
        both.set_full_to_swa_mapping(ids(4), ids(4, 5))


def test_none_and_empty_tensors_are_no_work() -> None:
    both = static()
    before = lists(both)
    for nothing in (None, ids()):
        both.free(nothing)
        both.free_swa(nothing)
        for free in (both.free_segment, both.free_swa_segment, both.free_full_segment):
            free(nothing, start_pos=3)
    both.free_row([], swa_frontier=8)
    assert recover_locked_full(both, ids(), ids(), start_pos=0).numel() == 0
    assert lists(both) == before


# Starting over.


@pytest.mark.parametrize("checked", [False, True])
def test_restore_takes_both_sides_back(checked: bool) -> None:
    both = static(checked=checked)
    row = got(both.alloc(12))
    both.free_swa_segment(row[:4], start_pos=0)
    before = lists(both)
    state = both.backup()
    assert both.alloc(16) is not None
    assert both.alloc_extend_swa_tail(*twice(0), *twice(16), ids(-1), 16, tail_len=4) is not None
    both.restore(state)
    assert lists(both) == before
    assert verify(both) == []
    for change in (
        lambda: both.free_swa_segment(row[4:8], start_pos=4),
        lambda: both.clear_full_to_swa_mapping(row[:4]),
        lambda: both.set_full_to_swa_mapping(ids(), ids()),
        both.clear,
    ):
        state = both.backup()
        change()
        with pytest.raises(StateError, match="changes=1"):
            both.restore(state)
    both.free_group_begin()
    with pytest.raises(GroupError):
        both.backup()
    with pytest.raises(StateError, match="group"):
        both.restore(state)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda c, row: c._rows[0].fill_(5), "I1"),
        (lambda c, row: c._full_to_swa[-1:].fill_(0), "I1"),
        (lambda c, row: c._map(ids(1), ids(0)), "I2"),
        (lambda c, row: c._map(ids(1), ids(9)), "I2"),
        (lambda c, row: c._map(ids(1), ids(2)), "I3"),
        (lambda c, row: c._map(ids(9), ids(1)), "I6"),
        (lambda c, row: c.clear_full_to_swa_mapping(row[:4]), "I10"),
        (lambda c, row: c._rows[1].copy_(c._rows[1].flip(0)), "I14"),
        (lambda c, row: c._minted[1:2].fill_(-1), "I10"),
        (lambda c, row: setattr(c.full, "live", 3), "I5"),
        (lambda c, row: c.swa.give(ids(9)), "I5"),
        (lambda c, row: c.swa.give(ids(0)), "I7"),
        (lambda c, row: c.full.give(ids(1)), "I6"),
    ],
)  # fmt: skip
def test_a_broken_invariant_is_told(spoil: Any, told: str) -> None:
    both = static()
    row = got(both.alloc(16))
    assert verify(both) == []
    spoil(both, row)
    assert any(f" {told} " in line for line in verify(both)), verify(both)
    assert faults(both.full) == 0
