"""One pool of pages that several models draw from."""

from __future__ import annotations

import torch

from tinyserve.allocator import PageAllocator

NO_OWNER = -1


class SharedPoolAllocator(PageAllocator):
    """Remembers which model holds a page. Written from the base class, and `free_segment` was forgotten."""

    def __init__(self, size: int, page_size: int, device: torch.device, models: int) -> None:
        super().__init__(size, page_size, device)
        self.models = models
        self.page_owner = torch.full((self.num_pages + 1,), NO_OWNER, dtype=torch.int32, device=device)

    def alloc_for(self, model: int, need: int) -> torch.Tensor | None:
        slots = self.alloc(need)
        if slots is not None:
            pages = slots[:: self.page_size] // self.page_size
            self.page_owner.index_fill_(0, pages, model)
        return slots

    def free(self, slots: torch.Tensor) -> None:
        self._return(torch.unique(slots // self.page_size))

    def _return(self, pages: torch.Tensor) -> None:
        self.page_owner[pages] = NO_OWNER
        self.free_pages = torch.cat((self.free_pages, pages))
