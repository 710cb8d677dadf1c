"""What people do that cannot work, or nearly cannot: clear errors, the right line, or what the page says of it."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import grad as grad_imported_before
from torch.func import jacrev as jacrev_imported_before
from torch.func import vmap
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from nosync_lint.guard import GuardReport, SyncError, guard, to_device, to_host


@pytest.fixture
def report() -> Any:
    with guard(level="allow") as seen:
        yield seen


def waits() -> None:
    torch.zeros(3, device="cuda")[0] = 1


# -- torch itself --


def under(version: str) -> str:
    """What a guard says in a process whose torch claims to be of this version."""
    code = f"""
import torch
torch.__version__ = {version!r}
from nosync_lint.guard import CannotSimulate, guard
try:
    with guard(level="allow") as report:
        torch.zeros(3, device="cuda").sum().item()
except CannotSimulate as error:
    print(error)
else:
    print(report.release, *(event.code for event in report.events))
assert not torch.cuda.is_available()
"""
    command = [sys.executable, "-W", "ignore", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_torch_that_is_too_old_is_refused_and_one_that_is_too_new_counts_as_the_last() -> None:
    assert under("2.8.1+cu117") == "torch 2.8.1+cu117 is older than 2.9, the first release that the guard knows"
    assert under("3.4.0.dev20271231+cpu") == "2.15 NSL201"


# -- devices --


def test_a_number_is_a_device(report: GuardReport) -> None:
    host, current = torch.ones(3), torch.cuda.current_device()
    moved = [host.to(0), host.cuda(0), host.to(device=0), host.to(0, non_blocking=True), nn.Linear(3, 2).to(0).weight]
    made = [torch.zeros(3, device=current), torch.tensor([1], device=0), torch.ones_like(host, device=0)]
    assert all(one.is_cuda for one in (*moved, *made, nn.Linear(3, 2).cuda(0).weight))
    with pytest.raises(RuntimeError, match="the simulated device is cuda:0, there is no cuda:1"):
        host.to(1)
    assert len(torch.cuda.default_generators) == torch.cuda.device_count() == 1


def test_the_debug_mode_of_torch_is_kept_for_who_sets_it(report: GuardReport) -> None:
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    assert torch.cuda.get_sync_debug_mode() == 2
    torch.zeros(3, device="cuda").sum().item()
    torch.cuda.set_sync_debug_mode(before)
    assert torch.cuda.get_sync_debug_mode() == before
    assert [event.code for event in report.events] == ["NSL201"]


class Wrapped(Tensor):
    """A tensor of the user's own."""


REFUSED: list[tuple[str, Callable[[Tensor], Any]]] = [
    ("torch.func.grad", lambda x: vmap(torch.func.grad(lambda a: a * 2))(x)),
    ("torch.autograd.forward_ad.make_dual", lambda x: forward_ad.make_dual(x, x)),
    ("torch.export.export", lambda x: torch.export.export(to_device(nn.Linear(3, 2)), (x,))),
    ("torch.nested.nested_tensor", lambda x: torch.nested.nested_tensor([[1.0]], device="cuda")),
    ("DistributedDataParallel", lambda x: nn.parallel.DistributedDataParallel(to_device(nn.Linear(3, 2)))),
    ("DataParallel", lambda x: nn.DataParallel(to_device(nn.Linear(3, 2)))),
    ("A subclass of Tensor", lambda x: x.as_subclass(Wrapped)),
    ("A subclass of Tensor", lambda x: torch.ones(3).as_subclass(Wrapped).cuda()),
]


@pytest.mark.parametrize(("name", "call"), REFUSED)
def test_what_would_fail_in_torch_or_end_the_process_is_refused(
    name: str, call: Callable[[Tensor], Any], report: GuardReport
) -> None:
    with (
        forward_ad.dual_level(),
        pytest.raises(NotImplementedError, match=f"{name} cannot run on the simulated device: "),
    ):
        call(torch.ones(3, device="cuda"))


def test_what_is_refused_works_on_the_host(report: GuardReport) -> None:
    assert vmap(torch.func.grad(lambda a: a * 2))(torch.ones(3)).tolist() == [2.0] * 3
    assert torch.export.export(nn.Linear(3, 2), (torch.ones(1, 3),)).graph is not None


def makes(x: Tensor) -> Tensor:
    return torch.zeros_like(x) + torch.zeros([1]) + torch.tensor(1.0)


def test_functions_can_be_scripted_under_a_guard_and_after_it() -> None:
    code = """
import torch
from nosync_lint.guard import guard
from tests.guard.test_bad_input import makes
with guard():
    assert torch.jit.script(makes)(torch.ones(2)).tolist() == [1.0, 1.0]
assert torch.jit.script(makes)(torch.ones(2)).tolist() == [1.0, 1.0]
"""
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, cwd=root)


def test_names_imported_before_the_guard_are_refused_all_the_same(report: GuardReport) -> None:
    assert grad_imported_before(lambda a: a.sum())(torch.ones(2)).tolist() == [1.0, 1.0]
    for transform, name in ((grad_imported_before, "grad"), (jacrev_imported_before, "vjp")):
        with pytest.raises(NotImplementedError, match=rf"torch\.func\.{name} cannot run on the simulated device"):
            transform(lambda a: a.sum())(torch.ones(3, device="cuda"))


def test_functions_of_torch_that_need_cuda_say_so(report: GuardReport) -> None:
    with pytest.raises(AttributeError, match="_cuda_handle': this needs CUDA, and cannot run on the simulated dev"):
        _ = torch._C._cuda_handle
    assert not hasattr(torch._C, "_cuda_no_such_thing")
    assert torch.cuda.memory_snapshot() == []


def test_the_profiler_profiles_the_host(report: GuardReport, capfd: pytest.CaptureFixture[str]) -> None:
    kinds = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA]) as profile:
        torch.ones(3, device="cuda").add_(1)
    assert any(event.key == "aten::add_" for event in profile.key_averages())
    assert "Failed to record CUDA event" not in capfd.readouterr().err


# -- modes of other tools --


class Counting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class Passing(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Looking(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        assert not found.isnan().any()
        return found


@pytest.mark.parametrize("mode", [Counting, Passing])
def test_a_wait_below_the_mode_of_another_tool_is_put_to_the_line_of_the_user(
    mode: Callable[[], Any], report: GuardReport
) -> None:
    table = torch.zeros(3, device="cuda")
    with mode():
        table[0] = 1
        table.sum().item()
    assert [event.text for event in report.events] == ["table[0] = 1", "table.sum().item()"]


def test_a_wait_of_such_a_mode_itself_is_put_to_the_mode(report: GuardReport) -> None:
    table = torch.zeros(3, device="cuda")
    with Looking():
        table.add_(1)
    assert [event.text for event in report.events] == ["assert not found.isnan().any()"]


# -- guards, threads, tasks, processes --


def test_a_guard_survives_what_is_raised_through_it() -> None:
    for error in (KeyboardInterrupt, SystemExit, GeneratorExit, SyncError):
        with pytest.raises((error, TypeError)), guard(), guard():
            raise error
        assert not torch.cuda.is_available()


def test_a_generator_may_hold_a_guard_and_be_dropped() -> None:
    def numbers() -> Iterator[Tensor]:
        with guard(level="allow"):
            yield torch.zeros(3, device="cuda")

    next(numbers())
    assert not torch.cuda.is_available()
    one = numbers()
    next(one)
    with pytest.raises(ValueError, match="thrown"):
        one.throw(ValueError("thrown"))
    assert not torch.cuda.is_available()


def test_other_threads_have_the_device_and_are_not_watched(report: GuardReport) -> None:
    found: list[Any] = []

    def work() -> None:
        layer = nn.Linear(3, 2, device=torch.tensor([1.0], device="cuda").device)
        pinned = torch.ones(1, 3).pin_memory()
        loss = layer(pinned.to("cuda", non_blocking=True)).sum()
        loss.backward()
        found.extend((pinned.is_pinned(), layer.weight.grad.is_cuda, loss.item() is not None))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [True, True, True]
    assert report.events == []


def test_what_a_task_hands_to_a_thread_is_watched() -> None:
    async def main() -> list[str]:
        with guard(level="allow") as report:
            await asyncio.to_thread(waits)
        return [event.code for event in report.events]

    assert asyncio.run(main()) == ["NSL101"]


def test_an_error_goes_from_one_process_to_another() -> None:
    with guard(max_syncs=1):
        waits()
        with pytest.raises(SyncError) as refused:
            waits()
    again = pickle.loads(pickle.dumps(refused.value))
    assert (str(again), again.event, again.earlier) == (str(refused.value), refused.value.event, refused.value.earlier)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_started_under_a_guard(method: str) -> None:
    """One that is forked is guarded like its parent; one that is spawned is not, and has no device."""
    with guard(), ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
        done = pool.submit(waits)
        with pytest.raises(SyncError if method == "fork" else (AssertionError, RuntimeError)):
            done.result(timeout=120)
    assert not torch.cuda.is_available()


@pytest.mark.skipif(torch.__version__.startswith("2.9."), reason="fails in torch 2.9")
def test_collectives_over_gloo_run_on_the_host(report: GuardReport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(20000 + os.getpid() % 20000))
    dist = torch.distributed
    dist.init_process_group("gloo", rank=0, world_size=1)
    try:
        x, out = torch.ones(3, device="cuda"), torch.zeros(3, device="cuda")
        dist.all_reduce(x)
        dist.all_gather([out], x)
        dist.broadcast(x, 0, async_op=True).wait()
        dist.barrier()
    finally:
        dist.destroy_process_group()
    assert to_host(out).tolist() == [1.0] * 3
    assert report.events == []
