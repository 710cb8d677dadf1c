"""The library before the CUDA runtime, in front of the stub runtime: it counts what it hands on."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nosync_lint.guard import listener
from nosync_lint.guard.stub.build import compile_runtime, link_runtime
from nosync_lint.guard.stub.errors import StubError

SONAME = "libcudart.so.99"
PROGRAM = """
import ctypes, json, sys
from nosync_lint.guard.stub.recorder import Recorder, Runtime
before, behind = Runtime(sys.argv[1]), Runtime(sys.argv[2])
calls = ctypes.CDLL(sys.argv[1])
device, host = ctypes.c_void_p(), (ctypes.c_char * 8)(*b"12345678")
ctypes.CDLL(sys.argv[2]).cudaMalloc(ctypes.byref(device), ctypes.c_size_t(8))
codes = [calls.cudaMemcpy(device, host, ctypes.c_size_t(8), 1), calls.cudaStreamSynchronize(None), calls.cudaDeviceSynchronize()]
back = (ctypes.c_char * 8)()
codes.append(calls.cudaMemcpy(back, device, ctypes.c_size_t(8), 2))
print(json.dumps([codes, back.raw.decode(), Recorder(before).waits, Recorder(behind).waits, [c.name for c in Recorder(before).calls()]]))
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    if shutil.which("gcc") is None or sys.platform != "linux":
        pytest.skip("needs gcc on Linux")
    folder = tmp_path_factory.mktemp("libraries")
    listener.build(SONAME, folder / "listener")
    link_runtime(compile_runtime(folder, None), folder / "runtime.so", SONAME)
    return folder / "listener" / "nosync_listener.so", folder / "runtime.so"


def test_what_it_hands_on_is_done_and_counted(libraries: tuple[Path, Path]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, libraries)], capture_output=True, text=True, timeout=60, check=True
    )
    codes, back, before, behind, names = json.loads(done.stdout)
    assert (codes, back) == ([0] * 4, "12345678")
    assert before == behind == 4
    assert names == ["cudaMemcpy", "cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaMemcpy"]


def test_it_is_not_taken_for_the_runtime(libraries: tuple[Path, Path]) -> None:
    """Its name is its own, so torch goes on to load the real one."""
    read = subprocess.run(["readelf", "-d", str(libraries[0])], capture_output=True, text=True, check=True).stdout
    assert "nosync_listener.so" in read
    assert SONAME not in read


def test_without_a_runtime_behind_it_says_so(libraries: tuple[Path, Path]) -> None:
    program = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).cudaDeviceSynchronize()"
    done = subprocess.run(
        [sys.executable, "-c", program, str(libraries[0])], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode < 0
    assert f"nosync-lint listener: no cudaDeviceSynchronize: {SONAME}" in done.stderr


def test_it_comes_before_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", ctypes)
    with pytest.raises(StubError, match="torch is imported already"):
        listener.load()


def test_a_build_of_torch_without_cuda_is_refused(tmp_path: Path) -> None:
    """By pytest as well, in one line."""
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "version.py").write_text("__version__ = '2.13.0+cpu'\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-o", "nosync_backend=cuda", "--co", "-q"],
        capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 4
    assert "nosync_backend=cuda: torch 2.13.0+cpu" in done.stderr
    assert "install a CUDA build" in done.stderr
