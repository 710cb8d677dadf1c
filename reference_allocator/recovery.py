"""Locked-full recovery: a cached node that readers hold, and whose window pages are gone, takes those of a new prefix.

The node's ids stay: its full pages are pinned. The incoming tokens say the same text, so their window pages hold the
same keys and values, position by position. Pairs are positional, never sorted: ids carry no order, and a pair of
sorted ids would give page k of the node to some other page, without an error.
"""

from __future__ import annotations

import torch
from torch import Tensor

from reference_allocator import tables
from reference_allocator.arguments import expect_ids, expect_tensors
from reference_allocator.error_word import Fault
from reference_allocator.errors import ArgumentError
from reference_allocator.host_checks import distinct_pairs, expect_apart, expect_same_offsets
from reference_allocator.pages import Pages
from reference_allocator.two_sides import TwoSidedAllocator


def transfer_swa_pages(composite: TwoSidedAllocator, kept: Tensor, incoming: Tensor, *, start_pos: int) -> None:
    """Gives the window pages of `incoming` to `kept`: both the tokens (int64 `[n]`) of one stretch of a row.

    Raises `ArgumentError` for unequal lengths, dtypes and devices, `AlignmentError` for a start inside a page; on a
    checked CPU pool `BindingError` where `incoming` is not bound on the window side, or `kept` is. One page in both is
    an error over a byte pool, and with a fixed split keeps what it has. On a device the error word takes those. Queues
    the launches of `transfer_window` and two more on the current stream; never blocks the host.
    """
    operation = "transfer_swa_pages"
    if _expect_alike(composite, operation, kept, incoming):
        to = composite.segment_pages(operation, kept, start_pos)
        source = composite.segment_pages(operation, incoming, start_pos)
        composite.transfer_window(operation, to, source)


def transfer_swa_tokens(composite: TwoSidedAllocator, kept: Tensor, incoming: Tensor) -> None:
    """`transfer_swa_pages` where the position is not known: every token of a page moves it, to the same place.

    Both ranges (int64 `[n]`) break into pages alike: on a checked CPU pool `BindingError` where they do not, on a
    device the error word. Other errors as `transfer_swa_pages`. Cold. Queues the launches of `transfer_window` and two
    more (6 checked) on the current stream; never blocks the host.
    """
    operation = "transfer_swa_tokens"
    if not _expect_alike(composite, operation, kept, incoming):
        return
    for tokens in (kept, incoming):
        expect_ids(composite.name, operation, tokens, composite.device)
    to, source = (tables.pages_of(tokens, composite.page_size) for tokens in (kept, incoming))
    if composite.raises:
        expect_same_offsets(composite.name, operation, kept, incoming, composite.page_size)
        to, source = distinct_pairs(to, source)
    elif composite.checked:
        apart = torch.remainder(kept - incoming, composite.page_size)
        composite.swa.error.expect_positive(Fault.PAGES_APART, 1 - apart)
    composite.transfer_window(operation, Pages(to), Pages(source))


def _expect_alike(composite: TwoSidedAllocator, operation: str, kept: Tensor, incoming: Tensor) -> bool:
    """Whether there is anything to transfer. Raises `ArgumentError` for unequal lengths."""
    composite.expect_clean(operation)
    expect_tensors(composite.name, operation, kept, incoming)
    if kept.numel() != incoming.numel():
        raise ArgumentError(composite.name, operation, "unequal lengths", kept=kept.numel(), incoming=incoming.numel())
    return kept.numel() > 0


def recover_locked_full(composite: TwoSidedAllocator, kept: Tensor, incoming: Tensor, *, start_pos: int) -> Tensor:
    """Transfers the window pages of `incoming` to `kept` and frees `incoming` on full, all that is left of it.

    Returns the node's window value: physical token ids of `kept` on the window pool, int64 `[n]`, all above 0.
    Arguments, errors and blocking as `transfer_swa_pages`, and `BindingError` on a checked CPU pool for tokens in both.
    In an open group the free waits for its end.
    """
    for tokens in (kept, incoming):
        expect_ids(composite.name, "recover_locked_full", tokens, composite.device)
    if composite.raises:
        expect_apart(composite.name, "recover_locked_full", kept, incoming)
    transfer_swa_pages(composite, kept, incoming, start_pos=start_pos)
    composite.free_full_segment(incoming, start_pos=start_pos)
    return composite.translate_loc_from_full_to_swa(kept)
