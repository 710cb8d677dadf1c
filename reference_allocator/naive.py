"""The allocator as it is often written first: every free makes the host wait three times.

Here to be found and measured. The same tables, ids and results as `PageAllocator`; only the free differs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from reference_allocator.allocator import PageAllocator


class NaiveAllocator(PageAllocator):
    """A `PageAllocator` that frees by value. Every free blocks the host; there are no groups and no checks."""

    def free(self, tokens: Tensor | None) -> None:
        """Frees the pages of tokens (int64 `[n]`). Queues 9 launches on the current stream, blocks the host 3 times."""
        if tokens is None or tokens.numel() == 0:
            return
        pages = torch.unique(torch.div(tokens, self.page_size, rounding_mode="floor"))
        held = self.band.v2p[pages]
        self.band.v2p[pages] = -1
        self.band.p2v[held] = -1
        self.free_vids = torch.cat((self.free_vids, pages))
        self.band.take_back(held)

    def free_segment(self, tokens: Tensor | None, *, start_pos: int) -> None:
        """As `free`: the position is known, and not used."""
        self.free(tokens)
