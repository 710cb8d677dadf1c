"""The table kernels as compiled code: no warnings, every target, words as wide as they should be, launches counted."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from reference_allocator import build
from reference_allocator.abi import LaunchError
from reference_allocator.table_kernels import LARGEST_TEAM, TableKernels, load_tables

pytestmark = pytest.mark.host("loads libraries, and reads what a compiler makes of them")

TARGETS = ("sm_80", "sm_90", "sm_100")
KERNELS = (
    "free_unbind", "hand_out", "extend", "decode", "translate", "rebind_look", "rebind", "pack_plan", "pack_commit",
    "copy_pages", "zero_pages", "shift_pages", "report_bound",
)  # fmt: skip
_ACCESS = re.compile(r"\b((?:ld|st)\.(?!param|shared)\S+)\s")


def test_the_host_library_has_no_warnings() -> None:
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Wno-unknown-pragmas", "-Werror", "-fsyntax-only"]
    command = ["g++", *flags, f"-I{build.INCLUDE}", str(build.KERNELS / "tables.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_a_device_has_one_library() -> None:
    assert load_tables("cpu", None) is load_tables("cpu", None)


def test_teams_are_as_large_as_the_shared_cells() -> None:
    header = (build.INCLUDE / "nosync" / "pages.h").read_text()
    assert re.findall(r"LARGEST_TEAM = (\d+);", header) == [str(LARGEST_TEAM)]


def test_a_launch_that_the_device_refuses_is_an_error() -> None:
    kernels = TableKernels(torch.device("cpu"))
    kernels._entries["zero_pages"] = lambda *_: 1
    with pytest.raises(LaunchError, match="zero_pages: unknown error"):
        kernels.launch("zero_pages", None, 0, None, 0, 0, 0)


@pytest.fixture(scope="module", params=TARGETS)
def ptx(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The body of each kernel, by name."""
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not installed")
    output = tmp_path_factory.mktemp("ptx") / f"tables.{request.param}.ptx"
    source = str(build.KERNELS / "tables.cu")
    command = ["nvcc", *build.CUDA_FLAGS, "-ptx", f"-arch={request.param}", f"-I{build.INCLUDE}", source]
    subprocess.run([*command, "-o", str(output)], check=True, timeout=120)
    found = re.findall(r"\.entry\s+(\w+)\(.*?\n\)(.*?)\n}\n", Path(output).read_text(), re.DOTALL)
    named = {re.sub(r"_ZN6nosync\d+(\w+)_kernel.*", r"\1", name): body for name, body in found}
    assert sorted(named) == sorted(KERNELS)
    return named


def test_pages_move_in_sixteen_bytes(ptx: dict[str, str]) -> None:
    """Four loads are under way before the first store, however often the loop is unrolled."""
    for name, rows in (("copy_pages", set()), ("zero_pages", set()), ("shift_pages", {"st.global.u64"})):
        stores = {access for access in _ACCESS.findall(ptx[name]) if access.startswith("st.")}
        assert stores == {"st.global.v4.u32"} | rows, name
    for name in ("copy_pages", "shift_pages"):
        moved = "".join(access[0] for access in _ACCESS.findall(ptx[name]) if ".v4.u32" in access)
        assert re.fullmatch("(l{4}s{4})+", moved), name


def test_tables_are_read_and_written_in_whole_ids(ptx: dict[str, str]) -> None:
    for name in KERNELS:
        narrow = {access for access in _ACCESS.findall(ptx[name]) if not access.endswith(("64", ".v4.u32"))}
        assert narrow == set(), name
    assert "atom.global.exch.b64" in ptx["free_unbind"]
    assert "atom.global.min.s64" in ptx["free_unbind"]


def test_nothing_spills_or_goes_through_generic_addresses(ptx: dict[str, str]) -> None:
    for name in KERNELS:
        assert {access.split(".")[1] for access in _ACCESS.findall(ptx[name])} == {"global"}, name


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_the_device_library_has_every_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """It loads where there is no device; to launch takes one."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    assert TableKernels(torch.device("cuda", 0)).threads == LARGEST_TEAM
