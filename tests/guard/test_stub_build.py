"""What is built for a torch and how it is loaded: on a stand-in for torch's CUDA build, and on a real one if it is here."""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nosync_lint.guard import stub
from nosync_lint.guard.stub import StubError, __main__, build
from nosync_lint.guard.stub.answers import Answers
from nosync_lint.guard.stub.release import release_of

ROOT = Path(__file__).resolve().parent.parent.parent
needs_gcc = pytest.mark.skipif(
    not (shutil.which("gcc") and shutil.which("readelf")), reason="gcc or binutils is missing, which the build needs"
)
VERSION = "__version__ = '2.99.0+cu130'\ncuda: Optional[str] = '13.0'\ngit_version = '0123456789abcdef'\n"
METADATA = "Requires-Dist: nvidia-cudnn-cu13==9.20.1.48; platform_system == 'Linux'\n"
TYPES = """
enum cudaDeviceAttr { %s };
enum { cudaDriverEntryPointSuccess };
struct cudaDeviceProp {
    char name[256]; size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor, memPitch;
    size_t totalConstMem, textureAlignment;
    int regsPerBlock, regsPerMultiprocessor, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], major, minor;
    int multiProcessorCount, l2CacheSize, maxThreadsPerMultiProcessor, maxBlocksPerMultiProcessor, unifiedAddressing;
    int canMapHostMemory, concurrentKernels, cooperativeLaunch;
};
struct cudaFuncAttributes { int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion; };
"""
LIBTORCH = """
extern int cudaMalloc(), cudaDeviceSynchronize(), cudaOfALaterRelease(), cublasCreate_v2(), cudnnGetVersion();
extern int cudnnGetProperty(), cuGetErrorString();
int allocate(void **p) { return cudaMalloc(p, 8); }
int wait(void) { return cudaDeviceSynchronize(); }
int later(void) { return cudaOfALaterRelease(); }
int create(void **handle) { return cublasCreate_v2(handle); }
int cudnn(void) { return cudnnGetVersion(); }
int property(int which) { int value = -1; cudnnGetProperty(which, &value); return value; }
const char *said(void) { const char *text; cuGetErrorString(1, &text); return text; }
"""
PROVIDED = {
    "libcudart.so.13": ("cudaMalloc", "cudaDeviceSynchronize", "cudaOfALaterRelease"),
    "libcublas.so.13": ("cublasCreate_v2",),
    "libcudnn.so.9": ("cudnnGetVersion", "cudnnGetProperty"),
    "libcuda.so.1": ("cuGetErrorString",),
}
UNVERSIONED = "libcuda.so.1"


def linked(folder: Path, name: str, text: str, *options: str) -> None:
    source = folder / f"{name}.c"
    source.write_text(text)
    command = ["gcc", "-w", "-shared", "-fPIC", str(source), "-o", str(folder / name), f"-Wl,-soname,{name}", *options]
    subprocess.run(command, check=True)
    source.unlink()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to import from, with a package that asks for CUDA as torch does, and the headers of a runtime."""
    site = tmp_path_factory.mktemp("site")
    folder, headers, provided = site / "torch" / "lib", site / "nvidia" / "cu13" / "include", site / "provided"
    for one in (folder, headers, provided, site / "torch-2.99.0.dist-info"):
        one.mkdir(parents=True)
    (site / "torch" / "__init__.py").write_text("cuda_is_here = True\n")
    (site / "torch" / "version.py").write_text(VERSION)
    (site / "torch-2.99.0.dist-info" / "METADATA").write_text(METADATA)
    (headers / "cuda_runtime_api.h").write_text("#define CUDART_VERSION  13000\n")
    device = (build.SOURCES / build.DEVICE_SOURCE).read_text()
    words = sorted({word.strip(":") for word in device.split() if word.startswith("cudaDevAttr")})
    (headers / "driver_types.h").write_text("#include <stddef.h>\n" + TYPES % ", ".join(words))
    for soname, names in PROVIDED.items():
        script = provided / "script.map"
        script.write_text(f"{soname} {{ global: {'; '.join(names)}; }};")
        versioned = [] if soname == UNVERSIONED else [f"-Wl,--version-script,{script}"]
        linked(provided, soname, "".join(f"int {name}(void) {{ return 0; }}\n" for name in names), *versioned)
    linked(folder, "libtorch_cuda.so", LIBTORCH, f"-L{provided}", *(f"-l:{soname}" for soname in PROVIDED))
    shutil.rmtree(provided)
    return site


@pytest.fixture
def package(site: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may spoil."""
    return Path(shutil.copytree(site, tmp_path / "copy")) / "torch"


def python(site: Path, cache: Path, *arguments: str, code: int = 0) -> str:
    """What an interpreter without an environment prints that imports from `site` and this checkout."""
    environment = {**os.environ, "PYTHONPATH": f"{site}:{ROOT}", "XDG_CACHE_HOME": str(cache)}
    environment.pop("LD_LIBRARY_PATH", None)
    done = subprocess.run(
        [sys.executable, "-S", *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


SCRIPT = """
    import ctypes, sys, torch
    from nosync_lint.guard import stub

    library = ctypes.CDLL(str({library!r}))
    library.said.restype = ctypes.c_char_p
    recorder, pointer, handle = stub.recorder(), ctypes.c_void_p(), ctypes.c_void_p()
    recorder.forget()
    library.allocate(ctypes.byref(pointer)), library.wait(), library.later()
    print([call.name for call in recorder.calls()], recorder.waits, bool(pointer.value))
    library.create(ctypes.byref(handle))
    print(bool(handle.value), library.cudnn(), [library.property(which) for which in range(3)], library.said())
    print(torch.cuda_is_here, stub.is_loaded(), sys.argv[1:])
"""


@needs_gcc
def test_what_asks_for_cuda_gets_the_stubs_without_a_search_path(site: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT.format(library=str(site / "torch" / "lib" / "libtorch_cuda.so"))))
    said = python(site, tmp_path, "-m", "nosync_lint.guard.stub", str(script), "--flag", "x")
    assert said.splitlines() == [
        "['cudaMalloc', 'cudaDeviceSynchronize', 'cudaOfALaterRelease'] 1 True",
        "True 92001 [9, 20, 1] b'an error of the stub driver'",
        "True True ['--flag', 'x']",
    ]


@needs_gcc
def test_scripts_and_modules_run_as_python_runs_them(site: Path, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("WORD = 'beside'\n")
    (tmp_path / "script.py").write_text("import beside, sys\nprint(__name__, beside.WORD, sys.argv[1:])\n")
    script = str(tmp_path / "script.py")
    assert python(site, tmp_path, "-m", "nosync_lint.guard.stub", script, "a") == "__main__ beside ['a']\n"
    said = python(site, tmp_path, "-m", "nosync_lint.guard.stub", "-m", "platform", "--terse")
    assert said == python(site, tmp_path, "-m", "platform", "--terse")


@needs_gcc
@pytest.mark.parametrize("bias", [0, 1, 2, 3])
@pytest.mark.parametrize(("cell", "gates", "projected"), [(0, 1, 0), (2, 4, 0), (2, 4, 3), (3, 3, 0)])
def test_the_weights_of_recurrent_layers_fill_their_space_and_share_none_of_it(
    tmp_path: Path, bias: int, cell: int, gates: int, projected: int
) -> None:
    build._link(build._own_objects("libcudnn.so.9", tmp_path), tmp_path / "cudnn.so", "libcudnn.so.0", "")
    cudnn, half, inputs, hidden, layers = ctypes.CDLL(str(tmp_path / "cudnn.so")), 2, 6, 8, 2
    recurrent, matrix, vector, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    cudnn.cudnnCreateRNNDescriptor(ctypes.byref(recurrent))
    cudnn.cudnnCreateTensorDescriptor(ctypes.byref(matrix))
    cudnn.cudnnCreateTensorDescriptor(ctypes.byref(vector))
    cudnn.cudnnSetRNNDescriptor_v8(recurrent, 0, cell, bias, 1, 0, half, 0, 0, inputs, hidden, projected, layers)
    cudnn.cudnnGetRNNWeightSpaceSize(None, recurrent, ctypes.byref(size))
    assert size.value
    taken = []
    for layer, number in itertools.product(range(2 * layers), range(2 * gates + bool(projected))):
        at, start = (ctypes.c_void_p(), ctypes.c_void_p()), ctypes.c_void_p(1 << 20)
        cudnn.cudnnGetRNNWeightParams(
            None, recurrent, layer, size, start, number, matrix, ctypes.byref(at[0]), vector, ctypes.byref(at[1])
        )
        for tensor, address in zip((matrix, vector), at, strict=True):
            kind, count, extents, strides = ctypes.c_int(), ctypes.c_int(), (ctypes.c_int * 3)(), (ctypes.c_int * 3)()
            cudnn.cudnnGetTensorNdDescriptor(tensor, 3, ctypes.byref(kind), ctypes.byref(count), extents, strides)
            if address.value:
                first = address.value - (1 << 20)
                taken.append(range(first, first + 2 * math.prod(extents)))
    assert sorted(itertools.chain.from_iterable(taken)) == list(range(size.value))


def test_nothing_to_run_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["-m"]):
        with pytest.raises(SystemExit) as left:
            __main__.main(arguments)
        assert left.value.code == 2
    assert "usage: python -m nosync_lint.guard.stub SCRIPT" in capsys.readouterr().out


@needs_gcc
def test_what_is_built_is_kept_for_the_same_torch(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first = build.cached(package)
    assert {path.name for path in first.iterdir()} == {soname.removeprefix("lib") for soname in PROVIDED}
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "")
        assert build.cached(package) == first
    (package / "version.py").write_text(VERSION.replace("0123456789abcdef", "fedcba9876543210"))
    assert build.cached(package) != first
    assert sorted(path.name for path in first.parent.iterdir()) == sorted(
        path.name for path in first.parent.glob("2.99*")
    )


@needs_gcc
def test_two_that_build_at_once_both_find_it_complete(package: Path, tmp_path: Path) -> None:
    into = tmp_path / "stubs"
    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(build.build, package, into) for _ in range(2)]:
            done.result()
    assert {path.name for path in into.iterdir()} == {soname.removeprefix("lib") for soname in PROVIDED}
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("building-")] == []


@needs_gcc
def test_a_missing_part_is_named_with_its_cure(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools, readelf = tmp_path / "tools", shutil.which("readelf")
    tools.mkdir()
    into = tmp_path / "stubs"
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tools))
        with pytest.raises(StubError, match="install binutils"):
            build.build(package, into)
        (tools / "readelf").symlink_to(str(readelf))
        with pytest.raises(StubError, match="apt install gcc"):
            build.build(package, into)
    shutil.rmtree(package.parent / "nvidia")
    with pytest.raises(StubError, match=r"pip install 'nvidia-cuda-runtime==13\.0\.\*'"):
        build.build(package, into)
    (package / "version.py").write_text(VERSION.replace("cuda: Optional[str] = '13.0'", "cuda: Optional[str] = None"))
    with pytest.raises(StubError, match="built without CUDA: install a CUDA build"):
        build.build(package, into)
    with pytest.raises(StubError, match="no torch in"):
        build.build(tmp_path, into)
    assert not into.exists()


def test_headers_of_another_cuda_are_not_taken(site: Path, package: Path) -> None:
    headers = package.parent / "nvidia" / "cu13" / "include" / "cuda_runtime_api.h"
    headers.write_text("#define CUDART_VERSION  12080\n")
    with pytest.raises(StubError, match="no headers of CUDA 13"):
        release_of(package).headers()


def test_elsewhere_than_on_linux_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(StubError, match="needs Linux, this is darwin"):
        build.build(tmp_path, tmp_path / "stubs")


def test_loading_after_torch_or_without_it_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", sys)
    with pytest.raises(StubError, match="before the first import"):
        stub.load()
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(StubError, match="torch is not installed"):
        stub.load()
    assert not stub.is_loaded()


def test_nothing_is_recorded_before_it_is_loaded() -> None:
    for ask in (stub.recorder, lambda: stub.reads_give(1)):
        with pytest.raises(StubError, match="is not loaded"):
            ask()


def test_a_release_that_is_not_known_is_not_made_up() -> None:
    with pytest.raises(StubError, match="the release of nccl that torch was built for is not known"):
        Answers({"cuda": 13000}).function("ncclGetVersion")


def test_no_two_rows_speak_of_the_same_names_and_all_say_what_can_be_said() -> None:
    rows = Answers({})._rows
    names = [name for row in rows for name in row["functions"]]
    assert len(names) == len(set(names))
    assert {key for row in rows for key in row} == {
        "functions",
        "returns",
        "text",
        "part",
        "int",
        "size",
        "handle",
        "string",
    }


def has_cuda_build() -> bool:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    try:
        release_of(Path(spec.origin).parent)
    except StubError:
        return False
    return True


STATEMENTS = {
    "t.item()": 1,
    "t8.tolist()": 1,
    "t8.cpu()": 1,
    "bool(t)": 1,
    "t8[t8 > 0]": 1,
    "t8.nonzero()": 1,
    "t8.to('cpu', non_blocking=True)": 0,
    "pinned.to('cuda', non_blocking=True)": 0,
    "pinned.to('cuda')": 1,
    "torch.tensor([1, 2], device='cuda')": 1,
    "t8[ids]": 0,
    "t8[[0, 1]]": 1,
    "t8.index_fill_(0, ids, 1)": 0,
    "t8.sum()": 0,
    "t8 + 1": 0,
    "torch.linalg.inv(t44)": 1,
    "torch.nn.functional.conv2d(torch.zeros(1, 3, 8, 8, device='cuda'), torch.zeros(4, 3, 3, 3, device='cuda'))": 0,
    "torch.zeros(8, 8, device='cuda') @ torch.zeros(8, 8, device='cuda')": 0,
    "torch.nn.LSTM(6, 8, 2, bidirectional=True, device='cuda')(torch.zeros(4, 2, 6, device='cuda'))": 0,
    "torch.cuda.synchronize()": 1,
    "torch.cuda.current_stream().synchronize()": 1,
    "torch.zeros(3, device='cuda', requires_grad=True).prod().backward()": 1,
}
TORCH_SCRIPT = """
    import json, sys, torch
    from nosync_lint.guard import stub

    recorder, found = stub.recorder(all_threads=True), {{}}
    for statement in {statements!r}:
        for _ in range(2):
            names = dict(
                torch=torch, t=torch.zeros((), device="cuda"), t8=torch.zeros(8, device="cuda"),
                ids=torch.zeros(2, dtype=torch.long, device="cuda"), pinned=torch.zeros(8).pin_memory(),
                t44=torch.zeros(4, 4, device="cuda"),
            )
            recorder.forget()
            exec(statement, names)
            found[statement] = recorder.waits
    print(json.dumps(found))
    mapped = {{line.split()[-1] for line in open("/proc/self/maps") if "/nvidia/" in line}}
    print(sorted(mapped), torch.cuda.device_count(), torch.backends.cudnn.is_available())
"""


@needs_gcc
@pytest.mark.skipif(not has_cuda_build(), reason="torch is not a CUDA build here")
def test_torch_waits_where_it_is_known_to(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(TORCH_SCRIPT.format(statements=list(STATEMENTS))))
    command = [sys.executable, "-m", "nosync_lint.guard.stub", str(script)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    waits, circumstances = done.stdout.splitlines()
    assert json.loads(waits) == STATEMENTS
    assert circumstances == "[] 1 True"
