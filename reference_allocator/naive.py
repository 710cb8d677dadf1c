"""The allocator as it is often written first: every free makes the host wait three times, and so does a compaction.

Here to be found and measured. The same tables, ids and results as `PageAllocator` and `EndBand.pack`; only the way to
them differs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from reference_allocator import tables
from reference_allocator.allocator import PageAllocator
from reference_allocator.end_band import EndBand


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
        self.id_list.append(pages)
        self.band.hole_list.append(held)
        self.band.took_back(held.numel())

    def free_segment(self, tokens: Tensor | None, *, start_pos: int) -> None:
        """As `free`: the position is known, and not used."""
        self.free(tokens)


def pack_host_planned(band: EndBand, pages: int) -> int:
    """`EndBand.pack` with the plan made on the host: the same pages go to the same places, and as many are given back.

    Reads the holes and who lives at the frontier, pairs them in a loop, uploads the pairs. On the current stream, also
    where the band has a side queue; the pages pass through a copy of all of them at once. Returns and errors as `pack`.
    Queues 7 launches and copies besides the two reads, and blocks the host 3 times.
    """
    band.expect_packable(pages)
    if pages == 0 or not band.may_move():
        return 0
    band.await_moves()
    band.await_forward()
    low = band.hi - pages if band.up else band.lo
    holes = torch.sort(band.holes, descending=not band.up).values
    best = holes.tolist()
    owners = band.p2v[low : low + pages].tolist()
    live = [page for page, owner in enumerate(owners, low) if owner >= 0]
    pairs = [live, best[: len(live)], [owners[page - low] for page in live]]
    source, target, moved = torch.tensor(pairs, dtype=torch.int64, device=band.device)
    envelopes = band.pool.envelopes(band.name)
    envelopes.index_copy_(0, target, envelopes[source])
    band.v2p.index_copy_(0, moved, target)
    band.p2v.index_fill_(0, source, tables.TOMBSTONE)
    band.p2v.index_copy_(0, target, moved)
    band.hole_list.reset(holes[len(live) : len(live) + len(best) - pages])
    band.lo, band.hi = (band.lo, low) if band.up else (low + pages, band.hi)
    band.epoch += 1
    band.moves += 1
    return pages
