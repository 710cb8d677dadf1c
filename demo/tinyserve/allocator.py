"""What every allocator of KV-cache pages offers."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch


class PageAllocator(ABC):
    """Hands out token slots in whole pages and takes them back."""

    def __init__(self, size: int, page_size: int, device: torch.device) -> None:
        self.size = size
        self.page_size = page_size
        self.device = device
        self.num_pages = size // page_size
        self.free_pages = torch.arange(1, self.num_pages + 1, dtype=torch.int64, device=device)

    def available(self) -> int:
        return len(self.free_pages) * self.page_size

    def alloc(self, need: int) -> torch.Tensor | None:
        """The slots of `need` tokens, which fill whole pages."""
        count = need // self.page_size
        if count > len(self.free_pages):
            return None
        pages, self.free_pages = self.free_pages[:count], self.free_pages[count:]
        offsets = torch.arange(self.page_size, device=self.device)
        return (pages[:, None] * self.page_size + offsets).reshape(-1)

    @abstractmethod
    def free(self, slots: torch.Tensor) -> None:
        """Take back the pages that the slots lie in."""

    def free_segment(self, slots: torch.Tensor, start_pos: int) -> None:
        """Take back the slots of consecutive tokens of one request, the first of them at position `start_pos`."""
        self.free(slots)
