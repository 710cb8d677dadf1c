"""The fused table kernels leave what portable torch leaves: tables, lists, ids, error word and bytes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor

from reference_allocator import tables
from reference_allocator.error_word import ErrorWord, Fault
from reference_allocator.errors import SpecError
from reference_allocator.fused import FusedTables, Ring, RingPages
from reference_allocator.page_tables import PageTables, PoolFacts, TorchTables
from reference_allocator.pages import ListValue, PageList, Pages
from reference_allocator.records import NOTHING_TAKEN, Taken
from reference_allocator.table_kernels import load_tables
from reference_allocator.tables import ExtendLens, Growth, Step, WholePages
from tests.reference_allocator.dispatches import Dispatches
from tests.reference_allocator.pools import Place, equal, ids, listed, put

PAGE_SIZES = [1, 4, 16, 64]
WORDS, BEHIND = 6, 40
"""8-byte words of a page, and pages behind the frontier, by which regions may grow."""


class Side:
    """One profile, and the lists that it works on."""

    def __init__(self, kind: type[PageTables], pair: Pair, bound: list[int], held: list[int]) -> None:
        v2p, p2v = (put(torch.empty(rows + 1, dtype=torch.int64)) for rows in (pair.vids, pair.pages + BEHIND))
        tables.reset(v2p)
        tables.reset(p2v)
        tables.bind_pairs(v2p, p2v, ids(*bound), ids(*held))
        self.bytes = put(torch.arange((pair.pages + BEHIND) * WORDS)).view(-1, WORDS)
        self.error = ErrorWord(Place.device)
        error = self.error if pair.checked else None
        self.tables = kind(PoolFacts(self.bytes, pair.page_size, error, Fault.DOUBLE_FREE, pair.zeroes))
        self.tables.attach(v2p, p2v)
        self.ids, self.holes = (self.listed(pair, pages) for pages in (pair.free_ids, pair.holes))

    def listed(self, pair: Pair, pages: list[int]) -> PageList:
        """These pages in a list with room for all others; a ring begins anywhere, so that some go around its end."""
        made = self.tables.page_list(pair.vids + pair.pages)
        if isinstance(made, Ring):
            made.at = pair.chance.randrange(made.capacity)
        made.append(ids(*pages))
        return made

    def seen(self) -> tuple[list[int], ...]:
        """All that a caller could find out."""
        held = self.tables.v2p, self.tables.p2v, self.bytes.flatten(), self.error.cells, self.ids.values
        return tuple(listed(tensor) for tensor in (*held, self.holes.values))


class Pair:
    """A random pool, once in each profile.

    Ids 1 to `vids - 1` and physical pages 1 to `pages - 1`: what is not `bound` is free, in any order.
    """

    def __init__(self, seed: str, page_size: int, *, checked: bool = False, zeroes: bool = False) -> None:
        self.chance = chance = random.Random(seed)
        self.page_size, self.checked, self.zeroes = page_size, checked, zeroes
        self.vids, self.pages = chance.randrange(4, 40), chance.randrange(4, 40)
        live = chance.randrange(min(self.vids, self.pages))
        self.bound, self.held = (chance.sample(range(1, count), live) for count in (self.vids, self.pages))
        self.free_ids = [page for page in range(1, self.vids) if page not in self.bound]
        self.holes = [page for page in range(1, self.pages) if page not in self.held]
        chance.shuffle(self.free_ids)
        chance.shuffle(self.holes)
        self.sides = [Side(kind, self, self.bound, self.held) for kind in (TorchTables, FusedTables)]
        self.fused = self.sides[1].tables
        assert isinstance(self.fused, FusedTables)
        self.kernels = self.fused.kernels
        self.kernels.threads = 1

    def same(self) -> None:
        portable, fused = (side.seen() for side in self.sides)
        assert fused == portable

    def row(self, pages: list[int]) -> Tensor:
        """Tokens of pages, with a step between them in memory, the last page cut anywhere."""
        tokens = tables.tokens_of(ids(*pages), put(torch.arange(self.page_size)))
        cut = tokens.numel() - self.chance.randrange(self.page_size) if pages else 0
        return torch.stack([tokens] * self.chance.choice((1, 3)), 1)[:, 0][:cut]

    def taken(self, count: int) -> list[Taken]:
        """`count` physical pages for each side: some from the holes, the others from up to two ranges."""
        drained = self.chance.randrange(min(count, len(self.holes)) + 1)
        first = self.chance.randrange(count - drained + 1)
        ranges = (
            range(self.pages, self.pages + first),
            range(self.pages + 20, self.pages + 20 + count - drained - first),
        )
        grown = tuple(pages for pages in ranges if pages)
        return [Taken(side.holes.take(drained) if drained else None, grown) for side in self.sides]

    @contextmanager
    def launches(self, wanted: int) -> Iterator[None]:
        """So many kernels are queued, and nothing else."""
        with Dispatches() as seen:
            yield
        assert (seen.kernels.total(), seen.count, seen.syncs) == (wanted, 0, [])


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """The library is shared with all other tests."""
    yield
    load_tables("cpu", None).threads = 1


def pairs(count: int, page_size: int, *, checked: bool = False, zeroes: bool = False) -> list[Pair]:
    return [Pair(f"{page_size} {seed}", page_size, checked=checked, zeroes=zeroes) for seed in range(count)]


def fused_over(v2p: Tensor, p2v: Tensor, envelopes: Tensor, page_size: int = 1) -> FusedTables:
    made = FusedTables(PoolFacts(envelopes, page_size, None, Fault.DOUBLE_FREE, zeroes=True))
    made.attach(v2p, p2v)
    made.kernels.threads = 1
    return made


# Freeing.


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_a_free_is_one_launch(page_size: int, checked: bool) -> None:
    for pair in pairs(60, page_size, checked=checked):
        pages = pair.chance.sample(pair.bound, pair.chance.randrange(len(pair.bound) + 1))
        if checked and pair.chance.random() < 0.5:  # freed twice
            stale = pair.free_ids[: pair.chance.randrange(3)]
            pages = pair.chance.sample(pages + stale, len(pages) + len(stale))
        row, owner = pair.row(pages), pair.chance.random() < 0.7
        portable, fused = pair.sides
        portable.tables.unbind(Pages(row, page_size), portable.holes, portable.ids if owner else None)
        with pair.launches(bool(pages)):
            fused.tables.unbind(Pages(row, page_size), fused.holes, fused.ids if owner else None)
        pair.same()


def test_a_free_of_anything_else_reports_and_writes_nothing() -> None:
    """The sink, ids outside the table on both sides, and a page twice: the second lane finds the tombstone."""
    for page_size in PAGE_SIZES:
        pair = Pair("7", page_size, checked=True)
        side = pair.sides[1]
        before = side.seen()
        holes, free = Ring(8, Place.device), Ring(8, Place.device)
        wrong = ids(0, -1, -5, pair.vids, pair.vids + 1, 1 << 40) * page_size
        side.tables.unbind(Pages(wrong[:, None].expand(-1, page_size).reshape(-1), page_size), holes, free)
        assert side.seen()[:3] == before[:3]
        assert listed(holes.values) == listed(free.values) == [0] * 6
        assert listed(side.error.cells) == [-1] + [1] * 7
        twice, held = pair.bound[0], pair.held[0]
        side.tables.unbind(Pages(ids(twice, twice)), holes, free)
        assert listed(holes.values[6:]) == [held, 0]
        assert listed(free.values[6:]) == [twice, 0]


def test_an_unchecked_free_follows_no_id_out_of_its_table() -> None:
    """It hands on what it was given, rounded down, as portable torch does where that has a row to read."""
    pair = Pair("7", 4)
    side = pair.sides[1]
    before = side.seen()
    holes, free = Ring(9, Place.device), Ring(9, Place.device)
    wrong = [-1, -4, -5, 4 * pair.vids, 1 << 50, 4 * pair.free_ids[0]]
    side.tables.unbind(Pages(put(torch.tensor(wrong)).repeat_interleave(4), 4), holes, free)
    assert side.seen() == before
    assert listed(free.values) == [token // 4 for token in wrong]
    assert listed(holes.values) == [-1] * 6


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_pages_that_were_taken_from_a_list_are_forgotten_in_one_launch(page_size: int) -> None:
    for pair in pairs(40, page_size):
        count = pair.chance.randrange(len(pair.bound) + 1)
        for side, wanted in zip(pair.sides, (0, bool(count)), strict=True):
            side.ids = side.listed(pair, pair.bound)
            state = side.ids.backup()
            side.ids.take(count)
            taken = side.ids.taken_since(state)
            if wanted:
                with pair.launches(1):
                    side.tables.forget(taken)
            else:
                side.tables.forget(taken)
            side.ids.restore(state)
        pair.same()
        assert listed(pair.sides[1].ids.values) == pair.bound


# Handing out.


@pytest.mark.parametrize("zeroes", [False, True])
@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_whole_pages_are_handed_out_and_bound_in_one_launch(page_size: int, checked: bool, zeroes: bool) -> None:
    """And zeroed in one more."""
    for pair in pairs(40, page_size, checked=checked, zeroes=zeroes):
        count = pair.chance.randrange(min(len(pair.free_ids), 20) + 1)
        portable, fused = pair.sides
        taken = pair.taken(count)
        wanted = portable.tables.hand_out(WholePages(), portable.ids.take(count), taken[0])
        with pair.launches((1 + zeroes) * bool(count)):
            found = fused.tables.hand_out(WholePages(), fused.ids.take(count), taken[1])
        assert listed(found) == listed(wanted)
        pair.same()


@pytest.mark.parametrize("zeroes", [False, True])
@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_pages_from_elsewhere_are_bound_in_one_launch(page_size: int, zeroes: bool) -> None:
    for pair in pairs(40, page_size, zeroes=zeroes):
        pages = pair.chance.sample(pair.free_ids, pair.chance.randrange(min(len(pair.free_ids), 20) + 1))
        row, taken = pair.row(pages), pair.taken(len(pages))
        pair.sides[0].tables.bind(Pages(row, page_size), taken[0])
        with pair.launches((1 + zeroes) * bool(pages)):
            pair.fused.bind(Pages(row, page_size), taken[1])
        pair.same()
        if pages:  # and again, to where nothing is zeroed
            there = put(torch.arange(pair.pages + BEHIND - len(pages), pair.pages + BEHIND))
            pair.sides[0].tables.bind_to(Pages(row, page_size), there)
            with pair.launches(1):
                pair.fused.bind_to(Pages(row, page_size), there)
            pair.same()


def test_handing_out_the_sink_reports_and_foreign_ids_bind_nothing() -> None:
    pair = Pair("7", 1, checked=True)
    for side in pair.sides:
        side.tables.bind(Pages(ids(0)), Taken(None, (range(2, 3),)))
        assert listed(side.error.cells) == [1, 1, 1, 1, 0, 1, 1, 1]
    pair.same()
    before = pair.sides[1].seen()[:3]
    last = pair.pages + BEHIND
    pair.fused.bind(Pages(ids(-3, pair.vids)), Taken(Pages(ids(-1)), (range(last, last + 1),)))
    assert pair.sides[1].seen()[:3] == before


def growth_of(pair: Pair, requests: int, room: int) -> tuple[list[int], list[int], list[int], int]:
    """Lengths before and after, last tokens, and the pages that begin, at most `room`."""
    size, prefix, seq, pages = pair.page_size, [], [], 0
    for _ in range(requests):
        before = pair.chance.randrange(3 * size + 1)
        after = before + pair.chance.randrange(3 * size + 1)
        more = -(-after // size) - -(-before // size)
        if pages + more > room:
            after, more = before, 0
        prefix.append(before)
        seq.append(after)
        pages += more
    return prefix, seq, [1000 * size + before - 1 if before else -1 for before in prefix], pages


def strided(values: list[int]) -> Tensor:
    return torch.stack([ids(*values)] * 2, 1)[:, 1]


@pytest.mark.parametrize("threads", [1, 4, 256])
@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_requests_grow_in_one_launch(page_size: int, threads: int) -> None:
    for pair in pairs(40, page_size):
        pair.kernels.threads = threads
        prefix, seq, last, count = growth_of(pair, pair.chance.randrange(1, 9), min(len(pair.free_ids), 20))
        total = sum(seq) - sum(prefix)
        if total == 0:
            continue
        portable, fused = pair.sides
        taken = pair.taken(count)
        lens = ExtendLens(ids(*prefix), ids(*seq), ids(*last))
        wanted = portable.tables.hand_out(Growth(lens, total), portable.ids.take(count), taken[0])
        lens = ExtendLens(strided(prefix), strided(seq), strided(last))
        with pair.launches(1):
            found = fused.tables.hand_out(Growth(lens, total), fused.ids.take(count), taken[1])
        assert listed(found) == listed(wanted)
        pair.same()


@pytest.mark.parametrize("threads", [1, 4, 256])
@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_requests_step_in_one_launch(page_size: int, threads: int) -> None:
    for pair in pairs(40, page_size):
        pair.kernels.threads = threads
        seq = [pair.chance.randrange(1, 3 * page_size + 1) for _ in range(pair.chance.randrange(1, 12))]
        while sum((length - 1) % page_size == 0 for length in seq) > min(len(pair.free_ids), 20):
            seq.pop()
        if not seq:
            continue
        last = [1000 * page_size + length - 2 for length in seq]
        count = sum((length - 1) % page_size == 0 for length in seq)
        portable, fused = pair.sides
        taken = pair.taken(count)
        wanted = portable.tables.hand_out(Step(ids(*seq), ids(*last)), portable.ids.take(count), taken[0])
        step = Step(strided(seq), strided(last))
        with pair.launches(1):
            found = fused.tables.hand_out(step, fused.ids.take(count), taken[1])
        assert listed(found) == listed(wanted)
        pair.same()


@pytest.mark.parametrize("threads", [1, 4])
def test_a_batch_wider_than_a_team_grows_and_steps(threads: int) -> None:
    """The sums run over several blocks."""
    chance, free = random.Random(1), list(range(500, 700))
    wide = fused_over(
        put(torch.full((1001,), -1)), put(torch.full((1001,), -1)), put(torch.zeros(1000, WORDS)).long(), 4
    )
    wide.kernels.threads = threads
    seq = [chance.randrange(1, 20) for _ in range(150)]
    last, starts = [9000 + length for length in seq], sum((length - 1) % 4 == 0 for length in seq)
    ring, taken = Ring(200, Place.device), Taken(None, (range(1, starts + 1),))
    ring.append(ids(*free))
    prefix = [length - 1 for length in seq]
    for request in (Step(ids(*seq), ids(*last)), Growth(ExtendLens(ids(*prefix), ids(*seq), ids(*last)), 150)):
        found = wide.hand_out(request, ring.head(starts), taken)
        assert listed(found) == listed(request.tokens(ids(*free[:starts]), put(torch.arange(4))))


def test_lengths_that_disagree_with_the_host_write_nothing_outside() -> None:
    """More pages begin than were promised, and more tokens are new."""
    pair = Pair("9", 4)
    side = pair.sides[1]
    room = put(torch.full((3,), 7))
    out = room[:2]
    lens = ExtendLens(ids(0), ids(9), ids(-1))
    pair.fused.v2p.new_empty = lambda *_: out  # type: ignore[method-assign]
    before = side.seen()[:2]
    pair.fused.hand_out(Growth(lens, 2), side.ids.head(0), NOTHING_TAKEN)
    assert listed(room)[2] == 7
    assert side.seen()[:2] == before


# Elsewhere.


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_tokens_translate_in_one_launch(page_size: int) -> None:
    for pair in pairs(30, page_size):
        top = (pair.vids + 4) * page_size
        tokens = ids(*(pair.chance.randrange(-2 * page_size - 2, top) for _ in range(pair.chance.randrange(40))))
        wanted = pair.sides[0].tables.translate(tokens, None)
        with pair.launches(tokens.numel() > 0):
            found = pair.fused.translate(tokens, None)
        assert listed(found) == listed(wanted)
        assert listed(pair.fused.translate(strided(listed(tokens)), None)) == listed(wanted)
        assert pair.fused.translate(tokens, tokens) is tokens
        assert listed(tokens) == listed(wanted)


def test_tokens_of_other_shapes_translate_where_they_are() -> None:
    pair = Pair("3", 4)
    tokens = put(torch.arange(24)).view(2, 12)
    wanted = listed(pair.sides[0].tables.translate(tokens, None))
    assert listed(pair.fused.translate(tokens, None)) == wanted
    across = tokens.t().contiguous().t()
    out = put(torch.zeros(2, 24, dtype=torch.int64))[:, ::2]
    assert pair.fused.translate(across, out) is out
    assert listed(out) == wanted


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_a_transfer_is_two_launches(page_size: int, checked: bool) -> None:
    for pair in pairs(60, page_size, checked=checked):
        count = pair.chance.randrange(min(len(pair.free_ids), len(pair.bound)) + 1)
        kept, incoming = pair.chance.sample(pair.free_ids, count), pair.chance.sample(pair.bound, count)
        if checked and count > 2 and pair.chance.random() < 0.5:  # one page on both sides, one not bound, one bound
            kept[0] = incoming[1]
            incoming[2] = pair.free_ids[-1]
        to, source = (pair.row(pages) for pages in (kept, incoming))
        pair.sides[0].tables.rebind(Pages(to, page_size), Pages(source, page_size))
        with pair.launches(2 * bool(count)):
            pair.fused.rebind(Pages(to, page_size), Pages(source, page_size))
        pair.same()


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_bound_pages_report_in_one_launch(page_size: int, checked: bool) -> None:
    for pair in pairs(20, page_size, checked=checked):
        pages = pair.chance.sample(range(1, pair.vids), pair.chance.randrange(4))
        row = pair.row(pages)
        pair.sides[0].tables.report_bound(Pages(row, page_size))
        with pair.launches(bool(pages) and checked):
            pair.fused.report_bound(Pages(row, page_size))
        pair.same()


# Moving.


@pytest.mark.parametrize("threads", [1, 4, 256])
@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("up", [False, True])
def test_a_pack_is_three_launches_whatever_the_holes(up: bool, checked: bool, threads: int) -> None:
    for pair in pairs(80, 4, checked=checked):
        pair.kernels.threads = threads
        count = pair.chance.randrange(len(pair.holes) + 1)
        if count == 0:
            continue
        ordered = sorted(pair.holes, reverse=not up)
        low = pair.pages - count if up else 1
        portable, fused = pair.sides
        for side in pair.sides:
            side.holes = side.listed(pair, ordered)
        fused.holes.sort(descending=not up)  # a list in order lies in order
        backup = fused.holes.backup()
        live = sum(owner >= 0 for owner in listed(fused.tables.p2v[low : low + count]))
        most = pair.chance.randint(live, count)
        portable.tables.pack(portable.holes, low, count, most=most, descending=not up)
        with pair.launches(3 if most else 2):
            fused.tables.pack(fused.holes, low, count, most=most, descending=not up)
        pair.same()
        assert sum(owner >= 0 for owner in listed(fused.tables.p2v[1:-1])) == len(pair.bound)
        fused.holes.restore(backup)
        assert listed(fused.holes.values) == ordered


@pytest.mark.parametrize("up", [False, True])
def test_a_hole_that_is_none_overflows_the_plan(up: bool) -> None:
    """Someone lives in the band, and the only target is the band."""
    pair = Pair("2", 4, checked=True)
    held = pair.held[0]
    for side in pair.sides:
        side.holes.reset(ids(held))
        side.tables.pack(side.holes, held, 1, most=1, descending=not up)
        assert [bit for bit, lowest in enumerate(listed(side.error.cells)) if lowest <= 0] == [6]
    assert listed(pair.sides[0].error.cells) == listed(pair.sides[1].error.cells)


def test_a_list_around_the_end_of_its_ring_packs() -> None:
    for pair in pairs(40, 1):
        ordered = sorted(pair.holes)
        if not ordered:
            continue
        for side in pair.sides:
            side.holes = side.listed(pair, ordered)
            side.tables.pack(side.holes, pair.pages - 1, 1, most=1, descending=False)
        pair.same()


def test_a_run_of_pages_shifts_in_one_launch() -> None:
    for pair in pairs(40, 4):
        live = [page for page in range(1, pair.pages) if page in pair.held]
        runs = [(at, page) for at, page in enumerate(live) if page - live[0] == at]
        if not runs:
            continue
        count = len(runs)
        pair.sides[0].tables.shift(live[0], pair.pages, count)
        with pair.launches(1):
            pair.fused.shift(live[0], pair.pages, count)
        pair.same()


@pytest.mark.parametrize("threads", [1, 64])
@pytest.mark.parametrize("words", [2, 4094, 4096, 4098, 9000])
def test_pages_of_every_length_are_moved_and_zeroed(words: int, threads: int) -> None:
    """Below, at and above what one block moves."""
    buffer = put(torch.arange(5 * words)).view(5, words)
    fused = fused_over(ids(0, 4, -1, -1), ids(0, -1, -1, -1, 1, -1), buffer)
    fused.kernels.threads = threads
    wanted = buffer.clone()
    wanted[2] = wanted[4]
    holes = Ring(4, Place.device)
    holes.append(ids(2, 3))
    fused.pack(holes, 4, 1, most=1, descending=False)
    assert listed(fused.v2p) == [0, 2, -1, -1]
    assert equal(buffer, wanted)
    fused.shift(2, 1, 1)
    wanted[1] = wanted[2]
    assert listed(fused.v2p) == [0, 1, -1, -1]
    assert equal(buffer, wanted)
    fused.bind(Pages(ids(2, 2)), Taken(holes.take(1), (range(2, 3),)))
    wanted[2:4] = 0
    assert equal(buffer, wanted)


def test_zeroing_stays_inside_the_buffer() -> None:
    whole = put(torch.ones(6, 4, dtype=torch.int64))
    fused = fused_over(ids(0, -1), ids(0, -1, -1, -1, -1), whole[1:5])
    fused.bind(Pages(ids(5, 6, 7, 8)), Taken(Pages(ids(-1, 4, 1)), (range(4, 5),)))
    assert listed(whole[:, 0]) == [1, 1, 0, 1, 1, 1]


def test_pages_off_sixteen_bytes_are_refused() -> None:
    for envelopes in (put(torch.zeros(4, 3)).long(), put(torch.zeros(9)).long()[1:].view(4, 2)):
        with pytest.raises(SpecError, match="16 bytes"):
            fused_over(ids(0, -1), ids(0, -1), envelopes)


def test_lists_of_the_other_profile_are_refused() -> None:
    pair = Pair("1", 1)
    with pytest.raises(TypeError, match="Ring"):
        pair.fused.unbind(Pages(ids(pair.bound[0])), ListValue(ids()), None)


# Lists.


def used(make: Callable[[], ListValue | Ring], steps: int, seed: int) -> list[list[int]]:
    """What is seen of a list that is taken from, added to, sorted, backed up and restored at random."""
    chance, made, seen = random.Random(seed), make(), []
    made.reset(put(torch.arange(6)))
    state, restorable = made.backup(), True
    for step in range(steps):
        use = chance.randrange(6)
        if use == 0 and made.count:
            taken = made.take(chance.randrange(made.count + 1))
            seen.append(listed(taken.tensor))
        elif use == 1 and made.count <= 6:
            made.append(ids(step + 100, step + 200, step + 300)[: chance.randrange(4)])
            restorable = False
        elif use == 2:
            made.sort(descending=chance.random() < 0.5)
        elif use == 3:
            state, restorable = made.backup(), True
        elif use == 4 and restorable:
            seen.append(listed(made.taken_since(state).tensor))
            made.restore(state)
        elif use == 5 and made.count:
            seen.append(listed(made.head(1).tensor))
        seen.append(listed(made.values))
    return seen


@pytest.mark.parametrize("seed", range(40))
def test_a_ring_is_seen_as_a_list_that_is_replaced(seed: int) -> None:
    """Two backups of which the first is restored after a sort, and lists that go around the end, come up here."""
    assert used(lambda: Ring(9, Place.device), 60, seed) == used(lambda: ListValue(ids()), 60, seed)


def test_what_a_ring_hands_out_is_not_written_later() -> None:
    """I13."""
    ring = Ring(4, Place.device)
    ring.append(ids(1, 2, 3, 4))
    storage = ring.storage.data_ptr()
    values, taken = ring.values, ring.take(3).tensor
    ring.append(ids(7, 8, 9))
    assert (listed(values), listed(taken)) == ([1, 2, 3, 4], [1, 2, 3])
    assert listed(ring.values) == [4, 7, 8, 9]
    assert ring.storage.data_ptr() == storage


def test_appending_keeps_the_storage_until_more_is_freed_than_there_is() -> None:
    ring = Ring(4, Place.device)
    ring.append(ids(1, 2, 3, 4))
    ring.take(2)
    ring.append(ids(5, 6))
    storage = ring.storage
    ring.append(ids(7))
    assert ring.storage is not storage
    assert listed(ring.values) == [3, 4, 5, 6, 7]
    assert isinstance(ring.head(2), RingPages)
