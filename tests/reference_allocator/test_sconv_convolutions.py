"""The convolving kernels give, bit for bit, what plain torch arithmetic in the stated order gives."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from reference_allocator.sconv import ar_fused_decode, ar_fused_verify, causal_conv1d, fused_decode_update

pytestmark = pytest.mark.host("kernels compiled for the host, over its memory; tests/guard runs them on the device")

MakeState = Callable[[int, int, int], Any]
MakeRows = Callable[..., torch.Tensor]
HISTORIES = (1, 2, 3, 4)
CHANNELS = (2, 64, 130, 512, 520)
VECTORS = (64, 512, 520)  # 16-byte words: multiples of eight channels

matrix = pytest.mark.parametrize(("history", "channels"), [(h, d) for h in HISTORIES for d in CHANNELS])
vectors = pytest.mark.parametrize(("history", "channels"), [(h, d) for h in HISTORIES for d in VECTORS])


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(torch.int16)


def i32(values: list[int]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def no_errors() -> torch.Tensor:
    return torch.zeros(8, dtype=torch.int32)


def shuffled(count: int, seed: int) -> list[int]:
    return list(torch.randperm(count, generator=torch.Generator().manual_seed(seed)).tolist())


def exponential(x: torch.Tensor) -> torch.Tensor:
    """e**x with the fused steps in fp64: products of fp32 values are exact there, and each step rounds to fp32."""

    def fused(a: torch.Tensor, b: float | torch.Tensor, c: float | torch.Tensor) -> torch.Tensor:
        return (a.double() * b + c).float()

    def f32(value: float) -> float:
        return torch.tensor(value, dtype=torch.float32).item()

    bounded = x.clamp(-87.0, 87.0)
    n = fused(bounded, f32(1.44269504), 12582912.0) - 12582912.0
    r = fused(n, f32(-1.42860677e-6), fused(n, f32(-0.693145752), bounded))
    total = torch.full_like(x, 1.98412698e-4)
    for factor in (1.38888889e-3, 8.33333333e-3, 4.16666667e-2, 1.66666667e-1, 0.5, 1.0, 1.0):
        total = fused(total, r, f32(factor))
    return torch.ldexp(total, n.int())


def convolved(taps: torch.Tensor, weight: torch.Tensor, silu: bool, add_x: bool) -> torch.Tensor:
    """The output for taps `[W, D]`, oldest first."""
    total = torch.zeros(taps.shape[1])
    for j in range(len(taps)):
        total = total + taps[j].float() * weight[:, j].float()
    if silu:
        total = total / (1.0 + exponential(-total))
    if add_x:
        total = total + taps[-1].float()
    return total.bfloat16()


def normed(y: torch.Tensor, residual: torch.Tensor, norm_weight: torch.Tensor, eps: float) -> tuple[torch.Tensor, ...]:
    """`residual_out` and `hs_out`, the squares summed eight a thread, over 32 lanes, over the warps."""
    r = y.float() + residual.float()
    threads = (r * r).reshape(-1, 8)
    partial = torch.zeros(-(-len(threads) // 32) * 32)
    for k in range(8):
        partial[: len(threads)] += threads[:, k]
    lanes = torch.zeros(32, 32)  # warps, lanes
    lanes[: len(partial) // 32] = partial.reshape(-1, 32)
    for reach in (16, 8, 4, 2, 1):
        lanes[:, :reach] += lanes[:, reach : 2 * reach]
    warps = lanes[:, 0].clone()
    for reach in (16, 8, 4, 2, 1):
        warps[:reach] += warps[reach : 2 * reach]
    scale = 1.0 / torch.tensor(
        math.sqrt((warps[0] / r.numel() + eps).item())
    )  # not torch's: of some CPUs it is an ulp off
    return r.bfloat16(), (r * scale * norm_weight.float()).bfloat16()


@matrix
@pytest.mark.parametrize(("silu", "add_x", "decode"), [(False, False, False), (True, True, False), (True, False, True)])
def test_prefill_takes_early_taps_from_the_state(
    history: int, channels: int, silu: bool, add_x: bool, decode: bool, state: MakeState, rows: MakeRows
) -> None:
    lengths = [q for q in range(history + 3) for _ in (True, False)] + [2]
    mask = [first for _ in range(history + 3) for first in (True, False)] + [True]
    slots = [*shuffled(len(lengths) + 1, history)[: len(lengths) - 1], -1]
    slots[3] = len(lengths) + 1  # the last one
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    seq = [lane for lane, length in enumerate(lengths) for _ in range(length)]
    x, weight = rows(starts[-1], channels), rows(channels, history + 1, seed=5)
    y, expected, error = rows(starts[-1], channels, seed=6), rows(starts[-1], channels, seed=6), no_errors()
    gate = torch.tensor(mask).reshape(-1, 1, 1)

    def run(cache: torch.Tensor) -> None:
        y.fill_(7.0)
        causal_conv1d(
            x, cache, torch.tensor(slots), gate, weight, torch.tensor(starts), i32(seq), y, silu=silu, add_x=add_x,
            decode=decode, error_word=error,
        )  # fmt: skip
        assert torch.equal(bits(y), bits(expected))

    def expect(cache: torch.Tensor) -> None:
        for lane, (start, end) in enumerate(itertools.pairwise(starts)):
            known = slots[lane] >= 0 and (decode or mask[lane])
            old = cache[slots[lane]] if known else torch.zeros(history, channels, dtype=torch.bfloat16)
            seen = torch.cat([old, x[start:end]])
            for token in range(start, end):
                taps = seen[token - start : token - start + history + 1]
                expected[token] = convolved(taps, weight, silu, add_x)

    state(len(lengths) + 2, history, channels).check(run, expect)
    assert error.tolist() == [0] * 8


def decode_lanes(history: int) -> tuple[list[int], list[bool], list[bool], list[int]]:
    """Slots, masks, track masks and track slots: every combination, PAD rows, the last slot of 19."""
    lanes = 8
    order = shuffled(18, history)
    slots = [*order[: lanes - 2], 18, -1]
    mask = [lane % 2 == 0 for lane in range(lanes)]
    tracked = [lane // 2 % 2 == 0 for lane in range(lanes)]
    kept = order[lanes : 2 * lanes]
    kept[0] = -1
    tracked[-1] = True  # a PAD row leaves its track slot alone
    return slots, mask, tracked, kept


def moved_on(
    cache: torch.Tensor, seen: torch.Tensor, lane: int, slots: list[int], tracked: list[bool], kept: list[int]
) -> None:
    """Writes the state after a token, `seen[1:]`, to the slot and to the track slot."""
    if slots[lane] >= 0:
        cache[slots[lane]] = seen[1:]
        if tracked[lane] and kept[lane] >= 0:
            cache[kept[lane]] = seen[1:]


@matrix
@pytest.mark.parametrize(("silu", "add_x", "track"), [(True, False, True), (False, True, False)])
def test_decode_convolves_and_moves_the_state_on(
    history: int, channels: int, silu: bool, add_x: bool, track: bool, state: MakeState, rows: MakeRows
) -> None:
    slots, mask, tracked, kept = decode_lanes(history)
    x, weight = rows(len(slots), channels), rows(channels, history + 1, seed=5)
    y, expected, error = rows(len(slots), channels, seed=6), rows(len(slots), channels, seed=6), no_errors()
    tracking = {"track_mask": torch.tensor(tracked), "track_slot": torch.tensor(kept)} if track else {}

    def run(cache: torch.Tensor) -> None:
        fused_decode_update(
            x, cache, i32(slots), torch.tensor(mask), weight, y, silu=silu, add_x=add_x, error_word=error, **tracking
        )
        assert torch.equal(bits(y), bits(expected))

    def expect(cache: torch.Tensor) -> None:
        for lane, slot in enumerate(slots):
            known = slot >= 0 and mask[lane]
            old = cache[slot].clone() if known else torch.zeros(history, channels, dtype=torch.bfloat16)
            seen = torch.cat([old, x[lane : lane + 1]])
            expected[lane] = convolved(seen, weight, silu, add_x)
            moved_on(cache, seen, lane, slots, tracked if track else [False] * len(slots), kept)

    state(19, history, channels).check(run, expect)
    assert error.tolist() == [0] * 8


def test_decode_may_write_its_rows_in_place(rows: MakeRows) -> None:
    x, weight, cache = rows(2, 64), rows(64, 4, seed=5), rows(3, 192, seed=2).reshape(3, 3, 64)
    y, apart = torch.empty_like(x), cache.clone()
    fused_decode_update(x, apart, i32([1, 2]), torch.tensor([True, True]), weight, y)
    fused_decode_update(x, cache, i32([1, 2]), torch.tensor([True, True]), weight, x)
    assert torch.equal(bits(x), bits(y))
    assert torch.equal(bits(cache), bits(apart))


def test_taps_are_summed_oldest_first() -> None:
    # 2**30 + 1 - 2**30 + 0.5 is 0.5 in this order; from the newest tap on it is 0.
    taps = torch.tensor([2.0**30, 1.0, -(2.0**30), 0.5]).repeat(8, 1).T.bfloat16()
    cache, x, weight = taps[:3][None].contiguous(), taps[3:].contiguous(), torch.ones(8, 4, dtype=torch.bfloat16)
    y, on, out = torch.zeros_like(x), torch.tensor([True]), [torch.zeros_like(x), torch.zeros_like(x)]
    causal_conv1d(x, cache, torch.tensor([0]), on, weight, torch.tensor([0, 1]), i32([0]), y, silu=False)
    assert y.tolist() == [[0.5] * 8]
    ar_fused_decode(x[None], cache.clone(), i32([0]), on, weight, out[1].clone(), x[0], *out, silu=False)
    assert out[0].tolist() == [[0.5] * 8]
    fused_decode_update(x, cache, i32([0]), on, weight, y, silu=False)
    assert y.tolist() == [[0.5] * 8]


def partial_sums(ranks: int, tokens: int, channels: int) -> torch.Tensor:
    """Shards of a padded row stride, and of a rank stride with a row to spare."""
    wide = torch.empty(ranks, tokens + 1, channels + 8, dtype=torch.bfloat16)
    return wide.normal_(generator=torch.Generator().manual_seed(ranks + channels))[:, :tokens, :channels]


def reduced(shards: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(shards.shape[1:])
    for shard in shards:
        total = total + shard.float()
    return total.bfloat16()


@vectors
@pytest.mark.parametrize(("silu", "add_x", "track", "ranks"), [(True, False, True, 3), (False, True, False, 8)])
def test_reduced_decode_adds_the_residual_and_norms(
    history: int, channels: int, silu: bool, add_x: bool, track: bool, ranks: int, state: MakeState, rows: MakeRows
) -> None:
    slots, mask, tracked, kept = decode_lanes(history)
    count, eps = len(slots), 1e-5
    shards, weight = partial_sums(ranks, count, channels), rows(channels, history + 1, seed=5)
    residual, norm_weight = rows(count, channels, seed=7), rows(1, channels, seed=8)[0]
    got = [rows(count, channels, seed=9), rows(count, channels, seed=9)]
    expected, error = [rows(count, channels, seed=9), rows(count, channels, seed=9)], no_errors()
    tracking = {"track_mask": torch.tensor(tracked), "track_slot": torch.tensor(kept)} if track else {}
    x = reduced(shards)

    def run(cache: torch.Tensor) -> None:
        ar_fused_decode(
            shards, cache, i32(slots), torch.tensor(mask), weight, residual, norm_weight, *got, eps=eps, silu=silu,
            add_x=add_x, error_word=error, **tracking,
        )  # fmt: skip
        assert torch.equal(bits(got[0]), bits(expected[0]))
        assert torch.equal(bits(got[1]), bits(expected[1]))

    def expect(cache: torch.Tensor) -> None:
        for lane, slot in enumerate(slots):
            known = slot >= 0 and mask[lane]
            old = cache[slot].clone() if known else torch.zeros(history, channels, dtype=torch.bfloat16)
            seen = torch.cat([old, x[lane : lane + 1]])
            y = convolved(seen, weight, silu, add_x)
            expected[0][lane], expected[1][lane] = normed(y, residual[lane], norm_weight, eps)
            moved_on(cache, seen, lane, slots, tracked if track else [False] * count, kept)

    state(19, history, channels).check(run, expect)
    assert error.tolist() == [0] * 8


@vectors
@pytest.mark.parametrize("silu", [True, False])
def test_verify_leaves_the_state_and_writes_every_window(
    history: int, channels: int, silu: bool, state: MakeState, rows: MakeRows
) -> None:
    slots, mask = [6, 2, 0, -1, 4], [True, False, True, True, True]
    drafted, eps = history + 2, 1e-6
    count = len(slots) * drafted
    shards, weight = partial_sums(2, count, channels), rows(channels, history + 1, seed=5)
    residual, norm_weight = rows(count, channels, seed=7), rows(1, channels, seed=8)[0]
    got, expected = [rows(count, channels, seed=s) for s in (9, 9)], [rows(count, channels, seed=s) for s in (9, 9)]
    windows = torch.full((len(slots) + 1, drafted, history, channels + 8), 3.0, dtype=torch.bfloat16)
    wanted, error, x = windows.clone(), no_errors(), reduced(shards)

    def run(cache: torch.Tensor) -> None:
        ar_fused_verify(
            shards, cache, i32(slots), torch.tensor(mask), weight, residual, norm_weight, *got,
            windows[..., :channels], eps=eps, silu=silu, error_word=error,
        )  # fmt: skip
        assert torch.equal(bits(got[0]), bits(expected[0]))
        assert torch.equal(bits(got[1]), bits(expected[1]))
        assert torch.equal(bits(windows), bits(wanted))

    def expect(cache: torch.Tensor) -> None:
        for lane, slot in enumerate(slots):
            known = slot >= 0 and mask[lane]
            old = cache[slot].clone() if known else torch.zeros(history, channels, dtype=torch.bfloat16)
            seen = torch.cat([old, x[lane * drafted : (lane + 1) * drafted]])
            for i in range(drafted):
                token = lane * drafted + i
                y = convolved(seen[i : i + history + 1], weight, silu, False)
                expected[0][token], expected[1][token] = normed(y, residual[token], norm_weight, eps)
                if slot >= 0:
                    wanted[lane, i, :, :channels] = seen[i + 1 : i + 1 + history]

    state(7, history, channels).check(run, expect)
    assert error.tolist() == [0] * 8


def test_reduced_decode_may_update_the_residual_in_place(rows: MakeRows) -> None:
    shards, weight, norm = partial_sums(2, 2, 64), rows(64, 4, seed=5), rows(1, 64, seed=8)[0]
    cache, residual = rows(3, 192, seed=2).reshape(3, 3, 64), rows(2, 64, seed=7)
    out, hs = torch.empty_like(residual), [torch.empty_like(residual) for _ in range(2)]
    operands = (i32([1, 2]), torch.tensor([True, True]), weight, residual, norm)
    ar_fused_decode(shards, cache.clone(), *operands, out, hs[0])
    ar_fused_decode(shards, cache, *operands, residual, hs[1])
    assert torch.equal(bits(out), bits(residual))
    assert torch.equal(bits(hs[0]), bits(hs[1]))


def test_widest_row_fills_the_block(rows: MakeRows) -> None:
    shards, weight, norm = partial_sums(2, 1, 8192), rows(8192, 2, seed=5), rows(1, 8192, seed=8)[0]
    cache, residual = torch.zeros(1, 1, 8192, dtype=torch.bfloat16), rows(1, 8192, seed=7)
    out, hs = torch.empty_like(residual), torch.empty_like(residual)
    ar_fused_decode(shards, cache, i32([0]), torch.tensor([False]), weight, residual, norm, out, hs, silu=False)
    x = reduced(shards)
    y = convolved(torch.cat([torch.zeros_like(x), x]), weight, False, False)
    expected = normed(y, residual[0], norm, 1e-6)
    assert torch.equal(bits(out[0]), bits(expected[0]))
    assert torch.equal(bits(hs[0]), bits(expected[1]))
    assert torch.equal(cache[0], x)


def through_decode(values: torch.Tensor, silu: bool) -> torch.Tensor:
    """One weight of 1 and a state of zeros: the output is the activation of the input, rounded."""
    x, y = values.reshape(1, -1), torch.empty(1, values.numel(), dtype=torch.bfloat16)
    cache = torch.zeros(1, 1, values.numel(), dtype=torch.bfloat16)
    weight = torch.tensor([0.0, 1.0]).repeat(values.numel(), 1).bfloat16()
    fused_decode_update(x, cache, i32([0]), torch.tensor([False]), weight, y, silu=silu)
    return y[0]


def test_silu_is_torchs_to_one_unit_in_the_last_place() -> None:
    every = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    x = every[(every != 0) & (every.abs() < 80)]  # a sum that starts at 0 never is -0
    expected = torch.nn.functional.silu(x.double()).bfloat16()
    assert (bits(through_decode(x, silu=True)).int() - bits(expected).int()).abs().max() <= 1


def test_bf16_rounding_is_torchs() -> None:
    # Sums of two bf16 values, one 2**-9 of the other, hit ties, both directions and overflow to infinity.
    generator = torch.Generator().manual_seed(11)
    x = torch.randint(-(2**15), 2**15, (40000,), generator=generator).to(torch.int16).view(torch.bfloat16)
    old = torch.randint(-(2**15), 2**15, (40000,), generator=generator).to(torch.int16).view(torch.bfloat16)
    old[:20000] = (x[:20000].float() * 2**-9).bfloat16()  # half a unit in the last place
    old[20000:20004], x[20000:20004] = 3.38e38, 3.38e38
    keep = torch.isfinite(x) & torch.isfinite(old) & ~torch.isnan(x.float() + old.float())
    x, old = x[keep][: keep.sum() // 2 * 2], old[keep][: keep.sum() // 2 * 2]
    cache, y = old.reshape(1, 1, -1).clone(), torch.empty(1, x.numel(), dtype=torch.bfloat16)
    weight = torch.ones(x.numel(), 2, dtype=torch.bfloat16)
    fused_decode_update(x.reshape(1, -1), cache, i32([0]), torch.tensor([True]), weight, y, silu=False)
    expected = (old.float() + x.float()).bfloat16()
    assert x.numel() > 30000
    assert expected.isinf().any()
    assert torch.equal(bits(y[0] + 0.0), bits(expected + 0.0))


def test_nan_comes_out_as_one_pattern() -> None:
    patterns = torch.tensor([0x7F81, 0x7FC1, -1, 0x7FFF], dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    assert bits(through_decode(patterns, silu=False)).tolist() == [0x7FC0] * 4
    assert math.isnan(through_decode(patterns, silu=True)[0].item())


def test_offsets_of_the_convolutions_are_64_bit(distant_slots: torch.Tensor, rows: MakeRows) -> None:
    cache = distant_slots
    cache[1] = rows(3, 64, seed=2)
    dense, x, weight = cache[1:].clone(), rows(1, 64), rows(64, 4, seed=5)
    y, expected = rows(1, 64, seed=6), rows(1, 64, seed=6)
    on = torch.tensor([True])
    causal_conv1d(x, cache, torch.tensor([1]), on, weight, torch.tensor([0, 1]), i32([0]), y)
    causal_conv1d(x, dense, torch.tensor([0]), on, weight, torch.tensor([0, 1]), i32([0]), expected)
    assert torch.equal(y, expected)
    fused_decode_update(x, cache, i32([1]), on, weight, y)
    fused_decode_update(x, dense, i32([0]), on, weight, expected)
    assert torch.equal(y, expected)
    outs = [rows(1, 64) for _ in range(4)]
    ar_fused_decode(x[None], cache, i32([1]), on, weight, x.clone(), x[0].clone(), *outs[:2])
    ar_fused_decode(x[None], dense, i32([0]), on, weight, x.clone(), x[0].clone(), *outs[2:])
    assert torch.equal(outs[1], outs[3])
    assert torch.equal(cache[1], dense[0])


@pytest.mark.parametrize(
    ("sequence", "slot", "start"), [(1, 0, 0), (-1, 0, 0), (0, 3, 0), (0, -2, 0), (0, 0, 1), (0, 0, -1)]
)
def test_prefill_reports_ids_outside_their_table(sequence: int, slot: int, start: int, rows: MakeRows) -> None:
    x, weight, cache, error = rows(1, 64), rows(64, 4), rows(3, 192).reshape(3, 3, 64), no_errors()
    y = torch.full_like(x, 5.0)
    causal_conv1d(
        x, cache, torch.tensor([slot]), torch.tensor([True]), weight, torch.tensor([start, 1]), i32([sequence]), y,
        error_word=error,
    )  # fmt: skip
    assert error[0] == 128
    assert (y == 5.0).all()


@pytest.mark.parametrize(("slot", "kept"), [(3, 0), (-2, 0), (0, 3), (0, -2)])
@pytest.mark.parametrize("fused", [False, True])
def test_decode_reports_ids_outside_their_table(slot: int, kept: int, fused: bool, rows: MakeRows) -> None:
    x, weight, cache, error = rows(1, 64), rows(64, 4), rows(3, 192).reshape(3, 3, 64), no_errors()
    before, on, y = cache.clone(), torch.tensor([True]), [torch.zeros_like(x), torch.zeros_like(x)]
    tracking = {"track_mask": on, "track_slot": torch.tensor([kept]), "error_word": error}
    if fused:
        ar_fused_decode(x[None], cache, i32([slot]), on, weight, x.clone(), x[0].clone(), *y, **tracking)
    else:
        fused_decode_update(x, cache, i32([slot]), on, weight, y[0], **tracking)
    assert error[0] == 128
    assert torch.equal(cache, before)


def test_track_operands_belong_together(rows: MakeRows) -> None:
    x, weight, cache, on = rows(1, 64), rows(64, 4), rows(3, 192).reshape(3, 3, 64), torch.tensor([True])
    y = [torch.zeros_like(x), torch.zeros_like(x)]
    with pytest.raises(ValueError, match="track_mask and track_slot belong together: 1 of 2 given"):
        fused_decode_update(x, cache, i32([0]), on, weight, y[0], track_mask=on)
    with pytest.raises(ValueError, match="track_mask and track_slot belong together: 1 of 2 given"):
        ar_fused_decode(x[None], cache, i32([0]), on, weight, x.clone(), x[0].clone(), *y, track_slot=i32([0]).long())
