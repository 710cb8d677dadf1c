"""End pools: taking pages, giving them back, and what waits for streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from reference_allocator import PageAllocator, join, tables
from reference_allocator.end_band import EndBand
from reference_allocator.errors import ArgumentError, BindingError, CapacityError, StateError
from reference_allocator.pages import Pages
from reference_allocator.records import Ids
from reference_allocator.specs import BytePool
from reference_allocator.streams import StreamEvent
from reference_allocator.verify import verify, verify_band
from tests.reference_allocator.pools import RAISES, byte_pool, equal, every, ids, kv, listed, pool_of, put, two_owners


class Event:
    """An event that fires when the test says so, and counts the waits of the stream."""

    def __init__(self, fired: bool = False) -> None:
        self.fired = fired
        self.waits = 0

    def wait(self) -> None:
        self.waits += 1

    def query(self) -> bool:
        return self.fired


class Queue:
    """A side queue on a CPU: work is done at once, and its event fires when the test says so."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.after: list[StreamEvent | None] = []

    def run(self, work: Callable[[], None], after: StreamEvent | None) -> StreamEvent:
        work()
        self.after.append(after)
        self.events.append(Event())
        return self.events[-1]

    def hand_over(self, tensors: Iterable[Tensor]) -> None:
        assert all(isinstance(tensor, Tensor) for tensor in tensors)


def filled(pool: BytePool, queue: Queue | None = None) -> tuple[PageAllocator, Tensor]:
    """The `full` pool of a byte pool with 8 pages handed out, and their tokens."""
    up, down = PageAllocator(pool, "full", side=queue), PageAllocator(pool, "swa")
    join(up.band, down.band)
    tokens = up.alloc(32)
    assert tokens is not None
    return up, tokens


def test_pages_come_from_the_own_end_and_holes_come_first() -> None:
    for allocator in two_owners():
        tokens = allocator.alloc(32)
        assert tokens is not None
        band = allocator.band
        taken = [page for page, owner in enumerate(listed(band.p2v)) if page >= band.min_page and owner >= 0]
        assert taken == (list(range(1, 9)) if band.up else list(range(24, 32)))
        allocator.free_segment(tokens[8:24], start_pos=8)
        span = band.lo, band.hi
        allocator.alloc(8)
        assert (band.lo, band.hi) == span
        assert band.hole_count == 2
        assert verify(allocator) == []
        nearer = sorted(listed(band.holes), reverse=not band.up)
        assert nearer == listed(band.holes)


def test_taking_too_many_changes_nothing() -> None:
    up, _ = two_owners()
    tokens = up.alloc(16)
    assert tokens is not None
    up.free_segment(tokens[:8], start_pos=0)
    band = up.band
    before = (band.lo, band.hi, band.holes, band.live, band.epoch)
    assert band.take(17) is None
    assert (band.lo, band.hi, band.holes, band.live, band.epoch) == before


def test_a_promise_that_cannot_be_kept_is_an_error_that_changes_nothing() -> None:
    band = EndBand(byte_pool(), "full", Ids(1, 40, owner=False), eager=False, checked=True)
    before = band.hi, band.live, listed(band.v2p)
    with pytest.raises(CapacityError, match=r"full\.alloc_with_virtual: .*pages=16, holes=0, span=\(1, 1\)"):
        band.alloc_with_virtual(Pages(put(torch.arange(1, 17))))
    assert (band.hi, band.live, listed(band.v2p)) == before


@pytest.mark.parametrize(("full", "swa"), [(3, 1), (1, 3)])
def test_two_pools_meet_off_grid_and_never_cross(full: int, swa: int) -> None:
    pool = pool_of(50000, [kv("full", "full", "up", 4, full), kv("swa", "swa", "down", 4, swa)])
    up, down = PageAllocator(pool, "full"), PageAllocator(pool, "swa")
    join(up.band, down.band)
    for turn in range(100):
        allocator = (up, down)[turn % 2]
        promised = allocator.available_size()
        got = allocator.alloc(4)
        assert (got is not None) == (promised >= 4)
        assert verify(up) + verify(down) == []
    assert up.band.gap_bytes < min(up.band.page_bytes, down.band.page_bytes)
    assert up.band.hi * up.band.page_bytes <= down.band.lo * down.band.page_bytes


@pytest.mark.parametrize("m", range(5))
def test_pack_gives_back_exactly_what_was_asked(m: int) -> None:
    for allocator in two_owners():
        tokens = allocator.alloc(32)
        assert tokens is not None
        allocator.free_segment(tokens[4:12], start_pos=4)
        allocator.free_segment(tokens[24:32], start_pos=24)
        span, gap = allocator.band.span, allocator.band.gap_bytes
        assert allocator.band.pack(m) == m
        assert allocator.band.span == span - m
        assert allocator.band.gap_bytes == gap + m * allocator.band.page_bytes
        assert verify(allocator) == []


@pytest.mark.parametrize("pages", [-1, 3])
def test_pack_refuses_what_is_not_there(pages: int) -> None:
    up, tokens = filled(byte_pool())
    up.free_segment(tokens[:8], start_pos=0)
    with pytest.raises(ArgumentError, match=f"pages={pages}, holes=2"):
        up.band.pack(pages)
    assert verify(up) == []


def test_a_gate_forbids_moves_and_the_credit_for_them() -> None:
    up, down = two_owners()
    tokens = up.alloc(60)
    assert tokens is not None
    up.free_segment(tokens[:32], start_pos=0)
    open_gate = down.schedulable_size()
    up.band.gates["transfer"] = lambda: False
    assert up.band.pack(3) == 0
    assert down.schedulable_size() == down.available_size() < open_gate
    assert down.alloc(open_gate) is None
    del up.band.gates["transfer"]
    assert down.alloc(open_gate) is not None
    assert verify(up) + verify(down) == []


def test_moves_wait_for_the_forward_and_frees_do_not() -> None:
    up, tokens = filled(byte_pool())
    event = Event()
    up.band.fwd_event = event
    up.free_segment(tokens[:8], start_pos=0)
    assert event.waits == 0
    up.band.pack(1)
    assert event.waits == 1


def test_zeroing_waits_for_the_forward() -> None:
    up, down = two_owners()
    for allocator, waits in ((up, 1), (down, 0)):
        event = Event()
        allocator.band.fwd_event = event
        allocator.alloc(4)
        assert event.waits == waits


@pytest.mark.parametrize("holes", [False, True])
def test_a_full_attention_pool_hands_out_zeroed_pages(holes: bool) -> None:
    pool = byte_pool()
    pool.poison()
    up, tokens = filled(pool)
    keys, values = pool.kv_layer("full", 1)
    if holes:
        keys[4:] = values[4:] = torch.nan
        up.free_segment(tokens[8:16], start_pos=8)
        tokens = up.alloc(12)
        assert tokens is not None
    physical = up.translate(tokens)
    assert every(physical.gt(0))
    assert every(keys[physical].eq(0))
    assert every(values[physical].eq(0))


def test_vacated_pages_are_pending_until_their_event() -> None:
    queue = Queue()
    up, tokens = filled(byte_pool(), queue)
    up.free_segment(tokens[:16], start_pos=0)
    top, available = up.band.hi, up.available_size()
    up.band.fwd_event = Event()
    assert up.band.pack(2) == 2
    assert queue.after == [up.band.fwd_event]
    assert (up.band.hi, up.band.pending_count, up.band.hole_count) == (top, 2, 2)
    assert up.available_size() == available - 8
    assert verify(up) == []
    assert up.band.pack(1) == 1
    assert (up.band.hi, up.band.pending_count) == (top, 3)
    assert verify(up) == []
    queue.events[0].fired = True
    assert up.available_size() == available - 4
    assert (up.band.hi, up.band.pending_count) == (top - 2, 1)
    assert verify(up) == []


def test_compactions_under_way_add_up() -> None:
    up, tokens = filled(byte_pool(), Queue())
    up.free_segment(tokens[:16], start_pos=0)
    up.band.pack(2)
    assert verify(up) == []
    up.band.pack(1)
    assert verify(up) == []


def test_pages_behind_a_grown_frontier_are_not_lost() -> None:
    up, tokens = filled(byte_pool(), Queue())
    up.free_segment(tokens[:12], start_pos=0)
    up.band.pack(3)
    assert up.alloc(8) is not None
    assert verify(up) == []


def test_pending_pages_become_holes_where_the_pool_grew_past_them() -> None:
    queue = Queue()
    up, tokens = filled(byte_pool(), queue)
    up.free_segment(tokens[:12], start_pos=0)
    up.band.pack(3)
    assert up.alloc(8) is not None
    assert queue.events[0].waits == 1
    assert (up.band.pending_count, up.band.hole_count) == (0, 3)
    assert verify(up) == []


def test_a_pack_past_grown_pages_waits_on_the_stream_first() -> None:
    queue = Queue()
    up, tokens = filled(byte_pool(), queue)
    up.free_segment(tokens[:16], start_pos=0)
    up.band.pack(2)
    assert up.band.take(0) is not None
    up.band.hi += 1  # as if one page had been taken that is not bound yet
    up.band.pack(1)
    assert queue.events[0].waits == 1
    assert up.band.hole_count == 4 - 2 + 2 - 1


@pytest.mark.parametrize("page_size", [1, 4])
def test_restore_takes_back_what_was_allocated_since(page_size: int) -> None:
    up, _ = two_owners(page_size)
    tokens = up.alloc(8 * page_size)
    assert tokens is not None
    up.free_segment(tokens[: 2 * page_size], start_pos=0)
    before = (
        listed(up.band.v2p),
        listed(up.band.p2v),
        listed(up.free_vids),
        listed(up.band.holes),
        up.available_size(),
    )
    state = up.backup()
    assert up.alloc(5 * page_size) is not None
    up.restore(state)
    assert before == (
        listed(up.band.v2p), listed(up.band.p2v), listed(up.free_vids), listed(up.band.holes), up.available_size()
    )  # fmt: skip
    assert verify(up) == []


def test_restore_refuses_after_a_free_a_move_or_a_reservation() -> None:
    up, _ = two_owners()
    tokens = up.alloc(32)
    assert tokens is not None
    state = up.backup()
    up.free_segment(tokens[:8], start_pos=0)
    with pytest.raises(StateError, match="frees=1, moves=0"):
        up.restore(state)
    state = up.backup()
    up.band.pack(1)
    with pytest.raises(StateError, match="frees=0, moves=1"):
        up.restore(state)
    state = up.backup()
    held = up.band.reserve(1)
    assert held is not None
    with pytest.raises(StateError, match="transfers=1"):
        up.restore(state)
    up.band.give_up(held)
    with pytest.raises(StateError, match="transfers=2"):
        up.restore(state)
    assert verify(up) == []


def test_prewarming_changes_nothing() -> None:
    for allocator in two_owners():
        allocator.alloc(16)
        band = allocator.band
        before = listed(band.v2p), listed(band.p2v), listed(band.holes), band.span, band.pool.buffer.clone()
        band.prewarm()
        assert before[:4] == (listed(band.v2p), listed(band.p2v), listed(band.holes), band.span)
        assert equal(before[4], band.pool.buffer)


def test_clear_forgets_everything_and_keeps_the_tables() -> None:
    queue = Queue()
    up, tokens = filled(byte_pool(), queue)
    address, available = up.band.v2p.data_ptr(), up.band.pool.geometry["full"].pages - 1
    up.free_segment(tokens[:8], start_pos=0)
    up.band.pack(1)
    up.band.unbind(Pages(ids(1)))
    up.clear()
    assert up.band.v2p.data_ptr() == address
    assert verify(up) == []
    assert up.available_size() == available * 4


def test_a_band_alone_ends_at_the_buffer() -> None:
    pool = byte_pool()
    for name, pages in (("full", 15), ("swa", 30)):
        band = EndBand(pool, name, Ids(1, 40, owner=False), eager=False, checked=True)
        assert band.take(pages + 1) is None
        band.alloc_with_virtual(Pages(put(torch.arange(1, pages + 1))))
        assert band.take(1) is None
        assert verify_band(band) == []


@RAISES
def test_binding_what_is_bound_is_refused() -> None:
    band = EndBand(byte_pool(), "swa", Ids(1, 8, owner=False), eager=False, checked=True)
    band.alloc_with_virtual(Pages(ids(3, 4)))
    for pages in (ids(4, 5), ids(5, 5), ids(0), ids(8), ids(-1)):
        with pytest.raises(BindingError, match="swa"):
            band.alloc_with_virtual(Pages(pages))
    assert band.live == 2
    assert verify_band(band) == []


def test_pages_larger_than_the_scratch_move_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reference_allocator.page_tables.SCRATCH_BYTES", 16)
    up, tokens = filled(byte_pool())
    assert up.band.tables.scratch.shape[0] == 1
    keys, _ = up.band.pool.kv_layer("full", 0)
    keys[up.translate(tokens)] = put(torch.arange(32, dtype=torch.bfloat16)).view(32, 1, 1)
    up.free_segment(tokens[:16], start_pos=0)
    up.band.pack(4)
    assert listed(keys[up.translate(tokens[16:])][:, 0, 0]) == list(range(16, 32))


class Largest(TorchDispatchMode):
    """The most bytes that one operation allocated."""

    bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        known = {arg.untyped_storage().data_ptr() for arg in args if isinstance(arg, Tensor)}
        result = func(*args, **(kwargs or {}))
        out = (kwargs or {}).get("out")
        for made in result if isinstance(result, tuple) else (result,):
            if made is not out and made.untyped_storage().data_ptr() not in known:
                self.bytes = max(self.bytes, made.untyped_storage().nbytes())
        return result


def test_a_compaction_needs_memory_for_ids_only() -> None:
    """Pages go through a scratch that was there before: nothing as large as a page is allocated."""
    up, tokens = filled(byte_pool())
    up.free_segment(tokens[:16], start_pos=0)
    with Largest() as seen:
        up.band.pack(4)
    assert 0 < seen.bytes <= 8 * 16 < up.band.page_bytes


def test_no_more_pages_are_copied_than_live(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a pool that is mostly holes, when it is packed, then copies are as many as pages that can be live."""
    copied = []
    monkeypatch.setattr(tables, "copy_pages", lambda pages, source, target, scratch: copied.append(source.numel()))
    up, tokens = filled(byte_pool())
    up.free_segment(tokens[:28], start_pos=0)
    assert up.band.pack(7) == 7
    assert copied == [1]


def test_a_shortage_waits_on_the_stream_for_compactions_under_way() -> None:
    queue = Queue()
    pool = byte_pool()
    up, down = PageAllocator(pool, "full", side=queue), PageAllocator(pool, "swa")
    join(up.band, down.band)
    tokens = up.alloc(60)
    assert tokens is not None
    up.free_segment(tokens[:16], start_pos=0)
    up.band.pack(4)
    assert down.available_size() == 0
    assert down.alloc(32) is not None
    assert queue.events[0].waits == 1
    assert verify(up) + verify(down) == []


def test_translate_takes_any_shape_and_refuses_what_does_not_match() -> None:
    up, tokens = filled(byte_pool())
    table, out = tokens.view(4, 8), put(torch.empty(4, 8, dtype=torch.int64))
    assert up.translate(table, out) is out
    assert listed(out.flatten()) == listed(up.translate(tokens))
    for wrong in (out.int(), out[:2], out.to("meta")):
        with pytest.raises(ArgumentError, match=r"full\.translate"):
            up.translate(table, wrong)
    with pytest.raises(ArgumentError, match="int32"):
        up.translate(table.int())


@pytest.mark.parametrize("holes", [0, 2, 8])
def test_reserved_pages_are_pending_until_they_are_bound(holes: int) -> None:
    up, tokens = filled(byte_pool())
    up.free_segment(tokens[: 4 * holes], start_pos=0)
    band, available = up.band, up.available_size()
    held = band.reserve(4)
    assert held is not None
    assert up.available_size() == available - 16
    assert (band.pending_count, band.pack(min(1, band.hole_count))) == (4, 0)
    assert verify(up) == []
    keys, _ = band.pool.kv_layer("full", 0)
    keys.index_fill_(0, held.pages * 4, 7)
    vids = up.id_list.take(4).tensor
    band.bind_reserved(held, vids)
    assert every(keys[up.translate(vids * 4)].eq(7)), "what has arrived is not zeroed"
    assert verify(up) == []
    with pytest.raises(StateError, match=f"over .number={held.number}"):
        band.bind_reserved(held, vids + 4)
    if band.hole_count:
        assert band.pack(1) == 1


def test_a_reservation_that_is_given_up_leaves_holes() -> None:
    up, _ = filled(byte_pool())
    held = up.band.reserve(3)
    assert held is not None
    with pytest.raises(ArgumentError, match="pages=2, reserved=3"):
        up.band.bind_reserved(held, ids(12, 13))
    assert up.band.pending_count == 3
    up.band.give_up(held)
    assert (up.band.pending_count, up.band.hole_count) == (0, 3)
    assert verify(up) == []
    with pytest.raises(StateError, match="over"):
        up.band.give_up(held)
    assert up.band.reserve(99) is None
    assert verify(up) == []


@RAISES
def test_a_reservation_takes_no_page_that_is_bound() -> None:
    up, _ = filled(byte_pool())
    held = up.band.reserve(3)
    assert held is not None
    with pytest.raises(BindingError, match="still bound"):
        up.band.bind_reserved(held, ids(1, 2, 3))
    assert up.band.pending_count == 3
    assert verify(up) == []


def test_bytes_lent_to_the_neighbour_are_no_leak() -> None:
    up, down = two_owners()
    everything = up.band.pages_not_live
    assert down.alloc(100) is not None
    assert up.band.pages_not_live == everything
    assert up.available_size() < everything * 4
    assert up.alloc(8) is not None
    assert up.band.pages_not_live == everything - 2
