"""What waits by its operands, forward and backward: as torch 2.13.0 does on a recording CUDA runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nosync_lint.guard import GuardReport, guard, to_device, to_host


@pytest.fixture
def report() -> Any:
    with guard(level="allow") as seen:
        yield seen


def test_a_backward_that_is_trivial_for_torch_is_silent(report: GuardReport) -> None:
    for shape, function in (
        ((), lambda x: x.prod()),
        ((), lambda x: x.prod(0)),
        ((), lambda x: x.cumprod(0)),
        ((5, 1), lambda x: x.cumprod(-1)),
        ((5, 0), lambda x: x.cumprod(0)),
    ):
        x = to_device(torch.ones(shape, requires_grad=True))
        function(x).sum().backward()
    assert report.events == []
    to_device(torch.ones((5, 1), requires_grad=True)).cumprod(-2).sum().backward()
    assert [event.row for event in report.events] == ["bw.cumprod"]


CROSSINGS: list[tuple[str, Callable[[Tensor], Tensor]]] = [
    ("h2d.to_blocking", lambda x: x.cpu()),
    ("h2d.to_blocking", lambda x: x.to("cpu", non_blocking=True)),
    ("h2d.to_blocking", lambda x: x.to("cpu", torch.float64)),
    ("h2d.to_blocking", lambda x: torch.zeros(3).copy_(x)),
    ("d2h.cpu", lambda x: x.to("cuda")),
    ("d2h.cpu", lambda x: x.pin_memory().to("cuda", torch.float64, non_blocking=True)),
    ("d2h.cpu", lambda x: torch.zeros(3, device="cuda").copy_(x)),
    ("d2h.cpu", lambda x: torch.zeros(3, device="cuda").index_fill(0, torch.arange(1, device="cuda"), 1.0).copy_(x)),
]


@pytest.mark.parametrize(("row", "function"), CROSSINGS)
def test_the_gradient_of_a_copy_waits_in_the_other_direction(
    row: str, function: Callable[[Tensor], Tensor], report: GuardReport
) -> None:
    leaf = torch.ones(3, requires_grad=True)
    x = to_device(leaf) if row == "h2d.to_blocking" else leaf
    copied = function(x)
    report.events.clear()
    copied.sum().backward()
    assert [(event.row, event.backward) for event in report.events] == [(row, True)]
    assert to_host(x.grad).tolist() == [1.0] * 3


def test_the_gradient_of_a_store_from_the_host_waits(report: GuardReport) -> None:
    value, table = torch.ones(2, requires_grad=True), torch.zeros(5, device="cuda")
    table[1:3] = value
    report.events.clear()
    table.sum().backward()
    assert [(event.row, event.operation) for event in report.events] == [("d2h.cpu", "CopySlices")]
    plain, other = torch.ones(2), to_device(torch.zeros(2, requires_grad=True)) * 1
    other.copy_(plain)
    report.events.clear()
    other.sum().backward()
    assert report.events == []


def test_the_gradient_of_a_change_of_type_stays_on_the_device(report: GuardReport) -> None:
    x = to_device(torch.ones(3, requires_grad=True))
    (x.half().sum() + x.to("cuda", torch.float64).softmax(0, dtype=torch.float32).sum()).backward()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = x @ x
    loss.backward()
    assert report.events == []


@pytest.mark.parametrize(
    ("rows", "function"),
    [
        ([], lambda: torch.rand(3, device="cuda").nanmedian()),
        (["dyn.nanmedian"], lambda: torch.rand(0, device="cuda").nanmedian()),
        (["dyn.nanmedian"], lambda: torch.rand(0, device="cuda").median()),
        ([], lambda: torch.searchsorted(*_empty(2), sorter=torch.zeros(0, dtype=torch.long, device="cuda"))),
        (["la.decomp"], lambda: torch.linalg.eig(torch.rand(0, 5, 5, device="cuda"))),
        ([], lambda: torch.linalg.eigh(torch.rand(0, 5, 5, device="cuda"))),
        ([], lambda: torch.linalg.ldl_factor_ex(torch.eye(3, device="cuda"), hermitian=True)),
        (["la.ldl_hermitian"], lambda: torch.linalg.ldl_factor_ex(_eye(torch.complex64), hermitian=True)),
        ([], lambda: torch.linalg.ldl_factor_ex(_eye(torch.complex64))),
        ([], lambda: torch.linalg.lu_factor_ex(torch.rand(500, 500, device="cuda"))),
        ([], lambda: torch.linalg.lu_factor_ex(torch.rand(400, 16, 16, device="cuda"))),
        ([], lambda: torch.linalg.lu_factor_ex(torch.rand(4, 4, 128, 128, device="cuda"))),
        (["la.lu_magma"], lambda: torch.linalg.lu_factor_ex(torch.rand(17, 17, 17, device="cuda"))),
        (["la.lu_magma"], lambda: torch.linalg.lu_factor_ex(torch.rand(2, 129, 129, device="cuda"))),
        (["la.lu_magma"], lambda: torch.linalg.lu(torch.rand(3, 5, device="cuda"))),
        ([], lambda: torch.linalg.lu(torch.rand(0, 3, 5, device="cuda"))),
        (["la.lu_magma"], lambda: torch.linalg.det(torch.rand(17, 17, 17, device="cuda"))),
        (["la.lu_magma"], lambda: torch.linalg.inv_ex(torch.rand(17, 17, 17, device="cuda"))),
    ],
)
def test_what_an_operation_waits_for_depends_on_its_operands(
    rows: list[str], function: Callable[[], object], report: GuardReport
) -> None:
    function()
    assert [event.row for event in report.events] == rows


def _empty(count: int) -> list[Tensor]:
    return [torch.zeros(0, device="cuda") for _ in range(count)]


def _eye(dtype: torch.dtype) -> Tensor:
    return torch.eye(3, dtype=dtype, device="cuda")


def test_the_loss_of_ctc_waits_there_and_back(report: GuardReport) -> None:
    x = to_device(torch.zeros(4, 2, 3).log_softmax(2).requires_grad_())
    targets = torch.ones((2, 2), dtype=torch.long, device="cuda")
    loss = nn.functional.ctc_loss(x, targets, (4, 4), (2, 2))
    assert {event.row for event in report.events} == {"d2h.cpu", "tr.ctc"}
    report.events.clear()
    loss.backward()
    assert [event.row for event in report.events] == ["bw.ctc_lstsq"]


def test_a_download_that_moves_channels_goes_through_memory_that_is_not_pinned(report: GuardReport) -> None:
    images = torch.rand(2, 3, 4, 5, device="cuda")
    images.to("cpu", non_blocking=True)
    images.permute(0, 2, 3, 1).to("cpu", non_blocking=True, memory_format=torch.contiguous_format)
    assert report.events == []
    images.to("cpu", non_blocking=True, memory_format=torch.channels_last)
    assert [(event.row, event.hidden) for event in report.events] == [("h2d.noncontig_pinned", True)]
