"""The kernels called through tvm-ffi leave the same bits and raise the same errors as through ctypes."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from benchmarks.allocator.conv_operands import ALL, COPIES_AND_CONVOLUTIONS, kernels
from reference_allocator import abi, build, ffi, sconv
from reference_allocator.abi import MatchError
from tests.reference_allocator.conftest import bits

pytestmark = pytest.mark.host("passes addresses of host memory to code compiled for the host")

installed = pytest.mark.skipif(importlib.util.find_spec("tvm_ffi") is None, reason="the extra tvm-ffi is not installed")
Via = Callable[..., None]


def test_without_the_extra_it_is_an_import_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tvm_ffi", None)
    with pytest.raises(ImportError, match="tvm_ffi"):
        ffi.recipe("cpu", (0, 0))


def test_a_state_that_is_no_tensor_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="a conv state is a tensor, not list"):
        ffi.call("nosync_update_sconv_cache", [])  # type: ignore[arg-type]


@installed
@pytest.mark.parametrize(("history", "channels"), [(1, 8), (3, 64), (3, 130), (4, 520)])
def test_every_kernel_leaves_the_same_bits(history: int, channels: int, state: Any) -> None:
    names = ALL if channels % 8 == 0 else COPIES_AND_CONVOLUTIONS
    ours, theirs = state(5, history, channels), state(5, history, channels)
    for one, other in zip(*(kernels(each.view, names).values() for each in (ours, theirs)), strict=True):
        one.run()
        partial(other.run, via=ffi.call)()
        assert torch.equal(bits(ours.whole), bits(theirs.whole)), one.name
        assert all(torch.equal(bits(a), bits(b)) for a, b in zip(one.written, other.written, strict=True)), one.name


@installed
def test_optional_operands_and_the_error_word_arrive() -> None:
    found = []
    for via in (abi.call, ffi.call):
        cache, error = torch.ones(4, 3, 8, dtype=torch.bfloat16), torch.zeros(8, dtype=torch.int32)
        x, y = (torch.full((2, 8), 2.0, dtype=torch.bfloat16) for _ in range(2))
        sconv.fused_decode_update(
            x, cache, torch.tensor([1, 9], dtype=torch.int32), torch.tensor([True, True]),
            torch.ones(8, 4, dtype=torch.bfloat16), y, silu=False, add_x=True, track_mask=torch.tensor([True, False]),
            track_slot=torch.tensor([3, -1]), error_word=error, via=via,
        )  # fmt: skip
        found.append((cache, y, error))
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)
    cache, y, error = found[1]
    assert torch.equal(cache[1], cache[3])
    assert error.any()  # the second slot is outside of the state
    assert y[0, 0] == 1 + 1 + 1 + 2 + 2


def wrong(via: Via, **changed: Any) -> Exception:
    """What the update raises with some of its operands replaced."""
    given: dict[str, Any] = {
        "x": torch.zeros(2, 16, dtype=torch.bfloat16),
        "cache": torch.zeros(3, 3, 16, dtype=torch.bfloat16),
        "cache_indices": torch.zeros(1, dtype=torch.int32),
        "has_state": torch.ones(1, dtype=torch.bool),
        "query_start": torch.tensor([0, 2], dtype=torch.int32),
    }
    with pytest.raises((ValueError, TypeError)) as caught:
        sconv.update_sconv_cache(**{**given, **changed}, via=via)
    return caught.value


CHANNELS_APART = torch.zeros(3, 3, 32, dtype=torch.bfloat16)[..., ::2]
ODD = torch.zeros(3 * 49, dtype=torch.bfloat16).as_strided((3, 3, 16), (49, 16, 1))


@installed
@pytest.mark.parametrize(
    ("operand", "value", "kind"),
    [
        ("cache", CHANNELS_APART, "stride"),
        ("cache", ODD, "align"),
        ("cache", torch.zeros(3, 3, dtype=torch.bfloat16), "rank"),
        ("x", torch.zeros(2, 16), "dtype"),
        ("x", torch.zeros(2, 14, dtype=torch.bfloat16), "shape"),
        ("has_state", torch.ones(1, dtype=torch.int32), "dtype"),
        ("query_start", torch.zeros(4, dtype=torch.int32), "shape"),
    ],
)
def test_a_mismatch_is_told_with_the_same_fields(operand: str, value: torch.Tensor, kind: str) -> None:
    ours, theirs = wrong(abi.call, **{operand: value}), wrong(ffi.call, **{operand: value})
    assert isinstance(theirs, MatchError)
    assert theirs.kind == kind
    assert (vars(theirs), str(theirs)) == (vars(ours), str(ours))


@installed
def test_operands_that_are_missing_or_do_not_go_together_are_the_same_error() -> None:
    ours, theirs = wrong(abi.call, x=None), wrong(ffi.call, x=None)
    assert (type(theirs), str(theirs)) == (type(ours), str(ours)) == (ValueError, "x is missing")


@installed
def test_what_is_no_tensor_is_a_type_error() -> None:
    assert isinstance(wrong(ffi.call, x="rows"), TypeError)


@installed
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_the_device_library_refuses_host_memory() -> None:
    update = ffi.load("cuda", (9, 0))["nosync_update_sconv_cache"]
    cache, x = torch.zeros(2, 3, 64, dtype=torch.bfloat16), torch.zeros(1, 64, dtype=torch.bfloat16)
    index, flag = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.bool)
    outcome, _, kind, name, _, expected, got, _ = update(x, cache, index, flag, torch.zeros(2).int(), None)
    assert (outcome, kind, name, expected, got) == (abi.MISMATCH, "device", "cache", "cuda", "cpu")


@installed
def test_another_version_is_another_library() -> None:
    version = importlib.import_module("tvm_ffi").__version__
    assert any(version.replace(".", "_") in flag for flag in ffi.recipe("cpu", (0, 0)).flags)
    assert ffi.recipe("cpu", (0, 0)).source.parent == build.KERNELS
