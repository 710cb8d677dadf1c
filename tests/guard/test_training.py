"""Training as people write it: mixed precision, hooks, loaders, optimizers, functions of their own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.utils.checkpoint
from torch import Tensor, nn
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset

from nosync_lint.guard import Event, GuardReport, guard, to_device, to_host


@pytest.fixture
def report() -> Any:
    with guard(level="allow") as seen:
        yield seen


def rows(report: GuardReport) -> set[str]:
    return {event.row for event in report.events}


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def data() -> Tensor:
    return torch.linspace(-1, 1, 40).view(5, 8)


def leaf(*sizes: int) -> Tensor:
    return to_device(torch.ones(*sizes, requires_grad=True))


def test_mixed_precision_waits_where_the_scaler_looks_and_not_in_the_casts_of_the_backward(report: GuardReport) -> None:
    net, x = to_device(network()), to_device(data())
    optimizer, scaler = torch.optim.SGD(net.parameters()), torch.amp.GradScaler("cuda")
    with torch.autocast("cuda", dtype=torch.float16):
        out = net(x)
        loss = out.float().square().mean()
    scaler.scale(loss).backward()
    assert (out.dtype, report.events) == (torch.float16, [])
    scaler.step(optimizer)
    scaler.update()
    assert [event.row for event in report.events] == ["tr.gradscaler_step"]


def test_a_gradient_that_goes_back_to_the_host_waits(report: GuardReport) -> None:
    weight = torch.ones(3, requires_grad=True)
    pinned = weight.detach().pin_memory().requires_grad_()
    (pinned.to("cuda", non_blocking=True) * 2).half().float().sum().backward()
    (event,) = report.events
    assert (event.row, event.direction, event.backward) == ("d2h.cpu", "d2h", True)
    assert pinned.grad is not None
    assert pinned.grad.tolist() == [2.0, 2.0, 2.0]
    report.events.clear()
    x = leaf(3)
    torch.empty(3, pin_memory=True).copy_(x * 2, non_blocking=True).sum().backward()
    assert [event.row for event in report.events] == ["h2d.to_blocking"]
    assert to_host(x.grad).tolist() == [2.0] * 3


def steps(net: nn.Module, x: Tensor, make: Callable[[Any], Any]) -> list[Tensor]:
    optimizer = make(net.parameters())

    def loss() -> Tensor:
        optimizer.zero_grad()
        found: Tensor = net(x).square().mean()
        found.backward()
        return found

    for _ in range(3):
        optimizer.step(loss)
    return [to_host(parameter.detach()) for parameter in net.parameters()]


OPTIMIZERS: list[tuple[str, dict[str, bool], set[str]]] = [
    ("ASGD", {}, {"tr.optim_asgd_adafactor", "h2d.to_blocking"}),
    ("Adafactor", {}, {"tr.optim_asgd_adafactor"}),
    ("LBFGS", {}, {"tr.lbfgs"}),
    *((name, {}, set()) for name in ("Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop")),
    *((name, {}, set()) for name in ("Rprop", "SGD")),
    *((name, {"foreach": True}, set()) for name in ("Adam", "RMSprop", "SGD")),
    *((name, {"fused": True}, set()) for name in ("Adam", "AdamW", "SGD")),
]


@pytest.mark.parametrize(("name", "options", "expected"), OPTIMIZERS)
def test_optimizers_take_the_steps_of_the_host_and_wait_by_their_own_row(
    name: str, options: dict[str, bool], expected: set[str], report: GuardReport
) -> None:
    net = network()
    device = to_device(copy.deepcopy(net))
    found = steps(device, to_device(data()), lambda parameters: getattr(torch.optim, name)(parameters, **options))
    waits = rows(report)
    host = steps(net, data(), lambda parameters: getattr(torch.optim, name)(parameters, **options))
    for mine, theirs in zip(found, host, strict=True):
        torch.testing.assert_close(mine, theirs)
    assert waits == expected


def test_a_scheduler_that_is_given_a_metric_reads_it(report: GuardReport) -> None:
    optimizer = torch.optim.SGD([leaf(3)], lr=0.1)
    scheduler = lr_scheduler.StepLR(optimizer, 1)
    optimizer.step()
    scheduler.step()
    assert report.events == []
    lr_scheduler.ReduceLROnPlateau(optimizer).step(leaf(3).mean())
    assert [(event.row, event.code) for event in report.events] == [("tr.plateau", "NSL213")]


@pytest.mark.filterwarnings("ignore:The argument 'device'")  # which the loader of torch 2.9 gives
def test_loaders_pin_in_their_own_thread_and_gradients_accumulate(report: GuardReport) -> None:
    net = to_device(network())
    loader = DataLoader(TensorDataset(data()), batch_size=2, pin_memory=True, num_workers=1)
    for (batch,) in loader:
        assert batch.is_pinned()
        net(batch.to("cuda", non_blocking=True)).sum().backward()
    assert report.events == []
    host = network()
    host(data()).sum().backward()
    for mine, theirs in zip(net.parameters(), host.parameters(), strict=True):
        torch.testing.assert_close(to_host(mine.grad), theirs.grad)


def test_hooks_of_modules_see_the_device_and_may_change_gradients(report: GuardReport) -> None:
    net, seen = to_device(network()), []
    net[0].register_full_backward_hook(lambda _, into, out: seen.append((into[0].is_cuda, out[0].is_cuda)))
    net[2].register_full_backward_pre_hook(lambda _, out: (out[0] * 2,))
    x, host = leaf(2, 8), torch.ones(2, 8, requires_grad=True)
    net(x).sum().backward()
    network()(host).sum().backward()
    assert seen == [(True, True)]
    assert host.grad is not None
    torch.testing.assert_close(to_host(x.grad), host.grad * 2)
    assert report.events == []


def test_a_backward_hook_of_a_module_on_the_host_sees_the_host(report: GuardReport) -> None:
    net, seen = network(), []
    net.register_full_backward_hook(lambda _, into, out: seen.append(out[0].device.type))
    net(torch.ones(2, 8, requires_grad=True)).sum().backward()
    assert seen == ["cpu"]


def test_hooks_on_saved_tensors_see_the_device(report: GuardReport) -> None:
    x, seen = leaf(3), []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t.device.type) or t.cpu(), lambda t: t.cuda()):
        y = (x * x).sum()
    assert seen == ["cuda", "cuda"]
    assert [event.row for event in report.events] == ["d2h.cpu"] * 2
    report.events.clear()
    y.backward()
    assert [event.row for event in report.events] == ["h2d.to_blocking"] * 2
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        z = (x * x).sum()
    z.backward()
    assert to_host(x.grad).tolist() == [4.0] * 3
    host = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.device.type, lambda _: torch.ones(2)):
        (host * host).sum().backward()
    assert host.grad is not None


def test_a_tensor_made_with_requires_grad_may_go_straight_into_a_checkpoint(report: GuardReport) -> None:
    x = torch.ones(3, device="cuda", requires_grad=True)
    torch.utils.checkpoint.checkpoint(lambda a: (a * a).sum(), x, use_reentrant=False).backward()
    assert to_host(x.grad).tolist() == [2.0] * 3


class Doubled(torch.autograd.Function):
    """In place, with a result that has no gradient, and a backward that goes by the host."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        x.mul_(2)
        sign = x.sign()
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(sign)
        return x, sign

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> Tensor:
        return grad.cpu().cuda() * 2


def test_functions_of_the_user_mark_what_they_write_and_are_watched_in_the_backward(report: GuardReport) -> None:
    x = leaf(3)
    y = x * 1
    doubled, sign = Doubled.apply(y)
    assert doubled is y
    assert (doubled.requires_grad, sign.requires_grad) == (True, False)
    doubled.sum().backward()
    assert to_host(x.grad).tolist() == [2.0] * 3
    assert [(event.row, event.text) for event in report.events] == [
        ("d2h.cpu", "return grad.cpu().cuda() * 2"), ("h2d.to_blocking", "return grad.cpu().cuda() * 2"),
    ]  # fmt: skip


def test_anomaly_detection_reads_a_number_for_each_gradient(report: GuardReport) -> None:
    x = leaf(3)
    with pytest.warns(UserWarning, match="Anomaly Detection"), torch.autograd.detect_anomaly():
        (x * 2).sum().backward()
    assert [event.row for event in report.events] == ["d2h.scalar_param"] * 2


def test_waits_in_hooks_are_put_to_the_hook(report: GuardReport) -> None:
    x = leaf(3)
    x.register_hook(lambda grad: grad * (1 if grad.sum() > 0 else 2))
    optimizer = torch.optim.SGD([x], lr=0.1)
    x.register_post_accumulate_grad_hook(lambda _: optimizer.step())
    (x * 2).sum().backward()
    (event,) = report.events
    assert (event.row, event.backward) == ("d2h.bool", True)
    assert isinstance(event, Event)
    assert event.text.startswith("x.register_hook(")
    torch.testing.assert_close(to_host(x.detach()), torch.full((3,), 0.8))
