"""What the pages of live tokens hold: a mark for each token, written once; after any moves it must still be there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from benchmarks.allocator.pools import LAYERS
from reference_allocator import BytePool, PageAllocator, SWAComposite, SWAMambaComposite


def none() -> Tensor:
    return torch.empty(0, dtype=torch.int64)


@dataclass
class Request:
    """The token ids of a request, what was written for each, and below which position it has no window pages."""

    tokens: Tensor = field(default_factory=none)
    marks: Tensor = field(default_factory=none)
    cursor: int = 0

    def append(self, tokens: Tensor, marks: Tensor) -> None:
        # The first tokens bring their device along.
        self.tokens = torch.cat((self.tokens, tokens)) if self.tokens.numel() else tokens
        self.marks = torch.cat((self.marks, marks))

    def cut(self, length: int) -> None:
        self.tokens, self.marks, self.cursor = self.tokens[:length], self.marks[:length], min(length, self.cursor)


class Contents:
    """The keys of the last layer of each pool that an allocator uses."""

    def __init__(self, pool: BytePool, allocator: PageAllocator | SWAComposite) -> None:
        pool.poison()
        self.written = 0
        self.full = allocator.translate
        self.swa: Callable[[Tensor], Tensor] | None = None
        if isinstance(allocator, SWAComposite):
            self.swa = allocator.translate_loc_from_full_to_swa
        self.states: Tensor | None = None
        if isinstance(allocator, SWAMambaComposite):
            self.slots = allocator.state.translate
            self.states = pool.temporal_state("state", 0)[0, :, 0]
        self.keys = {name: pool.kv_layer(name, layers - 1)[0][:, 0, 0] for name, layers in LAYERS.items()}

    def new(self, count: int) -> Tensor:
        """Numbers that nothing was written with so far."""
        self.written += count
        return torch.arange(self.written - count, self.written) + 1

    def write(self, tokens: Tensor, marks: Tensor) -> None:
        """Writes a number for each token, on every side."""
        self.keys["full"][self.full(tokens)] = marks
        if self.swa is not None:
            self.keys["swa"][self.swa(tokens)] = marks

    def broken(self, requests: Sequence[Request]) -> list[str]:
        """I16, by side."""
        if not requests:
            return []
        live = [(request.tokens, request.marks) for request in requests]
        problems = [] if self._same("full", self.full, live) else ["full: I16 a live token holds something else"]
        if self.swa is not None:
            live = [(request.tokens[request.cursor :], request.marks[request.cursor :]) for request in requests]
            problems += [] if self._same("swa", self.swa, live) else ["swa: I16 a live token holds something else"]
        return problems

    def write_state(self, slots: Tensor, marks: Tensor) -> None:
        """Writes a number into each slot."""
        if self.states is not None:
            self.states[self.slots(slots)] = marks

    def broken_state(self, slots: Sequence[Tensor], marks: Sequence[Tensor]) -> list[str]:
        """I16 of slots, each of one element, and the numbers that were written for them."""
        if self.states is None or not slots:
            return []
        held = self.states[self.slots(torch.cat(tuple(slots)))]
        return [] if torch.equal(held, torch.cat(tuple(marks))) else ["state: I16 a live slot holds something else"]

    def _same(self, name: str, translate: Callable[[Tensor], Tensor], live: Sequence[tuple[Tensor, Tensor]]) -> bool:
        tokens, marks = (torch.cat(parts) for parts in zip(*live, strict=True))
        return torch.equal(self.keys[name][translate(tokens)], marks)
