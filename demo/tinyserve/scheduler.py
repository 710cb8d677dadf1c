"""Runs requests step by step and gives their pages back."""

from __future__ import annotations

from collections import deque

import torch

from tinyserve.allocator import PageAllocator


class Request:
    """A request in flight: how far it is, and which slots hold its tokens."""

    def __init__(self, slots: torch.Tensor, shared_len: int, max_tokens: int) -> None:
        self.slots = slots
        self.shared_len = shared_len
        self.max_tokens = max_tokens
        self.generated = 0

    @property
    def finished(self) -> bool:
        return self.generated >= self.max_tokens


class Scheduler:
    """Admits waiting prompts, runs a step for all requests, and retires the finished."""

    def __init__(self, allocator: PageAllocator) -> None:
        self.allocator = allocator
        self.waiting: deque[tuple[int, int]] = deque()
        self.running: list[Request] = []

    def add(self, prompt_len: int, max_tokens: int) -> None:
        self.waiting.append((prompt_len, max_tokens))

    def step(self) -> None:  # nosync-lint: hot
        while self.waiting and self.admit(*self.waiting[0]):
            self.waiting.popleft()
        for request in self.running:
            request.generated += 1
            if request.finished:
                self.retire(request)
        self.running = [request for request in self.running if not request.finished]

    def admit(self, prompt_len: int, max_tokens: int) -> bool:
        page = self.allocator.page_size
        need = -(-(prompt_len + max_tokens) // page) * page
        slots = self.allocator.alloc(need)
        if slots is None:
            return False
        self.running.append(Request(slots, 0, max_tokens))
        return True

    def retire(self, request: Request) -> None:
        """Give back what the request did not share; where that begins is known on the host."""
        own = request.slots[request.shared_len :]
        self.allocator.free_segment(own, start_pos=request.shared_len)
