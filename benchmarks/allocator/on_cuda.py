"""Records what the hot and warm calls of the reference allocator ask of CUDA:

    python -m nosync_lint.guard.stub -m benchmarks.allocator.on_cuda OUT.json [CALLS]

Every call is made twice, on pools of its own; of each count the larger one is written. Then the random calls of
`churn` are made, and the waits of all of them counted.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.allocator import churn
from benchmarks.allocator.calls import CALLS, WAITS, Bench, Call, naive_free
from nosync_lint.guard import stub
from reference_allocator.costs import COSTS

RUNS = 2
NAIVE = "NaiveAllocator.free_segment"


def counted(calls: Sequence[stub.Call]) -> dict[str, int]:
    """Waits by what is waited for, blocking and pageable copies, kernels, and copies on the device."""
    names = [call.name for call in calls]
    kinds = [(call.target_kind, call.source_kind) for call in calls]
    return {
        "stream": names.count("cudaStreamSynchronize"),
        "device": names.count("cudaDeviceSynchronize"),
        "event": names.count("cudaEventSynchronize"),
        "blocking": sum(
            "pageable" in kind or (call.waits and call.target_kind is not None)
            for call, kind in zip(calls, kinds, strict=True)
        ),
        "kernels": names.count("cudaLaunchKernel"),
        "moved": kinds.count(("device", "device")),
    }


def recorded(prepare: Callable[[Bench], Call], checked: bool) -> dict[str, int]:
    """The most that one of the runs of a call asked for, by kind."""
    most: dict[str, int] = {}
    recorder = stub.recorder(all_threads=True)
    for _ in range(RUNS):
        call = prepare(Bench("cuda", checked))
        recorder.forget()
        call()
        counts = counted(recorder.calls())
        most = {kind: max(count, most.get(kind, 0)) for kind, count in counts.items()}
    return most


@contextmanager
def waiting(*host: Tensor) -> Iterator[Callable[[], int]]:
    """A `Watch` of churn: what is asked of CUDA and makes the host wait, blocking copies included."""
    recorder = stub.recorder(all_threads=True)
    recorder.forget()
    counts: dict[str, int] = {}
    yield lambda: sum(counts[kind] for kind in WAITS)
    counts.update(counted(recorder.calls()))


def churned(calls: int) -> list[dict[str, object]]:
    """Every case of churn on the device; nothing is compared, as its memory holds nothing."""
    rows = [churn.result(case, churn.Churn(case, waiting, "cuda"), calls) for case in churn.CASES]
    return [{"case": list(row.case), "calls": row.calls, "waits": row.waits, "first": row.first} for row in rows]


def main(out: Path, calls: int = churn.CALLS) -> int:
    rows: list[dict[str, object]] = []
    for cost in COSTS:
        if cost.heat in ("hot", "warm"):
            plain, checked = (recorded(CALLS[cost.call], checks) for checks in (False, True))
            rows.append({"call": cost.call, "heat": cost.heat, "plain": plain, "checked": checked})
    told = {"torch": torch.__version__, "rows": rows, "naive": {"call": NAIVE, "plain": recorded(naive_free, False)}}
    told["churn"] = churned(calls)
    out.write_text(json.dumps(told), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), *map(int, sys.argv[2:3])))
