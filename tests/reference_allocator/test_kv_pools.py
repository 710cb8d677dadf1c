"""S1: what a backend learns of a pool before the first step, where the two sides differ in width."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from reference_allocator import KVSpec, StatePart, StateSpec
from reference_allocator.errors import LayerError, SpecError
from reference_allocator.kv_pools import HybridLinearKVPool, KVPool, KVSide, SWAKVPool, UnifiedSWAKVPool
from tests.reference_allocator.pools import Place, every, listed, pool_of, put

KEYS, VALUES = 24, 8
"""Widths on the full side; the window's are twice as large."""


def spec(name: str, layers: list[int], *, wider: int = 1) -> KVSpec:
    grow = "up" if name == "full" else "down"
    return KVSpec(name, name, grow, 4, layers, 2, KEYS * wider, VALUES * wider, torch.bfloat16)  # type: ignore[arg-type]


def side_of(spec: KVSpec, tokens: int) -> KVSide:
    return KVSide.allocate(spec, tokens, device=Place.device)


def static(full: list[int], swa: list[int]) -> KVPool:
    return SWAKVPool(side_of(spec("full", full), 32), side_of(spec("swa", swa, wider=2), 16))


def unified(full: list[int], swa: list[int]) -> KVPool:
    return UnifiedSWAKVPool(pool_of(1 << 16, [spec("full", full), spec("swa", swa, wider=2)]))


def linear(full: list[int], others: list[int]) -> HybridLinearKVPool:
    conv, temporal = (StatePart((3, 16), torch.bfloat16),), (StatePart((2, 4, 4), torch.float32),)
    return HybridLinearKVPool(
        pool_of(1 << 16, [spec("full", full), StateSpec("state", "down", others, conv, temporal)])
    )


KINDS = [static, unified, linear]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("full", "others"), [([1, 3], [0, 2]), ([0, 2], [1, 3])])
def test_the_width_is_that_of_the_layers_with_full_attention(
    kind: Callable[..., KVPool], full: list[int], others: list[int]
) -> None:
    """S1a: given layer 0 on either side, when a backend asks, then it hears of the full side."""
    assert kind(full, others).get_v_head_dim() == VALUES


@pytest.mark.parametrize("kind", KINDS)
def test_a_later_stage_of_a_pipeline_answers_from_its_own_first_layer(kind: Callable[..., KVPool]) -> None:
    """S1b: given a stage whose full side starts at layer 6 and has no other, when asked, then it succeeds."""
    pool = kind([6, 8], [5, 7])
    assert (pool.start_layer, pool.end_layer) == (5, 9)
    for layer in (0, 4, 9):
        with pytest.raises(LayerError, match=f"layer={layer}, start_layer=6, end_layer=9"):
            pool.get_value_buffer(layer)
        with pytest.raises(LayerError, match="get_key_buffer"):
            pool.get_key_buffer(layer)
    assert pool.get_v_head_dim() == VALUES
    assert side_of(spec("full", [6]), 8).get_v_head_dim() == VALUES


def test_the_method_is_inherited_and_takes_no_argument() -> None:
    """S1c: given the unified pool, then its method is the static pool's; that of every pool takes nothing."""
    assert UnifiedSWAKVPool.get_v_head_dim is SWAKVPool.get_v_head_dim
    for kind in (KVSide, SWAKVPool, UnifiedSWAKVPool, HybridLinearKVPool):
        assert list(inspect.signature(kind.get_v_head_dim).parameters) == ["self"]


class Backend:
    """What the constructor of an attention backend does with a pool, and one step with what it has learnt."""

    def __init__(self, pool: KVPool, *, mambaish: bool, swa_v_head_dim: int | None, v_head_dim: int) -> None:
        hybrid = swa_v_head_dim is not None
        if mambaish or (hybrid and swa_v_head_dim == v_head_dim):
            self.v_head_dim = pool.get_v_head_dim()
        else:
            self.v_head_dim = pool.get_value_buffer(pool.start_layer).shape[-1]
        self.out = put(torch.empty(2, self.v_head_dim, dtype=torch.bfloat16))

    def attend(self, values: Tensor) -> Tensor:
        self.out.copy_(values.mean(0))
        return self.out


@pytest.mark.parametrize("kind", KINDS)
def test_a_backend_starts_where_the_first_layer_says_nothing(kind: Callable[..., KVPool]) -> None:
    """S1d: given a mambaish model, or a hybrid one of equal widths by its configuration, then the backend is made.

    The window's buffers are wider than configured, as padded ones are, so that only one answer fits.
    """
    pool = kind([3, 5], [2, 4])
    swa = None if kind is linear else 8
    backend = Backend(pool, mambaish=kind is linear, swa_v_head_dim=swa, v_head_dim=8)
    assert backend.attend(pool.get_value_buffer(3)).shape == (2, VALUES)


@pytest.mark.parametrize("kind", [static, unified])
def test_every_layer_has_buffers_of_its_side(kind: Callable[..., SWAKVPool]) -> None:
    pool = kind([1, 3], [0, 2])
    widths = [(pool.get_key_buffer(layer).shape[-1], pool.get_value_buffer(layer).shape[-1]) for layer in range(4)]
    assert widths == [(2 * KEYS, 2 * VALUES), (KEYS, VALUES)] * 2
    assert pool.side_of(2) is pool.swa
    assert pool.side_of(3) is pool.full


def test_memory_of_ones_own_has_a_sink_and_starts_at_zero() -> None:
    side = side_of(spec("full", [1, 3]), 32)
    for layer in (1, 3):
        side.get_key_buffer(layer).add_(layer)
        side.get_value_buffer(layer).sub_(layer)
    assert side.get_key_buffer(3).shape == (32 + 4, 2, KEYS)
    assert every(side.get_key_buffer(3).eq(3))
    assert every(side.get_value_buffer(1).eq(-1))


def test_views_of_a_byte_pool_are_its_bytes() -> None:
    bytes_ = pool_of(1 << 16, [spec("full", [1, 3]), spec("swa", [0, 2], wider=2)])
    pool = UnifiedSWAKVPool(bytes_)
    pool.get_value_buffer(2)[9] = 5
    assert every(bytes_.kv_layer("swa", 2)[1][9].eq(5))
    written = listed(bytes_.envelopes("swa").ne(0).any(1))
    assert [page for page, some in enumerate(written) if some] == [2]


def test_layers_with_a_state_have_views_of_it() -> None:
    pool = linear([6, 8], [5, 7])
    for layer in (5, 7):
        pool.get_conv_state(layer)[2] = layer
        pool.get_temporal_state(layer)[2] = -layer
    for layer in (5, 7):
        assert every(pool.get_conv_state(layer)[2].eq(layer))
        assert every(pool.get_temporal_state(layer)[2].eq(-layer))
    for state in (pool.get_conv_state, pool.get_temporal_state):
        with pytest.raises(LayerError, match=r"layer=6, layers=\[5, 7\]"):
            state(6)


def test_sides_that_contradict_each_other_are_refused() -> None:
    side = side_of(spec("full", [1, 3]), 8)
    with pytest.raises(SpecError, match=r"other=full, layers=\[1, 3\]"):
        SWAKVPool(side, side)
    with pytest.raises(SpecError, match=r"keys=\[\]"):
        KVSide("full", {}, {})
    with pytest.raises(SpecError, match=r"keys=\[1\], values=\[2\]"):
        KVSide("full", {1: torch.empty(1)}, {2: torch.empty(1)})
    with pytest.raises(SpecError, match="no pool with keys and values"):
        KVSide.of(linear([1], [0])._pool, "state")
    with pytest.raises(SpecError, match="no pool with states"):
        HybridLinearKVPool(linear([1], [0])._pool, state="full")
