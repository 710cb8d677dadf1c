"""g3: kernels and copies that each hot and warm call launches, from the profiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from torch import profiler
from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, record_function

from benchmarks.allocator.calls import CALLS, Bench, Call, naive_free
from benchmarks.gpu.report import Check, Part
from benchmarks.gpu.streams import synchronize
from reference_allocator.costs import COSTS, FUSED
from reference_allocator.page_tables import Profile

MARK = "the measured call"
WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize")
FUSED_FREE = "PageAllocator.free_segment"
AT_MOST = {"PageAllocator.free_segment": 6, "SWAComposite.free_segment": 12, "PageAllocator.alloc, no zeroing": 3}
"""Kernels and copies, by call."""
NAIVE = "NaiveAllocator.free_segment"


class Launched(NamedTuple):
    """Kernels and fills, copies on the device, copies from or to the host, and waits of the host."""

    kernels: int
    moved: int
    crossed: int
    waits: int


def counted(events: Iterable[Any]) -> Launched:
    """What happened inside the marked call: device work of all, as nothing else is queued, and the host's waits."""
    events = list(events)
    on_device = [event.name for event in events if event.device_type == DeviceType.CUDA and event.name != MARK]
    (mark,) = [event for event in events if event.name == MARK and event.device_type == DeviceType.CPU]
    first, last = mark.time_range.start, mark.time_range.end
    waits = sum(event.name in WAITS and first <= event.time_range.start <= last for event in events)
    copies = [name for name in on_device if name.startswith("Memcpy")]
    moved = sum(name.startswith("Memcpy DtoD") for name in copies)
    return Launched(len(on_device) - len(copies), moved, len(copies) - moved, waits)


def launched(device: str, prepare: Callable[[Bench], Call], profile: Profile = "portable") -> Launched:
    """What one call launches, the second time that it is made."""
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA] if device == "cuda" else [ProfilerActivity.CPU]
    bench = Bench(device, checked=False, profile=profile)
    prepare(bench)()
    call = prepare(bench)
    synchronize(device)
    with profiler.profile(activities=activities) as profiled:
        with record_function(MARK):
            call()
        synchronize(device)
    return counted(profiled.events() or ())


def measure(device: str) -> Part:
    part = Part(
        "g3: launches per call, without checks",
        ("call", "dispatches", "kernels and fills", "device copies", "copies from or to the host", "waits"),
    )
    found = {}
    for cost in COSTS:
        if cost.heat in ("hot", "warm"):
            found[cost.call] = launched(device, CALLS[cost.call])
            part.rows.append((cost.call, cost.launches, *found[cost.call]))
    fused = {}
    for cost in COSTS:
        if cost.heat in ("hot", "warm") and cost.call in FUSED:
            fused[cost.call] = launched(device, CALLS[cost.call], "fused")
            part.rows.append((f"{cost.call}, fused", FUSED[cost.call][0], *fused[cost.call]))
    naive = launched(device, naive_free)
    part.rows.append((NAIVE, 9, *naive))
    calls = [*found.values(), *fused.values()]
    stops = sum(one.crossed + one.waits for one in calls)
    part.checks.append(Check(f"no wait and no copy from or to the host in {len(calls)} calls", str(stops), stops == 0))
    free = fused[FUSED_FREE].kernels + fused[FUSED_FREE].moved
    part.checks.append(Check(f"{FUSED_FREE}, fused: 1 launch", str(free), free == 1))
    for call, most in AT_MOST.items():
        launches = found[call].kernels + found[call].moved
        part.checks.append(Check(f"{call}: 1 to {most} launches", str(launches), 1 <= launches <= most))
    part.checks.append(Check("the naive free is seen to wait", f"{naive.waits} waits", naive.waits > 0))
    return part
