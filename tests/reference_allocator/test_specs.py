"""What a byte pool is made of: sizes, views of its bytes, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from reference_allocator import BytePool, Floor, MambaComposite, StatePart, StateSpec, SWAComposite, SWAMambaComposite
from reference_allocator.errors import BudgetError, SpecError
from reference_allocator.specs import RUNNING_STATES, Spec
from reference_allocator.verify import verify
from tests.reference_allocator.pools import byte_pool, every, ids, kv, listed, pool_of, twice

STATE = StateSpec(
    "state", "up", range(3),
    conv=(StatePart((3, 5), torch.bfloat16), StatePart((3, 8), torch.bfloat16)),
    temporal=(StatePart((2, 4, 4), torch.float32),),
)  # fmt: skip


def test_the_worked_example() -> None:
    pool = byte_pool(page_size=4, total=65536)
    assert pool.sink_bytes == 4096
    full, swa = pool.geometry["full"], pool.geometry["swa"]
    assert (full.entry_bytes, full.pages, full.min_page) == (1024, 16, 1)
    assert (swa.entry_bytes, swa.pages, swa.min_page) == (512, 32, 2)
    gap = swa.pages * swa.page_bytes - full.min_page * full.page_bytes
    assert gap == 61440
    assert gap // (full.page_bytes + swa.page_bytes) == 10


def test_a_state_entry_counts_once_in_the_sink() -> None:
    pool = pool_of(65536, [STATE, kv("full", "full", "down", 16, 1)])
    entry = 3 * (32 + 48 + 128)
    assert pool.geometry["state"].entry_bytes == entry + 16  # to a multiple of 32
    assert pool.sink_bytes == 16 * 512


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float8_e4m3fn])
def test_every_part_of_every_entry_is_aligned(dtype: torch.dtype) -> None:
    odd = replace(kv("full", "full", "down", 2, 3), heads=1, key_dim=7, value_dim=5, dtype=dtype)
    pool = pool_of(65536, [STATE, odd])
    for layer in range(3):
        for view in pool.kv_layer("full", layer):
            assert view.data_ptr() % 16 == 0
            assert view.stride(0) * view.element_size() == pool.geometry["full"].entry_bytes
            assert view.stride()[1:] == (view.shape[2], 1)
    assert all(geometry.entry_bytes % 32 == 0 for geometry in pool.geometry.values())


def test_a_conv_view_is_strided_and_never_contiguous() -> None:
    pool = pool_of(65536, [STATE, kv("full", "full", "down", 4, 1)])
    view = pool.conv_state("state", 0)
    entry = pool.geometry["state"].entry_bytes
    assert view.shape == (3, 65536 // entry, 3, 5)
    assert view.stride() == (16, entry // 2, 5, 1)
    assert not view[0].is_contiguous()


def test_views_of_one_entry_do_not_overlap_and_fill_only_their_slot() -> None:
    pool = pool_of(65536, [STATE, kv("full", "full", "down", 4, 1)])
    parts = [pool.conv_state("state", 0), pool.conv_state("state", 1), pool.temporal_state("state", 0)]
    for number, part in enumerate(parts):
        part[:, 1] = number + 1
    assert [sorted(set(listed(part[:, 1].flatten()))) for part in parts] == [[1], [2], [3]]
    assert all(every(part[:, 0].eq(0)) and every(part[:, 2].eq(0)) for part in parts)


def test_views_write_the_page_envelope() -> None:
    pool = byte_pool()
    keys, values = pool.kv_layer("full", 1)
    keys[4 * 3 : 4 * 4] = 1
    values[4 * 3 : 4 * 4] = 2
    touched = listed(pool.envelopes("full").ne(0).any(1))
    assert [page for page, written in enumerate(touched) if written] == [3]


@pytest.mark.parametrize("grows", [("up", "up"), ("down", "down"), ("up", "float"), ("up",)])
def test_a_chain_has_two_ends(grows: tuple[str, ...]) -> None:
    with pytest.raises(SpecError, match="exactly one pool grows up"):
        pool_of(65536, [kv(f"p{number}", "full", grow, 4, 1) for number, grow in enumerate(grows)])


def test_names_are_unique() -> None:
    with pytest.raises(SpecError, match="not unique"):
        pool_of(65536, [kv("a", "full", "up", 4, 1), kv("a", "swa", "down", 4, 1)])


def test_an_empty_page_is_refused() -> None:
    with pytest.raises(SpecError, match="page_size=0"):
        byte_pool(page_size=0)


def test_a_state_pool_has_slots_not_pages() -> None:
    with pytest.raises(SpecError, match="one slot"):
        pool_of(65536, [replace(STATE, page_size=2), kv("full", "full", "down", 4, 1)])


def test_a_budget_without_a_page_names_pool_and_numbers() -> None:
    with pytest.raises(
        BudgetError, match=r"full\.budget: .*total_bytes=4096, sink_bytes=4096.*pages=1, min_page=1"
    ) as error:
        byte_pool(total=4096)
    assert error.value.pool == "full"
    assert error.value.numbers["page_bytes"] == 4096


def test_token_ids_fit_in_31_bits() -> None:
    tiny = replace(kv("full", "full", "up", 1, 1), heads=1, key_dim=1, value_dim=1)
    with pytest.raises(SpecError, match="31 bits"):
        pool_of(2**31 * 32, [tiny, replace(tiny, name="swa", grow="down")])


def test_a_budget_below_the_floor_lists_what_is_needed() -> None:
    specs = [kv("full", "full", "up", 4, 2), kv("swa", "swa", "down", 4, 1)]
    needed = 4096 + 3 * 2048 + 5 * 4096
    floor = Floor(context=100, window=8, full_tokens=20)
    pool_of(needed, specs, floor=floor)
    with pytest.raises(BudgetError, match="sink=4096, full=20480, swa=6144"):
        pool_of(needed - 1, specs, floor=floor)


def test_the_floor_counts_three_states_and_all_tokens() -> None:
    specs = [STATE, kv("full", "full", "down", 1, 1)]
    with pytest.raises(BudgetError, match=f"needed={640 + 3 * 640 + 512}, sink=640, state={3 * 640}, full=512"):
        pool_of(2500, specs, floor=Floor(context=1, window=1))
    with pytest.raises(BudgetError, match="full=512000000"):
        pool_of(1 << 20, specs, floor=Floor(context=10**6, window=64))


@pytest.mark.parametrize("page_size", [1, 4, 16])
@pytest.mark.parametrize("pools", [1, 2, 3])
def test_the_smallest_budget_of_a_floor_runs_its_request(pools: int, page_size: int) -> None:
    """Given the least budget that a floor admits, when its request is prefilled and decoded to its end, then it fits."""
    for context, window in ((37, 8), (64, 16), (5, 20), (1, 1)):
        floor = Floor(context, window)
        for heads in (1, 3):
            least = next(
                total for total in range(512, 10**7, 256) if (pool := floored(total, pools, page_size, heads, floor))
            )
            pool = floored(least, pools, page_size, heads, floor)
            assert pool is not None
            serve(pool, pools, page_size, floor)


def floored(total: int, pools: int, page_size: int, heads: int, floor: Floor) -> BytePool | None:
    """A pool of full attention, with a window, and with state as well, or None below the floor."""
    full = replace(kv("full", "full", "up" if pools == 2 else "down", page_size, 2), heads=1, key_dim=8, value_dim=8)
    swa = replace(full, name="swa", kind="swa", grow="down" if pools == 2 else "float", layers=range(1), heads=heads)
    state = StateSpec("state", "up", range(1), conv=(), temporal=(StatePart((9 * heads,), torch.float32),))
    chosen: list[Spec] = {1: [state, full], 2: [full, swa], 3: [state, swa, full]}[pools]  # type: ignore[list-item]
    try:
        return pool_of(total, chosen, floor=floor)
    except BudgetError:
        return None


def serve(pool: BytePool, pools: int, page_size: int, floor: Floor) -> None:
    cache = {1: MambaComposite, 2: SWAComposite, 3: SWAMambaComposite}[pools](pool)
    if isinstance(cache, MambaComposite | SWAMambaComposite):
        assert cache.alloc_state(RUNNING_STATES) is not None
    half, cursor = max(1, floor.context // 2), 0
    asked = (*twice(0), *twice(half), ids(-1), half)
    if isinstance(cache, SWAComposite):
        row = cache.alloc_extend_swa_tail(*asked, tail_len=max(floor.window, page_size))
        cursor = max(0, half - max(floor.window, page_size)) // page_size * page_size
    else:
        row = cache.alloc_extend(*asked)
    for length in range(half + 1, floor.context + 1):
        assert row is not None
        if isinstance(cache, SWAComposite):
            cursor = cache.advance_window(row, cursor, length - 1, floor.window)
        new = cache.alloc_decode(*twice(length), row[-1:])
        assert new is not None, (length, floor)
        row = torch.cat((row, new))
    assert verify(cache) == []


def test_resize_stays_within_what_was_reserved() -> None:
    pool = byte_pool()
    pool.resize(32768)
    assert pool.geometry["full"].pages == 8
    pool.resize(65536)
    with pytest.raises(BudgetError, match="reserved=65536"):
        pool.resize(65537)
    assert pool.total_bytes == 65536


def test_poison_spares_the_sink() -> None:
    pool = byte_pool()
    pool.poison()
    keys, _ = pool.kv_layer("full", 0)
    assert every(keys[:4].eq(0))
    assert every(keys[4:].isnan())


@pytest.mark.parametrize(
    "ask",
    [
        lambda pool: pool.kv_layer("full", 7),
        lambda pool: pool.kv_layer("nowhere", 0),
        lambda pool: pool.conv_state("full", 0),
        lambda pool: pool.conv_state("state", 2),
        lambda pool: pool.temporal_state("state", 1),
        lambda pool: pool.temporal_state("state", -1),
    ],
)
def test_views_that_do_not_exist_are_refused(ask) -> None:  # type: ignore[no-untyped-def]
    pool = pool_of(65536, [STATE, kv("full", "full", "down", 4, 1)])
    with pytest.raises(SpecError):
        ask(pool)
