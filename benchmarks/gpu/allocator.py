"""Measures the reference allocator on a GPU, in parts; the last table says which targets were met.

usage: python -m benchmarks.gpu.allocator [g1 ... g7]

Needs the CUDA build of torch, a GPU and nvcc; without them it says so in one line and exits 2. Exits 1 where a target
is missed or a part fails; the other parts are measured all the same. Everything is written to `$OUT/allocator.json`, or
`build/gpu/allocator.json`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import traceback
from collections.abc import Callable, Mapping

import torch

from benchmarks.gpu import bandwidth, compaction, frees, launches, same_bits, same_tables, trace
from benchmarks.gpu.report import Check, Part, finished

Measure = Callable[[str], Part]
PARTS: dict[str, Measure] = {
    "g1": frees.measure,
    "g2": trace.measure,
    "g3": launches.measure,
    "g4": bandwidth.measure,
    "g5": compaction.measure,
    "g6": same_bits.measure,
    "g7": same_tables.measure,
}


def missing() -> str | None:
    """What is needed and not there, in one line."""
    if not torch.cuda.is_available():
        return f"no CUDA device is visible to torch {torch.__version__}"
    compiler = shlex.split(os.environ.get("NVCC", "nvcc"))[0]
    return None if shutil.which(compiler) else f"{compiler} is not installed: the kernels cannot be compiled"


def measured(device: str, parts: Mapping[str, Measure]) -> dict[str, Part]:
    """Every part, printed as it comes. One that fails is a check that was not met, with its traceback printed."""
    found = {}
    for name, measure in parts.items():
        try:
            found[name] = measure(device)
        except Exception as error:  # of whatever part: the others still tell what they can in the time there is
            traceback.print_exc()
            failed = Check("the part ends", f"{type(error).__name__}: {error}".partition("\n")[0], False)
            found[name] = Part(f"{name}: failed", ("error",), [(failed.measured,)], [failed])
        print(f"{found[name].told()}\n", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all of them by default")
    names = parser.parse_args().parts or list(PARTS)
    if unknown := set(names) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    if lacking := missing():
        print(f"benchmarks.gpu.allocator: {lacking}")
        return 2
    found = measured("cuda", {name: PARTS[name] for name in names})
    return finished("allocator", found)


if __name__ == "__main__":
    raise SystemExit(main())
