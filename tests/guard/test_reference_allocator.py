"""The reference allocator on the simulated device: its hot paths wait for nothing, the naive one for three things a free."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from torch import Tensor

from benchmarks.allocator.calls import Bench, Call
from benchmarks.allocator.conv_operands import kernels, pool_view
from nosync_lint.guard import GuardReport, SyncError, guard, to_device, to_host
from reference_allocator import BytePool, PageAllocator, SWAComposite, abi, join, naive
from reference_allocator.abi import load
from reference_allocator.costs import COSTS, Cost
from reference_allocator.end_band import EndBand
from reference_allocator.naive import NaiveAllocator, pack_host_planned
from reference_allocator.streams import SideStream
from reference_allocator.verify import check, verify
from tests.reference_allocator.pools import kv
from tests.reference_allocator.test_costs import PREPARED

pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="the simulated device needs a machine without a real one"
)
NAIVE = Path(naive.__file__).read_text(encoding="utf-8").splitlines()
FREES = 77
"""Lazy frees of the run in which the defect was found: every one of them waited."""


def pool(device: str, page_size: int = 4, total: int = 65536) -> BytePool:
    """As `byte_pool` of the allocator's own tests, on a device."""
    specs = [kv("full", "full", "up", page_size, 2), kv("swa", "swa", "down", page_size, 1)]
    return BytePool(total, specs, device=device)


def lengths(*values: int) -> tuple[Tensor, Tensor]:
    """Lengths on the device, and in memory of the host, as a scheduler has them: the upload is the scheduler's."""
    host = torch.tensor(values)
    return host.pin_memory().to("cuda", non_blocking=True), host


def churn(allocator: PageAllocator | SWAComposite, page_size: int, steps: int) -> int:
    """Rows that come, decode, lose their window and go, in groups and out of them. Gives how often there was no room."""
    chance, shortages = random.Random(page_size), 0
    rows: list[tuple[Tensor, int]] = []
    for _ in range(steps):
        act = chance.random()
        if act < 0.35 or not rows:
            length = chance.randrange(1, 4 * page_size)
            none, lens = lengths(0), lengths(length)
            new = allocator.alloc_extend(*none, *lens, torch.full((1,), -1, dtype=torch.int64, device="cuda"), length)
            rows += [] if new is None else [(new, 0)]
            shortages += new is None
        elif act < 0.6:
            lens, last = lengths(*(row.numel() + 1 for row, _ in rows)), torch.stack([row[-1] for row, _ in rows])
            new = allocator.alloc_decode(*lens, last)
            if new is not None:
                rows = [(torch.cat((row, new[at : at + 1])), cursor) for at, (row, cursor) in enumerate(rows)]
        else:
            row, cursor = rows.pop(chance.randrange(len(rows)))
            if act > 0.9:
                allocator.free_group_begin()
            if isinstance(allocator, PageAllocator):
                allocator.free_segment(row, start_pos=0)
            else:
                cursor = allocator.advance_window(row, cursor, row.numel(), window=page_size)
                allocator.free_row([(row, 0)], swa_frontier=cursor)
            if act > 0.9:
                allocator.free_group_end()
    return shortages


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("page_size", [1, 16])
@pytest.mark.parametrize("pools", [1, 2])
def test_churn_waits_for_nothing(page_size: int, eager: bool, pools: int, checked: bool) -> None:
    with guard(level="disallow_explicit") as report:
        made = pool("cuda", page_size, 12 * page_size * 1536)
        side = SideStream(made.device) if eager else None
        if pools == 1:
            allocator: PageAllocator | SWAComposite = PageAllocator(
                made, "full", eager=eager, checked=checked, side=side
            )
            join(allocator.band, PageAllocator(made, "swa", checked=checked).band)  # type: ignore[union-attr]
        else:
            allocator = SWAComposite(made, eager=eager, checked=checked, side=side)
        assert churn(allocator, page_size, 150)
        assert report.events == []
        check(allocator)
        assert verify(allocator) == []
    assert {event.suppressed for event in report.events} == {"verify, check and dump read the device at idle points"}


def lazy_frees(kind: type[PageAllocator], device: str) -> list[int]:
    """Allocates rows and frees them by position, as a cache that gives up its leaves does. Gives the ids handed out."""
    allocator, seen = kind(pool(device), "full", checked=False), []
    for number in range(FREES):
        row = allocator.alloc(4 * (1 + number % 3))
        assert row is not None
        seen.append(row)
        allocator.free_segment(row, start_pos=0)
    return [token for row in seen for token in to_host(row).tolist()]


def naive_report() -> GuardReport:
    with guard(level="allow") as report:
        lazy_frees(NaiveAllocator, "cuda")
    return report


def test_all_lazy_frees_wait_before_and_none_after() -> None:
    before = naive_report()
    assert len(before.syncs) == 3 * FREES == 231
    with guard(level="disallow_explicit") as after:
        lazy_frees(PageAllocator, "cuda")
    assert after.events == []


def test_each_wait_of_the_naive_free_has_its_line_and_rule() -> None:
    places = naive_report().by_location()
    found = [(events[0].code, events[0].text, len(events)) for events in places.values()]
    assert found == [
        ("NSL301", 'pages = torch.unique(torch.div(tokens, self.page_size, rounding_mode="floor"))', FREES),
        ("NSL101", "self.band.v2p[pages] = -1", FREES),
        ("NSL101", "self.band.p2v[held] = -1", FREES),
    ]
    assert {NAIVE[row - 1].strip() for _, row, _ in places} == {text for _, text, _ in found}


def test_the_naive_free_is_refused_at_its_first_wait() -> None:
    with guard():
        allocator = NaiveAllocator(pool("cuda"), "full", checked=False)
        row = allocator.alloc(8)
        with pytest.raises(SyncError) as refused:
            allocator.free(row)
    event = refused.value.event
    assert (event.name, event.filename) == ("dedup-on-device", "reference_allocator/naive.py")
    assert NAIVE[event.span.row - 1].strip().startswith("pages = torch.unique(")


@pytest.mark.parametrize(("naively", "codes"), [(True, ["NSL202", "NSL202", "NSL103"]), (False, [])])
def test_a_compaction_planned_on_the_host_waits_three_times(naively: bool, codes: list[str]) -> None:
    with guard(level="allow") as report:
        made = pool("cuda")
        allocator = PageAllocator(made, "full", checked=False)
        join(allocator.band, PageAllocator(made, "swa", checked=False).band)
        rows = [allocator.alloc(8) for _ in range(4)]
        allocator.free_segment(rows[1], start_pos=0)
        pack = pack_host_planned if naively else EndBand.pack
        assert isinstance(allocator.band, EndBand)
        assert pack(allocator.band, 2) == 2
    assert [event.code for event in report.syncs] == codes


@pytest.mark.parametrize("kind", [PageAllocator, NaiveAllocator])
def test_ids_are_those_of_the_host(kind: type[PageAllocator]) -> None:
    expected = lazy_frees(kind, "cpu")
    with guard(level="allow"):
        assert lazy_frees(kind, "cuda") == expected


def waits_of(call: Call) -> list[str]:
    with guard(level="allow") as report:
        call()
    assert report.early_reads == []
    return [event.code for event in report.events]


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("row", COSTS, ids=lambda row: row.call)
def test_a_call_waits_as_often_as_its_row_of_the_costs_says(row: Cost, checked: bool) -> None:
    """As its own tests count in CPU memory, by the names of operations."""
    with guard(level="allow"):
        call = PREPARED[row.call](Bench("cuda", checked))
    assert len(waits_of(call)) == row.syncs


def test_the_conv_state_kernels_wait_for_nothing_and_leave_the_bits_of_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The memory of the simulated device is that of the host, so that the kernels for the host are its kernels."""
    monkeypatch.setattr(abi, "load", lambda *_: load("cpu"))
    monkeypatch.setattr(abi, "_DEVICES", dict.fromkeys(abi._DEVICES, abi._DEVICES["cpu"]))
    state = pool_view(5, 64, "cpu")
    with guard(level="allow"):
        made = kernels(to_device(state))
    for name, expected in kernels(state).items():
        expected.run()
        assert waits_of(Call(made[name].run)) == []
        for ours, theirs in zip(made[name].written, expected.written, strict=True):
            assert torch.equal(to_host(ours).contiguous().view(torch.int16), theirs.contiguous().view(torch.int16)), (
                name
            )
