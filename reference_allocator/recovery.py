"""Locked-full recovery: a cached node that readers hold, and whose window pages are gone, takes those of a new prefix.

The node's ids stay: its full pages are pinned. The incoming tokens say the same text, so their window pages hold the
same keys and values, position by position. Pairs are positional, never sorted: ids carry no order, and a pair of
sorted ids would give page k of the node to some other page, without an error.
"""

from __future__ import annotations

from torch import Tensor

from reference_allocator.composites import SWAComposite
from reference_allocator.errors import ArgumentError


def transfer_swa_pages(composite: SWAComposite, kept: Tensor, incoming: Tensor, *, start_pos: int) -> None:
    """Gives the window pages of `incoming` to `kept`: both the tokens (int64 `[n]`) of one stretch of a row.

    Raises `ArgumentError` for unequal lengths, dtypes and devices, `AlignmentError` for a start inside a page; on a
    checked CPU pool `BindingError` where `incoming` is not bound on the window pool, `kept` is, or one page is in both.
    On a device the error word takes those. Queues 6 launches (23 checked) on the current stream; never blocks the host.
    """
    composite.expect_clean("transfer_swa_pages")
    if kept.numel() != incoming.numel():
        raise ArgumentError(
            composite.name, "transfer_swa_pages", "unequal lengths", kept=kept.numel(), incoming=incoming.numel()
        )
    if kept.numel() == 0:
        return
    to = composite.full.segment_pages("transfer_swa_pages", kept, start_pos)
    source = composite.full.segment_pages("transfer_swa_pages", incoming, start_pos)
    # A free of the node's old window pages may still wait in a group; after the transfer it would free the new ones.
    composite.apply_deferred()
    # Where one page is in both, it is bound as incoming, and so the node's is not unbound.
    composite.swa.expect_bound(source, "transfer_swa_pages")
    if composite.raises:
        composite.swa.expect_unbound(to, "transfer_swa_pages", freed=set())
        composite.full.band.expect_bound(to, "transfer_swa_pages")
    composite.swa.rebind(to, source)


def recover_locked_full(composite: SWAComposite, kept: Tensor, incoming: Tensor, *, start_pos: int) -> Tensor:
    """Transfers the window pages of `incoming` to `kept` and frees `incoming` on full, all that is left of it.

    Returns the node's window value: physical token ids of `kept` on the window pool, int64 `[n]`, all above 0.
    Arguments, errors and blocking as `transfer_swa_pages`. In an open group the free waits for its end.
    """
    transfer_swa_pages(composite, kept, incoming, start_pos=start_pos)
    composite.free_full_segment(incoming, start_pos=start_pos)
    return composite.translate_loc_from_full_to_swa(kept)
