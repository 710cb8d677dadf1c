"""State slots beside tokens: two pools and three in one budget, what relieves what, and what a slot holds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from torch import Tensor

from reference_allocator import (
    BytePool,
    Floor,
    KVSpec,
    MambaComposite,
    StatePart,
    StateSlots,
    StateSpec,
    SWAComposite,
    SWAMambaComposite,
)
from reference_allocator.errors import ArgumentError, BindingError, BudgetError, GroupError, SpecError, StateError
from reference_allocator.float_band import FloatBand
from reference_allocator.token_allocator import TokenAllocator
from reference_allocator.verify import check, dump, verify
from tests.reference_allocator.dispatches import Dispatches
from tests.reference_allocator.pools import CHECKED, RAISES, equal, every, kv, listed, pool_of, put
from tests.reference_allocator.test_allocator import got
from tests.reference_allocator.test_band import Event, Queue
from tests.reference_allocator.test_machine import Machine, Row, plan_of


def state_spec(grow: str = "up", layers: int = 2) -> StateSpec:
    """A slot of 2 layers: a conv state of 3 rows of 16 numbers, and 8 numbers of temporal state."""
    return StateSpec(
        "state", grow, range(layers),  # type: ignore[arg-type]
        conv=(StatePart((3, 16), torch.bfloat16),), temporal=(StatePart((8,), torch.float32),),
    )  # fmt: skip


def three_pools(page_size: int = 4, total: int = 65536, *, floor: Floor | None = None) -> BytePool:
    return pool_of(
        total,
        [state_spec(), kv("swa", "swa", "float", page_size, 1), kv("full", "full", "down", page_size, 2)],
        floor=floor,
    )


def two_pools(page_size: int = 4) -> BytePool:
    return pool_of(65536, [state_spec("down"), kv("full", "full", "up", page_size, 2)])


Composite = MambaComposite | SWAMambaComposite


def composites(**options: bool) -> tuple[Composite, Composite]:
    options = CHECKED | options
    return MambaComposite(two_pools(), **options), SWAMambaComposite(three_pools(), **options)


def test_a_token_free_by_position_leaves_the_slots_alone_and_reads_nothing() -> None:
    """S3d: given a composite with state, when a segment is freed, then its position is used."""
    for cache in composites(checked=False):
        slots, row = got(cache.alloc_state(2)), got(cache.alloc(16))
        with Dispatches() as seen:
            cache.free_segment(row[4:12], start_pos=4)
            cache.free_state(slots[:1])
        assert seen.syncs == []
        assert type(cache).free_segment is not TokenAllocator.free_segment
        assert cache.state.band.live == 1
        assert cache.bands[0].live == 2
        assert verify(cache) == []


def test_slots_and_tokens_share_one_budget() -> None:
    for cache in composites():
        tokens = cache.available_size()
        slots = got(cache.alloc_state(20))
        assert cache.available_size() < tokens
        assert every(cache.translate(got(cache.alloc(8))).gt(0))
        assert every(cache.state.translate(slots).gt(0))
        cache.free_state(slots)
        assert verify(cache) == []


def test_slots_set_aside_cost_nothing_when_they_are_taken_and_the_rest_goes_back() -> None:
    for cache in composites(checked=False):
        state = cache.state
        free = state.free_vids.numel()
        assert state.alloc_group_begin(3)
        with pytest.raises(GroupError, match="left=3"):
            state.alloc_group_begin(1)
        with Dispatches() as seen:
            taken = [got(cache.alloc_state(1)), got(cache.alloc_state(1))]
        assert seen.count == 0
        assert listed(taken[0]) != listed(taken[1])
        state.alloc_group_end()
        assert state.band.live == 2
        assert state.free_vids.numel() == free - 2
        with pytest.raises(GroupError, match="no slots"):
            state.alloc_group_end()
        assert verify(cache) == []
        assert not state.alloc_group_begin(10_000)
        assert state.set_aside == 0


def test_more_than_was_set_aside_comes_from_the_pool() -> None:
    cache = SWAMambaComposite(three_pools())
    assert cache.state.alloc_group_begin(2)
    assert got(cache.alloc_state(3)).numel() == 3
    assert cache.state.set_aside == 2
    cache.clear()
    assert cache.state.set_aside == 0
    assert verify(cache) == []


def test_a_slot_is_cleared_when_a_request_takes_it_up() -> None:
    pool = three_pools()
    pool.poison()
    cache = SWAMambaComposite(pool)
    slots = got(cache.alloc_state(3))
    conv, temporal = pool.conv_state("state", 0), pool.temporal_state("state", 0)
    event = Event()
    cache.set_forward_event(event)
    cache.state.reset(slots[:2])
    assert event.waits == 1
    at = cache.state.translate(slots)
    assert every(conv[:, at[:2]].eq(0))
    assert every(temporal[:, at[:2]].eq(0))
    assert every(temporal[:, at[2:]].isnan())
    with pytest.raises(ArgumentError, match=r"state\.reset"):
        cache.state.reset(slots.int())


def test_a_checkpoint_is_a_copy_of_every_part() -> None:
    pool = three_pools()
    cache = SWAMambaComposite(pool)
    slots = got(cache.alloc_state(4))
    conv, temporal = pool.conv_state("state", 0), pool.temporal_state("state", 0)
    at = cache.state.translate(slots)
    conv[:, at] = put(torch.arange(4, dtype=torch.bfloat16)).view(1, 4, 1, 1)
    temporal[:, at] = put(torch.arange(4, dtype=torch.float32)).view(1, 4, 1)
    cache.state.copy(src=slots[:2], dst=slots[2:])
    assert listed(conv[0, at, 0, 0]) == listed(temporal[1, at, 7]) == [0, 1, 0, 1]
    with pytest.raises(ArgumentError, match="src=1, dst=2"):
        cache.state.copy(src=slots[:1], dst=slots[2:])
    with pytest.raises(TypeError):
        cache.state.copy(slots[:1], slots[1:2])  # type: ignore[misc]


@RAISES
def test_a_slot_that_is_set_aside_is_not_freed() -> None:
    """Given slots set aside, when one of them is freed, then nothing changes, and a slot that was taken can be."""
    for cache in composites():
        state = cache.state
        assert state.alloc_group_begin(2)
        taken = got(cache.alloc_state(1))
        aside = taken + 1
        frees: list[Callable[[Tensor], None]] = [
            cache.free_state,
            state.free,
            lambda slots, state=state: state.free_segment(slots, start_pos=0),  # type: ignore[misc]
            lambda slots, state=state: state.free_segments([(slots, 0)]),  # type: ignore[misc]
        ]
        for free in frees:
            with pytest.raises(
                BindingError, match=rf"state\.free\w*: slots that are set aside.*slots=\[{listed(aside)[0]}\]"
            ):
                free(torch.cat((taken, aside)))
        assert (state.set_aside, state.band.live) == (1, 2)
        cache.free_state(taken)
        state.alloc_group_end()
        assert state.band.live == 0
        assert verify(cache) == []


def test_a_backup_does_not_reach_across_slots_set_aside() -> None:
    slots = StateSlots(three_pools(), "state")
    before = slots.backup()
    assert slots.alloc_group_begin(1)
    within = slots.backup()
    for state in (before, within):
        with pytest.raises(StateError, match=r"state\.restore: slots are set aside \(left=1\)"):
            slots.restore(state)
    got(slots.alloc(1))
    slots.alloc_group_end()
    for state in (before, within):
        with pytest.raises(StateError, match=r"state\.restore"):
            slots.restore(state)
    after = slots.backup()
    got(slots.alloc(2))
    slots.restore(after)
    assert slots.band.live == 1
    assert not slots.alloc_group_begin(10_000)
    slots.restore(after)
    assert verify(slots) == []


@RAISES
def test_what_is_no_slot_is_neither_cleared_nor_copied() -> None:
    pool = three_pools()
    pool.poison()
    cache = SWAMambaComposite(pool)
    slots = got(cache.alloc_state(4))
    freed, held = slots[3:], slots[:3]
    cache.free_state(freed)
    before = pool.buffer.clone()
    foreign = [slots - 10**6, slots[:1] * 0, slots[:1] + 10**6, freed, torch.cat((held, freed))]
    for wrong in foreign:
        with pytest.raises(BindingError, match=r"state\.reset"):
            cache.state.reset(wrong)
        for source, target in ((wrong, held[:1].expand(len(wrong))), (held[:1].expand(len(wrong)), wrong)):
            with pytest.raises(BindingError, match=r"state\.copy"):
                cache.state.copy(src=source, dst=target)
    with pytest.raises(BindingError, match=rf"slots in src and in dst \(slots=\[{listed(held)[1]}\]\)"):
        cache.state.copy(src=held[:2], dst=held[1:])
    with pytest.raises(BindingError, match="one page twice"):
        cache.state.copy(src=held[:2], dst=held[2:].expand(2))
    assert equal(pool.buffer, before)
    cache.state.reset(held[:1].expand(2))
    cache.state.copy(src=held[:1].expand(2), dst=held[1:])
    assert every(pool.temporal_state("state", 0)[:, cache.state.translate(held)].eq(0))


def test_a_slot_costs_as_many_tokens_as_its_bytes_rounded_up() -> None:
    slots = StateSlots(three_pools(), "state")
    assert slots.band.page_bytes == 256
    assert [slots.cost_in_tokens(size) for size in (256, 255, 100, 1000)] == [1, 2, 3, 1]


def test_slots_are_relieved_by_deferred_frees_holes_and_a_window_that_moves_aside() -> None:
    pool = three_pools(1)
    cache = SWAMambaComposite(pool)
    row = got(cache.alloc(cache.available_size()))
    floating = cache.swa
    assert isinstance(floating, FloatBand)
    assert cache.alloc_state(20) is None
    moves = floating.moves
    cache.free_group_begin()
    cache.free_segment(row[:20], start_pos=0)
    assert cache.alloc_state(20) is not None
    assert floating.moves > moves
    cache.free_group_end()
    assert verify(cache) == []


def test_a_window_pool_in_the_way_of_either_end_moves() -> None:
    cache = SWAMambaComposite(three_pools())
    row = got(cache.alloc(16))
    cache.free_full_segment(row[:0], start_pos=0)
    for _ in range(40):
        got(cache.alloc_state(1))
    assert got(cache.alloc(cache.schedulable_size())).numel()
    assert verify(cache) == []


def test_every_pool_is_gated_and_waits() -> None:
    """C11: the state pool moves no more than the others while somebody knows places."""
    for cache in composites():
        slots = got(cache.alloc_state(8))
        cache.free_state(slots[:4])
        event = Event()
        cache.set_forward_event(event)
        cache.set_gate("transfer", lambda: False)
        for band in cache.bands:
            assert not band.may_move()
            assert band.fwd_event is event
        assert cache.state.band.pack(4) == 0
        cache.set_gate("transfer", None)
        assert cache.state.band.pack(4) == 4
        assert event.waits == 1
        assert verify(cache) == []


def test_clear_and_resize_take_every_pool_along() -> None:
    for cache in composites():
        slots, _ = got(cache.alloc_state(2)), got(cache.alloc(8))
        with pytest.raises(StateError, match="not empty"):
            cache.resize(32768)
        cache.clear()
        assert [band.live for band in cache.bands] == [0] * len(cache.bands)
        cache.resize(32768)
        assert cache.state.band.pages == 32768 // 256
        assert listed(got(cache.alloc_state(2))) == listed(slots)
        assert verify(cache) == []


def test_one_pool_of_several_is_not_resized_alone() -> None:
    cache = MambaComposite(two_pools())
    with pytest.raises(StateError, match="other pools share"):
        cache.state.resize(32768)


def test_a_budget_below_the_floor_is_refused_item_by_item() -> None:
    floor = Floor(context=100, window=20, full_tokens=8)
    with pytest.raises(BudgetError, match=r"needed=25344, sink=4096, state=768, swa=12288, full=8192"):
        three_pools(total=25344, floor=floor)  # its bytes, but no room for where the pools' pages meet
    assert three_pools(total=28672, floor=floor).total_bytes == 28672


def test_a_pool_of_keys_has_no_slots_and_the_owner_of_ids_does_not_float() -> None:
    with pytest.raises(SpecError, match="no state pool"):
        StateSlots(three_pools(), "swa")
    with pytest.raises(SpecError, match="is an end pool"):
        SWAComposite(three_pools(), full="swa", swa="full")


def test_a_dump_tells_where_everything_is() -> None:
    cache = SWAMambaComposite(three_pools())
    row = got(cache.alloc(8))
    cache.free_segment(row[:4], start_pos=0)
    told = dump(cache)
    assert list(told) == ["full", "swa", "state"]
    assert told["full"]["bound"] == {listed(row)[4] // 4: listed(cache.translate(row[4:5]))[0] // 4}
    assert (told["swa"]["live"], len(told["swa"]["holes"])) == (1, 1)  # type: ignore[arg-type]


class ThreePools(Machine):
    """The machine of the window composite, with slots that come, are cleared, copied, moved, and go."""

    both: SWAMambaComposite

    @initialize(page_size=st.sampled_from([1, 4]), eager=st.booleans(), guarded=st.booleans(), side=st.booleans())
    def start(self, page_size: int, eager: bool, guarded: bool, side: bool) -> None:  # type: ignore[override]
        shape = {"page_size": page_size, "heads": 1, "key_dim": 2, "value_dim": 2, "dtype": torch.int64}
        specs = [
            KVSpec("full", "full", "down", layers=range(2), **shape),  # type: ignore[arg-type]
            KVSpec("swa", "swa", "float", layers=range(1), **shape),  # type: ignore[arg-type]
            StateSpec("state", "up", range(2), conv=(), temporal=(StatePart((10,), torch.int64),)),
        ]
        pool = pool_of(64 * page_size * 30 + 160 * 8 + 32, specs)
        pool.poison()
        self.queue = Queue() if side else None
        self.both = SWAMambaComposite(pool, eager=eager, checked=not guarded, side=self.queue, profile=self.profile)
        self.guarded = guarded
        self.views = [pool.kv_layer("full", 1)[0], pool.kv_layer("swa", 0)[0]]
        self.states = pool.temporal_state("state", 0)
        self.rows: list[Row] = []
        self.slots: list[tuple[Tensor, int]] = []
        self.written = 0

    def fill(self, slots: Tensor) -> None:
        """Writes what a request's state would be, a number of its own into every part of the slot."""
        for slot in slots.split(1):
            (mark,) = listed(self.new_text(1))
            at = self.both.state.translate(slot)
            assert every(at.gt(0))
            self.states.index_fill_(1, at, mark)
            self.slots.append((slot, mark))

    @rule(count=st.integers(1, 3))
    def take_slots(self, count: int) -> None:
        slots = self.call(self.both.alloc_state, count)
        if slots is None:
            return
        self.call(self.both.state.reset, slots)
        assert every(self.states[:, self.both.state.translate(slots)].eq(0))
        self.fill(slots)

    @rule(count=st.integers(1, 3), used=st.integers(0, 3))
    def take_slots_one_by_one(self, count: int, used: int) -> None:
        if self.call(self.both.state.alloc_group_begin, count):
            for _ in range(min(count, used)):
                slot = self.call(self.both.alloc_state, 1)
                assert slot is not None
                self.fill(slot)
            self.call(self.both.state.alloc_group_end)

    @precondition(lambda self: self.slots)
    @rule(at=st.integers(0, 9))
    def give_back_slots(self, at: int) -> None:
        slot, _ = self.slots.pop(at % len(self.slots))
        self.call(self.both.free_state, slot)

    @precondition(lambda self: len(self.slots) > 1)
    @rule()
    def checkpoint(self) -> None:
        (source, mark), (target, _) = self.slots[:2]
        self.call(self.both.state.copy, src=source, dst=target)
        self.slots[1] = target, mark

    @rule(high=st.booleans(), asked=st.integers(0, 2000))
    def make_room(self, high: bool, asked: int) -> None:
        floating = self.both.swa
        assert isinstance(floating, FloatBand)
        self.call(floating.make_room, "high" if high else "low", asked)

    @rule()
    def start_over(self) -> None:
        super().start_over()
        if self.written % 7 == 0:
            self.slots = []

    @invariant()
    def slots_hold_what_was_written(self) -> None:
        """I16."""
        for slot, mark in getattr(self, "slots", ()):
            assert every(self.states[:, self.both.state.translate(slot)].eq(mark))

    @invariant()
    def what_is_live_are_the_slots(self) -> None:
        if hasattr(self, "slots"):
            assert self.both.state.band.live == len(self.slots)
            check(self.both)


class FusedThreePools(ThreePools):
    """The same in the other profile."""

    profile = "fused"


ThreePools.TestCase.settings = plan_of(60)
FusedThreePools.TestCase.settings = plan_of(60)
TestThreePools = ThreePools.TestCase
TestFusedThreePools = FusedThreePools.TestCase
