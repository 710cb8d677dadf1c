"""What checked pools on a CPU find out before they write: a read of CPU memory stops no device.

Checked pools on a device report the same to the error word instead. Nothing here is called for them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from reference_allocator.errors import ArgumentError, BindingError


def host_values(tensor: Tensor) -> list[int]:
    """The values of a tensor in CPU memory. Raises `ArgumentError` elsewhere, where this would block the host."""
    if tensor.device.type != "cpu":
        raise ArgumentError("tensor", "host_values", "not in CPU memory", device=tensor.device)
    return list(tensor.tolist())


def distinct_pairs(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Pairs of values at equal places of two tensors in CPU memory, each pair once: int64 `[k]` each."""
    pairs = sorted(set(zip(host_values(first), host_values(second), strict=True)))
    first, second = (torch.tensor([pair[at] for pair in pairs], dtype=torch.int64) for at in (0, 1))
    return first, second


def expect_offsets(pool: str, operation: str, reps: Tensor, page_size: int) -> None:
    """Raises `BindingError` unless each token of `reps` starts a page."""
    off = [token for token in host_values(reps) if token % page_size]
    if off:
        raise BindingError(pool, operation, "tokens inside a page stand where one starts", tokens=off[:8])


def expect_same_offsets(pool: str, operation: str, kept: Tensor, incoming: Tensor, page_size: int) -> None:
    """Raises `BindingError` unless tokens at equal positions stand at equal places of their pages."""
    pairs = zip(host_values(kept), host_values(incoming), strict=True)
    apart = [(one, other) for one, other in pairs if (one - other) % page_size]
    if apart:
        raise BindingError(pool, operation, "ranges that break into pages differently", pairs=apart[:4])


def expect_known(pool: str, operation: str, v2p: Tensor, pages: Tensor, first: int) -> list[int]:
    """The pages as numbers. Raises `BindingError` for ids outside the table, in the sink, or given twice."""
    ids = host_values(pages)
    foreign = [page for page in ids if not first <= page < v2p.numel() - 1]
    if foreign:
        raise BindingError(pool, operation, "ids outside the table", pages=foreign[:8], table=v2p.numel() - 1)
    if len(set(ids)) < len(ids):
        twice = sorted({page for page in ids if ids.count(page) > 1})
        raise BindingError(pool, operation, "one page twice", pages=twice[:8])
    return ids


def expect_bound(pool: str, operation: str, v2p: Tensor, pages: Tensor, first: int) -> None:
    """Raises `BindingError` unless every page is bound, and named once."""
    ids = expect_known(pool, operation, v2p, pages, first)
    unbound = [page for page, held in zip(ids, host_values(v2p[pages]), strict=True) if held <= 0]
    if unbound:
        raise BindingError(pool, operation, "pages that are not bound: freed twice or stale", pages=unbound[:8])


def expect_unbound(pool: str, operation: str, v2p: Tensor, pages: Tensor, first: int, freed: set[int]) -> None:
    """Raises `BindingError` unless every page is known and has no binding here, or is `freed` already."""
    ids = expect_known(pool, operation, v2p, pages, first)
    bound = [page for page, held in zip(ids, host_values(v2p[pages]), strict=True) if held > 0 and page not in freed]
    if bound:
        raise BindingError(pool, operation, "pages that are still bound", pages=bound[:8])


def expect_pairable(pool: str, operation: str, full: Tensor, swa: Tensor, page_size: int) -> tuple[Tensor, Tensor]:
    """The pages of full and window tokens that are to belong together, each pair once: int64 `[k]` each.

    Raises `BindingError` for tokens at unequal places of their pages, and for one window page of two full pages or the
    other way round.
    """
    expect_same_offsets(pool, operation, full, swa, page_size)
    to, window = distinct_pairs(full // page_size, swa // page_size)
    for pages in (host_values(to), host_values(window)):
        twice = sorted({page for page in pages if pages.count(page) > 1})
        if twice:
            raise BindingError(pool, operation, "one page paired with two", pages=twice[:8])
    return to, window


def expect_in_table(pool: str, operation: str, v2p: Tensor, tokens: Tensor, page_size: int, first: int) -> None:
    """Raises `BindingError` for tokens whose pages lie outside the table or in the sink. They may be named twice."""
    pages, _ = distinct_pairs(tokens // page_size, tokens // page_size)
    expect_known(pool, operation, v2p, pages, first)


def expect_in_none(pool: str, operation: str, window: Tensor, stop: int, taken: dict[str, set[int]]) -> None:
    """Raises `BindingError` for physical window pages outside `[1, stop)`, and for those that somebody has."""
    pages = host_values(window)
    foreign = [page for page in pages if not 1 <= page < stop]
    if foreign:
        raise BindingError(pool, operation, "window pages outside the pool", pages=foreign[:8], pool_pages=stop)
    for state, others in taken.items():
        found = sorted(others.intersection(pages))
        if found:
            raise BindingError(pool, operation, f"window pages that are {state}", pages=found[:8])


def expect_apart(pool: str, operation: str, kept: Tensor, incoming: Tensor) -> None:
    """Raises `BindingError` if some tokens are kept and incoming: freed as incoming, they would be lost as kept."""
    both = sorted(set(host_values(kept)) & set(host_values(incoming)))
    if both:
        raise BindingError(pool, operation, "incoming tokens that are kept, and still bound", tokens=both[:8])
