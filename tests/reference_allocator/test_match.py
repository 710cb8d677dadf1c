"""What the matcher admits, what it refuses, and how it says so."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from reference_allocator.abi import DONE, Failure, MatchError, View, describe, failure_error
from reference_allocator.build import Recipe, build, host_recipe

pytestmark = pytest.mark.host("the matcher is C++ over records of tensors that a test makes up")

Probe = Callable[..., None]
CUDA = 2


@pytest.fixture(scope="session")
def library(kernel_cache: Path) -> ctypes.CDLL:
    host = host_recipe()
    return ctypes.CDLL(str(build(Recipe(host.compiler, host.flags, Path(__file__).with_name("match_probe.cpp")))))


@pytest.fixture
def probe(library: ctypes.CDLL) -> Probe:
    """Runs a chain of match_probe.cpp on views; raises what the chain throws."""

    def run(chain: str, a: View, b: View | None = None) -> None:
        failure = Failure()
        other = None if b is None else ctypes.byref(b)
        outcome = library.probe(ctypes.byref(failure), chain.encode(), ctypes.byref(a), other)
        if outcome != DONE:
            raise failure_error(outcome, failure)

    return run


def view(
    shape: Sequence[int], strides: Sequence[int] | None = None, *, dtype: tuple[int, int] = (4, 16),
    device: tuple[int, int] = (1, 0), address: int = 4096, byte_offset: int = 0,
) -> View:  # fmt: skip
    """A tensor that exists in name only: matching reads no memory."""
    extents = ctypes.c_int64 * len(shape)
    steps = None if strides is None else extents(*strides)
    return View(address, len(shape), extents(*shape), steps, *dtype, 1, *device, byte_offset)


def refused(probe: Probe, chain: str, a: View, b: View | None = None) -> tuple[Any, ...]:
    """Kind, dimension, symbol, expected and got of the refusal."""
    with pytest.raises(MatchError) as caught:
        probe(chain, a, b)
    error = caught.value
    return error.kind, error.dim, error.symbol, error.expected, error.got


def test_without_a_stride_list_the_tensor_must_be_contiguous(probe: Probe) -> None:
    probe("contiguous", view((2, 3, 4), (12, 4, 1)))
    assert refused(probe, "contiguous", view((2, 3, 4), (24, 4, 1))) == ("stride", 0, None, "12", "24")
    assert refused(probe, "contiguous", view((2, 3, 4), (12, 1, 3))) == ("stride", 2, None, "1", "3")


def test_no_strides_at_all_mean_row_major(probe: Probe) -> None:
    probe("contiguous", view((2, 3, 4)))
    probe("literals", view((2, 3, 4)))
    assert refused(probe, "shared stride", view((2, 3, 4)), view((2, 6))) == ("stride", 0, "step", "12", "6")


def test_the_stride_of_an_extent_of_one_or_none_is_not_compared(probe: Probe) -> None:
    probe("contiguous", view((1, 3, 4), (7, 4, 1)))
    probe("contiguous", view((0, 3, 4), (7, 9, 5)))
    probe("dense rows", view((2, 1, 4), (4, 9, 1)))
    probe("dense rows", view((2, 3, 1), (12, 4, 9)))
    assert refused(probe, "dense rows", view((2, 2, 4), (8, 9, 1))) == ("stride", 1, None, "4", "9")
    probe("aligned", view((1, 3, 4), (7, 4, 1)))
    probe("no overlap", view((1, 3, 4), (0, 4, 1)))


def test_an_extent_of_one_still_binds_a_stride(probe: Probe) -> None:
    probe("shared stride", view((1, 3, 4), (8, 4, 1)), view((5, 6), (8, 1)))
    assert refused(probe, "shared stride", view((1, 3, 4), (8, 4, 1)), view((5, 6), (6, 1)))[1:4] == (0, "step", "8")


def test_literals_and_rank_are_compared(probe: Probe) -> None:
    assert refused(probe, "literals", view((2, 5, 4))) == ("shape", 1, None, "3", "5")
    assert refused(probe, "literals", view((2, 3, 4), (12, 6, 1))) == ("stride", 1, None, "4", "6")
    assert refused(probe, "literals", view((3, 4))) == ("rank", None, None, "3", "2")
    assert refused(probe, "short stride list", view((2, 3, 4))) == ("rank", None, None, "3 strides", "2")


def test_a_size_binds_at_first_sight_and_is_compared_afterwards(probe: Probe) -> None:
    probe("shared size", view((5, 3, 4)), view((2, 5)))
    assert refused(probe, "shared size", view((5, 3, 4)), view((5, 2))) == ("shape", 1, "N", "5", "2")
    assert refused(probe, "preset size", view((4, 3, 4))) == ("shape", 0, "N", "5", "4")
    assert refused(probe, "bounded sizes", view((5, 3, 4))) == ("shape", 0, "N", "1..4", "5")
    assert refused(probe, "bounded sizes", view((0, 3, 4))) == ("shape", 0, "N", "1..4", "0")
    assert refused(probe, "bounded sizes", view((4, 3, 5))) == ("shape", 2, "D", "a multiple of 2", "5")


def test_types_are_a_set_or_bound_at_first_sight(probe: Probe) -> None:
    probe("two types", view((2, 3, 4), dtype=(4, 16)))
    probe("two types", view((2, 3, 4), dtype=(2, 32)))
    assert refused(probe, "two types", view((2, 3, 4), dtype=(2, 16))) == (
        "dtype", None, None, "bfloat16 or float32", "float16",
    )  # fmt: skip
    probe("shared type", view((2, 3, 4), dtype=(0, 64)), view((2, 3), dtype=(0, 64)))
    assert refused(probe, "shared type", view((2, 3, 4), dtype=(0, 64)), view((2, 3), dtype=(0, 32))) == (
        "dtype", None, "T", "int64", "int32",
    )  # fmt: skip


def test_bool_is_a_type_of_its_own(probe: Probe) -> None:
    probe("boolean", view((2, 3, 4), dtype=(6, 8)))
    for other, name in (((1, 8), "uint8"), ((0, 8), "int8"), ((0, 32), "int32"), ((255, 0), "type255_0")):
        assert refused(probe, "boolean", view((2, 3, 4), dtype=other))[3:] == ("bool", name)


def test_attaching_a_device_never_widens_its_restriction(probe: Probe) -> None:
    probe("restricted device", view((2, 3, 4), device=(CUDA, 3)))
    assert refused(probe, "restricted device", view((2, 3, 4))) == ("device", None, "device", "cuda", "cpu")


def test_a_list_of_devices_intersects(probe: Probe) -> None:
    probe("narrowed device", view((2, 3, 4), device=(CUDA, 0)))
    assert refused(probe, "narrowed device", view((2, 3, 4)))[3:] == ("cuda", "cpu")
    assert refused(probe, "impossible device", view((2, 3, 4)))[3:] == ("no device", "cpu")
    assert refused(probe, "impossible device", view((2, 3, 4), device=(CUDA, 0)))[3:] == ("no device", "cuda:0")
    probe("second device only", view((2, 3, 4), device=(CUDA, 1)))
    assert refused(probe, "second device only", view((2, 3, 4), device=(CUDA, 0)))[3:] == ("cuda:1", "cuda:0")


def test_operands_share_one_device(probe: Probe) -> None:
    probe("shared device", view((2, 3, 4), device=(CUDA, 1)), view((2, 3), device=(CUDA, 1)))
    got = refused(probe, "shared device", view((2, 3, 4), device=(CUDA, 1)), view((2, 3), device=(CUDA, 0)))
    assert got == ("device", None, "device", "cuda:1", "cuda:0")


def test_alignment_covers_the_address_and_all_strides_but_the_last(probe: Probe) -> None:
    probe("aligned", view((2, 3, 4), (16, 4, 1)))
    probe("aligned", view((2, 3, 4), (16, 4, 7)))  # the last one is the body's business
    probe("aligned", view((2, 3, 4), address=4090, byte_offset=6))
    expected = "a multiple of 8 bytes"
    assert refused(probe, "aligned", view((2, 3, 4), address=4098)) == (
        "align",
        None,
        None,
        expected,
        "2 bytes past one",
    )
    assert refused(probe, "aligned", view((2, 3, 4), byte_offset=2))[3:] == (expected, "2 bytes past one")
    assert refused(probe, "aligned", view((2, 3, 4), (17, 4, 1))) == ("align", 0, None, expected, "34 bytes")
    assert refused(probe, "aligned", view((2, 3, 4), (24, 6, 1))) == ("align", 1, None, expected, "12 bytes")


def test_a_null_address_is_taken_for_an_empty_tensor_only(probe: Probe) -> None:
    probe("everything", view((0, 3, 4), address=0))
    assert refused(probe, "aligned", view((2, 3, 4), address=0)) == ("align", None, None, "an address", "null")


def test_elements_of_one_tensor_must_not_overlap(probe: Probe) -> None:
    probe("no overlap", view((5, 3, 4), (12, 4, 1)))
    probe("no overlap", view((5, 3, 4), (4, 20, 1)))  # rows outside slots, yet apart
    probe("no overlap", view((5, 3, 4), (40, 12, 3)))
    least = "a stride of at least "
    assert refused(probe, "no overlap", view((5, 3, 4), (11, 4, 1))) == ("overlap", 0, None, least + "12", "11")
    assert refused(probe, "no overlap", view((5, 3, 4), (0, 4, 1))) == ("overlap", 0, None, least + "12", "0")
    assert refused(probe, "no overlap", view((5, 3, 4), (12, 3, 1)))[:3] == ("overlap", 1, None)


def test_a_row_of_blocks_ends_where_the_grid_does(probe: Probe) -> None:
    probe("grid", view((65535, 1, 1)))
    assert refused(probe, "grid", view((65536, 1, 1))) == ("shape", 0, None, "at most 65535", "65536")


def test_memory_of_two_operands_is_apart(probe: Probe, library: ctypes.CDLL) -> None:
    a = view((2, 3, 4), address=4096)  # 48 bytes
    probe("apart", a, view((2, 3), address=4096 + 48))
    probe("apart", a, view((2, 3), address=4096 - 12))
    probe("apart", a, view((0, 3), address=4096))
    for address in (4096, 4096 + 46, 4096 - 10):
        kind, dim, symbol, expected, got = refused(probe, "apart", a, view((2, 3), address=address))
        assert (kind, dim, symbol, expected) == ("overlap", None, None, "memory apart from b")
        assert got == "bfloat16[2,3]{3,1}@cpu"
    interleaved = view((2, 4), (8, 1), address=4096 + 8)
    assert not library.apart(
        ctypes.byref(view((2, 4), (8, 1))), ctypes.byref(interleaved)
    )  # by intervals, not elements
    reversed_rows = view((2, 4), (-4, 1), address=4096 + 48 + 8)
    assert library.apart(ctypes.byref(a), ctypes.byref(reversed_rows))
    assert not library.apart(ctypes.byref(a), ctypes.byref(view((3, 4), (-4, 1), address=4096 + 48 + 8)))


def test_the_very_same_elements_may_be_written_in_place(probe: Probe) -> None:
    a = view((2, 3, 4))
    probe("same or apart", a, view((2, 3, 4), (12, 4, 1)))
    probe("same or apart", a, view((2, 3, 4), address=8192))
    assert refused(probe, "same or apart", a, view((2, 3, 4), address=4098))[0] == "overlap"
    assert refused(probe, "same or apart", a, view((2, 3, 4), (12, 4, 2)))[0] == "overlap"


ORDER = ["rank", "shape", "stride", "dtype", "device", "align", "overlap"]


@pytest.mark.parametrize("first", ORDER)
def test_the_first_failure_in_order_is_told(probe: Probe, first: str) -> None:
    """A tensor that is wrong in this respect and in all later ones."""
    wrong = ORDER[ORDER.index(first) :]
    strides = [12, 4, 1]
    if "overlap" in wrong:
        strides[0] = 8
    if "align" in wrong:
        strides[1] = 5
    if "stride" in wrong:
        strides[2] = 3
    shape = (2, 5, 4) if "shape" in wrong else (2, 3, 4)
    dtype, device = ((2, 32), (CUDA, 0)) if "dtype" in wrong else ((4, 16), (CUDA, 0) if "device" in wrong else (1, 0))
    a = view(shape, strides, dtype=dtype, device=device)
    if "rank" in wrong:
        a = view(shape[:2], strides[:2], dtype=dtype, device=device)
    assert refused(probe, "everything", a, a)[0] == first


def test_the_text_names_the_tensor_and_the_place(probe: Probe) -> None:
    with pytest.raises(MatchError) as caught:
        probe("shared size", view((5, 3, 4)), view((5, 2), (9, 1), dtype=(0, 64), device=(CUDA, 1)))
    text = str(caught.value)
    head, _, place = text.rpartition(" (")
    assert head == "match(b): shape#1('N'): expected 5, got 2; tensor int64[5,2]{9,1}@cuda:1"
    name, _, line = place.removesuffix(")").partition(":")
    row = int(line)
    assert name == "match_probe.cpp"
    assert 'Match(b, "b")' in Path(__file__).with_name(name).read_text().splitlines()[row - 1]
    assert caught.value.name == "b"


def test_a_torch_tensor_is_described_as_it_is() -> None:
    tensor = torch.zeros(4, 6, dtype=torch.bfloat16)[1:, ::2]
    record = describe(tensor)
    assert record.data == tensor.data_ptr()
    assert (record.ndim, record.shape[:2], record.strides[:2]) == (2, [3, 3], [6, 2])
    assert (record.code, record.bits, record.lanes, record.device_type) == (4, 16, 1, 1)
    with pytest.raises(TypeError, match="a kernel takes tensors, not list"):
        describe([1.0])  # type: ignore[arg-type]
