"""Names of pools, profiles and gates, who has which pool, and errors that travel between processes."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch

from reference_allocator import (
    MambaComposite,
    PageAllocator,
    StateSlots,
    SWAComposite,
    SWAMambaComposite,
    errors,
)
from reference_allocator.errors import AllocatorError, ArgumentError, SpecError
from reference_allocator.pooled import PooledAllocator
from reference_allocator.specs import BytePool
from reference_allocator.verify import verify
from tests.reference_allocator.pools import byte_pool, two_owners
from tests.reference_allocator.test_allocator import got
from tests.reference_allocator.test_state import three_pools, two_pools

UNKNOWN: list[Callable[[BytePool], object]] = [
    lambda pool: PageAllocator(pool, "fll"),
    lambda pool: StateSlots(pool, "fll"),
    lambda pool: SWAComposite(pool, full="fll"),
    lambda pool: SWAMambaComposite(pool, swa="fll"),
    lambda pool: MambaComposite(pool, state="fll"),
    lambda pool: pool.envelopes("fll"),
]


@pytest.mark.parametrize("make", UNKNOWN)
def test_a_name_that_no_pool_has_is_told_with_those_that_there_are(make: Callable[[BytePool], object]) -> None:
    with pytest.raises(SpecError, match=r"^fll\.\w+: no .*pools=\['full', 'state', 'swa'\]"):
        make(three_pools())


def test_a_profile_that_there_is_not_is_told_with_those_that_there_are() -> None:
    for make in (lambda pool: PageAllocator(pool, "full", profile="fast"), lambda pool: SWAComposite(pool, profile=1)):
        with pytest.raises(SpecError, match=r"full\.band: no such profile .*profiles=\['fused', 'portable'\]"):
            make(byte_pool())


def test_a_pool_has_one_allocator() -> None:
    """Given an allocator, when another one is made for its pool, then it is refused, and the first is as it was."""
    pool = byte_pool()
    both = SWAComposite(pool)
    row = got(both.alloc(8))
    for make in (
        lambda: PageAllocator(pool, "full"),
        lambda: PageAllocator(pool, "swa"),
        lambda: SWAComposite(pool),
    ):
        with pytest.raises(SpecError, match=r"(full|swa)\.band: another allocator has this pool"):
            make()
    both.free_segment(row, start_pos=0)
    assert verify(both) == []
    with pytest.raises(SpecError, match=r"full\.band: another allocator has this pool"):
        SWAComposite(byte_pool(), swa="full")


def test_a_pool_outlives_its_allocator() -> None:
    pool = byte_pool()
    assert got(SWAComposite(pool).alloc(8)).numel() == 8
    assert verify(SWAComposite(pool)) == []


def test_a_gate_can_be_called() -> None:
    for cache in (SWAComposite(byte_pool()), MambaComposite(two_pools())):
        cache.set_gate("transfer", lambda: False)
        with pytest.raises(
            ArgumentError, match=r"\.set_gate: a gate that cannot be called \(gate=transfer, given=bool\)"
        ):
            cache.set_gate("transfer", False)  # type: ignore[arg-type]
        assert [band.may_move() for band in cache.bands] == [False, False]


def test_every_pooled_allocator_names_its_byte_pool() -> None:
    two, three = two_pools(), three_pools()
    owners = two_owners()
    caches: list[PooledAllocator] = [MambaComposite(two), (swa := SWAMambaComposite(three)), swa.full, swa.state]
    assert [cache.pool for cache in caches] == [two, three, three, three]
    assert owners[0].pool is owners[1].pool


ERRORS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, AllocatorError)]


@pytest.mark.parametrize("kind", ERRORS)
def test_errors_travel_between_processes(kind: type[AllocatorError]) -> None:
    error = kind("full", "free", "pages apart", pages=[1, 2], dtype=torch.int32)
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is kind
    assert str(back) == str(error) == "full.free: pages apart (pages=[1, 2], dtype=torch.int32)"
    told: list[Any] = [back.pool, back.operation, back.problem, back.numbers]
    assert told == ["full", "free", "pages apart", {"pages": [1, 2], "dtype": torch.int32}]
