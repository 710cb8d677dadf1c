"""What attention backends ask for buffers: keys and values by model layer, whatever memory they lie in.

A pool holds the layers of one pipeline stage, under their numbers in the model: its first layer is `start_layer`, which
need not be 0. Nothing here launches anything or blocks the host, except for the fill of memory of one's own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor

from reference_allocator.errors import LayerError, SpecError
from reference_allocator.specs import BytePool, KVSpec, StateSpec


class KVPool(ABC):
    """Buffers of attention layers in `[start_layer, end_layer)`, not necessarily of all of them.

    All methods are host only and raise `LayerError` for layers without a buffer here.
    """

    start_layer: int
    end_layer: int

    @abstractmethod
    def get_key_buffer(self, layer: int) -> Tensor:
        """Keys of a layer: `(slots, heads, key_dim)`, a view. Host only."""

    @abstractmethod
    def get_value_buffer(self, layer: int) -> Tensor:
        """Values of a layer: `(slots, heads, value_dim)`, a view. Host only."""

    @abstractmethod
    def get_v_head_dim(self) -> int:
        """Width of a value of the layers with full attention, which is not that of every layer. Host only."""


class KVSide(KVPool):
    """Layers that share one shape: keys and values by layer, in memory that was made or lent.

    Raises `SpecError` without a layer, and where keys and values are not of the same layers.
    """

    def __init__(self, name: str, keys: Mapping[int, Tensor], values: Mapping[int, Tensor]) -> None:
        if not keys or keys.keys() != values.keys():
            raise SpecError(name, "layers", "no layers, or not the same", keys=sorted(keys), values=sorted(values))
        self.name = name
        self.start_layer = min(keys)
        self.end_layer = max(keys) + 1
        self._keys = dict(keys)
        self._values = dict(values)

    @classmethod
    def allocate(cls, spec: KVSpec, tokens: int, *, device: torch.device | str = "cpu") -> KVSide:
        """Memory of its own for so many tokens, behind a page that serves as the padding sink.

        `spec.grow` says nothing here. Queues two zero fills per layer on the current stream; does not block the host.
        """
        slots = tokens + spec.page_size
        keys, values = (
            {layer: torch.zeros((slots, spec.heads, dim), dtype=spec.dtype, device=device) for layer in spec.layers}
            for dim in (spec.key_dim, spec.value_dim)
        )
        return cls(spec.name, keys, values)

    @classmethod
    def of(cls, pool: BytePool, name: str) -> KVSide:
        """Views of one sub-pool of a byte pool. Raises `SpecError` for a name without keys and values. Host only."""
        spec = pool.specs.get(name)
        if not isinstance(spec, KVSpec):
            raise SpecError(name, "layers", "no pool with keys and values", pools=sorted(pool.specs))
        layers = {layer: pool.kv_layer(name, layer) for layer in spec.layers}
        keys = {layer: views[0] for layer, views in layers.items()}
        return cls(name, keys, {layer: views[1] for layer, views in layers.items()})

    @property
    def layers(self) -> frozenset[int]:
        """The layers with buffers here. Host only."""
        return frozenset(self._keys)

    def get_key_buffer(self, layer: int) -> Tensor:
        """See `KVPool.get_key_buffer`."""
        return self._buffer("get_key_buffer", self._keys, layer)

    def get_value_buffer(self, layer: int) -> Tensor:
        """See `KVPool.get_value_buffer`."""
        return self._buffer("get_value_buffer", self._values, layer)

    def get_v_head_dim(self) -> int:
        """See `KVPool.get_v_head_dim`."""
        return self.get_value_buffer(self.start_layer).shape[-1]

    def _buffer(self, operation: str, buffers: dict[int, Tensor], layer: int) -> Tensor:
        if layer not in buffers:
            raise LayerError(
                self.name, operation, "no buffer of this layer",
                layer=layer, start_layer=self.start_layer, end_layer=self.end_layer, layers=sorted(buffers),
            )  # fmt: skip
        return buffers[layer]


class SWAKVPool(KVPool):
    """Two sides with layers of their own: full attention, and a sliding window whose heads may have another width.

    Raises `SpecError` for a layer that both sides hold.
    """

    def __init__(self, full: KVSide, swa: KVSide) -> None:
        if shared := full.layers & swa.layers:
            raise SpecError(full.name, "layers", "layers on two sides", other=swa.name, layers=sorted(shared))
        self.full = full
        self.swa = swa
        self.start_layer = min(full.start_layer, swa.start_layer)
        self.end_layer = max(full.end_layer, swa.end_layer)

    def side_of(self, layer: int) -> KVSide:
        """The side with this layer; full for one that neither has, which then says so. Host only."""
        return self.swa if layer in self.swa.layers else self.full

    def get_key_buffer(self, layer: int) -> Tensor:
        """See `KVPool.get_key_buffer`."""
        return self.side_of(layer).get_key_buffer(layer)

    def get_value_buffer(self, layer: int) -> Tensor:
        """See `KVPool.get_value_buffer`."""
        return self.side_of(layer).get_value_buffer(layer)

    def get_v_head_dim(self) -> int:
        """See `KVPool.get_v_head_dim`. The first layer of the stage may be one of the window."""
        return self.full.get_value_buffer(self.full.start_layer).shape[-1]


class UnifiedSWAKVPool(SWAKVPool):
    """Both sides as views of one byte pool, which `SWAComposite` hands the tokens of."""

    def __init__(self, pool: BytePool, *, full: str = "full", swa: str = "swa") -> None:
        super().__init__(KVSide.of(pool, full), KVSide.of(pool, swa))


class HybridLinearKVPool(KVPool):
    """Some layers with full attention, the others with a recurrent state: `state` names those of the byte pool.

    Raises `SpecError` for names of the wrong kind.
    """

    def __init__(self, pool: BytePool, *, full: str = "full", state: str = "state") -> None:
        spec = pool.specs.get(state)
        if not isinstance(spec, StateSpec):
            raise SpecError(state, "layers", "no pool with states", pools=sorted(pool.specs))
        self.full = KVSide.of(pool, full)
        self.start_layer = min(self.full.start_layer, *spec.layers)
        self.end_layer = max(self.full.end_layer, max(spec.layers) + 1)
        self._state_layers = list(spec.layers)
        self._pool = pool
        self._state = state

    def get_key_buffer(self, layer: int) -> Tensor:
        """See `KVPool.get_key_buffer`."""
        return self.full.get_key_buffer(layer)

    def get_value_buffer(self, layer: int) -> Tensor:
        """See `KVPool.get_value_buffer`."""
        return self.full.get_value_buffer(layer)

    def get_v_head_dim(self) -> int:
        """See `KVPool.get_v_head_dim`. The first layer of the stage may be one with a state."""
        return self.full.get_value_buffer(self.full.start_layer).shape[-1]

    def get_conv_state(self, layer: int, stream: int = 0) -> Tensor:
        """Conv state of a layer: `(slots, width - 1, channels)`, a view with channel stride 1. Host only.

        Raises `LayerError` for layers without a state, `SpecError` for another stream.
        """
        return self._pool.conv_state(self._state, stream)[self._state_index("get_conv_state", layer)]

    def get_temporal_state(self, layer: int, stream: int = 0) -> Tensor:
        """Temporal state of a layer: `(slots, *row)`, a view. Otherwise as `get_conv_state`."""
        return self._pool.temporal_state(self._state, stream)[self._state_index("get_temporal_state", layer)]

    def _state_index(self, operation: str, layer: int) -> int:
        if layer not in self._state_layers:
            raise LayerError(self._state, operation, "no state of this layer", layer=layer, layers=self._state_layers)
        return self._state_layers.index(layer)
