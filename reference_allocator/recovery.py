"""Locked-full recovery: a cached node that readers hold, and whose window pages are gone, takes those of a new prefix.

The node's ids stay: its full pages are pinned. The incoming tokens say the same text, so their window pages hold the
same keys and values, position by position. Pairs are positional, never sorted: ids carry no order, and a pair of
sorted ids would give page k of the node to some other page, without an error.
"""

from __future__ import annotations

import torch
from torch import Tensor

from reference_allocator import tables
from reference_allocator.arguments import expect_ids
from reference_allocator.composites import SWAComposite
from reference_allocator.error_word import Fault
from reference_allocator.errors import ArgumentError
from reference_allocator.host_checks import distinct, expect_same_offsets


def transfer_swa_pages(composite: SWAComposite, kept: Tensor, incoming: Tensor, *, start_pos: int) -> None:
    """Gives the window pages of `incoming` to `kept`: both the tokens (int64 `[n]`) of one stretch of a row.

    Raises `ArgumentError` for unequal lengths, dtypes and devices, `AlignmentError` for a start inside a page; on a
    checked CPU pool `BindingError` where `incoming` is not bound on the window pool, `kept` is, or one page is in both.
    On a device the error word takes those. Queues 6 launches (23 checked) on the current stream; never blocks the host.
    """
    operation = "transfer_swa_pages"
    if not _expect_alike(composite, operation, kept, incoming):
        return
    to = composite.full.segment_pages(operation, kept, start_pos)
    source = composite.full.segment_pages(operation, incoming, start_pos)
    # A free of the node's old window pages may still wait in a group; after the transfer it would free the new ones.
    composite.apply_deferred()
    _expect_transferable(composite, operation, to, source)
    composite.swa.rebind(to, source)


def transfer_swa_tokens(composite: SWAComposite, kept: Tensor, incoming: Tensor) -> None:
    """`transfer_swa_pages` where the position is not known: every token of a page moves it, to the same place.

    Both ranges (int64 `[n]`) break into pages alike: on a checked CPU pool `BindingError` where they do not, on a
    device the error word. Other errors as `transfer_swa_pages`. Cold. Queues 6 launches (27 checked) on the current
    stream; never blocks the host.
    """
    operation = "transfer_swa_tokens"
    if not _expect_alike(composite, operation, kept, incoming):
        return
    for tokens in (kept, incoming):
        expect_ids(composite.name, operation, tokens, composite.device)
    to, source = (tables.pages_of(tokens, composite.page_size) for tokens in (kept, incoming))
    if composite.raises:
        expect_same_offsets(composite.name, operation, kept, incoming, composite.page_size)
    composite.apply_deferred()
    if composite.raises:
        _expect_transferable(composite, operation, distinct(to), distinct(source))
    elif composite.checked:
        apart = torch.remainder(kept - incoming, composite.page_size)
        composite.swa.error.expect_positive(Fault.PAGES_APART, 1 - apart)
    composite.swa.rebind(to, source)


def _expect_alike(composite: SWAComposite, operation: str, kept: Tensor, incoming: Tensor) -> bool:
    """Whether there is anything to transfer. Raises `ArgumentError` for unequal lengths."""
    composite.expect_clean(operation)
    if kept.numel() != incoming.numel():
        raise ArgumentError(composite.name, operation, "unequal lengths", kept=kept.numel(), incoming=incoming.numel())
    return kept.numel() > 0


def _expect_transferable(composite: SWAComposite, operation: str, to: Tensor, source: Tensor) -> None:
    # Where one page is in both, it is bound as incoming, and so the node's is not unbound.
    composite.swa.expect_bound(source, operation)
    composite.swa.expect_unbound(to, operation, freed=set())
    composite.full.band.expect_bound(to, operation)


def recover_locked_full(composite: SWAComposite, kept: Tensor, incoming: Tensor, *, start_pos: int) -> Tensor:
    """Transfers the window pages of `incoming` to `kept` and frees `incoming` on full, all that is left of it.

    Returns the node's window value: physical token ids of `kept` on the window pool, int64 `[n]`, all above 0.
    Arguments, errors and blocking as `transfer_swa_pages`. In an open group the free waits for its end.
    """
    transfer_swa_pages(composite, kept, incoming, start_pos=start_pos)
    composite.free_full_segment(incoming, start_pos=start_pos)
    return composite.translate_loc_from_full_to_swa(kept)
