"""Guards over a CUDA runtime: how waits are told is tried on the host, with a counter that the tests turn.

The tests marked `gpu` need a CUDA device: a GPU, or the stub runtime (`pytest -o nosync_backend=stub`).
"""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from packaging.version import Version

from nosync_lint.guard import CannotGuard, SyncError, allow_sync, guard, stub, to_device, to_host
from nosync_lint.guard.backend import backend_named
from nosync_lint.guard.events import GuardReport
from nosync_lint.guard.levels import Direction, Level
from nosync_lint.guard.measured.dispatch import MeasuredDevice
from nosync_lint.guard.measured.waits import Waits
from nosync_lint.guard.operations.constructs import within
from nosync_lint.guard.scopes import Rules, enter, leave

gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device, or the stub runtime"),
]


class Turned(Waits):
    """Counts what a test says."""

    turned = 0
    are_measured = True  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__(None)

    def count(self) -> int:
        return self.turned


class Waiting(torch.utils._python_dispatch.TorchDispatchMode):
    """Below the device: these operations make the host wait, and may fail when they have."""

    def __init__(self, waits: Turned, names: set[str], fails: bool = False) -> None:
        super().__init__()
        self.waits, self.names, self.fails = waits, names, fails

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func._schema.name in self.names:
            self.waits.turned += 1
            if self.fails:
                raise RuntimeError("out of memory")
        return func(*args, **(kwargs or {}))


@contextmanager
def watched(*names: str, level: Level = Level.ALLOW, fails: bool = False) -> Iterator[GuardReport]:
    report, waits = GuardReport(), Turned()
    token = enter(Rules(dict.fromkeys(Direction, level), 0, report, (), frozenset()))
    try:
        with Waiting(waits, set(names), fails), MeasuredDevice(waits):
            yield report
    finally:
        leave(token)


def test_what_waited_is_told_by_its_row() -> None:
    tensor = torch.ones(3)
    with watched("aten::_local_scalar_dense") as report:
        (tensor + 1)[0].item()
    assert [(event.row, event.text, event.known) for event in report.events] == [
        ("d2h.item", "(tensor + 1)[0].item()", True)
    ]


def test_what_the_table_knows_and_did_not_wait_is_not_told() -> None:
    with watched() as report:
        torch.ones(3)[0].item()
        torch.unique(torch.ones(3))
    assert report.events == []


def test_what_waited_and_is_in_no_row_is_told_as_unknown() -> None:
    with watched("aten::add") as report:
        torch.ones(3) + torch.ones(3)
    (event,) = report.events
    assert (event.known, event.row, event.operation) == (False, "", "aten.add.Tensor")
    assert "no row of the model" in event.why
    assert "row:" not in str(event)


def test_what_failed_after_it_waited_is_told() -> None:
    with watched("aten::_local_scalar_dense", fails=True) as report, pytest.raises(RuntimeError, match="out of memory"):
        torch.ones(3)[0].item()
    assert [event.row for event in report.events] == ["d2h.item"]


def test_a_refused_wait_is_raised_where_it_is() -> None:
    with watched("aten::_local_scalar_dense", level=Level.DISALLOW_EXPLICIT), pytest.raises(SyncError) as raised:
        torch.ones(3)[0].item()
    assert raised.value.event.text == "torch.ones(3)[0].item()"


def test_a_read_of_all_is_told_once() -> None:
    with watched("aten::_local_scalar_dense") as report, within("python", "a tensor as text"):
        torch.ones(3)[0].item()
    assert report.events == []


def test_the_threads_of_the_engine_belong_to_the_guard_of_the_one_that_waits() -> None:
    waits, report = Turned(), GuardReport()
    token = enter(Rules(dict.fromkeys(Direction, Level.ALLOW), 0, report, (), frozenset()))
    mode = MeasuredDevice(waits)

    def go_back() -> None:  # as a thread of the engine does: with the mode of the thread that waits, and no guard
        with Waiting(waits, {"aten::_local_scalar_dense"}), mode:
            torch.ones(3)[0].item()

    thread = threading.Thread(target=go_back)
    with mode.engine():
        thread.start()
        thread.join()
    leave(token)
    (event,) = report.events
    assert event.backward
    assert event.text == "torch.ones(3)[0].item()"
    test = "test_the_threads_of_the_engine_belong_to_the_guard_of_the_one_that_waits"
    notes = [hop.note for hop in event.chain]  # a worker of pytest-xdist adds the script that started it
    assert notes[:2] == [f"in `{test}.<locals>.go_back`", f"in `{test}`"]


def test_a_wait_outside_of_operations_is_told_with_the_next() -> None:
    waits, report = Turned(), GuardReport()
    token = enter(Rules(dict.fromkeys(Direction, Level.DISALLOW), 0, report, (), frozenset()))
    try:
        with MeasuredDevice(waits):
            torch.ones(3)
            waits.turned += 1  # an extension waits
            with pytest.raises(SyncError, match="outside of all operations"):
                torch.ones(3)
            torch.ones(3)  # told once
    finally:
        leave(token)
    assert [(event.known, event.operation) for event in report.events] == [(False, "runtime")]


def test_what_waited_before_the_guard_is_not_told() -> None:
    waits, report = Turned(), GuardReport()
    with MeasuredDevice(waits):
        torch.ones(3)
    waits.turned += 1
    token = enter(Rules(dict.fromkeys(Direction, Level.DISALLOW), 0, report, (), frozenset()))
    try:
        with MeasuredDevice(waits):
            torch.ones(3)
    finally:
        leave(token)
    assert report.events == []


def test_without_a_recorder_the_table_decides() -> None:
    report = GuardReport()
    token = enter(Rules(dict.fromkeys(Direction, Level.ALLOW), 0, report, (), frozenset()))
    try:
        with MeasuredDevice(Waits(None)):
            torch.ones(3).add(1)[0].item()
    finally:
        leave(token)
    assert [event.row for event in report.events] == ["d2h.item"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device")
def test_without_a_device_it_is_refused() -> None:
    with (
        pytest.raises(CannotGuard, match='finds no CUDA device: guard with backend="simulated"'),
        guard(backend="cuda"),
    ):
        pass
    with pytest.raises(CannotGuard, match="the stub runtime is not there"), guard(backend="stub"):
        pass
    assert backend_named("auto").name == "simulated"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device")
def test_guards_over_two_devices_do_not_mix() -> None:
    with (
        guard(backend="simulated"),
        pytest.raises(CannotGuard, match="a guard over `simulated` is open: one over `cuda` has to wait"),
        guard(backend="cuda"),
    ):
        pass


class TestOnADevice:
    """What torch does there."""

    pytestmark = gpu

    def test_constructs_have_their_rows(self) -> None:
        table, pages = torch.zeros(8, device="cuda"), torch.arange(3, device="cuda")
        with guard(level="allow") as report:
            table.index_fill_(0, pages, -1)
            table[pages] = -1
            _ = 1 if table.sum() > 3 else 2
            table.tolist()
            repr(table)
            torch.unique(table)
            torch.tensor([1, 2], device="cuda")
            torch.tensor([table[0], table[1]])
            torch.nn.Linear(3, 3, bias=False).to("cuda")
            torch.zeros(4).to("cuda", non_blocking=True)
        stored = ["write.cuda_idx.pyscalar.le214"] if Version(torch.__version__) < Version("2.15") else []
        assert [event.row for event in report.events] == [
            *stored, "d2h.bool", "d2h.tolist", "d2h.print", "dyn.unique", "h2d.tensor_ctor", "d2h.tensor_from_tensors",
            "h2d.module_to", "h2d.pageable_nb",
        ]  # fmt: skip
        assert [event for event in report.events if event.hidden] == report.events[-1:]
        assert all(event.filename.endswith("test_measured.py") for event in report.events)

    def test_waits_that_are_written_out(self) -> None:
        with guard(level="allow") as report:
            torch.cuda.synchronize()
            torch.cuda.current_stream().synchronize()
            event = torch.cuda.Event()
            event.record()
            event.query()
            event.synchronize()
            torch.accelerator.synchronize()
            torch.cuda.empty_cache()
        assert [one.row for one in report.events] == [
            "exp.device", "exp.stream", "exp.event", "exp.device", "exp.empty_cache",
        ]  # fmt: skip

    def test_what_is_saved_and_loaded(self) -> None:
        tensor, file = torch.zeros(3, device="cuda"), io.BytesIO()
        with guard(level="allow") as report:
            torch.save(tensor, file)
            file.seek(0)
            torch.load(file, map_location="cuda")
        assert [event.row for event in report.events] == ["d2h.serialise", "h2d.to_blocking"]

    def test_the_backward_waits_where_it_was_asked_for(self) -> None:
        weights = torch.zeros(3, 4, device="cuda", requires_grad=True)
        mask = torch.ones(3, device="cuda").bool()
        with guard(level="allow", blame=["tests"]) as report:
            chosen = weights[mask]
            chosen.sum().backward()
        assert [(event.row, event.backward, event.text) for event in report.events] == [
            ("read.cuda_mask", False, "chosen = weights[mask]"),
            ("bw.mask_index", True, "chosen.sum().backward()"),
        ]

    def test_a_refused_wait_is_raised_from_the_backward(self) -> None:
        weights = torch.zeros(3, 4, device="cuda", requires_grad=True)
        with guard():
            with allow_sync(reason="the forward is not the matter here"):
                loss = weights[torch.ones(3, device="cuda").bool()].sum()
            with pytest.raises(SyncError) as raised:
                loss.backward()
        assert raised.value.event.backward

    def test_other_threads_are_not_watched(self) -> None:
        tensor = torch.zeros(3, device="cuda")
        with guard() as report:
            thread = threading.Thread(target=tensor.tolist)
            thread.start()
            thread.join()
        assert report.events == []

    def test_torch_is_as_before(self) -> None:
        names = ("__bool__", "item", "tolist", "__setitem__", "__repr__", "numpy")
        before = {name: vars(torch.Tensor).get(name) for name in names}, torch.cuda.synchronize, torch.tensor
        mode = torch.cuda.get_sync_debug_mode()
        with pytest.raises(ZeroDivisionError), guard():
            _ = 1 / 0
        assert before == ({name: vars(torch.Tensor).get(name) for name in names}, torch.cuda.synchronize, torch.tensor)
        assert torch.cuda.get_sync_debug_mode() == mode

    def test_to_device_and_to_host_are_not_counted(self) -> None:
        with guard(level="disallow_explicit") as report:
            assert to_host(to_device(torch.ones(3))).tolist() == [1, 1, 1]
        assert report.events == []

    def test_what_is_compiled_is_watched(self) -> None:
        @torch.compile(backend="eager")
        def doubled(tensor: torch.Tensor) -> torch.Tensor:
            return tensor * 2

        tensor = torch.zeros(3, device="cuda")
        with guard(level="allow") as report:
            doubled(tensor)
            doubled(tensor).cpu()
        assert [event.row for event in report.events] == ["d2h.cpu"]

    def test_the_other_runtime_is_refused(self) -> None:
        other = "cuda" if stub.is_loaded() else "stub"
        with pytest.raises(CannotGuard), guard(backend=other):
            pass
