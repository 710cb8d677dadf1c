"""The allocator's benchmark measures what it says: every hot and warm row, with the dispatches of the table of costs."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from benchmarks.allocator import bindings, churn, conv, conv_operands, frees, lint, on_cuda, packs
from benchmarks.allocator.calls import CALLS
from benchmarks.recorded import recorded
from nosync_lint.guard.stub import Call
from reference_allocator.costs import COSTS
from reference_allocator.verify import verify

ROWS = [row for row in COSTS if row.heat in ("hot", "warm")]


def test_every_hot_and_warm_row_is_recorded() -> None:
    assert list(CALLS) == [row.call for row in ROWS]


def test_waits_copies_and_kernels_are_told_apart_in_a_record() -> None:
    calls = [
        Call("cudaStreamSynchronize", waits=True),
        Call("cudaDeviceSynchronize", waits=True),
        Call("cudaEventSynchronize", waits=True),
        Call("cudaMemcpyAsync", "device", "pageable", 8),
        Call("cudaMemcpy", "pinned", "device", 8, True),
        Call("cudaMemcpyAsync", "device", "pinned", 8),
        Call("cudaMemcpyAsync", "device", "device", 8),
        Call("cudaMemsetAsync", "device", None, 8),
        Call("cudaLaunchKernel"),
        Call("cudaLaunchKernel"),
    ]
    assert on_cuda.counted(calls) == {"stream": 1, "device": 1, "event": 1, "blocking": 2, "kernels": 2, "moved": 1}


def test_a_command_is_given_a_file_to_write_before_its_arguments() -> None:
    program = "import json, pathlib, sys; pathlib.Path(sys.argv[1]).write_text(json.dumps({'given': sys.argv[2:]}))"
    assert recorded([sys.executable, "-c", program], "a", "b") == {"given": ["a", "b"]}
    with pytest.raises(subprocess.CalledProcessError):
        recorded([sys.executable, "-c", "raise SystemExit(3)"])


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("pools", [1, 2, 3])
@pytest.mark.parametrize("page_size", [1, 16])
def test_random_calls_run_out_of_room_and_break_nothing(page_size: int, pools: int, eager: bool) -> None:
    row = churn.churned(churn.Case(page_size, pools, eager), 400)
    assert (row.waits, row.broken, row.first) == (0, 0, "")
    assert row.calls >= 400
    assert row.refused


def test_a_broken_invariant_is_counted_and_named() -> None:
    random = churn.Churn(churn.Case(4, 2, False))
    random.run(20)
    random.allocator.bands[1].live += 1
    random.call(random.allocator.available_size)
    assert random.broken
    assert random.first.startswith("available_size, call ")


def test_a_token_that_holds_something_else_is_counted_and_named() -> None:
    random = churn.Churn(churn.Case(4, 2, False))
    random.run(20)
    live = next(request for request in random.requests if request.cursor < request.tokens.numel())
    physical = random.contents.full(live.tokens[-1:])
    random.contents.keys["full"][physical] = -5
    assert random.contents.broken(random.requests) == ["full: I16 a live token holds something else"]
    assert random.contents.swa is not None
    random.contents.keys["swa"][random.contents.swa(live.tokens[-1:])] = -5
    assert len(random.contents.broken(random.requests)) == 2


def test_a_wait_is_counted_and_named() -> None:
    random = churn.Churn(churn.Case(4, 2, False))
    random.call(lambda: random.allocator.bands[0].v2p.sum().item())
    assert (random.waits, random.first) == (1, "<lambda>, call 1: 1 waits")


def test_a_slot_that_holds_something_else_is_counted() -> None:
    random = churn.Churn(churn.Case(4, 3, False))
    random.take_slots()
    (slots, marks) = zip(*random.slots, strict=True)
    assert random.contents.broken_state(slots, marks) == []
    assert random.contents.broken_state(slots, [mark + 1 for mark in marks]) != []


def test_every_page_size_is_freed_at_every_length_and_the_same_pages_at_every_size() -> None:
    assert len(set(frees.SIZES)) == 4 * 3
    assert {tokens // page_size for page_size, tokens in frees.SAME_PAGES} == {32}


def test_the_frees_of_a_row_are_told_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frees, "RUNS", 1)
    one = frees.free(4, 16)
    assert [(way.dispatches, way.syncs) for way in (one.naive, one.ours, one.fused)] == [(9, 3), (6, 0), (1, 0)]
    round_ = frees.Round([one], [one, one._replace(page_size=8)], [frees.extend(2)])
    assert (round_.steady, round_.fused_steady) == (1, 1)
    lines = frees.told([round_] * 2).splitlines()
    assert [line[:9] for line in lines if "| 9 | 3 | 6 | 0 | 1 | 0 |" in line] == [
        "| 4 | 16 ",
        "| 4 | 16 ",
        "| 8 | 16 ",
    ]
    assert " | 34 | 0 | " in lines[-1]
    assert lines[-1].endswith(" | 2 | 0 |")


def test_compactions_are_told_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "RUNS", 1)
    one = packs.pack(20, 50)
    assert (one.naive.dispatches, one.naive.syncs, one.ours.dispatches, one.ours.syncs) == (7, 3, 30, 0)
    assert packs.told([one]).splitlines()[-1].startswith("| 20 | 50 % | ")


def test_what_is_packed_is_fragmented_anew_and_packed_whole() -> None:
    state = packs.Fragmented(20, 50)
    for way in (state.naive, state.ours, state.naive):
        assert way()() == 10
        assert verify(state.allocator) == []
        assert (state.allocator.band.live, state.allocator.band.span) == (10, 10)


def test_kernels_are_told_by_kernel_with_their_ratio() -> None:
    rows = conv.rows(2, 8)
    assert [row.kernel for row in rows] == ["K1", "K2", "K3", "K4", "K5"]
    head, _, *lines = conv.told([rows[4], rows[0]._replace(contiguous=2.0, strided=3.0)]).splitlines()
    assert head.endswith(" times |")
    assert lines[0].startswith("| K1 | 2 | 8 | ")
    assert lines[0].endswith(" | 1.50 |")


def test_every_kernel_writes_the_same_on_either_state() -> None:
    view = conv_operands.pool_view(3, 16, "cpu")
    assert not view.is_contiguous()
    dense, strided = (conv_operands.kernels(state) for state in (conv_operands.contiguous(view), view))
    for name, kernel in dense.items():
        before = [written.clone() for written in kernel.written]
        kernel.run()
        strided[name].run()
        assert all(torch.equal(*pair) for pair in zip(kernel.written, strided[name].written, strict=True)), name
        assert not all(torch.equal(*pair) for pair in zip(kernel.written, before, strict=True)), name
    assert len(dense) == 7


def test_calls_of_kernels_are_told_either_way() -> None:
    rows = [bindings.Row("K1", 5, 30.0, 4.0), bindings.Row("K2", 8, 40.25, 5.0)]
    assert bindings.told(rows).splitlines()[2:] == ["| K1 | 5 | 30.0 | 4.0 |", "| K2 | 8 | 40.2 | 5.0 |"]


@pytest.mark.skipif(not bindings.available(), reason="the extra tvm-ffi is not installed")
def test_calls_of_kernels_are_timed_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bindings, "CALLS", 1)
    rows = bindings.measure()
    assert [row.kernel for row in rows] == ["K1", "K2", "K3", "K4", "K5", "K6", "K6 verify"]
    assert [row.tensors for row in rows] == [5, 8, 4, 6, 5, 9, 10]
    assert all(row.ctypes > 0 and row.tvm_ffi > 0 for row in rows)


def test_the_linter_is_timed_over_the_package() -> None:
    run = lint.measure(runs=1)
    assert run.findings == 0
    assert 20 < run.files < run.linked
    assert run.warm > 0
    assert lint.told(run).count("\n") == 2
