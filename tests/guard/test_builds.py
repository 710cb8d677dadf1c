"""Which builds of torch and which machines can pretend, and what is said where they cannot."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
import torch

from nosync_lint.guard import CannotSimulate, guard
from nosync_lint.guard.simulated import Simulation, device_guard
from nosync_lint.guard.simulated.leaves import LEAVES


def test_a_torch_that_computes_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation()
    monkeypatch.setattr("nosync_lint.guard.simulated.SIMULATION", simulation)
    with monkeypatch.context() as broken:
        broken.setitem(LEAVES, torch.ops.aten.index_put_.default, lambda table, *_: table)
        with pytest.raises(CannotSimulate, match="computes other values on the simulated device"), guard():
            pass
    assert not torch.cuda.is_available()
    with guard() as seen:
        pass
    assert seen.events == []


def test_a_torch_that_brings_no_guard_that_does_nothing_gets_one() -> None:
    """As torch 2.9 is; in a process of its own, because the guard stays."""
    code = """
import torch
from nosync_lint.guard import guard, to_host
vars(torch._C).pop("_ensureCUDADeviceGuardSet", None)
with guard(level="allow") as report:
    x = torch.ones(2, device="cuda").requires_grad_()
    (x * 2).sum().backward()
    assert to_host(x.grad).tolist() == [2.0, 2.0]
    x.detach()[0] = 3
assert [event.code for event in report.events] == ["NSL101"]
"""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=False).returncode == 0


def test_such_a_torch_on_a_machine_that_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch._C, "_ensureCUDADeviceGuardSet", raising=False)
    monkeypatch.setattr("platform.machine", lambda: "pdp11")
    device_guard.install.cache_clear()
    with pytest.raises(CannotSimulate, match=r"on pdp11: torch 2\.10 or newer is needed"), guard():
        pass
    assert not torch.cuda.is_available()


def test_a_guard_that_does_nothing_outlives_the_thread_that_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch 2.10 and 2.11 keep it in memory of that thread."""
    asked: list[threading.Thread] = []
    monkeypatch.setattr(torch, "__version__", "2.10.0")
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    ask = "_ensureCUDADeviceGuardSet"
    monkeypatch.setattr(torch._C, ask, lambda: asked.append(threading.current_thread()), raising=False)
    device_guard.install.cache_clear()
    thread = threading.Thread(target=device_guard.install)
    thread.start()
    thread.join()
    assert asked[0] is not thread
    assert asked[0].is_alive()


def test_a_real_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(CannotSimulate, match="there is a real device"), guard(backend="simulated"):
        pass


def test_a_process_that_opened_a_guard_may_fork_one_that_trains() -> None:
    """Torch cannot go back in a process that was forked from one which has."""
    code = """
import os, torch
from nosync_lint.guard import guard
with guard():
    pass
child = os.fork()
if not child:
    with guard():
        x = torch.ones(2, device="cuda").requires_grad_()
        x.sum().backward()
    os._exit(0)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=False).returncode == 0
