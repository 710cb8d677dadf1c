"""Runs operations of torch's database forward and backward, and writes how often the host waits.

    PYTHON -m nosync_lint.guard.stub -m benchmarks.guard_sweep.recorder OUT.json [NAME ...]

Each operation runs in a process of its own, each sample twice: the second run counts. Kernels of cuDNN are left out, as
there is none on stub libraries.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.guard_sweep.samples import SEED, database, on_cuda, samples
from benchmarks.oracle import runtime
from benchmarks.oracle.runtime import torch

SAMPLES = 12
SECONDS_PER_OPERATION = 180
_READS = (-1, 1)
"""What small reads of device memory give, -1 what is there: the next is tried where an operation raises, as no kernel
has run."""


@dataclass(slots=True)
class Pass:
    """One way through an operation: waits, asynchronous copies of pageable memory, and what it raised."""

    waits: int = 0
    pageable: int = 0
    error: str = ""


def _watched(passed: Pass, function: Callable[[], Any]) -> Any:
    """What a function gives back; what it did is put down. None where it raises."""
    runtime.record.start()
    try:
        return function()
    except Exception as error:
        passed.error = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}"
        return None
    finally:
        recorded = runtime.record.take()
        if recorded is not None:
            passed.waits, passed.pageable = recorded.syncs, recorded.pageable


def _tried(operation: Any, sample: Any) -> dict[str, Any]:
    """The second of two runs, with what reads give the first time that nothing is raised; or the very first."""
    tried = []
    for read in _READS:
        runtime.record.reads_give(read)
        for _ in range(2):
            told = _passes(operation, sample)
        if not any(one["error"] for one in told.values()):
            return told
        tried.append(told)
    return tried[0]


def _passes(operation: Any, sample: Any) -> dict[str, Any]:
    """Forward, and backward where there is one. Memory of the device is new, so that it reads as zero."""
    gc.collect()
    torch.cuda.empty_cache()
    given, args, kwargs = on_cuda(sample)
    torch.manual_seed(SEED)
    forward = Pass()
    out = _watched(forward, lambda: operation(given, *args, **kwargs))
    told = {"forward": asdict(forward)}
    roots = [
        one
        for one in torch.utils._pytree.tree_leaves(out)
        if isinstance(one, torch.Tensor) and one.requires_grad and (one.is_floating_point() or one.is_complex())
    ]
    if roots:
        backward, gradients = Pass(), [one.detach() for one in roots]
        _watched(backward, lambda: torch.autograd.backward(roots, gradients))
        told["backward"] = asdict(backward)
    return told


def _outline(sample: Any) -> str:
    """Shapes and types of what goes into an operation, to see that it is the same everywhere."""
    leaves = torch.utils._pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
    return ", ".join(
        f"{str(one.dtype).removeprefix('torch.')}{[*one.shape]}" if isinstance(one, torch.Tensor) else _text(one)
        for one in leaves
    )


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, int | float | complex | str | None) else type(value).__name__


def record(operation: Any, out: Path) -> None:
    """Run one operation and write what was seen. Runs in a process of its own, silently."""
    warnings.simplefilter("ignore")
    with out.with_suffix(".err").open("w") as errors:
        os.dup2(errors.fileno(), sys.stdout.fileno())
        os.dup2(errors.fileno(), sys.stderr.fileno())
        with torch.backends.cudnn.flags(enabled=False):
            told = [{"outline": _outline(one), **_tried(operation, one)} for one in samples(operation, SAMPLES)]
        out.write_text(json.dumps({"samples": told}))


def _recorded(operation: Any) -> dict[str, Any]:
    """What an operation did, or why nothing is known of it."""
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "operation.json"
        process = multiprocessing.get_context("fork").Process(target=record, args=(operation, part))
        process.start()
        process.join(SECONDS_PER_OPERATION)
        if process.exitcode == 0:
            told: dict[str, Any] = json.loads(part.read_text())
            return told
        if process.is_alive():
            process.kill()
            process.join()
            return {"samples": [], "died": f"not done after {SECONDS_PER_OPERATION} seconds"}
        last = part.with_suffix(".err").read_text().strip().rpartition("\n")[2]
        return {"samples": [], "died": f"its process ended with {process.exitcode}: {last}"}


def main(out: Path, names: Sequence[str]) -> int:
    known = database()
    torch.cuda.empty_cache()  # a wait under the guard, which loads its rules: once, and not in every process
    gc.freeze()  # torch itself is no garbage, and much to look through
    told = {name: _recorded(operation) for name, operation in known.items() if not names or name in names}
    out.write_text(json.dumps({"torch": runtime.version(), "operations": told}))
    return 0


if __name__ == "__main__":
    runtime.record = runtime.OnStubs()
    raise SystemExit(main(Path(sys.argv[1]), sys.argv[2:]))
