"""The script for a machine with a GPU: it says what is missing, and what it measures runs on a CPU as far as it can."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.autograd import DeviceType

from benchmarks.allocator.churn import Case, dispatched
from benchmarks.gpu import allocator, bandwidth, compaction, frees, launches, same_bits, same_tables, trace
from benchmarks.gpu.report import Check, Part, summary, write

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "benchmarks" / "gpu" / "run.sh"


def run(*arguments: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(SCRIPT), *arguments], capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHON": python},
    )  # fmt: skip


def test_the_script_is_a_program_that_bash_can_read() -> None:
    assert os.access(SCRIPT, os.X_OK)
    assert subprocess.run(["bash", "-n", str(SCRIPT)], timeout=10, check=False).returncode == 0


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_has_nothing_to_say() -> None:
    done = subprocess.run(["shellcheck", str(SCRIPT)], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_cuda_it_says_so_in_one_line() -> None:
    done = run("all")  # where numpy is missing, torch says so on stderr, and works
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    lines = r"benchmarks\.gpu\.{}: no CUDA device is visible to torch \S+\n"
    assert re.fullmatch(lines.format("allocator") + lines.format("guard"), done.stdout)


def test_without_torch_it_says_so_in_one_line(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    done = run("allocator", python=str(python))
    assert (done.returncode, done.stdout) == (2, f"benchmarks/gpu/run.sh: {python} has no torch\n")


def test_what_does_not_exist_is_refused() -> None:
    done = run("other")
    assert done.returncode == 2
    assert "usage: " in done.stderr


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv("NVCC", "no-such-nvcc --quiet")
    assert allocator.missing() == "no-such-nvcc is not installed: the kernels cannot be compiled"


def test_what_was_found_is_told_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUT", str(tmp_path / "new"))
    part = Part("a title", ("a", "b"), [(1, "x")], [Check("met", "1", True), Check("missed", "2", False)])
    assert part.told() == "a title\n\n| a | b |\n| --- | --- |\n| 1 | x |"
    assert summary({"g1": part}).splitlines()[2:] == ["| g1 | met | 1 | yes |", "| g1 | missed | 2 | NO |"]
    told = json.loads(write("allocator", {"g1": part}).read_text())
    assert {"torch", "cuda", "card", "date", "parts"} <= set(told)
    assert told["parts"]["g1"]["checks"][1] == {"aim": "missed", "measured": "2", "met": False}


def test_a_part_that_fails_is_a_missed_target_and_the_next_one_still_runs(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(device: str) -> Part:
        raise RuntimeError(f"called a synchronizing operation on {device}\nand more")

    found = allocator.measured("cpu", {"g1": broken, "g2": lambda device: Part("fine", ("a",), [(device,)])})
    assert found["g1"].checks == [
        Check("the part ends", "RuntimeError: called a synchronizing operation on cpu", False)
    ]
    assert found["g2"].rows == [("cpu",)]
    assert "Traceback" in capsys.readouterr().err


def test_frees_are_timed_and_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frees, "RUNS", 2)
    part = frees.measure("cpu")
    assert [row[0] for row in part.rows] == list(frees.WAYS)
    assert [check.met for check in part.checks if "naive" in check.aim] == [False]
    assert frees._naive(frees.Timed("naive", [9_000.0, 20_000.0])).met is False
    assert frees._naive(frees.Timed("naive", [19_000.0, 20_000.0])).met is True
    assert frees._ours(frees.Timed("by position", [50.0, 99.0, 5_000.0])).met is True
    assert frees._ours(frees.Timed("by position", [50.0, 101.0, 200.0])).met is False


@pytest.mark.parametrize("pools", [1, 2, 3])
def test_the_trace_watches_every_call_and_verifies(pools: int) -> None:
    calls, broken = trace.traced("cpu", Case(16, pools, False), dispatched, 60)
    assert calls >= 60
    assert broken == []


def test_a_wait_in_the_trace_is_an_error_as_long_as_the_call_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[str] = []
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)

    def synchronize() -> None:
        assert modes == ["error"]
        raise RuntimeError("called a synchronizing CUDA operation")

    churn = trace.Churn(Case(16, 1, False), trace.raising)
    with pytest.raises(RuntimeError, match="synchronizing"):
        churn.call(synchronize)
    assert modes == ["error", "default"]


def event(name: str, device: DeviceType, start: int, end: int) -> Any:
    return SimpleNamespace(name=name, device_type=device, time_range=SimpleNamespace(start=start, end=end))


def test_launches_and_waits_are_counted_inside_the_marked_call() -> None:
    cpu, cuda = DeviceType.CPU, DeviceType.CUDA
    events = [
        event("cudaStreamSynchronize", cpu, 1, 2),
        event(launches.MARK, cpu, 10, 20),
        event(launches.MARK, cuda, 11, 30),
        event("cudaLaunchKernel", cpu, 11, 12),
        event("cudaStreamSynchronize", cpu, 15, 18),
        event("cudaDeviceSynchronize", cpu, 21, 30),
        event("index_fill_kernel", cuda, 13, 14),
        event("Memset (Device)", cuda, 14, 15),
        event("Memcpy DtoD (Device -> Device)", cuda, 15, 16),
        event("Memcpy HtoD (Pageable -> Device)", cuda, 16, 17),
    ]
    assert launches.counted(events) == (2, 1, 1, 1)


def test_a_call_is_profiled_on_a_cpu_too() -> None:
    assert launches.launched("cpu", launches.CALLS["PageAllocator.free_segment"]) == (0, 0, 0, 0)
    assert launches.launched("cpu", launches.CALLS[launches.FUSED_FREE], "fused") == (0, 0, 0, 0)


def test_every_call_with_a_limit_is_measured() -> None:
    rows = {cost.call for cost in launches.COSTS if cost.heat in ("hot", "warm")}
    assert set(launches.AT_MOST) <= set(rows)


@pytest.mark.parametrize("pools", [1, 2, 3])
def test_the_same_tables_are_seen_and_others_too(pools: int) -> None:
    case = Case(16, pools, False)
    assert same_tables.differing("cpu", case, 60) == (0, [])
    short, long = (same_tables.Churn(case, same_tables.unwatched) for _ in range(2))
    short.run(40)
    long.run(60)
    assert same_tables.state(short) != same_tables.state(long)


def test_tables_are_compared_in_every_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(same_tables, "differing", lambda _, case, __: (case.pools - 1, []))
    part = same_tables.measure("cpu")
    assert [row[4] for row in part.rows] == [case.pools - 1 for case in same_tables.CASES]
    assert [(check.measured, check.met) for check in part.checks] == [("12 differ", False)]


def test_bandwidth_is_told_for_every_kernel_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "SIZES", ((2, 8), (3, 16)))
    monkeypatch.setattr(bandwidth, "ROUNDS", 1)
    monkeypatch.setattr(bandwidth, "RUNS", 1)
    part = bandwidth.measure("cpu")
    assert [row[:3] for row in part.rows] == [(f"K{k}", *size) for size in ((2, 8), (3, 16)) for k in range(1, 6)]
    assert "3 slots of 16 channels" in part.checks[0].aim


@pytest.mark.parametrize("seed", [0, 1])
def test_a_compaction_under_a_forward_keeps_what_it_read_and_wrote(seed: int) -> None:
    found = compaction.compacted("cpu", seed)
    assert found.pages == compaction.PAGES // 2
    assert (found.wrong_during, found.wrong_after, found.broken) == (0, 0, [])


def test_a_compaction_that_loses_what_the_forward_wrote_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU nothing is late, so the moves are told to leave contents behind."""
    monkeypatch.setattr("reference_allocator.tables.copy_pages", lambda *_: None)
    assert compaction.compacted("cpu", 0).wrong_after > 0


def test_the_same_bits_are_seen_and_others_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(same_bits, "SIZES", ((3, 16),))
    part = same_bits.measure("cpu")
    assert part.checks == [Check("the same bits from 7 kernels", "0 differ", True)]
    assert {row[2] for row in part.rows} == {"contiguous", "strided"}
    assert {row[4:] for row in part.rows} == {(0,) * 7}
    zero, minus = torch.zeros(2, dtype=torch.bfloat16), -torch.zeros(2, dtype=torch.bfloat16)
    assert same_bits.differing([zero, zero], [zero, minus]) == 2
