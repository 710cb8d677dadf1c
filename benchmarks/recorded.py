"""What a command of another environment records."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.document import DOCS


def on_stubs(python: Path, module: str) -> list[str]:
    """The command that runs a module against the stub CUDA runtime, with the CUDA build of torch of an interpreter."""
    return [str(python.absolute()), "-m", "nosync_lint.guard.stub", "-m", module]


def recorded(command: Sequence[str], *arguments: str) -> dict[str, Any]:
    """What a command writes to the file that is its first argument, before these. It runs in this checkout, from which
    it takes the code of this repository. Sets of strings are iterated in the same order each time: torch's own samples
    come out of such sets."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "recorded.json"
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        subprocess.run([*command, str(out), *arguments], cwd=DOCS.parent, env=environment, check=True)
        told: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return told
