"""What an asynchronous copy to the host writes is not to be read before something has waited."""

from __future__ import annotations

import logging
import pickle
import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nosync_lint.guard import EarlyReadError, allow_sync, guard

READS: dict[str, Callable[[Tensor], object]] = {
    "tolist": lambda host: host.tolist(),
    "item": lambda host: host[0].item(),
    "truth": lambda host: bool(host[0]),
    "arithmetic": lambda host: host + 1,
    "text": repr,
    "a view of it": lambda host: host.view(3, 1)[1:].sum(),
    "beside one on the device": lambda host: torch.ones(3, device="cuda") + host[0],
    "a copy on the host": lambda host: host.clone(),
    "written": lambda host: host.zero_(),
}
LOOKS: dict[str, Callable[[Tensor], object]] = {
    "shape": lambda host: (host.shape, host.device, host.dtype, host.is_pinned(), len(host)),
    "view": lambda host: host.view(3, 1)[1:].detach(),
    "like it": torch.zeros_like,
    "back to the device": lambda host: host.to("cuda", non_blocking=True),
    "back to the device, blocking": lambda host: torch.ones(3, device="cuda").copy_(host),
}


def device_wait() -> None:
    torch.cuda.synchronize()


def stream_wait() -> None:
    torch.cuda.current_stream().synchronize()


def event_wait() -> None:
    event = torch.cuda.Event()
    event.record()
    event.synchronize()


def event_query() -> None:
    event = torch.cuda.current_stream().record_event()
    while not event.query():
        pass


def read_of_another() -> None:
    torch.ones(3, device="cuda").sum().item()


WAITS = [device_wait, stream_wait, event_wait, event_query, read_of_another]


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_read_before_the_wait_is_reported(read: Callable[[Tensor], object]) -> None:
    with guard(level="allow") as report:
        host = torch.ones(3, device="cuda").to("cpu", non_blocking=True)
        read(host)
        read(host)  # told once
    (early,) = report.early_reads
    assert early.filename.endswith("test_early_reads.py")
    assert re.search(r"test_early_reads\.py:\d+:16$", early.copied)
    assert "read before the wait" in str(early)


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_what_reads_no_values_is_none(look: Callable[[Tensor], object]) -> None:
    with guard(level="allow") as report:
        look(torch.ones(3, device="cuda").to("cpu", non_blocking=True))
    assert report.early_reads == []


@pytest.mark.parametrize("wait", WAITS)
def test_after_a_wait_it_may_be_read(wait: Callable[[], None]) -> None:
    with guard(level="allow") as report:
        host = torch.ones(3, device="cuda").to("cpu", non_blocking=True)
        wait()
        host.tolist()
    assert report.early_reads == []


def test_an_event_before_the_copy_waits_for_what_was_before() -> None:
    with guard(level="allow") as report:
        event = torch.cuda.Event()
        event.record()
        host = torch.ones(3, device="cuda").to("cpu", non_blocking=True)
        event.synchronize()
        host.tolist()
    assert len(report.early_reads) == 1


def test_only_pinned_memory_is_written_later() -> None:
    with guard(level="allow") as report:
        pinned, pageable = torch.zeros(3).pin_memory(), torch.zeros(3)
        for host in (pageable, pinned):
            host.copy_(torch.ones(3, device="cuda"), non_blocking=True)
        pageable.tolist()
        assert report.early_reads == []
        pinned.tolist()
    assert len(report.early_reads) == 1


def test_blocking_copies_and_copies_up_leave_nothing() -> None:
    with guard(level="allow") as report:
        torch.ones(3, device="cuda").cpu().tolist()
        host = torch.ones(3).pin_memory()
        host.to("cuda", non_blocking=True)
        host.tolist()
    assert report.early_reads == []


def test_it_is_refused_logged_or_recorded_by_level(caplog: pytest.LogCaptureFixture) -> None:
    def run(level: str) -> None:
        with guard(level=level):
            torch.ones(3, device="cuda").to("cpu", non_blocking=True).tolist()

    run("allow")
    with caplog.at_level(logging.WARNING, "nosync_lint.guard"):
        run("log")
    assert "read before the wait" in caplog.text
    with pytest.raises(EarlyReadError, match="read before the wait") as raised:
        run("disallow")
    assert raised.value.read.text.endswith(".tolist()")
    assert pickle.loads(pickle.dumps(raised.value)).read == raised.value.read
    with pytest.raises(EarlyReadError), allow_sync(reason="a permission to wait is none to race"):
        run("disallow")
