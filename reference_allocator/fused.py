"""Page tables by fused kernels, and lists of pages in rings: one launch where portable torch takes several.

Tables, the order of lists and ids are those of `TorchTables`, call by call. Ids are int64 and on the device of the
tables. Work is queued on the current stream, and nothing blocks the host.
"""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from reference_allocator.errors import SpecError
from reference_allocator.page_tables import PageTables, PoolFacts
from reference_allocator.pages import ListState, PageList, Pages
from reference_allocator.records import Taken
from reference_allocator.table_kernels import MovesRecord, PhysicalRecord, SourceRecord, TablesRecord, load_tables
from reference_allocator.tables import Growth, Request, WholePages

ENDLESS = 1 << 62
"""Capacity of what is no ring."""

NO_RING = (None, 0, 0)
"""Where nothing is appended."""

WORD = 16
"""Bytes that a thread moves at once."""


class RingPages(Pages):
    """Pages that stand in a ring. They are read from there until something is appended to it."""

    __slots__ = ("state",)

    def __init__(self, state: ListState) -> None:
        self.state = state
        self.page_size = 1
        self.count = state.length
        self._tensor = None

    @property
    def tensor(self) -> Tensor:
        """The pages, int64 `[count]`, in storage of their own. One launch the first time or none; never blocks."""
        if self._tensor is None:
            self._tensor = _copied(self.state)
        return self._tensor


def _straight(state: ListState) -> Tensor:
    """The entries of a stretch in order: a view where the stretch does not go around the end, else a copy."""
    storage, at, length = state
    beyond = at + length - storage.numel()
    return storage[at : at + length] if beyond <= 0 else torch.cat((storage[at:], storage[:beyond]))


def _copied(state: ListState) -> Tensor:
    entries = _straight(state)
    return entries.clone() if state.at + state.length <= state.storage.numel() else entries


class Ring(PageList):
    """A list of at most `capacity` pages whose storage is there from the start: what is appended is written into it.

    More than that come only from frees of what was free; the ring then grows. What is handed out is a copy.
    """

    def __init__(self, capacity: int, device: torch.device) -> None:
        self._capacity = max(1, capacity)
        self._store(torch.empty(self._capacity, dtype=torch.int64, device=device), 0, 0)

    def _store(self, storage: Tensor, at: int, count: int) -> None:
        self.storage = storage
        self.capacity = storage.numel()
        self.address = storage.data_ptr()
        self.at = at
        self._count = count

    @property
    def count(self) -> int:
        """See `PageList`."""
        return self._count

    @property
    def values(self) -> Tensor:
        """See `PageList`: a copy."""
        return _copied(self.backup())

    def head(self, count: int) -> Pages:
        """See `PageList`."""
        return RingPages(ListState(self.storage, self.at, count))

    def take(self, count: int) -> Pages:
        """See `PageList`."""
        taken = self.head(count)
        self.at = (self.at + count) % self.capacity
        self._count -= count
        return taken

    def open_end(self, count: int) -> tuple[int, int, int]:
        """Makes the ring longer by `count` entries that the caller's next kernel writes.

        Returns the storage's address, where in it the new entries begin, and its capacity. No launch, unless the ring
        grows. Never blocks.
        """
        if self._count + count > self.capacity:
            self._move_to(2 * (self._count + count))
        end = (self.at + self._count) % self.capacity
        self._count += count
        return self.address, end, self.capacity

    def _move_to(self, capacity: int) -> None:
        storage = self.storage.new_empty(capacity)
        storage[: self._count].copy_(_straight(self.backup()))
        self._store(storage, 0, self._count)

    def append(self, pages: Tensor) -> None:
        """See `PageList`: one launch, or two around the end."""
        _, end, _ = self.open_end(pages.numel())
        before = min(pages.numel(), self.capacity - end)
        self.storage[end : end + before].copy_(pages[:before])
        if before < pages.numel():
            self.storage[: pages.numel() - before].copy_(pages[before:])

    def sort(self, *, descending: bool) -> None:
        """See `PageList`: one launch, or two around the end. The entries then start where the storage does."""
        storage = self.storage.new_empty(self.capacity)
        order = self.storage.new_empty(self._count)
        torch.sort(_straight(self.backup()), descending=descending, out=(storage[: self._count], order))
        self._store(storage, 0, self._count)

    def straightened(self) -> ListState:
        """The list, all of it behind its first entry. 3 launches where it went around the end, or none."""
        if self.at + self._count > self.capacity:
            self._move_to(self.capacity)
        return self.backup()

    def renewed(self, count: int) -> Tensor:
        """Takes new storage with `count` entries that the caller's next kernel writes, from the first. No launch."""
        self._store(self.storage.new_empty(self.capacity), 0, count)
        return self.storage

    def reset(self, pages: Tensor) -> None:
        """See `PageList`."""
        self._store(self.storage.new_empty(self._capacity), 0, 0)
        if pages.numel():
            self.append(pages)

    def backup(self) -> ListState:
        """See `PageList`."""
        return ListState(self.storage, self.at, self._count)

    def restore(self, state: ListState) -> None:
        """See `PageList`."""
        self._store(*state)

    def taken_since(self, state: ListState) -> Pages:
        """See `PageList`."""
        return RingPages(state._replace(length=state.length - self._count))


class FusedTables(PageTables):
    """By the table kernels, with lists in rings. Raises `SpecError` for pages off 16 bytes, `BuildError`.

    Unless a method says otherwise it is one launch, or none for no pages. The first one on a device runs a compiler.
    """

    def __init__(self, facts: PoolFacts) -> None:
        super().__init__(facts)
        self.kernels = load_tables(self.physical.device.type, self.physical.device.index)
        self._bytes = facts.envelopes.data_ptr()
        pages, words = facts.envelopes.shape
        if self._bytes % WORD or 8 * words % WORD:
            raise SpecError("pool", "tables", "pages lie off 16 bytes", page_bytes=8 * words, address=self._bytes)
        self._envelopes = (self._bytes, 8 * words // WORD, pages)

    def attach(self, v2p: Tensor, p2v: Tensor) -> None:
        """See `PageTables`."""
        super().attach(v2p, p2v)
        error = self.facts.error
        self._record = TablesRecord(
            v2p.data_ptr(), p2v.data_ptr(), v2p.numel() - 1, p2v.numel() - 1, self.facts.page_size,
            None if error is None else error.cells.data_ptr(), self.facts.free_fault.bit_length() - 1,
        )  # fmt: skip
        self._tables = ctypes.addressof(self._record)

    def page_list(self, capacity: int) -> Ring:
        """See `PageTables`."""
        return Ring(capacity, self.physical.device)

    def unbind(self, pages: Pages, holes: PageList, ids: PageList | None) -> None:
        """See `PageTables`."""
        count = pages.count
        if count:
            self.kernels.launch(
                "free_unbind", self._tables, *_where(pages), count,
                *(NO_RING if ids is None else _ring(ids).open_end(count)), *_ring(holes).open_end(count),
            )  # fmt: skip

    def forget(self, pages: Pages) -> None:
        """See `PageTables`."""
        if pages.count:
            self.kernels.launch("free_unbind", self._tables, *_where(pages), pages.count, *NO_RING, *NO_RING)

    def bind(self, pages: Pages, taken: Taken) -> None:
        """See `PageTables`: one launch more where pages are zeroed."""
        if pages.count:
            self.kernels.launch("hand_out", *self._minting(pages, taken), None)
            self._zero(taken)

    def bind_to(self, pages: Pages, physical: Tensor) -> None:
        """See `PageTables`."""
        if pages.count:
            self.kernels.launch("hand_out", *self._minting(pages, Taken(Pages(physical), ())), None)

    def hand_out(self, request: Request, ids: Pages, taken: Taken) -> Tensor:
        """See `PageTables`: one launch more where pages are minted and zeroed."""
        minting, threads = self._minting(ids, taken), self.kernels.threads
        if isinstance(request, WholePages):
            out = self.v2p.new_empty(ids.count * self.facts.page_size)
            if ids.count:
                self.kernels.launch("hand_out", *minting, out.data_ptr())
        elif isinstance(request, Growth):
            prefix, seq, last = request.lens
            out = self.v2p.new_empty(request.total)
            if request.total:
                self.kernels.launch(
                    "extend", *minting, prefix.data_ptr(), prefix.stride(0), seq.data_ptr(), seq.stride(0),
                    last.data_ptr(), last.stride(0), seq.numel(), out.data_ptr(), request.total, threads,
                )  # fmt: skip
        else:
            seq, last = request
            out = self.v2p.new_empty(seq.numel())
            if seq.numel():
                self.kernels.launch(
                    "decode", *minting, seq.data_ptr(), seq.stride(0), last.data_ptr(), last.stride(0), seq.numel(),
                    out.data_ptr(), threads,
                )  # fmt: skip
        self._zero(taken)
        return out

    def _minting(self, ids: Pages, taken: Taken) -> tuple[object, ...]:
        return self._tables, _source(ids), _physical(taken), ids.count

    def _zero(self, taken: Taken) -> None:
        if self.facts.zeroes:
            self._fill(taken)

    def _fill(self, taken: Taken) -> None:
        if taken.size:
            self.kernels.launch("zero_pages", _physical(taken), taken.size, *self._envelopes, self.kernels.threads)

    def report_bound(self, pages: Pages) -> None:
        """See `PageTables`: no launch in a pool that is not checked."""
        if self.facts.error is not None and pages.count:
            self.kernels.launch("report_bound", self._tables, _source(pages), pages.count)

    def rebind(self, kept: Pages, incoming: Pages) -> None:
        """See `PageTables`: two launches."""
        if kept.count:
            granted = self.v2p.new_empty(kept.count)
            self.kernels.launch(
                "rebind", self._tables, _source(kept), _source(incoming), granted.data_ptr(), kept.count, kernels=2
            )

    def translate(self, tokens: Tensor, out: Tensor | None) -> Tensor:
        """See `PageTables`: a copy more for each tensor through which no single step leads."""
        given = tokens if _stepped(tokens) else tokens.contiguous()
        into = given.new_empty(given.shape) if out is None or not _stepped(out) else out
        if given.numel():
            self.kernels.launch(
                "translate", self._tables, given.data_ptr(), _step(given), into.data_ptr(), _step(into), given.numel()
            )
        return into if out is None or into is out else out.copy_(into)

    def copy(self, source: Tensor, target: Tensor) -> None:
        """See `PageTables`."""
        if source.numel():
            moves = MovesRecord(source.data_ptr(), target.data_ptr(), None, None, source.numel())
            self.kernels.launch("copy_pages", ctypes.byref(moves), *self._envelopes, self.kernels.threads)

    def zero(self, physical: Tensor) -> None:
        """See `PageTables`."""
        self._fill(Taken(Pages(physical), ()))

    def pack(self, holes: PageList, low: int, count: int, *, most: int, descending: bool) -> None:
        """See `PageTables`: three launches, two where nothing can be live."""
        ring, threads = _ring(holes), self.kernels.threads
        scratch = self.v2p.new_empty(3 * count + 1)
        parts = [scratch.data_ptr() + 8 * count * part for part in range(4)]
        moves = ctypes.byref(MovesRecord(*parts, count))
        before = ring.straightened()
        ordered = before.storage.data_ptr() + 8 * before.at
        self.kernels.launch("pack_plan", self._tables, moves, ordered, low, not descending, threads)
        if most:
            self.kernels.launch("copy_pages", ctypes.byref(MovesRecord(*parts, most)), *self._envelopes, threads)
        left = before.length - count
        self.kernels.launch("pack_commit", self._tables, moves, ordered, ring.renewed(left).data_ptr(), left)

    def shift(self, source: int, target: int, count: int) -> None:
        """See `PageTables`."""
        if count:
            self.kernels.launch(
                "shift_pages", self._tables, source, target, count, *self._envelopes, self.kernels.threads
            )


def _ring(pages: PageList) -> Ring:
    """A list of `FusedTables.page_list`. Raises `TypeError` for another profile's."""
    if not isinstance(pages, Ring):
        raise TypeError(f"fused tables keep pages in a Ring, not in a {type(pages).__name__}")
    return pages


def _where(pages: Pages) -> tuple[int, int, int, int, int]:
    """Address, first entry, capacity, step and page size of pages."""
    if isinstance(pages, RingPages):
        storage, at, _ = pages.state
        return storage.data_ptr(), at, storage.numel(), 1, 1
    tokens, page_size = pages.tokens, pages.page_size
    return tokens.data_ptr(), 0, ENDLESS, tokens.stride(0) * page_size, page_size


def _source(pages: Pages) -> object:
    return ctypes.byref(SourceRecord(*_where(pages)))


def _physical(taken: Taken) -> object:
    start, first, following = 0, 0, 0
    if taken.grown:
        start, first, following = taken.grown[0].start, len(taken.grown[0]), taken.grown[-1].start
    if taken.drained is None:
        return ctypes.byref(PhysicalRecord(None, 0, 0, 0, start, first, following))
    address, at, capacity, step, page_size = _where(taken.drained)
    if (step, page_size) != (1, 1):
        raise SpecError("pool", "tables", "physical pages that do not lie one behind another", step=step)
    return ctypes.byref(PhysicalRecord(address, at, capacity, taken.drained.count, start, first, following))


def _stepped(tensor: Tensor) -> bool:
    """Whether one step leads through a tensor, of whatever rank."""
    return tensor.dim() <= 1 or tensor.is_contiguous()


def _step(tensor: Tensor) -> int:
    return tensor.stride(0) if tensor.dim() == 1 else 1
