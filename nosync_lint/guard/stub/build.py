"""Builds the stub libraries that one installed torch asks for: what it leaves undefined, under the names it needs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from nosync_lint.guard.stub.answers import PREAMBLE, Answers
from nosync_lint.guard.stub.elf import Needs, defined
from nosync_lint.guard.stub.errors import StubError
from nosync_lint.guard.stub.release import Release, release_of

SOURCES = Path(__file__).resolve().parent
RUNTIME = "libcudart"
RUNTIME_SOURCES = ("record.c", "memory.c", "copies.c", "streams.c")
"""What the runtime does by itself; `device.c` needs the headers of CUDA as well."""
DEVICE_SOURCE = "device.c"
EXPORTED = ("cuda*", "__cuda*", "nosync_stub_*")
"""Of the runtime. Other names stay inside, so that nothing of the process gets in their way."""
FLAGS = ("-std=gnu11", "-O1", "-fPIC")
Symbols = dict[str, str | None]
"""Names with their versions."""


def cached(package: Path) -> Path:
    """The folder with the stub libraries for the torch in a package folder, built if they are not there yet."""
    release = release_of(package)
    folder = cache_folder("stub", release.identity, (*sorted(SOURCES.glob("*.*")), package / "version.py"))
    if not folder.is_dir():
        build(package, folder)
    return folder


def build(torch_package: Path, into: Path) -> None:
    """Builds the stub libraries for the torch in a package folder. Raises `StubError`, which names the cure.

    The folder appears when it is complete. Of two processes that build it at once, the later one drops its work.
    """
    if sys.platform != "linux":
        raise StubError(f"the stub runtime needs Linux, this is {sys.platform}")
    release = release_of(torch_package)
    headers = release.headers()
    answers = Answers(release.numbers())
    libraries = _asked_of(release, answers)
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent, prefix="building-") as temporary:
        work, done = Path(temporary) / "work", Path(temporary) / "done"
        work.mkdir()
        done.mkdir()
        for soname, symbols in libraries.items():
            # The file is not called after the soname: torch loads the real libraries if it sees that name mapped.
            library = done / soname.removeprefix("lib")
            is_runtime = soname.startswith(RUNTIME)
            objects = compile_runtime(work, headers) if is_runtime else _own_objects(soname, work)
            have = set().union(*map(defined, objects))
            text = "".join(answers.function(name, recorded=is_runtime) for name in sorted(symbols.keys() - have))
            objects.append(compiled(_written(work / "answers.c", PREAMBLE + text)))
            if is_runtime:
                link_runtime(objects, library, soname)
            else:
                _link(objects, library, soname, _versions(symbols))
        finished(done, into)


def cache_folder(kind: str, identity: str, sources: Iterable[Path]) -> Path:
    """The user's folder for libraries of a kind that are made of these files."""
    digest = hashlib.sha256()
    for path in sources:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nosync-lint" / kind
    return root / f"{identity}-{digest.hexdigest()[:16]}"


def finished(done: Path, into: Path) -> None:
    """Moves a folder to where it is looked for. Where another process was first, its work stands."""
    try:
        done.rename(into)
    except OSError:
        if not into.is_dir():
            raise


def compile_runtime(work: Path, headers: Path | None) -> list[Path]:
    """The objects of the runtime; without headers of CUDA there is none of the device."""
    objects = [compiled(SOURCES / name, work) for name in RUNTIME_SOURCES]
    if headers is not None:
        objects.append(compiled(SOURCES / DEVICE_SOURCE, work, f"-I{headers}"))
    return objects


def _own_objects(soname: str, work: Path) -> list[Path]:
    """What a library has a body for: in the file that is called after it."""
    source = SOURCES / f"{soname.partition('.so')[0]}.c"
    return [compiled(source, work)] if source.is_file() else []


def compiled(source: Path, work: Path | None = None, *flags: str) -> Path:
    """The object of a C source. Raises `StubError` where gcc is missing."""
    out = (work or source.parent) / f"{source.stem}.o"
    _gcc(*FLAGS, *flags, "-fno-builtin", "-c", str(source), "-o", str(out))
    return out


def link_runtime(objects: Iterable[Path], library: Path, runtime: str, soname: str | None = None) -> None:
    """A runtime of these objects. The version of its symbols is its soname in the real one; its own may be another."""
    _link(objects, library, soname or runtime, f"{runtime} {{ global: {'; '.join(EXPORTED)}; local: *; }};")


def runtime_needed(package: Path) -> str:
    """The soname of the CUDA runtime that torch's libraries need. Raises `StubError` where they need none."""
    release_of(package)
    needs = Needs()
    for library in sorted((package / "lib").glob("libc10_cuda.so*")):
        needs.add(library)
    found = next((soname for soname in needs.sonames if soname.startswith(RUNTIME)), None)
    if found is None:
        raise StubError(f"no library in {package / 'lib'} needs {RUNTIME}: install a CUDA build of torch")
    return found


def _asked_of(release: Release, answers: Answers) -> Mapping[str, Symbols]:
    """The libraries that get a stub, by soname, with what torch's libraries leave to them."""
    needs = Needs()
    own = sorted((release.package / "lib").glob("*.so*"))
    for library in own:
        needs.add(library)
    asked: dict[str, Symbols] = {soname: {} for soname in needs.sonames if answers.stands_in_for(soname)}
    if not any(soname.startswith(RUNTIME) for soname in asked):
        raise StubError(f"no library in {release.package / 'lib'} needs {RUNTIME}: install a CUDA build of torch")
    by_stem = {soname.partition(".so")[0]: soname for soname in asked}
    for symbol, version in needs.symbols.items():
        owner = needs.version_owners.get(version or "")
        if owner is None:
            owner = by_stem.get(answers.library(symbol) or "")
        if owner in asked:
            asked[owner][symbol] = version
    return asked


def _versions(symbols: Symbols) -> str:
    """The version script of a library; symbols without a version are none of its business."""
    by_version: dict[str, list[str]] = defaultdict(list)
    for name, version in sorted(symbols.items()):
        if version is not None:
            by_version[version].append(name)
    return "\n".join(f"{version} {{ global: {'; '.join(names)}; }};" for version, names in by_version.items())


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def _link(objects: Iterable[Path], library: Path, soname: str, versions: str) -> None:
    command = ["-shared", *map(str, objects), "-o", str(library), f"-Wl,-soname,{soname}", "-lpthread", "-ldl"]
    if versions:
        script = _written(library.with_suffix(".map"), versions)
        _gcc(*command, f"-Wl,--version-script,{script}")
        script.unlink()
    else:
        _gcc(*command)


def _gcc(*arguments: str) -> None:
    if shutil.which("gcc") is None:
        raise StubError("gcc is missing: install it (apt install gcc) to build the stub runtime")
    done = subprocess.run(["gcc", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise StubError(f"gcc failed on the stub runtime, which is a fault of it: {done.stderr.strip()}")
