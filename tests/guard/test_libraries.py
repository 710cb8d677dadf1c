"""What libraries of models do that small programs do not: the simulated device takes it, with the values of the host."""

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


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, torch.enable_grad])
def test_a_device_by_position_is_a_device(mode: Callable[[], Any], report: GuardReport) -> None:
    host, device = torch.tensor([1, 2], dtype=torch.int32), torch.zeros(2, device="cuda")
    with mode():
        assert host.to(device.device, torch.int64).is_cuda
        assert host.to(device).is_cuda
        assert not device.to(torch.device("cpu"), torch.int64).is_cuda
    assert [event.code for event in report.events] == ["NSL104", "NSL104", "NSL203"]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8, torch.float32])
def test_a_histogram_counts_integers_too(dtype: torch.dtype, report: GuardReport) -> None:
    found = torch.histc(to_device(torch.tensor([0, 0, 2, 3], dtype=dtype)), bins=4, min=0, max=3)
    assert (found.dtype, to_host(found).tolist()) == (dtype, [2, 0, 1, 1])
    assert report.events == []


def test_a_product_may_be_summed_in_a_wider_type(report: GuardReport) -> None:
    torch.manual_seed(0)
    left, right, added = (to_device(torch.rand(3, 3).to(torch.bfloat16)) for _ in range(3))
    wide = [to_host(one).float() for one in (left, right, added)]
    found = [
        torch.mm(left, right, out_dtype=torch.float32),
        torch.bmm(left[None], right[None], out_dtype=torch.float32)[0],
        torch.addmm(added, left, right, out_dtype=torch.float32, beta=2, alpha=3),
        torch.baddbmm(added[None], left[None], right[None], out_dtype=torch.float32, beta=2, alpha=3)[0],
    ]
    plain, sum_of_both = wide[0] @ wide[1], 2 * wide[2] + 3 * (wide[0] @ wide[1])
    torch.testing.assert_close([to_host(one) for one in found], [plain, plain, sum_of_both, sum_of_both])
    assert report.events == []


class Scaled(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, scale: Tensor) -> Tensor:
        return x * scale

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, scale = ctx.saved_tensors
        return grad * scale, grad * x


def test_a_function_of_the_user_runs_under_vmap(report: GuardReport) -> None:
    x, scale = (to_device(torch.tensor(one, requires_grad=True)) for one in ([1.0, 2.0], [3.0, 4.0]))
    torch.vmap(lambda one: Scaled.apply(one, scale))(x).sum().backward()
    assert (to_host(x.grad).tolist(), to_host(scale.grad).tolist()) == ([7.0, 7.0], [3.0, 3.0])


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flexible_attention_gives_the_numbers_of_the_host(report: GuardReport) -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch.manual_seed(0)
    host, offset = torch.rand(1, 2, 128, 8, requires_grad=True), torch.arange(2)
    device, moved = to_device(host), to_device(offset)
    mask = create_block_mask(lambda b, h, q, k: q >= k + moved[h], 1, 2, 128, 128, device="cuda")
    report.events.clear()
    found = torch.compile(flex_attention)(device, device, device, block_mask=mask)
    attended = host @ host.mT / 8**0.5
    below = torch.arange(128)[:, None] >= torch.arange(128) + offset[:, None, None]
    expected = attended.masked_fill(~below, -torch.inf).softmax(-1).nan_to_num() @ host
    torch.testing.assert_close(to_host(found), expected.detach())
    found.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(to_host(device.grad), host.grad)
    assert report.events == []


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: nn.LazyLinear(3).to("cuda"), (2, 4)),
        (lambda: nn.LazyLinear(3, device="cuda"), (2, 4)),
        (lambda: nn.LazyConv2d(3, 3).cuda(), (2, 3, 8, 8)),
        (lambda: nn.LazyBatchNorm1d().to("cuda", torch.float64), (2, 4)),
    ],
)
def test_parameters_without_a_shape_are_made_on_the_device(
    make: Callable[[], nn.Module], shape: tuple[int, ...], report: GuardReport
) -> None:
    module = make()
    report.events.clear()  # batch norm has a count, which is uploaded
    before = dict(module.named_parameters())
    dtype = torch.float64 if isinstance(module, nn.LazyBatchNorm1d) else torch.float32
    module(torch.rand(shape, device="cuda", dtype=dtype)).sum().backward()
    for name, one in module.named_parameters():
        assert (one.is_cuda, one.dtype, one.grad.is_cuda) == (True, dtype, True), name
        assert one is before[name]
    assert all(one.is_cuda for one in module.buffers())
    assert report.events == []


def test_parameters_without_a_shape_may_stay_on_the_host(report: GuardReport) -> None:
    module = nn.LazyLinear(3).to("cuda").to("cpu")
    assert module(torch.rand(2, 4)).device.type == module.weight.device.type == "cpu"
    assert nn.LazyLinear(3).half()(torch.rand(2, 4).half()).dtype is torch.float16
