"""Values and gradients on the simulated device beside those of the host, over torch's own database of operations.

usage: python -m benchmarks.guard_sweep.values [NAME ...]

The first two samples of every operation, float32 where it takes that. An operation is equal if all results are, and,
where it differentiates, the gradients of their sum. Needs `expecttest`, which torch's database imports.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from benchmarks.guard_sweep.samples import SEED, database, moved, samples
from nosync_lint.guard import guard, to_device, to_host

SAMPLES = 2


def outcome(operation: Any, given: Any, args: Any, kwargs: Any) -> tuple[list[Tensor], list[Tensor | None], set[str]]:
    """The results, the gradients of the inputs, and the devices of the results."""
    torch.manual_seed(SEED)
    found = [one for one in tree_leaves(operation(given, *args, **kwargs)) if isinstance(one, Tensor)]
    leaves = [one for one in tree_leaves((given, args, kwargs)) if isinstance(one, Tensor) and one.requires_grad]
    grown = [one for one in found if one.requires_grad and one.dtype.is_floating_point]
    if leaves and grown:
        torch.autograd.backward(sum((one.sum() for one in grown), torch.zeros((), device=grown[0].device)))
    return found, [one.grad for one in leaves], {one.device.type for one in found}


def copied(tensor: Tensor) -> Tensor:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def verdict(operation: Any) -> str:
    """`equal`, or what is not."""
    for sample in samples(operation, SAMPLES):
        try:
            expected, gradients, _ = outcome(operation, *moved(sample, copied))
        except Exception as error:
            return f"fails on the host: {type(error).__name__}"
        try:
            with guard(level="allow"):
                found, found_gradients, devices = outcome(operation, *moved(sample, to_device))
                found, found_gradients = tree_map(to_host, (found, found_gradients))
        except Exception as error:
            return f"raises {type(error).__name__}: {str(error).partition(chr(10))[0][:150]}"
        if devices == {"cpu"} and expected:
            return "result on the host"
        if operation.name in RANDOM:
            continue
        try:
            torch.testing.assert_close(found, expected, equal_nan=True)
            torch.testing.assert_close(found_gradients, gradients, equal_nan=True)
        except AssertionError as error:
            return f"differs: {str(error).partition(chr(10))[0][:150]}"
    return "equal"


RANDOM = frozenset({"empty", "new_empty", "empty_like", "new_empty_strided", "empty_strided", "empty_permuted"})
"""Operations whose results are not told by their inputs."""


def main() -> None:
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    for name, operation in database().items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        said = verdict(operation)
        counts[said.partition(":")[0].partition(" ")[0]] += 1
        if said != "equal":
            print(f"{name}: {said}", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main()
