"""Page-table operations in portable torch: fixed shapes, no host reads, lists that are replaced and never written.

Ids are int64 and on the device of the tables. Every function queues its work on the current stream and never blocks
the host. A table has one row per page and a last row that stays -1: it catches the writes of masked lanes, and an index
of -1 finds it too.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

TOMBSTONE = -1


def page_reps(tokens: Tensor, start_pos: int, page_size: int) -> Tensor:
    """One token for each page that `row[start_pos : start_pos + n]` touches, in row order, at any alignment.

    A view of `tokens` where the start is page aligned, else a copy. The caller proves that a partial head page is its
    own: two segments that split a page both stand for it.
    """
    into_page = start_pos % page_size
    if into_page == 0:
        return tokens[::page_size]
    return torch.cat((tokens[:1], tokens[page_size - into_page :: page_size]))


def pages_of(reps: Tensor, page_size: int) -> Tensor:
    """Virtual pages of representatives. With a page size of 1 the argument itself, not a copy."""
    return reps if page_size == 1 else torch.div(reps, page_size, rounding_mode="floor")


def tokens_of(pages: Tensor, offsets: Tensor) -> Tensor:
    """All tokens of pages, page by page, in storage of their own. `offsets` is `arange(page_size)`."""
    page_size = offsets.numel()
    return pages.clone() if page_size == 1 else torch.add(offsets, pages.unsqueeze(1), alpha=page_size).view(-1)


def reset(table: Tensor) -> None:
    """No page is bound but the sink to itself."""
    table.fill_(TOMBSTONE)
    table[:1].fill_(0)


def bind_range(v2p: Tensor, p2v: Tensor, pages: Tensor, physical: Tensor, start: int) -> None:
    """Binds `pages` to ascending physical pages from `start`. `physical` is `arange` over the whole pool."""
    stop = start + pages.numel()
    v2p.index_copy_(0, pages, physical[start:stop])
    p2v[start:stop].copy_(pages)


def bind_pairs(v2p: Tensor, p2v: Tensor, pages: Tensor, physical: Tensor) -> None:
    """Binds `pages[i]` to `physical[i]`; neither repeats."""
    v2p.index_copy_(0, pages, physical)
    p2v.index_copy_(0, physical, pages)


def rebind_range(v2p: Tensor, p2v: Tensor, physical: Tensor, source: int, target: int, count: int) -> None:
    """Gives `count` pages from `target` to the owners of as many live ones from `source`; the ranges are disjoint."""
    owners = p2v[source : source + count]
    v2p.index_copy_(0, owners, physical[target : target + count])
    p2v[target : target + count].copy_(owners)
    owners.fill_(TOMBSTONE)


def copy_range(envelopes: Tensor, source: int, target: int, count: int) -> None:
    """Copies `count` whole pages from `source` to `target`; the ranges are disjoint."""
    envelopes[target : target + count].copy_(envelopes[source : source + count])


def unbind(v2p: Tensor, p2v: Tensor, pages: Tensor) -> Tensor:
    """Tombstones bound pages on both sides. Returns the physical pages they held.

    A page that is already unbound reads -1, and its writes end in the last rows.
    """
    held = v2p[pages]
    v2p.index_fill_(0, pages, TOMBSTONE)
    p2v.index_fill_(0, held, TOMBSTONE)
    return held


def rebind(v2p: Tensor, p2v: Tensor, kept: Tensor, incoming: Tensor, held: Tensor) -> None:
    """Gives the physical pages `held` by `incoming` to `kept`, and tombstones `incoming`."""
    v2p.index_copy_(0, kept, held)
    v2p.index_fill_(0, incoming, TOMBSTONE)
    p2v.index_copy_(0, held, kept)


def rebind_where(ok: Tensor, v2p: Tensor, p2v: Tensor, kept: Tensor, incoming: Tensor, held: Tensor) -> None:
    """`rebind` for the lanes that are `ok`; the others write -1 to the last rows."""
    last = v2p.numel() - 1
    v2p.index_copy_(0, torch.where(ok, kept, last), torch.where(ok, held, TOMBSTONE))
    v2p.index_fill_(0, torch.where(ok, incoming, last), TOMBSTONE)
    p2v.index_copy_(0, torch.where(ok, held, p2v.numel() - 1), torch.where(ok, kept, TOMBSTONE))


def translate(v2p: Tensor, tokens: Tensor, page_size: int, out: Tensor | None) -> Tensor:
    """Physical token ids; negative, unbound and foreign ids give 0. `out` may be `tokens` itself."""
    last = v2p.numel() - 1
    if page_size == 1:
        return torch.clamp_min(v2p[tokens.clamp(TOMBSTONE, last)], 0, out=out)
    pages = torch.div(tokens, page_size, rounding_mode="floor").clamp_(TOMBSTONE, last)
    inside = torch.remainder(tokens, page_size)
    # A tombstone becomes a negative token, whatever the place inside the page.
    return torch.clamp_min(torch.add(inside, v2p[pages], alpha=page_size), 0, out=out)


class ExtendLens(NamedTuple):
    """Lengths of requests on the device, int64 `[bs]`: before and after, and the id of each one's last token."""

    prefix: Tensor
    seq: Tensor
    last_loc: Tensor


def extend(lens: ExtendLens, free_vids: Tensor, page_size: int, total: int) -> Tensor:
    """Ids of the `total` new tokens of all requests: the rest of each old page, then the next of `free_vids`.

    `free_vids` may be empty where no request starts a page.
    """
    end = torch.cumsum(lens.seq - lens.prefix, 0)
    begin = end - lens.seq + lens.prefix
    had = torch.div(lens.prefix + (page_size - 1), page_size, rounding_mode="floor")
    fresh = torch.div(lens.seq + (page_size - 1), page_size, rounding_mode="floor") - had
    lane = torch.arange(total, device=end.device)
    # Without the last end, so that lanes beyond the lengths are the last request's, and no index leaves the batch.
    request = torch.searchsorted(end[:-1], lane, right=True)
    done = lane - begin[request]
    old = lens.last_loc[request] + 1 + done
    if free_vids.numel() == 0:
        return old
    position = done + lens.prefix[request]
    page = torch.div(position, page_size, rounding_mode="floor") - had[request]
    consumed = (torch.cumsum(fresh, 0) - fresh)[request] + page
    minted = free_vids[consumed.clamp_(0, free_vids.numel() - 1)]
    new = torch.add(torch.remainder(position, page_size), minted, alpha=page_size)
    return torch.where(page < 0, old, new)


def decode(seq: Tensor, last_loc: Tensor, free_vids: Tensor, page_size: int) -> Tensor:
    """Id of one more token per request, the `seq`-th. `free_vids` is empty where no request starts a page."""
    if free_vids.numel() == 0:
        return last_loc + 1
    starts = torch.remainder(seq - 1, page_size) == 0
    minted = free_vids[(torch.cumsum(starts, 0) - 1).clamp_(0, free_vids.numel() - 1)]
    return torch.where(starts, minted * page_size, last_loc + 1)


class WholePages(NamedTuple):
    """A request for all tokens of so many pages."""

    def tokens(self, minted: Tensor, offsets: Tensor) -> Tensor:
        """Ids of the tokens asked for, out of minted pages. `offsets` is `arange(page_size)`, here and below."""
        return tokens_of(minted, offsets)


class Growth(NamedTuple):
    """A request for the `total` tokens by which requests of any length grow."""

    lens: ExtendLens
    total: int

    def tokens(self, minted: Tensor, offsets: Tensor) -> Tensor:
        """See `WholePages.tokens`."""
        return extend(self.lens, minted, offsets.numel(), self.total)


class Step(NamedTuple):
    """A request for one more token per request, the `seq`-th: both int64 `[bs]`."""

    seq: Tensor
    last_loc: Tensor

    def tokens(self, minted: Tensor, offsets: Tensor) -> Tensor:
        """See `WholePages.tokens`."""
        return decode(self.seq, self.last_loc, minted, offsets.numel())


Request = WholePages | Growth | Step
"""What tokens are asked for. A page that begins is minted for it."""


class Moves(NamedTuple):
    """Lanes of a compaction, all `[m]`: which lanes count, and for those the source, the target and the owner."""

    ok: Tensor
    source: Tensor
    target: Tensor
    pages: Tensor


def plan_pack(p2v: Tensor, sorted_holes: Tensor, band: Tensor, low: int, most: int) -> tuple[Moves, Tensor]:
    """Which live pages of those at the frontier move to which holes, and the holes that stay.

    `band` lists the `n` physical pages of the frontier, the first of them `low`; at most `most` of them are live, and
    there are so many lanes. `sorted_holes` has the best target first and at least `n` entries. Holes inside the band
    come last in that order, so targets always lie outside.
    """
    n = band.numel()
    owners = p2v[low : low + n]
    live = owners >= 0
    rank = torch.cumsum(live, 0)
    count = rank[-1:]
    left = sorted_holes.numel() - n
    lane = torch.arange(max(most, left), device=p2v.device)
    ok = lane[:most] < count
    # Lanes of holes all land in lane n, which is cut off.
    slot = torch.where(live, rank - 1, n)
    source = torch.zeros(n + 1, dtype=torch.int64, device=p2v.device).scatter_(0, slot, band)[:most] * ok
    moves = Moves(ok, source, sorted_holes[:most] * ok, p2v[source])
    return moves, sorted_holes[lane[:left] + count]


def commit_pack(v2p: Tensor, p2v: Tensor, moves: Moves) -> None:
    """Points the moved pages to their targets. Masked lanes write -1 to the last rows."""
    ok, source, target, pages = moves
    v2p.index_copy_(0, torch.where(ok, pages, v2p.numel() - 1), torch.where(ok, target, TOMBSTONE))
    p2v.index_fill_(0, torch.where(ok, source, TOMBSTONE), TOMBSTONE)
    p2v.index_copy_(0, torch.where(ok, target, p2v.numel() - 1), torch.where(ok, pages, TOMBSTONE))


def copy_pages(envelopes: Tensor, source: Tensor, target: Tensor, scratch: Tensor) -> None:
    """Copies whole pages from `source[i]` to `target[i]`; a masked lane of a compaction copies the sink onto itself.

    `scratch` has room for one or more pages and is all the memory that is used: lanes go through it in turns. No page
    is both a source and a target.
    """
    turn = scratch.shape[0]
    for first in range(0, source.numel(), turn):
        chosen = source[first : first + turn]
        staged = scratch[: chosen.numel()]
        torch.index_select(envelopes, 0, chosen, out=staged)
        envelopes.index_copy_(0, target[first : first + turn], staged)
