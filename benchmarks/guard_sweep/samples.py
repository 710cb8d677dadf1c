"""Torch's own database of operations, and its samples: the same in every environment, whatever devices that has."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.utils._pytree import tree_any, tree_map

SEED = 7
_PREFERRED = (torch.float32, torch.int64, torch.bool, torch.complex64)


def database() -> dict[str, Any]:
    """Every operation by name and variant.

    Importing it needs `numpy` and `expecttest`. It asks for devices meanwhile, and is told that there are none.
    """
    with mock.patch("torch.cuda.is_available", return_value=False):
        found: Any = importlib.import_module("torch.testing._internal.common_methods_invocations")
    return {f"{one.name}.{one.variant_test_name}".rstrip("."): one for one in found.op_db if one.dtypes}


def samples(operation: Any, count: int) -> Iterator[Any]:
    """The first inputs of an operation on the host, float32 where it takes that."""
    known = [dtype for dtype in _PREFERRED if dtype in operation.dtypes]
    dtype = known[0] if known else min(operation.dtypes, key=str)
    gradients = operation.supports_autograd and dtype.is_floating_point
    torch.manual_seed(SEED)
    random.seed(SEED)
    importlib.import_module("numpy").random.seed(SEED)
    return islice(operation.sample_inputs("cpu", dtype, requires_grad=gradients), count)


def moved(sample: Any, move: Callable[[Tensor], Tensor]) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Input, arguments and keywords of a sample with its tensors moved."""
    given, args, kwargs = tree_map(
        lambda value: move(value) if isinstance(value, Tensor) else value,
        (sample.input, tuple(sample.args), dict(sample.kwargs)),
    )
    return given, args, kwargs


def on_cuda(sample: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """A sample with copies of its tensors on the device. One without tensors names the device instead of the host."""

    def copied(tensor: Tensor) -> Tensor:
        return tensor.detach().to("cuda").requires_grad_(tensor.requires_grad)

    given, args, kwargs = moved(sample, copied)
    if tree_any(lambda value: isinstance(value, Tensor), (given, args, kwargs)):
        return given, args, kwargs
    return given, args, {**kwargs, "device": "cuda"} if "device" in kwargs else kwargs
