"""One pool of pages for one model."""

from __future__ import annotations

import torch

from tinyserve.allocator import PageAllocator


class PagedAllocator(PageAllocator):
    """Knows from the position of the first token which slots open a page, and never asks the device."""

    def __init__(self, size: int, page_size: int, device: torch.device) -> None:
        super().__init__(size, page_size, device)
        self.owner = torch.full((self.num_pages + 1,), -1, dtype=torch.int32, device=device)

    def free(self, slots: torch.Tensor) -> None:
        self._release(slots[:: self.page_size] // self.page_size)

    def free_segment(self, slots: torch.Tensor, start_pos: int) -> None:
        first = -start_pos % self.page_size
        self._release(slots[first :: self.page_size] // self.page_size)

    def _release(self, pages: torch.Tensor) -> None:
        self.owner.index_fill_(0, pages, -1)
        self.free_pages = torch.cat((self.free_pages, pages))

    def clear(self) -> None:
        self.owner[:] = -1
        self.free_pages = torch.arange(1, self.num_pages + 1, dtype=torch.int64, device=self.device)
