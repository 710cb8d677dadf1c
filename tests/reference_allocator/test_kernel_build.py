"""How the kernels are compiled: once for all who ask, whole or not at all, and never without a word."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from reference_allocator import abi, build
from reference_allocator.abi import MatchError
from reference_allocator.build import BuildError, Recipe, cuda_recipe, host_recipe

pytestmark = pytest.mark.host("runs compilers")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """A small library of its own with an empty cache; its compiler writes a line to `log` for each compilation."""
    monkeypatch.setenv("NOSYNC_KERNEL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "source").mkdir()
    source = tmp_path / "source" / "seven.cpp"
    source.write_text('extern "C" int seven() { return 7; }\n')
    compiler = tmp_path / "compiler"
    compiler.write_text(
        f'#!/bin/sh\nif [ "$1" != --version ]; then echo run >> {tmp_path}/log; sleep 0.3; fi\nexec g++ "$@"\n'
    )
    compiler.chmod(0o755)
    return Recipe(str(compiler), ("-fPIC",), source)


def compilations(tmp_path: Path) -> int:
    return len((tmp_path / "log").read_text().splitlines())


def test_a_library_is_compiled_once(recipe: Recipe, tmp_path: Path) -> None:
    library = build.build(recipe)
    assert ctypes.CDLL(str(library)).seven() == 7
    assert build.build(recipe) == library
    assert compilations(tmp_path) == 1


def test_the_text_the_flags_and_the_compiler_name_a_library(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build.build(recipe)
    assert build.build(Recipe(recipe.compiler, (*recipe.flags, "-O1"), recipe.source)) != first
    recipe.source.with_name("beside.h").write_text("#define EIGHT 8\n")
    with_header = build.build(recipe)
    assert with_header != first
    compiler = Path(recipe.compiler)
    compiler.write_text(compiler.read_text().replace("exec g++", '[ "$1" = --version ] && echo next && exit\nexec g++'))
    assert build.build(recipe) not in (first, with_header)
    assert compilations(tmp_path) == 4


def test_a_changed_shared_header_is_seen(recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build.build(recipe)
    shutil.copytree(build.INCLUDE, tmp_path / "include")
    with (tmp_path / "include" / "nosync" / "port.h").open("a") as header:
        header.write("// changed\n")
    monkeypatch.setattr(build, "INCLUDE", tmp_path / "include")
    assert build.build(recipe) != first


def test_processes_that_ask_at_once_compile_once(recipe: Recipe, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from reference_allocator.build import Recipe, build\n"
        "print(build(Recipe(sys.argv[1], ('-fPIC',), Path(sys.argv[2]))))"
    )
    command = [sys.executable, "-c", code, recipe.compiler, str(recipe.source)]
    running = [
        subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    libraries = {process.communicate(timeout=60)[0].decode().strip() for process in running}
    assert [process.returncode for process in running] == [0, 0]
    (library,) = libraries
    assert ctypes.CDLL(library).seven() == 7
    assert compilations(tmp_path) == 1


def test_a_broken_compiler_is_named_and_leaves_nothing(recipe: Recipe, tmp_path: Path) -> None:
    recipe.source.write_text("this is no C++\n")
    with pytest.raises(BuildError) as caught:
        build.build(recipe)
    assert caught.value.command.startswith(f"{recipe.compiler} -fPIC")
    assert str(recipe.source) in caught.value.command
    assert "error" in caught.value.output
    assert [path.name for path in (tmp_path / "cache").iterdir() if path.suffix != ".lock"] == []


def test_a_missing_compiler_is_named(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler --quiet")
    with pytest.raises(BuildError, match="`no-such-compiler --quiet --version` failed") as caught:
        build.build(host_recipe())
    assert caught.value.command == "no-such-compiler --quiet --version"


def test_the_cache_lies_with_the_users_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NOSYNC_KERNEL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert build.cache_folder() == tmp_path / "nosync-lint" / "kernels"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert build.cache_folder() == tmp_path / "home" / ".cache" / "nosync-lint" / "kernels"


def test_importing_runs_no_compiler_and_touches_no_device() -> None:
    code = (
        "import subprocess, torch\n"
        "def refuse(*args, **kwargs): raise AssertionError('run')\n"
        "subprocess.Popen = refuse\n"
        "import reference_allocator.sconv\n"
        "print(torch.cuda.is_initialized())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, "False"), done.stderr


def test_the_host_library_has_no_warnings() -> None:
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Wno-unknown-pragmas", "-Werror", "-fsyntax-only"]
    command = ["g++", *flags, f"-I{build.INCLUDE}", str(build.KERNELS / "host.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_a_chain_without_verify_does_not_compile(tmp_path: Path) -> None:
    source = tmp_path / "lost.cpp"
    source.write_text(
        "#include <nosync/match.hpp>\n"
        'void lost(const nosync::TensorView& a) { nosync::Match(a, "a").shape({nosync::any}); }\n'
    )
    with pytest.raises(BuildError, match="nodiscard"):
        build.build(Recipe("g++", build.HOST_FLAGS, source))


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_the_device_library_refuses_host_memory() -> None:
    library = ctypes.CDLL(str(build.build(cuda_recipe((9, 0)))))
    cache, x = torch.zeros(2, 3, 64, dtype=torch.bfloat16), torch.zeros(1, 64, dtype=torch.bfloat16)
    index, flag = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.bool)
    operands = [ctypes.pointer(abi.describe(tensor)) for tensor in (x, cache, index, flag, torch.zeros(2).int())]
    failure = abi.Failure()
    outcome = library.nosync_update_sconv_cache(ctypes.byref(failure), None, *operands, None)
    error = abi.failure_error(outcome, failure)
    assert isinstance(error, MatchError)
    assert (error.name, error.kind, error.expected, error.got) == ("cache", "device", "cuda", "cpu")
