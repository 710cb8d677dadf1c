"""Every kernel takes the page-major view of a conv state, and refuses each view it cannot handle by the right field."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest
import torch

from reference_allocator.sconv import (
    MatchError,
    ar_fused_decode,
    ar_fused_verify,
    causal_conv1d,
    draft_extend_sconv,
    fused_decode_update,
    gather_scatter_sconv,
    update_sconv_cache,
)

pytestmark = pytest.mark.host("kernels compiled for the host, over its memory; tests/guard runs them on the device")

D = 64
W = 4
BF16 = torch.bfloat16


def values(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).to(BF16)


def i32(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int32)


Operands = dict[str, torch.Tensor | int]


def operands(kernel: str) -> Operands:
    """Operands for two sequences of two tokens each (or two rows), all but the cache."""
    on, slots = torch.tensor([True, True]), i32(1, 3)
    shared: Operands = {"cache_indices": slots, "mask": on, "weight": values(D, W)}
    norm: Operands = {"residual_out": values(2, D), "hs_out": values(2, D), "norm_weight": values(D)}
    made: dict[str, Operands] = {
        "update_sconv_cache": {
            "x": values(4, D), "cache_indices": slots, "has_state": on, "query_start": i32(0, 2, 4),
        },
        "causal_conv1d": {
            "x": values(4, D), "slot": slots.long(), "mask": on.reshape(2, 1, 1), "weight": values(D, W),
            "cu": torch.tensor([0, 2, 4]), "seq": i32(0, 0, 1, 1), "y": values(4, D),
        },
        "draft_extend_sconv": {
            "hidden": values(4, D), "cache_indices": slots, "accepted": i32(1, 2), "draft": 2, "crossed": on,
            "track_step": i32(1, 0), "track_slot": torch.tensor([0, 2]),
        },
        "fused_decode_update": {
            "x": values(2, D), **shared, "y": values(2, D), "track_mask": on, "track_slot": torch.tensor([0, 2]),
        },
        "gather_scatter_sconv": {
            "hidden": values(4, D), "rows": i32(0, 1, 2, 1, 2, 3).reshape(2, 3), "mask": on, "dst": slots.long(),
        },
        "ar_fused_decode": {
            "shards": values(2, 2, D), **shared, "residual": values(2, D), **norm, "track_mask": on,
            "track_slot": torch.tensor([0, 2]),
        },
        "ar_fused_verify": {
            "shards": values(2, 4, D), **shared, "residual": values(4, D), "norm_weight": values(D),
            "residual_out": values(4, D), "hs_out": values(4, D), "inter_out": values(2, 2, W - 1, D),
        },
    }  # fmt: skip
    return made[kernel]


KERNELS: dict[str, Callable[..., None]] = {
    kernel.__name__: kernel
    for kernel in (
        update_sconv_cache, causal_conv1d, draft_extend_sconv, fused_decode_update, gather_scatter_sconv,
        ar_fused_decode, ar_fused_verify,
    )
}  # fmt: skip
WIDTH = {name: 16 if name.startswith("ar_") else 4 for name in KERNELS}

every_kernel = pytest.mark.parametrize("kernel", KERNELS)


def run(kernel: str, cache: object, **changed: object) -> Operands:
    given = {**operands(kernel), **changed}
    KERNELS[kernel](cache=cache, **given)
    return given


def refused(kernel: str, cache: object, **changed: object) -> tuple[object, ...]:
    """The operand, the kind, the dimension, the symbol and the two values; nothing is written."""
    given = {**operands(kernel), **changed}
    watched = [tensor for tensor in (cache, *given.values()) if isinstance(tensor, torch.Tensor) and not tensor.is_meta]
    before = [tensor.clone() for tensor in watched]
    with pytest.raises(MatchError) as caught:
        KERNELS[kernel](cache=cache, **given)
    for now, then in zip(watched, before, strict=True):
        assert torch.equal(now, then)
    error = caught.value
    return error.name, error.kind, error.dim, error.symbol, error.expected, error.got


def strided(slot: int, window: int = D, offset: int = 0, slots: int = 4) -> torch.Tensor:
    """A state of `[4, 3, 64]` with these strides inside a larger buffer."""
    buffer = values(slots * max(slot, 3 * D) + 3 * window + 2 * D)
    return buffer.as_strided((slots, W - 1, D), (slot, window, 1), offset)


@every_kernel
def test_a_page_major_view_gives_what_a_clone_gives(kernel: str) -> None:
    """S2a, S2b: given one layer of a page-major state, when a kernel runs, then it is taken, and other layers stay."""
    env = values(4, 2, W - 1, D)
    other, clone = env[:, 0].clone(), env[:, 1].clone()
    on_view, on_clone = run(kernel, env[:, 1]), run(kernel, clone)
    assert torch.equal(env[:, 1], clone)
    assert torch.equal(env[:, 0], other)
    for name, result in on_view.items():
        assert not isinstance(result, torch.Tensor) or torch.equal(result, on_clone[name]), name  # type: ignore[arg-type]


@every_kernel
def test_rows_may_be_padded_and_slots_interleaved(kernel: str) -> None:
    run(kernel, strided(5 * D, window=D + 8))
    run(kernel, strided(D, window=4 * D))  # every slot between the rows of the others


@every_kernel
def test_one_slot_may_have_any_slot_stride(kernel: str) -> None:
    error = torch.zeros(8, dtype=torch.int32)
    run(kernel, strided(7, slots=1), error_word=error)
    assert error[0] == 128  # accepted, and ids 1 and 3 are not of this table


@every_kernel
def test_a_channel_stride_is_refused(kernel: str) -> None:
    """S2c."""
    wide = values(4, W - 1, 2 * D)
    assert refused(kernel, wide[..., ::2]) == ("cache", "stride", 2, None, "1", "2")


@every_kernel
def test_an_odd_slot_stride_is_refused(kernel: str) -> None:
    """S2d."""
    wanted = f"a multiple of {WIDTH[kernel]} bytes"
    assert refused(kernel, strided(3 * D + 1)) == ("cache", "align", 0, None, wanted, f"{2 * (3 * D + 1)} bytes")
    assert refused(kernel, strided(5 * D, window=D + 1)) == ("cache", "align", 1, None, wanted, f"{2 * (D + 1)} bytes")


@every_kernel
def test_a_base_between_two_words_is_refused(kernel: str) -> None:
    """S2d."""
    wanted = f"a multiple of {WIDTH[kernel]} bytes"
    assert refused(kernel, strided(3 * D, offset=1)) == ("cache", "align", None, None, wanted, "2 bytes past one")


@pytest.mark.parametrize("kernel", ["ar_fused_decode", "ar_fused_verify"])
def test_vectors_want_sixteen_bytes(kernel: str) -> None:
    assert refused(kernel, strided(3 * D + 4))[1:3] == ("align", 0)
    assert refused(kernel, strided(3 * D, offset=4))[1:3] == ("align", None)
    run(kernel, strided(3 * D + 8))


@every_kernel
def test_overlapping_slots_are_refused(kernel: str) -> None:
    """S2d."""
    least = f"a stride of at least {3 * D}"
    assert refused(kernel, strided(0)) == ("cache", "overlap", 0, None, least, "0")
    assert refused(kernel, strided(2 * D + 32)) == ("cache", "overlap", 0, None, least, str(2 * D + 32))
    assert refused(kernel, strided(3 * D, window=0))[1:3] == ("overlap", 1)


@every_kernel
def test_a_wrong_window_is_refused(kernel: str) -> None:
    """S2d."""
    assert refused(kernel, values(4, 5, D)) == ("cache", "shape", 1, "W-1", "1..4", "5")
    assert refused(kernel, values(4, 0, D)) == ("cache", "shape", 1, "W-1", "1..4", "0")


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("causal_conv1d", ("weight", "shape", 1, "W", "3", "4")),
        ("fused_decode_update", ("weight", "shape", 1, "W", "3", "4")),
        ("ar_fused_decode", ("weight", "shape", 1, "W", "3", "4")),
        ("ar_fused_verify", ("inter_out", "shape", 2, "W-1", "2", "3")),
        ("gather_scatter_sconv", ("rows", "shape", 1, "W-1", "2", "3")),
    ],
)
def test_a_window_of_another_width_is_refused(kernel: str, expected: tuple[object, ...]) -> None:
    assert refused(kernel, values(4, W - 2, D)) == expected


@every_kernel
@pytest.mark.parametrize("dtype", [torch.float16, torch.int16, torch.float32])
def test_another_type_is_refused(kernel: str, dtype: torch.dtype) -> None:
    """S2d."""
    name = str(dtype).removeprefix("torch.")
    assert refused(kernel, values(4, W - 1, D).to(dtype)) == ("cache", "dtype", None, None, "bfloat16", name)


@every_kernel
def test_another_device_is_refused(kernel: str) -> None:
    """S2d."""
    got = refused(kernel, torch.empty(4, W - 1, D, dtype=BF16, device="meta"))
    assert got == ("cache", "device", None, "device", "cpu", "device0")


@every_kernel
def test_another_rank_and_an_odd_width_are_refused(kernel: str) -> None:
    assert refused(kernel, values(4, 3 * D)) == ("cache", "rank", None, None, "3", "2")
    factor = 8 if WIDTH[kernel] == 16 else 2
    assert refused(kernel, values(4, 3, 63)) == ("cache", "shape", 2, "D", f"a multiple of {factor}", "63")


WRONG = [
    ("update_sconv_cache", "x", values(4, D + 2), ("shape", 1)),
    ("update_sconv_cache", "x", values(4, D).T.contiguous().T, ("stride", 1)),
    ("update_sconv_cache", "x", values(4, D + 1)[:, :D], ("align", 0)),
    ("update_sconv_cache", "x", values(4, D).float(), ("dtype", None)),
    ("update_sconv_cache", "has_state", i32(1, 1), ("dtype", None)),
    ("update_sconv_cache", "has_state", torch.tensor([True]), ("shape", 0)),
    ("update_sconv_cache", "has_state", torch.ones(4, dtype=torch.bool)[::2], ("stride", 0)),
    ("update_sconv_cache", "cache_indices", torch.tensor([1, 3]), ("dtype", None)),
    ("update_sconv_cache", "query_start", i32(0, 2), ("shape", 0)),
    ("update_sconv_cache", "error_word", i32(0), ("shape", 0)),
    ("causal_conv1d", "mask", torch.ones(1, 2, 1, dtype=torch.bool), ("rank", None)),
    ("causal_conv1d", "mask", torch.ones(3, 1, 1, dtype=torch.bool), ("shape", 0)),
    ("causal_conv1d", "slot", i32(1, 3), ("dtype", None)),
    ("causal_conv1d", "cu", torch.tensor([0, 4]), ("shape", 0)),
    ("causal_conv1d", "seq", i32(0, 0, 1), ("shape", 0)),
    ("causal_conv1d", "weight", values(W, D).T, ("stride", 1)),
    ("causal_conv1d", "y", values(4, D).expand(4, D).float(), ("dtype", None)),
    ("causal_conv1d", "y", values(1, D).expand(4, D), ("overlap", 0)),
    ("draft_extend_sconv", "hidden", values(6, D), ("shape", 0)),
    ("draft_extend_sconv", "draft", 3, ("shape", 0)),
    ("draft_extend_sconv", "accepted", torch.tensor([1, 2]), ("dtype", None)),
    ("draft_extend_sconv", "crossed", i32(1, 0), ("dtype", None)),
    ("draft_extend_sconv", "track_step", i32(1), ("shape", 0)),
    ("draft_extend_sconv", "track_slot", i32(0, 2), ("dtype", None)),
    ("fused_decode_update", "mask", i32(1, 1), ("dtype", None)),
    ("fused_decode_update", "weight", values(D + 2, W), ("shape", 0)),
    ("fused_decode_update", "track_mask", i32(1, 1), ("dtype", None)),
    ("fused_decode_update", "track_slot", i32(0, 2), ("dtype", None)),
    ("gather_scatter_sconv", "rows", torch.zeros(2, 3, dtype=torch.int64), ("dtype", None)),
    ("gather_scatter_sconv", "mask", torch.ones(2, dtype=torch.uint8), ("dtype", None)),
    ("gather_scatter_sconv", "dst", i32(1, 3), ("dtype", None)),
    ("ar_fused_decode", "shards", values(2, 2, 2 * D)[..., ::2], ("stride", 2)),
    ("ar_fused_decode", "shards", values(2, 3, D), ("shape", 0)),
    ("ar_fused_decode", "residual", values(2, D).float(), ("dtype", None)),
    ("ar_fused_decode", "residual_out", values(2, D + 4)[:, :D], ("align", 0)),
    ("ar_fused_decode", "norm_weight", values(2 * D)[::2], ("stride", 0)),
    ("ar_fused_verify", "inter_out", values(1, 2, W - 1, D), ("shape", 0)),
    ("ar_fused_verify", "inter_out", values(2, 2, W - 1, 2 * D)[..., ::2], ("stride", 3)),
    ("ar_fused_verify", "mask", i32(1, 1), ("dtype", None)),
]  # fmt: skip


@pytest.mark.parametrize(("kernel", "operand", "given", "expected"), WRONG)
def test_every_other_operand_is_matched_too(
    kernel: str, operand: str, given: object, expected: tuple[str, int | None]
) -> None:
    with pytest.raises(MatchError) as caught:
        run(kernel, values(4, W - 1, D), **{operand: given})
    assert (caught.value.kind, caught.value.dim) == expected


@pytest.mark.parametrize(
    ("kernel", "operand"),
    [(kernel, operand) for kernel in KERNELS for operand in operands(kernel) if operand in ("x", "hidden", "shards")],
)
def test_the_cache_shares_no_memory_with_what_it_is_made_of(kernel: str, operand: str) -> None:
    memory = values(8, W - 1, D)
    shape = operands(kernel)[operand].shape  # type: ignore[union-attr]
    given = memory.flatten()[: shape.numel()].reshape(shape)
    if kernel in ("causal_conv1d", "ar_fused_verify"):  # the state is only read
        run(kernel, memory, **{operand: given})
    else:
        assert refused(kernel, memory, **{operand: given})[:2] == ("cache", "overlap")


@pytest.mark.parametrize(
    ("kernel", "operand"),
    [(k, o) for k in KERNELS for o in operands(k) if o in ("y", "residual_out", "hs_out", "inter_out")],
)
def test_the_cache_shares_no_memory_with_what_is_written(kernel: str, operand: str) -> None:
    memory = values(8, W - 1, D)
    shape = operands(kernel)[operand].shape  # type: ignore[union-attr]
    given = memory.flatten()[: shape.numel()].reshape(shape)
    assert refused(kernel, memory, **{operand: given})[1] == "overlap"


def test_a_prefill_is_not_written_in_place() -> None:
    x = values(4, D)
    assert refused("causal_conv1d", values(4, W - 1, D), x=x, y=x)[:2] == ("y", "overlap")


@pytest.mark.parametrize(
    ("kernel", "changed"),
    [
        ("update_sconv_cache", {"cache_indices": torch.zeros(65536, dtype=torch.int32)}),
        ("draft_extend_sconv", {"cache_indices": torch.zeros(65536, dtype=torch.int32)}),
        ("gather_scatter_sconv", {"rows": torch.zeros(65536, 3, dtype=torch.int32)}),
        ("causal_conv1d", {"x": values(1, D).expand(65536, D)}),
        ("fused_decode_update", {"x": values(1, D).expand(65536, D)}),
        ("ar_fused_decode", {"shards": values(1, 1, D).expand(1, 65536, D)}),
    ],
)
def test_more_rows_than_a_grid_has_are_refused(kernel: str, changed: dict[str, torch.Tensor]) -> None:
    _, kind, _, _, expected, got = refused(kernel, values(4, W - 1, D), **changed)
    assert (kind, expected, got) == ("shape", "at most 65535", "65536")


@every_kernel
def test_none_and_lists_are_no_tensors(kernel: str) -> None:
    with pytest.raises(TypeError, match="a conv state is a tensor, not NoneType"):
        run(kernel, None)
    name = next(name for name in operands(kernel) if name in ("cache_indices", "slot", "dst"))
    with pytest.raises(ValueError, match=f"{name} is missing"):
        run(kernel, values(4, W - 1, D), **{name: None})
    with pytest.raises(TypeError, match="a kernel takes tensors, not list"):
        run(kernel, values(4, W - 1, D), **{name: [1, 3]})


@pytest.mark.skipif(
    not torch.cuda.is_available() or shutil.which("nvcc") is None, reason="needs a CUDA device, its torch and nvcc"
)
@every_kernel
def test_the_device_gives_what_the_host_gives(kernel: str) -> None:
    env, given = values(4, 2, W - 1, D), operands(kernel)
    on_device = env.cuda()
    moved = {name: value.cuda() if isinstance(value, torch.Tensor) else value for name, value in given.items()}
    KERNELS[kernel](cache=env[:, 1], **given)
    KERNELS[kernel](cache=on_device[:, 1], **moved)
    assert torch.equal(on_device.cpu(), env)
    for name, value in given.items():
        assert not isinstance(value, torch.Tensor) or torch.equal(moved[name].cpu(), value), name
    with pytest.raises(MatchError, match="device"):
        KERNELS[kernel](cache=env[:, 1], **moved)
