"""What waits in the backward, by the line of the sample whose forward it belongs to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from benchmarks.oracle import runtime
from benchmarks.oracle.runtime import torch

_FRAME = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<row>\d+)')


def remembered() -> AbstractContextManager[None]:
    """Every node of a graph that is built inside knows the lines that built it."""
    context: AbstractContextManager[None] = torch.autograd.set_detect_anomaly(True, check_nan=False)
    return context


def waits(result: Any, files: Mapping[str, str]) -> Counter[tuple[str, int]]:
    """Go back from a result whose graph is remembered: how often the host waits, by file and row."""
    losses = [one.sum() for one in _tensors(result) if one.requires_grad and one.grad_fn is not None]
    found: Counter[tuple[str, int]] = Counter()
    for node in _nodes(losses):
        at = _place(node.metadata.get("traceback_", ()), files)
        if at is not None:
            node.register_prehook(_before)
            node.register_hook(_after(found, at))
    if losses:
        torch.autograd.backward(losses)
    return found


def _before(gradients: Any) -> None:
    runtime.record.start()


def _after(found: Counter[tuple[str, int]], at: tuple[str, int]) -> Any:
    def hook(inputs: Any, outputs: Any) -> None:
        recorded = runtime.record.take()
        found[at] += recorded.syncs if recorded is not None else 0

    return hook


def _tensors(result: Any) -> Iterator[Any]:
    if isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, list | tuple):
        for one in result:
            yield from _tensors(one)
    elif isinstance(result, dict):
        yield from _tensors(list(result.values()))


def _nodes(losses: list[Any]) -> Iterator[Any]:
    seen = set()
    left = [one.grad_fn for one in losses]
    while left:
        node = left.pop()
        if node is not None and node not in seen:
            seen.add(node)
            left += [following for following, _ in node.next_functions]
            yield node


def _place(frames: list[str], files: Mapping[str, str]) -> tuple[str, int] | None:
    """The innermost line of the sample, from the frames that a node remembers."""
    for frame in reversed(frames):
        found = _FRAME.match(frame)
        if found and found["file"] in files:
            return files[found["file"]], int(found["row"])
    return None
