"""The simulated device: real values and gradients, torch left as it was, and refusals where it cannot work."""

from __future__ import annotations

import copy
import io
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.utils.checkpoint
from torch import Tensor, nn

from nosync_lint.guard import GuardReport, SyncError, guard, register_kernel, to_device, to_host
from nosync_lint.guard.simulated import SIMULATION, Simulation

OWNERS: list[Any] = [
    torch, torch.cuda, torch.cuda.memory, torch.cuda.random, torch.cuda.nvtx, torch.accelerator, torch.autograd, torch.func,
    torch.nested, torch.jit, nn.parameter.UninitializedParameter, nn.parameter.UninitializedTensorMixin, torch.Tensor, torch.autograd.Function, torch.nn.Module, torch.utils, torch.nn.functional, torch.Generator,
]  # fmt: skip


def attributes() -> dict[str, object]:
    """Every attribute that could have been replaced, by owner and name, and the switches that have no name."""
    found = {f"{owner.__name__}.{name}": value for owner in OWNERS for name, value in vars(owner).items()}
    del_keys = [name for name, value in found.items() if isinstance(value, types.ModuleType)]
    for name in del_keys:  # modules that torch imports when it first needs them
        del found[name]
    return {**found, "lift": torch._C._only_lift_cpu_tensors(), "cudnn": torch._C._get_cudnn_enabled()}


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Any:
    before = attributes()
    yield
    after = attributes()
    assert {name for name in before.keys() | after.keys() if before.get(name) is not after.get(name)} - CACHES == set()
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None


CACHES = {"torch._dynamo", "torch.manual_seed", "Tensor.__slotnames__"}
"""Attributes that torch sets by itself, when it imports Dynamo and when it swaps tensors."""


@pytest.fixture
def report() -> Any:
    with guard(level="allow") as seen:
        yield seen


def test_everything_is_put_back_after_an_exception() -> None:
    with pytest.raises(ZeroDivisionError), guard(level="allow"), guard():
        _ = 1 // 0
    with pytest.raises(SyncError), guard(level="disallow_explicit"):
        torch.cuda.synchronize()
    assert not torch.cuda.is_available()


def test_tensors_outlive_the_guard_and_are_no_longer_watched() -> None:
    with guard() as seen:
        table = torch.zeros(3, device="cuda")
    table[0] = 1.0
    assert (table + table).device.type == "cuda"
    assert to_host(table).tolist() == [1.0, 0.0, 0.0]
    assert seen.events == []


def test_a_tensor_says_that_it_lies_on_the_device(report: GuardReport) -> None:
    tensor = torch.zeros(2, 3, device="cuda")
    assert (tensor.device, tensor.is_cuda, tensor.get_device()) == (torch.device("cuda", 0), True, 0)
    assert tensor.type() == "torch.cuda.FloatTensor"
    with torch.device("cuda"):
        assert torch.zeros(3).is_cuda
    with pytest.raises(RuntimeError, match="there is no cuda:1"):
        torch.zeros(3, device="cuda:1")
    assert "device='cuda:0'" in repr(tensor)


def test_shapes_that_change_in_place_are_seen_outside(report: GuardReport) -> None:
    tensor = torch.zeros(2, 3, device="cuda")
    tensor.t_()
    assert (tensor.shape, tensor.stride()) == ((3, 2), (1, 3))
    assert tensor.unsqueeze_(0) is tensor
    assert tensor.shape == (1, 3, 2)
    tensor.resize_(5)
    out = torch.empty(0, device="cuda")
    assert torch.add(tensor, 1, out=out) is out
    assert out.shape == (5,)


def test_views_share_memory(report: GuardReport) -> None:
    tensor = torch.zeros(4, device="cuda")
    view = tensor[1:3]
    view.fill_(2)
    tensor.view(2, 2)[0].add_(1)
    assert to_host(tensor).tolist() == [1.0, 3.0, 2.0, 0.0]
    assert view.data_ptr() == tensor.data_ptr() + 4


def network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.Flatten(), nn.Linear(24, 3))


def train(device: str, optimizer: Callable[..., torch.optim.Optimizer], rounds: int = 3) -> list[Tensor]:
    net = network().to(device)
    data, labels = torch.rand(5, 2, 8, generator=torch.Generator().manual_seed(2)), torch.tensor([0, 1, 2, 0, 1])
    data, labels = data.to(device), labels.to(device)
    chosen = optimizer(net.parameters(), lr=0.01)
    for _ in range(rounds):
        chosen.zero_grad()
        nn.functional.cross_entropy(net(data), labels).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        chosen.step()
    return [to_host(parameter.detach()) for parameter in net.parameters()]


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_training_gives_the_numbers_of_the_host_and_waits_for_uploads_alone(
    optimizer: Callable[..., torch.optim.Optimizer], report: GuardReport
) -> None:
    expected = train("cpu", optimizer)
    assert report.events == []
    for mine, theirs in zip(train("cuda", optimizer), expected, strict=True):
        torch.testing.assert_close(mine, theirs)
    assert {event.code for event in report.events} == {"NSL104"}


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_recurrent_cells_give_the_numbers_of_the_host(kind: Any, report: GuardReport) -> None:
    torch.manual_seed(0)
    host = kind(4, 5, num_layers=2)
    device, data = to_device(copy.deepcopy(host)), torch.rand(3, 2, 4)
    for net, given in ((host, data), (device, to_device(data))):
        net(given)[0].square().sum().backward()
    for mine, theirs in zip(device.parameters(), host.parameters(), strict=True):
        torch.testing.assert_close(to_host(mine.grad), theirs.grad)
    assert report.events == []


CHOSEN_ON_A_DEVICE: list[Callable[[Tensor, Tensor], Tensor]] = [
    lambda x, index: nn.functional.embedding_bag(index, x, torch.zeros_like(index[:1])),
    lambda x, index: nn.functional.ctc_loss(x.log_softmax(-1)[:, None], index[None, :2] + 1, (4,), (2,)),
    lambda x, index: torch.fft.hfft(x),
    lambda x, index: torch.complex(x, x).conj().imag,
]


@pytest.mark.parametrize("function", CHOSEN_ON_A_DEVICE)
def test_what_torch_does_otherwise_on_a_device_gives_the_numbers_of_the_host(
    function: Callable[[Tensor, Tensor], Tensor], report: GuardReport
) -> None:
    torch.manual_seed(0)
    host, index = torch.rand(4, 5, requires_grad=True), torch.tensor([0, 2, 3])
    device = to_device(host)
    function(host, index).sum().backward()
    found = function(device, to_device(index))
    found.sum().backward()
    assert found.is_cuda
    torch.testing.assert_close(to_host(device.grad), host.grad)


def test_the_keys_of_autograd_are_left_as_they_were(report: GuardReport) -> None:
    keys = (torch._C.DispatchKey.AutogradFunctionality, torch._C.DispatchKey.ADInplaceOrView)
    torch.rand(3, device="cuda", requires_grad=True).exp()  # its node saves the result, outside of what we are asked
    assert [torch._C._dispatch_tls_is_dispatch_key_excluded(key) for key in keys] == [False, False]
    host = torch.ones(2, requires_grad=True)
    assert (host * 2).requires_grad


def test_packed_sequences_keep_their_batch_sizes_on_the_host(report: GuardReport) -> None:
    lengths, data = torch.tensor([2, 3]), torch.rand(3, 2, 4)
    packed = nn.utils.rnn.pack_padded_sequence(to_device(data), lengths, enforce_sorted=False)
    assert (packed.data.is_cuda, packed.batch_sizes.is_cuda) == (True, False)
    assert {event.row for event in report.events} == {"tr.pack_padded"}
    expected = nn.utils.rnn.pack_padded_sequence(data, lengths, enforce_sorted=False)
    assert torch.equal(to_host(packed.data), expected.data)


def test_attention_gives_the_numbers_of_the_host(report: GuardReport) -> None:
    torch.manual_seed(0)
    host = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    device, data = to_device(copy.deepcopy(host)), torch.rand(2, 3, 8)
    torch.testing.assert_close(to_host(device(to_device(data))), host(data).detach())
    assert report.events == []


@pytest.mark.parametrize("build", ["cpu", "cuda"])
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"attn_mask": torch.ones(3, 3, dtype=torch.bool).tril()}])
def test_attention_is_that_of_the_host_in_every_build(
    build: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    query, key, value = (torch.rand(2, 4, 3, 8) for _ in range(3))
    expected = nn.functional.scaled_dot_product_attention(query, key, value, **options)
    if build == "cuda":
        monkeypatch.setattr(torch.version, "cuda", "12.8")
    with guard() as seen:
        found = nn.functional.scaled_dot_product_attention(*to_device((query, key, value)), **to_device(options))
    torch.testing.assert_close(to_host(found), expected)
    assert seen.events == []


def test_a_module_keeps_its_parameters_when_it_moves(report: GuardReport) -> None:
    net = nn.Linear(2, 2)
    net.tied = net.weight
    before = [id(parameter) for parameter in net.parameters()]
    net.cuda()
    assert [id(parameter) for parameter in net.parameters()] == before
    assert isinstance(net.weight, nn.Parameter)
    assert (net.weight.is_cuda, net.weight.requires_grad, net.tied is net.weight) == (True, True, True)
    net(torch.ones(1, 2, device="cuda")).sum().backward()
    net.cpu()
    assert (type(net.weight), net.weight.device.type, net.weight.grad.device.type) == (nn.Parameter, "cpu", "cpu")
    assert {event.code for event in report.events} == {"NSL104", "NSL203"}


def test_state_goes_through_a_file_and_back(report: GuardReport) -> None:
    net, file = to_device(network()), io.BytesIO()
    torch.save(net.state_dict(), file)
    assert {event.row for event in report.events} == {"d2h.serialise"}
    file.seek(0)
    other = to_device(network())
    nn.init.zeros_(other[0].weight)
    other.load_state_dict(torch.load(file))
    assert torch.equal(to_host(other[0].weight), to_host(net[0].weight))
    file.seek(0)
    report.events.clear()
    loaded = torch.load(file, map_location="cuda")
    assert all(tensor.is_cuda for tensor in loaded.values())
    assert [event.row for event in report.events] == ["h2d.to_blocking"]
    copied = copy.deepcopy(net)
    assert (copied[0].weight.is_cuda, copied[0].weight is net[0].weight) == (True, False)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        assert x.is_cuda
        assert grad.is_cuda
        return 2 * x * grad


class SplitSquare(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    backward = Square.backward


@pytest.mark.parametrize("function", [Square, SplitSquare])
def test_functions_of_the_user_see_tensors_of_the_device(function: Any, report: GuardReport) -> None:
    x = to_device(torch.tensor([1.0, 2.0], requires_grad=True))
    (function.apply(x) * 3).sum().backward()
    assert to_host(x.grad).tolist() == [6.0, 12.0]
    assert function.apply(torch.tensor([3.0])).tolist() == [9.0]


def test_gradients_of_gradients_and_hooks(report: GuardReport) -> None:
    x, seen = torch.ones(3, device="cuda", requires_grad=True), []
    x.register_hook(lambda grad: seen.append(grad.is_cuda))
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert to_host(second).tolist() == [6.0] * 3
    (x * 2).sum().backward()
    assert seen == [True, True, True]
    assert x.grad is x.grad
    assert to_host(x.grad).tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match="leaf Variable"):
        x.add_(1)
    with torch.no_grad():
        x.add_(1)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_recompute(reentrant: bool, report: GuardReport) -> None:
    x = to_device(torch.ones(3, requires_grad=True))
    torch.utils.checkpoint.checkpoint(lambda a: (a * a).sum(), x, use_reentrant=reentrant).backward()
    assert to_host(x.grad).tolist() == [2.0] * 3


def test_waits_of_the_backward_are_put_to_its_line(report: GuardReport) -> None:
    x, mask = to_device(torch.ones(3, requires_grad=True)), to_device(torch.tensor([True, False, True]))
    picked = x[mask]
    report.events.clear()
    picked.sum().backward()
    (event,) = report.events
    assert (event.row, event.code, event.backward) == ("bw.mask_index", "NSL303", True)
    assert event.text == "picked.sum().backward()"


def test_the_backward_of_the_host_is_the_hosts_and_that_of_the_device_is_found_from_there(report: GuardReport) -> None:
    weight = torch.rand((4, 4), requires_grad=True)
    (weight.prod() + weight.trace()).backward()
    assert report.events == []
    device = to_device(torch.ones((4, 4), requires_grad=True))
    loss = device.trace().to("cpu", non_blocking=True)
    loss.backward()
    assert [event.row for event in report.events] == ["h2d.to_blocking", "bw.index_fill_value"]


BACKWARDS: list[tuple[str, Callable[[Tensor], Tensor]]] = [
    ("bw.prod", lambda x: x.prod()),
    ("bw.prod", lambda x: x.prod(0)),
    ("bw.cumprod", lambda x: x.cumprod(0)),
    ("bw.cumprod", lambda x: torch.linalg.vander(x[0], N=3)),
    ("bw.masked_scatter", lambda x: torch.zeros_like(x).masked_scatter(x > 0, x)),
    ("bw.index_fill_value", lambda x: torch.zeros_like(x).masked_fill(x > 0, x[0, 0])),
    ("bw.index_fill_value", lambda x: torch.zeros_like(x).index_fill(0, torch.arange(2, device="cuda"), x[0, 0])),
    ("bw.mask_index", lambda x: x[x > 0]),
]


@pytest.mark.parametrize(("row", "function"), BACKWARDS)
def test_what_waits_in_the_backward_alone(row: str, function: Callable[[Tensor], Tensor], report: GuardReport) -> None:
    x = to_device(torch.ones((3, 3), requires_grad=True))
    loss = function(x).sum()
    for _ in range(2):
        report.events.clear()
        loss.backward(retain_graph=True)
        assert [event.row for event in report.events] == [row]


def test_a_backward_that_waits_for_nothing_is_silent(report: GuardReport) -> None:
    x = to_device(torch.ones((3, 3), requires_grad=True))
    (x.sum(0) * x.masked_fill(x > 2, 0.0).mean() + torch.zeros_like(x).masked_fill(x > 0, 1.0) * x).sum().backward()
    assert report.events == []


def test_without_gradients_composites_are_taken_apart(report: GuardReport) -> None:
    with torch.inference_mode():
        x = torch.rand(3, 3, device="cuda")
        assert (x @ x).is_inference()
        x[0, 0].item()
        nn.functional.one_hot(torch.arange(3, device="cuda"))
    assert [event.code for event in report.events] == ["NSL201", "NSL305"]


def test_streams_and_events_order_work_and_wait_only_when_told(report: GuardReport) -> None:
    side, start, end = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() is side
        start.record()
        torch.ones(3, device="cuda").record_stream(side)
    assert torch.cuda.current_stream() is torch.cuda.default_stream()
    torch.cuda.current_stream().wait_stream(side)
    end.record()
    end.wait()
    assert end.query()
    assert start.elapsed_time(end) >= 0
    assert report.events == []
    for wait in (end.synchronize, side.synchronize, torch.cuda.synchronize, torch.accelerator.synchronize):
        wait()
    assert {(event.code, event.direction) for event in report.events} == {("NSL401", "wait")}
    torch.cuda.empty_cache()
    assert report.events[-1].code == "NSL403"


def test_questions_about_the_device_have_answers(report: GuardReport) -> None:
    assert (torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.current_device()) == (True, 1, 0)
    assert torch.cuda.get_device_properties(0).total_memory == torch.cuda.mem_get_info()[1]
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    with torch.cuda.device(0):
        assert torch.cuda.memory_allocated() == 0
    generator = torch.Generator(device="cuda").manual_seed(3)
    assert isinstance(generator, torch.Generator)
    first = torch.rand(3, device="cuda", generator=generator)
    generator.manual_seed(3)
    assert torch.equal(to_host(first), to_host(torch.rand(3, device="cuda", generator=generator)))


def test_pinned_memory_is_remembered_by_storage(report: GuardReport) -> None:
    host = torch.arange(12.0).view(3, 4)
    pinned = host.pin_memory()
    assert (host.is_pinned(), pinned.is_pinned(), pinned[1:].is_pinned()) == (False, True, True)
    assert torch.empty(3, pin_memory=True).is_pinned()
    pinned.t().to("cuda", non_blocking=True)
    assert report.events == []
    pinned[:, ::2].to("cuda", non_blocking=True)
    assert [event.row for event in report.events] == ["h2d.noncontig_pinned"]
    with pytest.raises(RuntimeError, match="cannot pin"):
        torch.zeros(3, device="cuda").pin_memory()


def test_a_tensor_made_of_tensors_reads_each(report: GuardReport) -> None:
    x = torch.arange(2.0, device="cuda")
    assert torch.tensor([[x[0]], [x[1]]]).tolist() == [[0.0], [1.0]]
    assert [event.row for event in report.events] == ["d2h.tensor_from_tensors"] * 2


def test_what_cannot_work_is_refused(report: GuardReport) -> None:
    x = torch.ones(3, device="cuda")
    with pytest.raises(NotImplementedError, match=r"torch\.func\.grad cannot run on the simulated device"):
        torch.func.grad(lambda a: a.sum())(x)
    assert torch.func.grad(lambda a: a.sum())(torch.ones(2)).tolist() == [1.0, 1.0]
    for call, name in (
        (lambda: torch.func.jvp(torch.sin, (x,), (x,)), "torch.func.jvp"),
        (lambda: torch.nested.nested_tensor([x, x]), "torch.nested.nested_tensor"),
        (lambda: torch.cuda.CUDAGraph(), "torch.cuda.CUDAGraph"),
        (lambda: torch.ones(2, 2, device="cuda").to_sparse_csr(), r"torch\.sparse_csr"),
        (lambda: torch.sparse_csc_tensor(x.long() - 1, x.long()[:0], x[:0]), r"torch\.sparse_csc"),
        (lambda: torch.jit.trace(torch.sin, x), "torch.jit.trace"),
    ):
        with pytest.raises(NotImplementedError, match=f"{name} cannot run on the simulated device: "):
            call()
    assert torch.func.vmap(lambda a: a * 2)(x).is_cuda
    assert torch.compile(lambda a: a + 1)(x).is_cuda


@torch.library.custom_op("nosync_guard_test::looks", mutates_args=())
def looks(x: Tensor) -> Tensor:
    return x * 2 if x.sum().item() > 0 else x.clone()


looks.register_autograd(lambda ctx, grad: grad * 2)
LIBRARY = torch.library.Library("nosync_guard_test", "FRAGMENT")
LIBRARY.define("only_cuda(Tensor x) -> Tensor")


def test_what_was_a_class_stays_one() -> None:
    before = attributes()
    with guard(level="allow"):
        after = attributes()
        assert (torch.cuda.CUDAGraph | None) == (None | torch.cuda.CUDAGraph)
    kinds = {name for name, value in before.items() if isinstance(value, type)}
    replaced = {name for name in kinds if after[name] is not before[name]}
    assert {"torch.cuda.CUDAGraph", "torch.cuda.graph", "torch.cuda.Stream", "torch.Generator"} <= replaced
    assert {name for name in replaced if not isinstance(after[name], type)} == set()


def test_operations_of_extensions_are_looked_into(report: GuardReport) -> None:
    x = to_device(torch.ones(3, requires_grad=True))
    looks(x).sum().backward()
    assert to_host(x.grad).tolist() == [2.0] * 3
    (event,) = report.events
    assert (event.code, event.text) == ("NSL201", "return x * 2 if x.sum().item() > 0 else x.clone()")


def test_an_operation_for_cuda_alone_wants_a_stand_in(report: GuardReport) -> None:
    x = torch.ones(3, device="cuda")
    with pytest.raises(NotImplementedError, match=r"register_kernel\('nosync_guard_test::only_cuda', function\)"):
        torch.ops.nosync_guard_test.only_cuda(x)
    register_kernel("nosync_guard_test::only_cuda", lambda given: given + given.sum().item(), syncs=True)
    assert to_host(torch.ops.nosync_guard_test.only_cuda(x)).tolist() == [4.0] * 3
    assert [(event.code, event.row) for event in report.events] == [("NSL401", "project.waits")]
    with pytest.raises(ValueError, match="names no operation of an extension"):
        register_kernel("aten::add", torch.add)


def test_containers_move_without_being_counted(report: GuardReport) -> None:
    moved = to_device({"a": [torch.ones(1)], "b": (torch.zeros(1), 3)})
    assert moved["a"][0].is_cuda
    assert to_host(moved)["b"][0].tolist() == [0.0]
    assert moved["b"][1] == 3
    assert report.events == []


def test_a_guard_may_be_entered_anywhere() -> None:
    """Also the first one of a process, which tries the device before it is used."""
    for simulation in (Simulation(), SIMULATION):
        with torch.inference_mode():
            simulation.enter()
            simulation.leave()
        with torch.no_grad(), torch.device("cpu"):
            simulation.enter()
            simulation.leave()


def test_asynchronous_copies_are_direct_between_pinned_memory_in_the_same_order(report: GuardReport) -> None:
    pinned, device = torch.zeros(4, 6, pin_memory=True), torch.zeros(6, 4, device="cuda")
    device.t().copy_(pinned.t().contiguous().t().pin_memory(), non_blocking=True)
    device.copy_(torch.zeros(6, 4).pin_memory(), non_blocking=True)
    pinned.copy_(torch.zeros(4, 6, device="cuda"), non_blocking=True)
    assert report.events == []
    device.copy_(pinned.t(), non_blocking=True)
    pinned[:, :3].copy_(device[:4, :3], non_blocking=True)
    torch.zeros(3).copy_(device[:3, 0], non_blocking=True)
    assert [event.row for event in report.hidden] == [
        "h2d.noncontig_pinned", "h2d.noncontig_pinned", "d2h.copy_to_pageable_nb",
    ]  # fmt: skip


def test_python_data_is_pinned_and_branches_are_read(report: GuardReport) -> None:
    assert torch.tensor([1, 2], pin_memory=True).is_pinned()
    x = torch.ones(2, device="cuda")
    assert torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: a, (x,)).is_cuda
    assert x.to("meta").is_meta
    assert [event.row for event in report.events] == ["d2h.cond"]


def test_a_wait_of_the_backward_is_refused_like_any_other() -> None:
    with guard():
        x = to_device(torch.ones((3, 3), requires_grad=True))
        loss = x.trace()
        with pytest.raises(SyncError) as refused:
            loss.backward()
        assert refused.value.event.backward
        (x * 2).sum().backward()
        assert to_host(x.grad).tolist() == [[2.0] * 3] * 3
