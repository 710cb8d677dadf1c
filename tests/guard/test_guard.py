"""What a guard does about waits: levels, directions, budgets, permissions, comments, threads and tasks."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from nosync_lint.finding import Severity
from nosync_lint.guard import SyncError, allow_sync, guard, to_host


def implicit() -> None:
    torch.zeros(6, device="cuda")[0] = 1.0


def explicit() -> None:
    torch.zeros(6, device="cuda").cpu()


def test_a_scalar_store_is_refused_and_an_indexed_fill_is_not() -> None:
    with guard():
        table, pages = torch.zeros(8, device="cuda"), torch.arange(3, device="cuda")
        table.index_fill_(0, pages, -1)
        with pytest.raises(SyncError) as refused:
            table[pages] = -1
    event = refused.value.event
    assert (event.code, event.name, event.direction, event.severity) == (
        "NSL101",
        "scalar-index-write",
        "h2d",
        Severity.ERROR,
    )
    assert event.text == "table[pages] = -1"
    assert "index_fill_" in event.cure


@pytest.mark.parametrize(
    ("level", "refuses_implicit", "refuses_explicit", "logs"),
    [
        ("allow", 0, 0, 0),
        ("log", 0, 0, 1),
        ("disallow", 1, 0, 0),
        ("log_explicit", 0, 0, 2),
        ("disallow_explicit", 1, 1, 0),
    ],
)
def test_levels(
    level: str, refuses_implicit: bool, refuses_explicit: bool, logs: int, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(call: Callable[[], None]) -> bool:
        try:
            call()
        except SyncError:
            return True
        return False

    with caplog.at_level(logging.WARNING, "nosync_lint.guard"), guard(level=level) as report:
        assert (refused(implicit), refused(explicit)) == (refuses_implicit, refuses_explicit)
    assert [event.explicit for event in report.events] == [False, True]
    assert len(caplog.records) == logs


def test_a_direction_may_have_a_level_of_its_own() -> None:
    with guard(level="disallow_explicit", h2d="allow", wait="allow") as report:
        implicit()
        torch.cuda.synchronize()
        with pytest.raises(SyncError):
            explicit()
    assert [event.direction for event in report.events] == ["h2d", "wait", "d2h"]


def test_the_level_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOSYNC_GUARD_LEVEL", "allow")
    with guard():
        implicit()
    monkeypatch.setenv("NOSYNC_GUARD_LEVEL", "strict")
    with pytest.raises(ValueError, match="unknown level `strict`"):
        guard()


def test_a_budget_is_used_up_at_the_line_that_exceeds_it() -> None:
    with guard(max_syncs=2) as report:
        implicit()
        implicit()
        with pytest.raises(SyncError, match="counted: 3 where 2 are allowed") as refused:
            implicit()
    assert len(refused.value.earlier) == 2
    assert len(report.syncs) == 3


@pytest.mark.parametrize(
    "options",
    [
        {"level": "never"},
        {"backend": "gpu"},
        {"max_syncs": -1},
        {"max_syncs": True},
        {"d2h": "no"},
        {"blame": "package"},
    ],
)
def test_wrong_options_are_refused_at_once(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"unknown|must be|takes"):
        guard(**options)  # type: ignore[arg-type]


def test_allow_sync_covers_what_it_calls_and_keeps_the_reason() -> None:
    with guard() as report, allow_sync(reason="the loss is read once per epoch"):
        implicit()
    (event,) = report.events
    assert event.allowed == "the loss is read once per epoch"
    assert report.syncs == []


def test_allow_sync_is_a_decorator_of_functions_and_coroutines() -> None:
    @allow_sync(reason="reads", max_syncs=1)
    def reads(times: int) -> int:
        for _ in range(times):
            implicit()
        return times

    @allow_sync(reason="waits")
    async def waits() -> str:
        implicit()
        await asyncio.sleep(0)
        implicit()
        return "done"

    with guard() as report:
        assert reads(1) == 1
        assert reads(1) == 1
        assert asyncio.run(waits()) == "done"
        with pytest.raises(SyncError):
            reads(2)
    assert [event.allowed for event in report.events] == ["reads", "reads", "waits", "waits", "reads", None]


def test_allow_sync_wants_a_reason_and_no_generator() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        allow_sync(reason=" ")
    with pytest.raises(ValueError, match="must be a count"):
        allow_sync(reason="reads", max_syncs=-1)
    with pytest.raises(TypeError, match="generator"):

        @allow_sync(reason="reads")
        def numbers():  # type: ignore[no-untyped-def]
            yield 1


def test_a_comment_at_the_line_is_honoured() -> None:
    with guard() as report:
        table = torch.zeros(8, device="cuda")
        table[0] = 1.0  # nosync-lint: ignore[scalar-index-write] set up once
        # gpu-sync-ok: other tools read this
        table[1] = 1.0
        with pytest.raises(SyncError):
            table[2] = 1.0  # nosync-lint: ignore[item-read] another rule
    assert [event.suppressed for event in report.events] == ["set up once", "other tools read this", None]
    assert len(report.syncs) == 1


def test_the_inner_guard_decides_and_the_outer_one_reports() -> None:
    with guard(level="disallow") as outer, guard(level="allow") as inner:
        implicit()
    assert len(outer.events) == len(inner.events) == 1
    with guard(level="allow") as outer:
        with pytest.raises(SyncError), guard(level="disallow"):
            implicit()
        implicit()
    assert len(outer.events) == 2


def test_a_guard_is_opened_once() -> None:
    one = guard()
    with one, pytest.raises(RuntimeError, match="this guard is open"), one:
        pass


def test_another_thread_has_no_guard_and_may_open_its_own() -> None:
    seen: list[int] = []

    def unguarded(table: torch.Tensor) -> None:
        table[0] = 1.0
        with guard(level="allow") as report:
            implicit()
        seen.append(len(report.events))

    with guard() as report:
        table = torch.zeros(3, device="cuda")
        thread = threading.Thread(target=unguarded, args=(table,))
        thread.start()
        thread.join()
        assert to_host(table).tolist() == [1.0, 0.0, 0.0]
    assert (seen, report.events) == ([1], [])


def test_tasks_have_their_own_guards() -> None:
    async def strict() -> None:
        with guard():
            for _ in range(3):
                await asyncio.sleep(0)
            with pytest.raises(SyncError):
                implicit()

    async def loose() -> int:
        with guard(level="allow") as report:
            for _ in range(4):
                implicit()
                await asyncio.sleep(0)
        return len(report.events)

    async def both() -> int:
        _, seen = await asyncio.gather(strict(), loose())
        return seen

    assert asyncio.run(both()) == 4


def test_a_guard_is_left_in_the_thread_that_entered_it() -> None:
    one, failed = guard(), []
    one.__enter__()

    def leave() -> None:
        try:
            one.__exit__(None, None, None)
        except RuntimeError as error:
            failed.append(str(error))

    thread = threading.Thread(target=leave)
    thread.start()
    thread.join()
    assert failed == ["a guard was left in another thread than it was entered in, where it is still open"]
    one.__exit__(None, None, None)


def test_the_report_has_the_schema_of_the_linter() -> None:
    with guard(level="allow") as report:
        for _ in range(3):
            implicit()
        explicit()
        torch.zeros(2, device="cuda").cpu()  # nosync-lint: ignore[host-copy] compared below
    found = report.to_json()
    assert json.loads(json.dumps(found)) == found
    assert (found["schema_version"], found["summary"]["hidden"]["suppressed"]) == (1, 1)
    first, second = found["findings"]
    place = {"row": implicit.__code__.co_firstlineno + 1, "column": 5}
    assert (first["code"], first["location"], first["confidence"]) == ("NSL101", place, "certain")
    assert first["message"].endswith("Ran 3 times.")
    assert second["code"] == "NSL203"
    assert first["flow"][-1]["note"] == "in `implicit`"
    assert first["filename"] == "tests/guard/test_guard.py"
    assert [len(events) for events in report.by_location().values()] == [3, 1, 1]


def test_a_baseline_allows_what_an_earlier_report_has() -> None:
    with guard(level="allow") as before:
        implicit()
    known = [finding["fingerprint"] for finding in before.to_json()["findings"]]
    with guard(baseline=known) as report:
        implicit()
        with pytest.raises(SyncError):
            torch.zeros(6, device="cuda")[1] = 1.0
    assert [event.allowed for event in report.events] == ["known before", None]


def test_two_waits_on_one_line_have_two_places() -> None:
    with guard(level="allow") as report:
        t = torch.zeros(2, device="cuda")
        same = "ä", t[0].item() == t[1].item()
    assert same == ("ä", True)
    first, second = report.events
    assert (first.span.row, second.span.row) == (first.span.row,) * 2
    line = Path(__file__).read_text(encoding="utf-8").splitlines()[first.span.row - 1]
    assert line[first.span.column - 1 : first.span.end_column - 1] == "t[0].item()"
    assert line[second.span.column - 1 : second.span.end_column - 1] == "t[1].item()"


def test_an_event_is_put_to_the_package_that_is_blamed() -> None:
    with guard(level="allow", blame=[str(Path(__file__).parent)]) as report:
        nn.utils.clip_grad_norm_([with_gradient()], 1.0, error_if_nonfinite=True)
    with guard(level="allow", blame=["_pytest"]) as blamed:
        implicit()
    assert [event.filename for event in report.events] == ["tests/guard/test_guard.py"]
    assert "_pytest/" in blamed.events[0].filename


def with_gradient() -> torch.Tensor:
    tensor = torch.ones(3, device="cuda").requires_grad_()
    tensor.sum().backward()
    return tensor


def test_importing_the_guard_imports_no_torch() -> None:
    code = "import sys, nosync_lint, nosync_lint.guard; sys.exit('torch' in sys.modules or 'libcst' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
