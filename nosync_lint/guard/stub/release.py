"""What is known of an installed torch without importing it."""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from nosync_lint.guard.stub.errors import StubError

_ASSIGNED = re.compile(r"^(\w+)(?:: [^=]+)? = '([^']+)'$", re.MULTILINE)
_REQUIRED = re.compile(r"^Requires-Dist: nvidia-(cudnn|nccl)-cu\d+==(\d+)\.(\d+)\.(\d+)", re.MULTILINE)
_HEADER_VERSION = re.compile(r"^#define CUDART_VERSION\s+(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Release:
    """A torch with CUDA: `package` is its folder, `identity` tells builds apart."""

    package: Path
    identity: str
    cuda: tuple[int, int]

    @property
    def cuda_version(self) -> int:
        return self.cuda[0] * 1000 + self.cuda[1] * 10

    def numbers(self) -> dict[str, int]:
        """The releases of CUDA, cuDNN and NCCL that it was built for, as their own functions give them."""
        found = {"cuda": self.cuda_version, "cuda.major": self.cuda[0], "cuda.minor": self.cuda[1]}
        for metadata in self.package.parent.glob("torch-*.dist-info/METADATA"):
            for name, *parts in _REQUIRED.findall(metadata.read_text(encoding="utf-8")):
                major, minor, patch = map(int, parts)
                found[name] = major * 10_000 + minor * 100 + patch
        return found

    def headers(self) -> Path:
        """The folder of the headers of its CUDA runtime. Raises `StubError`."""
        beside = self.package.parent / "nvidia"
        folders = [beside / f"cu{self.cuda[0]}" / "include", beside / "cuda_runtime" / "include"]
        for folder in folders:
            api = folder / "cuda_runtime_api.h"
            version = _HEADER_VERSION.search(api.read_text(encoding="utf-8")) if api.is_file() else None
            if version is not None and int(version[1]) // 1000 == self.cuda[0]:
                return folder
        distribution = "nvidia-cuda-runtime" if self.cuda[0] >= 13 else f"nvidia-cuda-runtime-cu{self.cuda[0]}"
        raise StubError(
            f"no headers of CUDA {self.cuda[0]} in {' or '.join(map(str, folders))}: "
            f"pip install '{distribution}=={self.cuda[0]}.{self.cuda[1]}.*' beside torch"
        )


def torch_to_come(what: str) -> Path:
    """The package folder of the torch that will be imported. Raises `StubError` where it is, or where there is none."""
    if "torch" in sys.modules:
        raise StubError(f"torch is imported already: {what} must be loaded before the first import of it")
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise StubError("torch is not installed: install a CUDA build of torch in this environment")
    return Path(spec.origin).parent


def release_of(package: Path) -> Release:
    """The torch in a folder. Raises `StubError` where it is none, or one without CUDA."""
    version_file = package / "version.py"
    if not version_file.is_file():
        raise StubError(f"no torch in {package}: install a CUDA build of torch in this environment")
    text = version_file.read_text(encoding="utf-8")
    said = dict(_ASSIGNED.findall(text))
    version = said.get("__version__", "")
    if "cuda" not in said:
        raise StubError(
            f"torch {version} in {package} is built without CUDA: install a CUDA build (no +cpu in its version)"
        )
    major, minor = said["cuda"].split(".")[:2]
    return Release(package, f"{version}-{said.get('git_version', '')[:12]}", (int(major), int(minor)))
