"""Labels: places of released packages, and whether the host waits there when they run on CUDA."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATTERNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "a": ("scalar subscript write", ("NSL101", "NSL102", "NSL207")),
    "b": ("`.item()`", ("NSL201",)),
    "c": ("`.tolist()`", ("NSL202",)),
    "d": ('`.cpu()`, `.to("cpu")`', ("NSL203",)),
    "e": ("`.numpy()`", ("NSL209",)),
    "f": ("data-dependent shape", ("NSL30", "NSL502")),
    "g": ("truth test", ("NSL204", "NSL210")),
    "h": ("Python number or builtin", ("NSL205", "NSL206")),
    "i": ("tensor from Python data", ("NSL103",)),
    "j": ("`.to(device)`", ("NSL104",)),
    "k": ("explicit synchronisation", ("NSL401",)),
    "l": ("mask-looking read", ("NSL303", "NSL207")),
    "m": ("object collective or barrier", ("NSL402",)),
}
"""What the letters of a label stand for, and the rules (code, or the beginning of codes) that answer for them."""

OTHERS: dict[str, tuple[str, ...]] = {
    "other:mask write of a tensor": ("NSL303",),
    "other:CPU int index of a CUDA tensor": ("NSL102",),
    "other:tensor slice bound": ("NSL205", "NSL207"),
    "other:0-dim tensor index": ("NSL207",),
    "other:tensor as int argument": ("NSL205", "NSL207"),
}
"""The same for patterns in words, by how they begin; what is not here is answered for by all of families 1 to 4."""

SYNC_FAMILIES = ("NSL1", "NSL2", "NSL3", "NSL4")
CUDA_PLATFORMS = ("any", "rocm")


@dataclass(frozen=True, slots=True)
class Site:
    """One labelled place. `waits` is None where that depends on the configuration, or nobody knows."""

    package: str
    file: str
    rows: frozenset[int]
    pattern: str
    waits: bool | None
    context: str
    decidable: str
    reason: str

    @property
    def codes(self) -> tuple[str, ...]:
        if self.pattern in PATTERNS:
            return PATTERNS[self.pattern][1]
        return next((codes for words, codes in OTHERS.items() if self.pattern.startswith(words)), SYNC_FAMILIES)

    @property
    def kind(self) -> str:
        """The pattern in words."""
        return PATTERNS[self.pattern][0] if self.pattern in PATTERNS else "other"


@dataclass(frozen=True, slots=True)
class Labels:
    """One file of labels. `exhaustive` files hold no place that waits and has no label."""

    path: Path
    sites: tuple[Site, ...]
    exhaustive: frozenset[str]
    releases: frozenset[tuple[str, str]]
    below_package: bool
    """Whether the file names its places below the package's folder, instead of below the distribution."""

    @property
    def name(self) -> str:
        return self.path.stem


def load(folder: Path) -> list[Labels]:
    """Every file of labels in a folder."""
    return [_labels(path) for path in sorted(folder.glob("*.json"))]


def _labels(path: Path) -> Labels:
    entries: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    whole = [entry for entry in entries if "sites" in entry]
    flat = [entry for entry in entries if "sites" not in entry]
    flat += [{"package": entry["package"], "file": entry["file"], **site} for entry in whole for site in entry["sites"]]
    return Labels(
        path,
        tuple(_site(entry) for entry in flat),
        frozenset(_file(entry) for entry in whole if entry["exhaustive"]),
        frozenset((entry["package"], entry["version"]) for entry in entries),
        any(_file(entry) != entry["file"] for entry in entries),
    )


def _site(entry: dict[str, Any]) -> Site:
    said = {"yes": True, "no": False}.get(entry["sync_on_cuda"])
    return Site(
        package=entry["package"],
        file=_file(entry),
        rows=frozenset({entry["line"], entry.get("attr_line", entry["line"])}),
        pattern=entry["pattern"],
        waits=said if entry.get("platform", "any") in CUDA_PLATFORMS else None,
        context=entry["context"],
        decidable=entry["how_decidable"],
        reason=entry["reason"],
    )


def _file(entry: dict[str, Any]) -> str:
    """The path below the unpacked distribution."""
    package, file = str(entry["package"]), str(entry["file"])
    return file if file.partition("/")[0] == package else f"{package}/{file}"
