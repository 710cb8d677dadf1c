"""Table operations against loops over plain lists."""

from __future__ import annotations

import random

import pytest
import torch

from reference_allocator import tables
from tests.reference_allocator.pools import ids, listed, put

PAGE_SIZES = [1, 2, 4, 16]


def empty_tables(pages: int) -> tuple[torch.Tensor, torch.Tensor]:
    v2p, p2v = (put(torch.empty(pages + 1, dtype=torch.int64)) for _ in range(2))
    tables.reset(v2p)
    tables.reset(p2v)
    return v2p, p2v


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_representatives_stand_for_every_page_once_in_row_order(page_size: int) -> None:
    """S3b: starts, ends and alignments."""
    pages = put(torch.randperm(12)) + 1
    row = tables.tokens_of(pages, put(torch.arange(page_size)))
    for start in range(3 * page_size + 1):
        for stop in range(start + 1, start + 4 * page_size):
            tokens = row[start:stop]
            found = tables.pages_of(tables.page_reps(tokens, start, page_size), page_size)
            assert listed(found) == listed(pages[start // page_size : (stop - 1) // page_size + 1])
            assert sorted(listed(found)) == sorted(set(listed(tokens // page_size)))


def test_translate_sends_what_it_does_not_know_to_the_sink() -> None:
    v2p, p2v = empty_tables(8)
    tables.bind_pairs(v2p, p2v, ids(3, 5), ids(7, 2))
    tokens = ids(12, 15, 20, 16, -1, -4, -400, 0, 3, 32, 33, 4000)
    assert listed(tables.translate(v2p, tokens, 4, None)) == [28, 31, 8, 0, 0, 0, 0, 0, 3, 0, 0, 0]
    assert listed(tables.translate(v2p, ids(3, 5, 4, -1, -9, 8, 99), 1, None)) == [7, 2, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("page_size", [1, 4])
def test_translate_in_place(page_size: int) -> None:
    v2p, p2v = empty_tables(8)
    tables.bind_pairs(v2p, p2v, ids(3, 5), ids(7, 2))
    tokens = ids(3 * page_size, 5 * page_size, 6 * page_size)
    assert tables.translate(v2p, tokens, page_size, tokens) is tokens
    assert listed(tokens) == [7 * page_size, 2 * page_size, 0]


def test_unbind_leaves_tombstones_on_both_sides() -> None:
    v2p, p2v = empty_tables(8)
    tables.bind_range(v2p, p2v, ids(6, 4, 5), put(torch.arange(8)), 2)
    assert listed(v2p) == [0, -1, -1, -1, 3, 4, 2, -1, -1]
    assert listed(tables.unbind(v2p, p2v, ids(4, 6))) == [3, 2]
    assert listed(v2p) == [0, -1, -1, -1, -1, 4, -1, -1, -1]
    assert listed(p2v) == [0, -1, -1, -1, 5, -1, -1, -1, -1]


def test_unbinding_twice_writes_to_the_last_rows_only() -> None:
    v2p, p2v = empty_tables(8)
    tables.bind_pairs(v2p, p2v, ids(3), ids(7))
    before = listed(v2p), listed(p2v)
    assert listed(tables.unbind(v2p, p2v, ids(5))) == [-1]
    assert (listed(v2p), listed(p2v)) == before


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_extend_and_decode_agree_with_a_loop(page_size: int) -> None:
    chance = random.Random(page_size)
    for _ in range(60):
        prefix = [chance.randrange(3 * page_size + 1) for _ in range(chance.randrange(1, 6))]
        new = [chance.randrange(3 * page_size + 1) for _ in prefix]
        seq = [before + more for before, more in zip(prefix, new, strict=True)]
        last = [100 * page_size + before - 1 if before else -1 for before in prefix]
        free = list(range(1, 40))
        wanted = []
        for before, after, loc in zip(prefix, seq, last, strict=True):
            for position in range(before, after):
                loc = free.pop(0) * page_size if position % page_size == 0 else loc + 1
                wanted.append(loc)
        consumed = ids(*range(1, 40 - len(free)))
        if not wanted:
            continue
        lens = tables.ExtendLens(ids(*prefix), ids(*seq), ids(*last))
        assert listed(tables.extend(lens, consumed, page_size, sum(new))) == wanted
        if all(more == 1 for more in new):
            assert listed(tables.decode(ids(*seq), ids(*last), consumed, page_size)) == wanted


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_decode_agrees_with_a_loop(page_size: int) -> None:
    for first in range(1, 2 * page_size + 2):
        seq = [first, first + 1, first + page_size]
        last = [100 * page_size + length - 2 for length in seq]
        free = list(range(1, 9))
        wanted = [
            free.pop(0) * page_size if (length - 1) % page_size == 0 else loc + 1
            for length, loc in zip(seq, last, strict=True)
        ]
        consumed = ids(*range(1, 9 - len(free)))
        assert listed(tables.decode(ids(*seq), ids(*last), consumed, page_size)) == wanted


@pytest.mark.parametrize("up", [True, False])
def test_a_plan_empties_the_band_whatever_the_holes(up: bool) -> None:
    chance = random.Random(up)
    for _ in range(300):
        count = chance.randrange(2, 14)
        region = range(1, count) if up else range(20 - count, 20)
        live = [page for page in region if chance.random() < 0.5]
        holes = [page for page in region if page not in live]
        chance.shuffle(holes)
        v2p, p2v = empty_tables(20)
        owners = chance.sample(range(1, 20), len(live))
        tables.bind_pairs(v2p, p2v, ids(*owners), ids(*live))
        envelopes = torch.stack((p2v[:20] * 10, put(torch.arange(20))), 1)
        envelopes[0] = 0
        m = chance.randrange(len(holes) + 1)
        if m == 0:
            continue
        low = region[-1] + 1 - m if up else region[0]
        ordered = torch.sort(ids(*holes), descending=not up).values
        moves, left = tables.plan_pack(p2v, ordered, put(torch.arange(20))[low : low + m], low, min(m, len(live)))
        tables.copy_pages(envelopes, moves.source, moves.target, put(torch.empty(2, 2, dtype=torch.int64)))
        tables.commit_pack(v2p, p2v, moves)
        kept = set(region) - set(range(low, low + m))
        bound = {v: p for v, p in enumerate(listed(v2p)) if v and p >= 0}
        assert set(bound) == set(owners)
        assert set(bound.values()) | set(listed(left)) == kept
        assert len(bound) + left.numel() == len(kept)
        assert {p: v for p, v in enumerate(listed(p2v)) if p and v >= 0} == {p: v for v, p in bound.items()}
        held = listed(envelopes)
        assert all(held[page][0] == owner * 10 for owner, page in bound.items())
        assert listed(v2p)[0] == listed(p2v)[0] == sum(held[0]) == 0
        assert listed(v2p)[-1] == listed(p2v)[-1] == -1
