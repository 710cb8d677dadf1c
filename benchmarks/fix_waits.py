"""Counts how often torch's CUDA build waits before and after each fix, over the stub runtime and without a GPU.

    python -m benchmarks.fix_waits --python PATH

PATH is an interpreter with a CUDA build of torch, the cases are those of `tests/fix/cases.py`. Kernels do nothing,
so that values are not compared, and what needs them fails before it waits.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import textwrap
from collections import Counter
from contextlib import chdir
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TRIES = 12


def pairs(folder: Path) -> dict[str, tuple[str, str]]:
    """The source of each case before and after its fix."""
    from nosync_lint.config import Settings
    from nosync_lint.fix.apply import applied
    from nosync_lint.pipeline import run
    from tests.fix.cases import CASES, HEAD

    found = {}
    (folder / "nosync-lint.toml").touch()
    with chdir(folder):
        for name, case in CASES.items():
            before = HEAD + textwrap.dedent(case.source).lstrip()
            Path("case.py").write_text(before)
            report = run(["case.py"], Settings(heat="any", target_torch=">=2.9"), jobs=1, cache=False)
            fixed = next(one for one in report.findings if one.fix is not None and one.fix.recipe == case.recipe)
            found[name] = (before, applied(before, [fixed]).replace("=...", f"={case.dots}"))
    return found


def count(sources: dict[str, tuple[str, str]]) -> dict[str, Counter[str]]:
    """How often both sources of each case wait, for random arguments. Runs where the CUDA build of torch is."""
    from nosync_lint.guard import stub

    stub.load()
    from tests.fix.cases import CASES, Draw

    return {
        name: Counter(
            " -> ".join(waits(source, CASES[name].arguments(Draw(seed))) for source in both) for seed in range(TRIES)
        )
        for name, both in sources.items()
    }


def waits(source: str, arguments: dict[str, Any]) -> str:
    """How often a call waits, once everything is loaded and allocated, or the name of what it raises."""
    import torch

    from nosync_lint.guard import stub

    scope: dict[str, Any] = {}
    exec(compile(source, "case.py", "exec"), scope)
    given = {
        name: value.detach().cuda().requires_grad_(value.requires_grad)
        if isinstance(value, torch.Tensor) and not name.startswith("host")
        else value
        for name, value in arguments.items()
    }
    copies = {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in given.items()}
    recorder = stub.recorder()
    try:
        scope["f"](**copies)
        recorder.forget()
        scope["f"](**given)
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        return type(error).__name__
    return str(recorder.waits)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", metavar="PATH", help="an interpreter with a CUDA build of torch")
    parser.add_argument("--count", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.count:
        json.dump(count(json.load(sys.stdin)), sys.stdout)
        return 0
    if not options.python:
        parser.error("--python names an interpreter with a CUDA build of torch")
    with tempfile.TemporaryDirectory() as folder:
        sources = pairs(Path(folder))
    command = [options.python, "-m", "benchmarks.fix_waits", "--count"]
    done = subprocess.run(command, cwd=ROOT, input=json.dumps(sources), capture_output=True, text=True, check=True)
    for name, counted in json.loads(done.stdout.rpartition("\n")[2]).items():
        told = ", ".join(f"{waited} ({times})" for waited, times in counted.items())
        print(f"{name:<50} {told}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
