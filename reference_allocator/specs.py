"""Sub-pools over one byte buffer: what an entry of each looks like, and typed views of all its bytes.

All sub-pools share the origin of the buffer, so physical page `p` of a pool is the bytes `[p * E, (p + 1) * E)`. The
first pages of every pool lie over the padding sink, which is never handed out.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from reference_allocator.arguments import expect_count
from reference_allocator.errors import BudgetError, SpecError

Grow = Literal["up", "down", "float"]

PART_ALIGNMENT = 16
"""Bytes: vector loads of 16 bytes may start at every row of every layer."""
ENTRY_ALIGNMENT = 32
"""Bytes: one memory sector."""
MAX_TOKEN_IDS = 2**31
"""Physical token ids travel through kernels as 32-bit integers."""


def round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def row_bytes(shape: Sequence[int], dtype: torch.dtype) -> int:
    return round_up(prod(shape) * dtype.itemsize, PART_ALIGNMENT)


@dataclass(frozen=True)
class KVSpec:
    """Keys and values of attention layers. A slot is one token, a page `page_size` of them."""

    name: str
    kind: Literal["full", "swa"]
    grow: Grow
    page_size: int
    layers: Sequence[int]
    heads: int
    key_dim: int
    value_dim: int
    dtype: torch.dtype

    @property
    def layer_bytes(self) -> int:
        return row_bytes((self.heads, self.key_dim), self.dtype) + row_bytes((self.heads, self.value_dim), self.dtype)

    @property
    def entry_bytes(self) -> int:
        return round_up(len(self.layers) * self.layer_bytes, ENTRY_ALIGNMENT)


@dataclass(frozen=True)
class StatePart:
    """One stream of a request's state: the shape of a layer's row, `(width - 1, channels)` for a conv state."""

    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True)
class StateSpec:
    """Recurrent state of requests. A slot is one request; parts follow each other, each with its layers adjacent."""

    name: str
    grow: Grow
    layers: Sequence[int]
    conv: tuple[StatePart, ...]
    temporal: tuple[StatePart, ...]
    page_size: int = 1

    def part_offset(self, index: int) -> int:
        """Byte offset in the slot of part `index`, conv parts first."""
        parts = (*self.conv, *self.temporal)[:index]
        return len(self.layers) * sum(row_bytes(part.shape, part.dtype) for part in parts)

    @property
    def entry_bytes(self) -> int:
        return round_up(self.part_offset(len(self.conv) + len(self.temporal)), ENTRY_ALIGNMENT)


Spec = KVSpec | StateSpec


@dataclass(frozen=True)
class Floor:
    """The worst single request, which a budget must hold alone: all its tokens, and the window, in tokens.

    full_tokens: how many of its tokens full attention must hold; all of them unless given. On the window pool it has
    the pages of the window and one more, as with `alloc_extend_swa_tail` and `advance_window`, or all of its pages
    where those are fewer. On a state pool it has `RUNNING_STATES` slots.
    """

    context: int
    window: int
    full_tokens: int | None = None


RUNNING_STATES = 3
"""State slots of one request: the running one and two checkpoints."""


@dataclass(frozen=True)
class Geometry:
    """A sub-pool in numbers: bytes of an entry and of a page, pages in the budget, and the first page past the sink."""

    name: str
    grow: Grow
    page_size: int
    entry_bytes: int
    page_bytes: int
    pages: int
    min_page: int


def sink_bytes(specs: Iterable[Spec]) -> int:
    """Bytes that every pool keeps free at the origin. A state entry counts once, not per page of a neighbour."""
    return max(spec.entry_bytes * spec.page_size for spec in specs)


def geometries(specs: Sequence[Spec], total_bytes: int) -> dict[str, Geometry]:
    """The pools of a budget by name. Raises `BudgetError` where one is left without a page, `SpecError` at 2^31 ids."""
    sink = sink_bytes(specs)
    found = {}
    for spec in specs:
        page_bytes = spec.entry_bytes * spec.page_size
        pages = total_bytes // spec.entry_bytes // spec.page_size
        min_page = -(-sink // page_bytes)
        if pages <= min_page:
            raise BudgetError(
                spec.name, "budget", "no page is left beside the sink",
                total_bytes=total_bytes, sink_bytes=sink, page_bytes=page_bytes, pages=pages, min_page=min_page,
            )  # fmt: skip
        if pages * spec.page_size >= MAX_TOKEN_IDS:
            raise SpecError(
                spec.name, "budget", "token ids do not fit in 31 bits", pages=pages, page_size=spec.page_size
            )
        found[spec.name] = Geometry(spec.name, spec.grow, spec.page_size, spec.entry_bytes, page_bytes, pages, min_page)
    return found


def floor_pages(floor: Floor, specs: Iterable[Spec]) -> dict[str, int]:
    """Pages that the request of a floor needs of each pool."""
    needed = {}
    for spec in specs:
        size = spec.page_size
        if isinstance(spec, StateSpec):
            needed[spec.name] = RUNNING_STATES
        elif spec.kind == "swa":
            needed[spec.name] = min(-(-floor.context // size), -(-max(floor.window, size) // size) + 1)
        else:
            held = floor.context if floor.full_tokens is None else floor.full_tokens
            needed[spec.name] = -(-held // size)
    return needed


def stand_together(pools: Iterable[Geometry], pages: Mapping[str, int]) -> bool:
    """Whether so many pages of each pool fit at once, each on the grid of its own pool."""
    pools = list(pools)
    if any(pages[pool.name] > pool.pages - pool.min_page for pool in pools):
        return False
    low, high = 0, max(pool.pages * pool.page_bytes for pool in pools)
    for pool in pools:
        if pool.grow == "up":
            low = (pool.min_page + pages[pool.name]) * pool.page_bytes
        elif pool.grow == "down":
            high = (pool.pages - pages[pool.name]) * pool.page_bytes
    for pool in pools:
        if pool.grow == "float":
            first = max(-(-low // pool.page_bytes), pool.min_page)
            low = (first + pages[pool.name]) * pool.page_bytes
    return low <= high


def check_specs(specs: Sequence[Spec]) -> None:
    """Raises `SpecError` unless the pools form one chain with two ends and every entry is well formed."""
    names = [spec.name for spec in specs]
    grows = [spec.grow for spec in specs]
    if len(set(names)) != len(names):
        raise SpecError("pool", "specs", "names are not unique", names=names)
    if grows.count("up") != 1 or grows.count("down") != 1:
        raise SpecError(
            "pool", "specs", "exactly one pool grows up and exactly one down", grow=dict(zip(names, grows, strict=True))
        )
    for spec in specs:
        if spec.page_size < 1 or spec.entry_bytes < 1:
            raise SpecError(spec.name, "specs", "an empty page", page_size=spec.page_size, entry_bytes=spec.entry_bytes)
        if isinstance(spec, StateSpec) and spec.page_size != 1:
            raise SpecError(spec.name, "specs", "a page of a state pool is one slot", page_size=spec.page_size)


class BytePool:
    """One buffer, shared by two or more sub-pools.

    total_bytes: the budget in bytes, and the size of the buffer; `resize` may lower it and raise it again up to that.
    specs: in any order; exactly one grows up, exactly one down.
    floor: the request that must always fit, or None.
    Raises `SpecError`, `BudgetError` and `ArgumentError`. Zero-fills the buffer on the current stream; does not block
    the host.
    """

    def __init__(
        self, total_bytes: int, specs: Sequence[Spec], *, device: torch.device | str = "cpu", floor: Floor | None = None
    ) -> None:
        expect_count("pool", "budget", total_bytes=total_bytes)
        check_specs(specs)
        self.specs = {spec.name: spec for spec in specs}
        self.floor = floor
        self.sink_bytes = sink_bytes(specs)
        self.geometry = self._feasible(total_bytes)
        self.total_bytes = total_bytes
        self.reserved_bytes = total_bytes
        self.buffer = torch.zeros(total_bytes, dtype=torch.uint8, device=device)
        self.device = self.buffer.device
        self._holders: WeakValueDictionary[str, object] = WeakValueDictionary()

    def geometry_of(self, name: str, operation: str) -> Geometry:
        """A sub-pool in numbers. Raises `SpecError` for a name that none has. Host only, never blocks."""
        if name not in self.geometry:
            raise SpecError(name, operation, "no pool of this name", pools=sorted(self.specs))
        return self.geometry[name]

    def claim(self, name: str, holder: object) -> None:
        """Notes who hands out the pages of a pool, as long as that lives. Host only, never blocks."""
        self._holders[name] = holder

    def expect_unclaimed(self, name: str) -> None:
        """Raises `SpecError` while somebody hands out the pages of a pool: two would hand out the same bytes.

        Host only.
        """
        if name in self._holders:
            gc.collect()  # neighbours refer to each other, so that they outlive their last use
        if name in self._holders:
            raise SpecError(name, "band", "another allocator has this pool", held=sorted(self._holders))

    def _feasible(self, total_bytes: int) -> dict[str, Geometry]:
        found = geometries(list(self.specs.values()), total_bytes)
        needed = {} if self.floor is None else floor_pages(self.floor, self.specs.values())
        if needed and not stand_together(found.values(), needed):
            items = {name: found[name].page_bytes * pages for name, pages in needed.items()}
            raise BudgetError(
                "pool", "budget", "one request cannot run alone: its pages, and what lies between two of them",
                total_bytes=total_bytes, needed=self.sink_bytes + sum(items.values()), sink=self.sink_bytes, **items,
            )  # fmt: skip
        return found

    def resize(self, total_bytes: int) -> None:
        """Changes the budget in bytes; the buffer and all views stay. Host only, never blocks.

        Raises `BudgetError` above the reserved bytes or below the floor, `ArgumentError` for what is no int. The caller
        has emptied every pool.
        """
        expect_count("pool", "resize", total_bytes=total_bytes)
        if total_bytes > self.reserved_bytes:
            raise BudgetError(
                "pool", "resize", "more than was reserved", total_bytes=total_bytes, reserved=self.reserved_bytes
            )
        self.geometry = self._feasible(total_bytes)
        self.total_bytes = total_bytes

    def poison(self) -> None:
        """Fills all but the sink with bytes that are NaN in every float dtype. One fill; never blocks."""
        self.buffer[self.sink_bytes :].fill_(0xFF)

    def envelopes(self, name: str) -> Tensor:
        """Every page of a pool as a row of 8-byte words: `(pages, page_bytes / 8)` int64. A view; never blocks.

        Raises `SpecError` for a name that no pool has.
        """
        self.geometry_of(name, "envelopes")
        geometry = geometries(list(self.specs.values()), self.reserved_bytes)[name]
        words = geometry.page_bytes // 8
        return self._typed(torch.int64).as_strided((geometry.pages, words), (words, 1))

    def kv_layer(self, name: str, layer: int) -> tuple[Tensor, Tensor]:
        """Keys `(pages * page_size, heads, key_dim)` and values of a model layer, strides `(entry, dim, 1)`.

        Raises `SpecError` for a layer or a pool without keys and values. Views; never blocks.
        """
        spec = self.specs.get(name)
        if not isinstance(spec, KVSpec) or layer not in spec.layers:
            raise SpecError(name, "kv_layer", "no keys and values of this layer", layer=layer)
        start = list(spec.layers).index(layer) * spec.layer_bytes
        keys = self._rows(spec, start, (spec.heads, spec.key_dim))
        start += row_bytes((spec.heads, spec.key_dim), spec.dtype)
        return keys, self._rows(spec, start, (spec.heads, spec.value_dim))

    def _rows(self, spec: KVSpec, start: int, shape: tuple[int, int]) -> Tensor:
        slots = self.reserved_bytes // spec.entry_bytes // spec.page_size * spec.page_size
        size = spec.dtype.itemsize
        return self._typed(spec.dtype).as_strided(
            (slots, *shape), (spec.entry_bytes // size, shape[1], 1), self._exact(spec.name, start, size)
        )

    def conv_state(self, name: str, stream: int) -> Tensor:
        """Conv state of all layers: `(layers, slots, width - 1, channels)`, never contiguous, channel stride 1.

        Raises `SpecError` where there is no such stream. A view; never blocks.
        """
        spec = self._state_spec(name, "conv_state")
        if not 0 <= stream < len(spec.conv):
            raise SpecError(name, "conv_state", "no such stream", stream=stream, streams=len(spec.conv))
        return self._state(spec, stream)

    def temporal_state(self, name: str, stream: int) -> Tensor:
        """Temporal state of all layers: `(layers, slots, *row)`. Errors and blocking as for `conv_state`."""
        spec = self._state_spec(name, "temporal_state")
        if not 0 <= stream < len(spec.temporal):
            raise SpecError(name, "temporal_state", "no such stream", stream=stream, streams=len(spec.temporal))
        return self._state(spec, len(spec.conv) + stream)

    def _state_spec(self, name: str, operation: str) -> StateSpec:
        spec = self.specs.get(name)
        if not isinstance(spec, StateSpec):
            raise SpecError(name, operation, "no state pool of this name", pools=sorted(self.specs))
        return spec

    def _state(self, spec: StateSpec, index: int) -> Tensor:
        part = (*spec.conv, *spec.temporal)[index]
        size = part.dtype.itemsize
        inner = [prod(part.shape[axis + 1 :]) for axis in range(len(part.shape))]
        slots = self.reserved_bytes // spec.entry_bytes
        return self._typed(part.dtype).as_strided(
            (len(spec.layers), slots, *part.shape),
            (row_bytes(part.shape, part.dtype) // size, spec.entry_bytes // size, *inner),
            self._exact(spec.name, spec.part_offset(index), size),
        )

    def _typed(self, dtype: torch.dtype) -> Tensor:
        return self.buffer[: self.reserved_bytes // dtype.itemsize * dtype.itemsize].view(dtype)

    def _exact(self, name: str, offset: int, itemsize: int) -> int:
        if offset % itemsize:
            raise SpecError(name, "view", "an offset between two items", offset=offset, itemsize=itemsize)
        return offset // itemsize
