"""The copying kernels move exactly the rows that a plain torch loop moves, in every layout, and touch nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from reference_allocator.sconv import draft_extend_sconv, gather_scatter_sconv, update_sconv_cache

pytestmark = pytest.mark.host("kernels compiled for the host, over its memory; tests/guard runs them on the device")

HISTORIES = (1, 2, 3, 4)
CHANNELS = (2, 64, 130, 512, 520)
MakeState = Callable[[int, int, int], Any]
MakeRows = Callable[..., torch.Tensor]

matrix = pytest.mark.parametrize(("history", "channels"), [(h, d) for h in HISTORIES for d in CHANNELS])


def shuffled(count: int, seed: int) -> torch.Tensor:
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed))


def i32(values: list[int]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def no_errors() -> torch.Tensor:
    return torch.zeros(8, dtype=torch.int32)


@matrix
def test_update_keeps_the_last_rows(history: int, channels: int, state: MakeState, rows: MakeRows) -> None:
    # Every length from 0 to W+1, with and without a state, and a PAD lane with rows; slots in shuffled order.
    lengths = [q for q in range(history + 3) for _ in (True, False)] + [2]
    has_state = [first for _ in range(history + 3) for first in (True, False)] + [True]
    slots = shuffled(len(lengths), history)[:-1].tolist()
    slots[0] = len(lengths) + 1  # the last slot of all, though its sequence is empty
    slots[-1] = len(lengths)
    indices, starts = [*slots, -1], [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    x, error = rows(starts[-1], channels), no_errors()

    def run(cache: torch.Tensor) -> None:
        update_sconv_cache(x, cache, i32(indices), torch.tensor(has_state), i32(starts), error_word=error)

    def expect(cache: torch.Tensor) -> None:
        for slot, known, start, end in zip(indices, has_state, starts, starts[1:], strict=False):
            if slot >= 0 and end > start:
                old = cache[slot].clone() if known else torch.zeros_like(cache[slot])
                cache[slot] = torch.cat([old, x[start:end]])[-history:]

    state(len(lengths) + 2, history, channels).check(run, expect)
    assert error.tolist() == [0] * 8


@matrix
@pytest.mark.parametrize("track", [False, True])
def test_draft_moves_on_by_the_accepted_rows(
    history: int, channels: int, track: bool, state: MakeState, rows: MakeRows
) -> None:
    draft = history + 1
    lanes = 2 * (draft + 1)
    order = shuffled(2 * lanes + 1, channels).tolist()
    indices, kept = [*order[:lanes], -1], [*order[lanes : 2 * lanes], order[-1]]
    accepted = [lane % (draft + 1) for lane in range(lanes + 1)]
    steps = [(3 * lane + 1) % (draft + 1) for lane in range(lanes + 1)]
    crossed = [lane % 3 != 0 for lane in range(lanes + 1)]
    kept[1] = -1  # crossed, and nowhere to go
    hidden, error = rows((lanes + 1) * draft, channels), no_errors()
    tracking = {
        "crossed": torch.tensor(crossed),
        "track_step": i32(steps),
        "track_slot": torch.tensor(kept),
    }

    def run(cache: torch.Tensor) -> None:
        draft_extend_sconv(
            hidden, cache, i32(indices), i32(accepted), draft, error_word=error, **(tracking if track else {})
        )

    def expect(cache: torch.Tensor) -> None:
        for lane, slot in enumerate(indices):
            if slot < 0:
                continue
            seen = torch.cat([cache[slot], hidden[lane * draft : (lane + 1) * draft]])
            cache[slot] = seen[accepted[lane] : accepted[lane] + history]
            if track and crossed[lane] and kept[lane] >= 0:
                cache[kept[lane]] = seen[steps[lane] : steps[lane] + history]

    state(2 * lanes + 1, history, channels).check(run, expect)
    assert error.tolist() == [0] * 8


@matrix
def test_gather_scatters_chosen_rows(history: int, channels: int, state: MakeState, rows: MakeRows) -> None:
    lanes, tokens = 7, 11
    picked = torch.randint(tokens, (lanes, history + 2), generator=torch.Generator().manual_seed(3)).int()[:, :history]
    mask = torch.tensor([True, False, True, True, False, True, True])
    dst = torch.tensor([8, 0, 3, -1, -1, 5, 1])
    hidden, error = rows(tokens, channels), no_errors()

    def run(cache: torch.Tensor) -> None:
        gather_scatter_sconv(hidden, cache, picked, mask, dst, error_word=error)

    def expect(cache: torch.Tensor) -> None:
        for lane in range(lanes):
            if mask[lane] and dst[lane] >= 0:
                cache[dst[lane]] = hidden[picked[lane].long()]

    state(9, history, channels).check(run, expect)
    assert error.tolist() == [0] * 8


def unchanged_but_reported(cache: torch.Tensor, run: Callable[[torch.Tensor], None]) -> None:
    before, error = cache.clone(), no_errors()
    run(error)
    assert torch.equal(cache, before)
    assert error.tolist() == [128] + [0] * 7


@pytest.mark.parametrize(
    ("slot", "bounds"), [(4, [0, 2]), (-2, [0, 2]), (1, [0, 6]), (1, [-1, 2]), (1, [3, 2]), (2**30, [0, 2])]
)
def test_update_reports_ids_outside_their_table(slot: int, bounds: list[int], rows: MakeRows) -> None:
    x, cache = rows(5, 64), rows(4, 192).reshape(4, 3, 64)
    unchanged_but_reported(
        cache,
        lambda error: update_sconv_cache(
            x, cache, i32([slot]), torch.tensor([True]), i32(bounds), error_word=error
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("slot", "accepted", "step", "kept"), [(4, 0, 0, 0), (1, 3, 0, 0), (1, -1, 0, 0), (1, 0, 3, 0), (1, 0, 0, 4)]
)
def test_draft_reports_ids_outside_their_table(
    slot: int, accepted: int, step: int, kept: int, rows: MakeRows
) -> None:  # fmt: skip
    hidden, cache = rows(2, 64), rows(4, 192).reshape(4, 3, 64)
    unchanged_but_reported(
        cache,
        lambda error: draft_extend_sconv(
            hidden, cache, i32([slot]), i32([accepted]), 2, crossed=torch.tensor([True]), track_step=i32([step]),
            track_slot=torch.tensor([kept]), error_word=error,
        ),
    )  # fmt: skip


@pytest.mark.parametrize(("slot", "row"), [(4, 0), (-2, 0), (1, 5), (1, -1)])
def test_gather_reports_ids_outside_their_table(slot: int, row: int, rows: MakeRows) -> None:
    hidden, cache = rows(5, 64), rows(4, 192).reshape(4, 3, 64)
    picked, mask, dst = i32([0, 1, row]).reshape(1, 3), torch.tensor([True]), torch.tensor([slot])
    unchanged_but_reported(
        cache, lambda error: gather_scatter_sconv(hidden, cache, picked, mask, dst, error_word=error)
    )  # fmt: skip


def test_offsets_are_64_bit(distant_slots: torch.Tensor, rows: MakeRows) -> None:
    cache, x = distant_slots, rows(3, 64)
    update_sconv_cache(x, cache, i32([1]), torch.tensor([False]), i32([0, 3]))
    assert torch.equal(cache[1], x)
    draft_extend_sconv(rows(1, 64, seed=4), cache, i32([1]), i32([1]), 1)
    assert torch.equal(cache[1], torch.cat([x[1:], rows(1, 64, seed=4)]))
    gather_scatter_sconv(x, cache, i32([2, 1, 0]).reshape(1, 3), torch.tensor([True]), torch.tensor([1]))
    assert torch.equal(cache[1], x.flip(0))


def test_track_operands_belong_together(rows: MakeRows) -> None:
    cache = rows(4, 192).reshape(4, 3, 64)
    with pytest.raises(ValueError, match="crossed, track_step and track_slot belong together: 1 of 3 given"):
        draft_extend_sconv(rows(2, 64), cache, i32([1]), i32([1]), 2, crossed=torch.tensor([True]))


def test_nothing_to_do_is_no_error() -> None:
    cache, empty = torch.zeros(4, 3, 64, dtype=torch.bfloat16), torch.empty(0, 64, dtype=torch.bfloat16)
    update_sconv_cache(empty, cache, i32([]), torch.empty(0, dtype=torch.bool), i32([0]))
    draft_extend_sconv(empty, cache, i32([]), i32([]), 2)
    none = torch.empty(0, dtype=torch.int64)
    gather_scatter_sconv(empty, cache, i32([]).reshape(0, 3), torch.empty(0, dtype=torch.bool), none)
    assert not cache.any()
