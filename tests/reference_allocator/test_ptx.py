"""The device code moves its words as wide as it should: counted in PTX, where nvcc is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from reference_allocator.build import CUDA_FLAGS, INCLUDE, KERNELS

pytestmark = [
    pytest.mark.host("reads what a compiler makes of the kernels"),
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed"),
]

TARGETS = ("sm_80", "sm_90", "sm_100")
HISTORIES = (1, 2, 3, 4)
_ACCESS = re.compile(r"\b((?:ld|st)\.(?!param|shared)\S+)\s")
_TYPE = re.compile(r"\.[busf](\d+)$")


@pytest.fixture(scope="module", params=TARGETS)
def ptx(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    output = tmp_path_factory.mktemp("ptx") / f"{request.param}.ptx"
    command = ["nvcc", *CUDA_FLAGS, "-ptx", f"-arch={request.param}", f"-I{INCLUDE}", str(KERNELS / "dev.cu")]
    subprocess.run([*command, "-o", str(output)], check=True, timeout=120)
    return Path(output).read_text()


def kernels(ptx: str) -> dict[str, str]:
    """The body of each kernel instance, by its mangled name."""
    found = re.findall(r"\.entry\s+(\w+)\(.*?\n\)(.*?)\n}\n", ptx, re.DOTALL)
    assert len(found) == 7 * len(HISTORIES)
    return dict(found)


def instance(ptx: str, kernel: str, history: int, verify: str = "") -> Counter[str]:
    """Loads and stores of one instance as `ld.global.4`, `st.global.v4.4`: space, vector and bytes of an element."""
    mangled = f"{len(kernel)}{kernel}ILi{history}E{verify}"
    (body,) = [text for name, text in kernels(ptx).items() if mangled in name]
    return Counter(
        _TYPE.sub(lambda match: f".{int(match[1]) // 8}", access) for access in _ACCESS.findall(body)
    )  # fmt: skip


def stores(found: Counter[str]) -> dict[str, int]:
    return {access: count for access, count in found.items() if access.startswith("st.")}


@pytest.mark.parametrize("history", HISTORIES)
def test_copies_store_one_word_a_row(ptx: str, history: int) -> None:
    assert stores(instance(ptx, "update_sconv_cache_kernel", history)) == {"st.global.4": history}
    assert stores(instance(ptx, "gather_scatter_sconv_kernel", history)) == {"st.global.4": history}
    assert stores(instance(ptx, "draft_extend_sconv_kernel", history)) == {"st.global.4": 2 * history}


@pytest.mark.parametrize("history", HISTORIES)
def test_convolutions_store_words_and_load_only_weights_by_halves(ptx: str, history: int) -> None:
    prefill = instance(ptx, "causal_conv1d_kernel", history)
    assert stores(prefill) == {"st.global.4": 1}
    assert prefill["ld.global.2"] == 2 * (history + 1)
    decode = instance(ptx, "fused_decode_update_kernel", history)
    assert stores(decode) == {"st.global.4": 1 + 2 * history}
    assert decode["ld.global.2"] == 2 * (history + 1)


@pytest.mark.parametrize("history", HISTORIES)
def test_all_reduce_kernels_move_sixteen_bytes(ptx: str, history: int) -> None:
    decode = instance(ptx, "ar_fused_kernel", history, "Lb0E")
    assert stores(decode) == {"st.global.v4.4": 2 + 2 * history}
    assert decode["ld.global.v4.4"] >= history + 3  # the state, a shard, the residual, the weight of the norm
    assert decode["ld.global.2"] == 8 * (history + 1)
    verify = instance(ptx, "ar_fused_kernel", history, "Lb1E")
    assert stores(verify) == {"st.global.v4.4": 2 + history}
    assert verify["ld.global.2"] == 8 * (history + 1)


def test_nothing_spills_or_goes_through_generic_addresses(ptx: str) -> None:
    for name, body in kernels(ptx).items():
        spaces = {access.split(".")[1] for access in _ACCESS.findall(body)}
        assert spaces == {"global"}, name


def test_no_instruction_is_an_approximation(ptx: str) -> None:
    assert re.findall(r"\b\w+\.approx\S*", ptx) == []


def test_sums_and_products_are_contracted_only_where_written(ptx: str) -> None:
    for name, body in kernels(ptx).items():
        copies = "conv1d" not in name and "decode" not in name and "ar_fused" not in name
        assert (len(re.findall(r"\bfma\.", body)) == 0) == copies, name
        assert re.findall(r"\b(?:mul|add|sub)\.f32", body) == [], name  # without .rn they may be contracted
