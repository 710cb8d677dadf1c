"""Compiles the kernels on first use and keeps the libraries in a cache on disk.

A library is named after the text of every source, the flags and the version of its compiler, so that a changed header
is never served from the cache. Importing this module runs nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
INCLUDE = PACKAGE / "include"
KERNELS = PACKAGE / "kernels"

HOST_FLAGS = ("-std=c++17", "-O2", "-ffp-contract=off", "-fPIC", "-Wno-unknown-pragmas", "-Werror=unused-result")
"""`-ffp-contract=off` keeps a sum of products from becoming fused; an unused result is a chain without `verify()`."""

CUDA_FLAGS = ("-std=c++17", "-O3", "-fmad=false", "-Xcompiler", "-fPIC")
"""`-fmad=false` is the same promise on the device."""


class BuildError(RuntimeError):
    """A compiler is missing or failed. `command` is what was run, `output` what it said."""

    def __init__(self, command: str, output: str) -> None:
        super().__init__(f"`{command}` failed:\n{output.strip()}")
        self.command = command
        self.output = output


@dataclass(frozen=True)
class Recipe:
    """One shared library: `compiler` (a command line), its flags and the source that includes all others."""

    compiler: str
    flags: tuple[str, ...]
    source: Path

    def command(self, output: Path) -> list[str]:
        return [
            *shlex.split(self.compiler),
            *self.flags,
            f"-I{INCLUDE}",
            "-shared",
            str(self.source),
            "-o",
            str(output),
        ]


def host_recipe() -> Recipe:
    """The kernels as loops over host memory, compiled by `$CXX` or g++."""
    return Recipe(os.environ.get("CXX", "g++"), HOST_FLAGS, KERNELS / "host.cpp")


def cuda_recipe(capability: tuple[int, int]) -> Recipe:
    """The kernels for one compute capability, compiled by `$NVCC` or nvcc."""
    arch = f"-arch=sm_{capability[0]}{capability[1]}"
    return Recipe(os.environ.get("NVCC", "nvcc"), (*CUDA_FLAGS, arch), KERNELS / "dev.cu")


def cache_folder() -> Path:
    """`$NOSYNC_KERNEL_CACHE`, or a folder in the user's cache."""
    given = os.environ.get("NOSYNC_KERNEL_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nosync-lint" / "kernels"


def build(recipe: Recipe) -> Path:
    """The compiled library, from the cache where it is there. Raises BuildError.

    Processes that ask for the same library at once compile it once: the others wait for the lock. A library appears
    under its name only when it is complete. Waits for a compiler, never for a device.
    """
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"{_key(recipe)}.so"
    if library.exists():
        return library
    with _locked(library.with_suffix(".lock")):
        if not library.exists():  # another process may have built it while this one waited
            with tempfile.TemporaryDirectory(dir=folder, prefix="building-") as temporary:
                partial = Path(temporary) / library.name
                _run(recipe.command(partial))
                os.replace(partial, library)
    return library


def _key(recipe: Recipe) -> str:
    digest = hashlib.sha256()
    for part in (recipe.compiler, _version(recipe.compiler), *recipe.flags, recipe.source.name):
        digest.update(part.encode() + b"\0")
    for path in _sources(recipe):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def _sources(recipe: Recipe) -> Iterable[Path]:
    """Every file that may be included: all headers, and all files beside the source."""
    headers = (path for path in INCLUDE.rglob("*") if path.is_file())
    return sorted({*headers, *(path for path in recipe.source.parent.iterdir() if path.is_file())})


def _version(compiler: str) -> str:
    return _run([*shlex.split(compiler), "--version"])


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise BuildError(shlex.join(command), str(error)) from error
    if done.returncode != 0:
        raise BuildError(shlex.join(command), done.stderr or done.stdout)
    return done.stdout


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)  # released with the file, also where the process is killed
        yield
