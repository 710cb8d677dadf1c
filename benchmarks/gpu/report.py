"""What a part of the measurements found: rows to read, and checks that were met or not."""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.document import table

ROOT = Path(__file__).resolve().parents[2]
Cell = str | int | float


@dataclass(frozen=True)
class Check:
    """What is aimed at, what was measured, and whether it is met."""

    aim: str
    measured: str
    met: bool


@dataclass(frozen=True)
class Part:
    """A title, a table, and the checks of it."""

    title: str
    head: Sequence[str]
    rows: list[tuple[Cell, ...]] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)

    def told(self) -> str:
        return f"{self.title}\n\n{table(self.head, self.rows)}"


def circumstances() -> dict[str, str]:
    """Versions, the card and the date."""
    import torch  # late: what records the CUDA runtime comes before it

    return {
        "torch": torch.__version__,
        "cuda": str(torch.version.cuda),
        "card": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
    }


def summary(parts: Mapping[str, Part]) -> str:
    """All checks in one short table."""
    rows = [
        (name, check.aim, check.measured, "yes" if check.met else "NO")
        for name, part in parts.items()
        for check in part.checks
    ]
    return table(("part", "target", "measured", "met"), rows)


def finished(name: str, parts: Mapping[str, Part]) -> int:
    """Writes everything and prints the short table; returns the exit code: 1 where a target is missed."""
    print(", ".join(f"{key} {value}" for key, value in circumstances().items()))
    print(f"written to {write(name, parts)}\n")
    print(summary(parts))
    return 0 if all(check.met for part in parts.values() for check in part.checks) else 1


def write(name: str, parts: Mapping[str, Part]) -> Path:
    """Writes everything as JSON into `$OUT`, or `build/gpu`; returns where it is."""
    path = Path(os.environ.get("OUT") or ROOT / "build" / "gpu") / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    told = {**circumstances(), "parts": {key: asdict(part) for key, part in parts.items()}}
    path.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    return path
