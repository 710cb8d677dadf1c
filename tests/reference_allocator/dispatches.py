"""Counts the operations that reach the dispatcher, and tells those that would stop the host on a device.

Tensors in CPU memory wait for nothing. The operations are the same ones, so what would wait can be told by its name and
its arguments. In a guarded run the guard is asked as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from reference_allocator.table_kernels import TableKernels

aten = torch.ops.aten

READS = {
    aten._local_scalar_dense,
    aten.nonzero,
    aten.nonzero_numpy,
    aten.argwhere,
    aten.masked_select,
    aten.equal,
    aten.is_nonzero,
    aten.item,
    aten._unique,
    aten._unique2,
    aten.unique_dim,
    aten.unique_consecutive,
    aten.unique_dim_consecutive,
    aten.bincount,
    aten.histc,
    aten.allclose,
    aten.lift_fresh,
}
"""Read a value or a size from the device, or, `lift_fresh`, bring data from Python to it."""

NO_LAUNCH = {aten.detach, aten.alias, aten.empty, aten.new_empty, aten.empty_strided}
"""Neither a kernel nor a copy: views and bare memory. Data from Python, `lift_fresh`, is a copy to the device."""

WRITES = {aten.index_put, aten.index_put_, aten._index_put_impl_, aten.copy_}


class Dispatches(TorchDispatchMode):
    """What happened under `with Dispatches() as seen`: `seen.count` operations that launch, `seen.syncs` that stop.

    `seen.kernels` are launches of our own, which pass the dispatcher by. `host` are tensors that lie in CPU memory on a device too, such as the lengths that a scheduler keeps.
    """

    def __init__(self, *host: Tensor) -> None:
        super().__init__()
        self._host = host
        self._patched = pytest.MonkeyPatch()
        self.names: Counter[str] = Counter()
        self.kernels: Counter[str] = Counter()
        self.syncs: list[str] = []
        self._from_python: list[Tensor] = []

    @property
    def count(self) -> int:
        """Operations that are neither views nor bare memory."""
        return sum(self.names.values())

    @property
    def launches(self) -> int:
        """Those, and kernels of our own."""
        return self.count + sum(self.kernels.values())

    def __enter__(self) -> Dispatches:
        # These reach no dispatcher on a CPU.
        for name in ("tolist", "__repr__", "numpy"):
            self._patched.setattr(Tensor, name, self._reading(name, getattr(Tensor, name)))
        self._patched.setattr(TableKernels, "launch", self._launching(TableKernels.launch))
        super().__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._patched.undo()
        super().__exit__(*raised)

    def _reading(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def read(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
            if not any(tensor is known for known in self._host):
                self.syncs.append(name)
            return original(tensor, *args, **kwargs)

        return read

    def _launching(self, original: Callable[..., None]) -> Callable[..., None]:
        def launch(library: TableKernels, name: str, *args: object, **named: int) -> None:
            before = library.launches
            original(library, name, *args, **named)
            self.kernels[name] += library.launches - before

        return launch

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        packet = func.overloadpacket
        if self._stops(packet, args, kwargs or {}):
            self.syncs.append(packet.__name__)
        result = func(*args, **(kwargs or {}))
        if packet is aten.lift_fresh and isinstance(result, Tensor):
            self._from_python.append(result)
        if packet is aten.lift_fresh or (packet not in NO_LAUNCH and not func.is_view):
            self.names[packet.__name__] += 1
        return result

    def _stops(self, packet: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        # A scalar that is stored through an index is lifted first; the store is where the host waits for it.
        if packet is aten.lift_fresh:
            return args[0].dim() > 0
        if packet in READS:
            return True
        if packet is aten.repeat_interleave:
            return kwargs.get("output_size") is None
        if packet is aten.index and any(index is not None and index.dtype is torch.bool for index in args[1]):
            return True
        if packet in WRITES:
            values = [args[1]] if packet is aten.copy_ else [args[2]]
            return any(value is lifted for value in values for lifted in self._from_python)
        devices = {arg.device for arg in args if isinstance(arg, Tensor) and arg.dim() > 0}
        return packet in (aten._to_copy, aten.copy_) and len(devices | {kwargs.get("device") or d for d in devices}) > 1
