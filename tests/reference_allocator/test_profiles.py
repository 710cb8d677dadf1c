"""Both profiles leave the same after every call: tables, lists, ids, bytes and counts."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

import reference_allocator
from nosync_lint.report import Report
from reference_allocator import BytePool, KVSpec, PageAllocator, SWAComposite, join
from reference_allocator.band import Band
from reference_allocator.end_band import EndBand
from reference_allocator.errors import StateError
from reference_allocator.float_band import FloatBand
from reference_allocator.page_tables import Profile
from reference_allocator.recovery import recover_locked_full
from reference_allocator.verify import verify
from tests.reference_allocator.pools import Place, equal, ids, listed, twice
from tests.reference_allocator.test_band import Queue

PACKAGE = Path(reference_allocator.__file__).parent
Lint = Callable[..., Report]
PROFILES: tuple[Profile, ...] = ("portable", "fused")
STEPS = 150


def same(first: Tensor | int | None, second: Tensor | int | None) -> None:
    """What two calls returned: equal ids, in storage of their own."""
    assert type(first) is type(second)
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        assert listed(first) == listed(second)
        assert first.dtype == second.dtype
    else:
        assert first == second


def pool_of(page_size: int, *grows: str) -> BytePool:
    shape = {"page_size": page_size, "heads": 1, "key_dim": 2, "value_dim": 2, "dtype": torch.int64}
    specs = [
        KVSpec(name, kind, grow, layers=range(layers), **shape)  # type: ignore[arg-type]
        for name, kind, grow, layers in zip(
            ("full", "swa", "third"), ("full", "swa", "swa"), grows, (2, 1, 3), strict=False
        )
    ]
    pool = BytePool(64 * page_size * 40 + 96, specs, device=Place.device)
    pool.poison()
    return pool


def seen(band: Band) -> tuple[object, ...]:
    counts = (band.lo, band.hi, band.live, band.moves, band.frees, band.epoch, band.pending_count)
    return (*counts, listed(band.v2p), listed(band.p2v), listed(band.holes), listed(band.error.cells))


class Twins:
    """Two allocators that are called alike."""

    def __init__(self, *sides: PageAllocator | SWAComposite) -> None:
        self.sides = sides
        self.rows: list[tuple[Tensor, Tensor]] = []
        self.cursors: list[int] = []

    def call(self, name: str, *args: object, row: int | None = None, **named: object) -> list[object]:
        """Calls a method of both; with `row` on the tokens of that row."""
        found = []
        for at, side in enumerate(self.sides):
            own = (self.rows[row][at],) if row is not None else ()
            found.append(getattr(side, name)(*own, *args, **named))
        same(*found)  # type: ignore[arg-type]
        self.compare()
        return found

    def compare(self) -> None:
        states, ids_left, buffers = [], [], []
        for side in self.sides:
            bands = side.bands if isinstance(side, SWAComposite) else (side.band,)
            owner = side.full if isinstance(side, SWAComposite) else side
            states.append([seen(band) for band in bands])
            ids_left.append(listed(owner.free_vids))
            buffers.append(bands[0].pool.buffer)
        assert states[0] == states[1]
        assert ids_left[0] == ids_left[1]
        assert equal(buffers[0], buffers[1])

    def grow(self, chosen: list[int], by: list[int], tail: int | None = None) -> bool:
        """Extends rows; -1 begins one."""
        before = [self.rows[at][0].numel() if at >= 0 else 0 for at in chosen]
        after = [length + more for length, more in zip(before, by, strict=True)]
        last = [self.rows[at][0][-1:] if at >= 0 and len(self.rows[at][0]) else ids(-1) for at in chosen]
        args = (*twice(*before), *twice(*after), torch.cat(last), sum(by))
        found = (
            self.call("alloc_extend", *args)
            if tail is None
            else self.call("alloc_extend_swa_tail", *args, tail_len=tail)
        )
        if found[0] is None:
            return False
        parts = [tensor.split(by) for tensor in found if isinstance(tensor, Tensor)]
        for at, *new in zip(chosen, *parts, strict=True):
            if at < 0:
                self.rows.append((new[0], new[1]))
                self.cursors.append(0)
            else:
                old = self.rows[at]
                self.rows[at] = (torch.cat((old[0], new[0])), torch.cat((old[1], new[1])))
        return True


@pytest.mark.parametrize("seed", range(16))
def test_two_sides_stay_the_same(seed: int) -> None:
    """Rows that come, grow, lose their window, are recovered and go, in groups and out of them."""
    chance = random.Random(seed)
    page_size, eager, checked = chance.choice((1, 4)), seed % 3 == 0, seed % 2 == 0
    queues = [Queue() if seed % 4 == 1 else None for _ in PROFILES]
    grows = ("up", "down") if seed % 5 else ("down", "up")
    twins = Twins(
        *(
            SWAComposite(pool_of(page_size, *grows), eager=eager, checked=checked, side=queue, profile=profile)
            for queue, profile in zip(queues, PROFILES, strict=True)
        )
    )
    for _ in range(STEPS):
        use, rows = chance.randrange(12), twins.rows
        if use < 2:
            twins.grow([-1], [chance.randrange(1, 14)])
        elif use == 2 and rows:
            chosen = chance.sample(range(len(rows)), min(len(rows), 3))
            twins.grow(chosen, [chance.randrange(1, 6) for _ in chosen])
        elif use == 3 and rows:
            lens = twice(*(row[0].numel() + 1 for row in rows))
            found = twins.call("alloc_decode", *lens, torch.stack([row[0][-1] for row in rows]))
            if isinstance(found[0], Tensor) and isinstance(found[1], Tensor):
                for at, (first, second) in enumerate(rows):
                    rows[at] = (
                        torch.cat((first, found[0][at : at + 1])), torch.cat((second, found[1][at : at + 1]))
                    )  # fmt: skip
        elif use == 4 and rows:
            at = chance.randrange(len(rows))
            length = rows[at][0].numel()
            moved = twins.call("advance_window", twins.cursors[at], row=at, length=length, window=6)
            twins.cursors[at] = moved[0]  # type: ignore[call-overload]
        elif use < 7 and rows:
            at = chance.randrange(len(rows))
            for side, tokens in zip(twins.sides, rows[at], strict=True):
                assert isinstance(side, SWAComposite)
                side.free_row([(tokens, 0)], swa_frontier=twins.cursors[at])
                tokens.fill_(0)
            del rows[at], twins.cursors[at]
        elif use == 7 and rows and checked:
            at = chance.randrange(len(rows))
            twins.call("free", row=at)
            del rows[at], twins.cursors[at]
        elif use == 8:
            twins.call("free_group_end" if twins.sides[0].group_is_open else "free_group_begin")
        elif use == 9 and not eager:
            swa, pages = chance.random() < 0.5, chance.randrange(5)
            for side in twins.sides:
                assert isinstance(side, SWAComposite)
                side.bands[swa].pack(min(pages, side.bands[swa].hole_count))
        elif use == 10 and any(twins.cursors):
            at = next(at for at, cursor in enumerate(twins.cursors) if cursor)
            cursor = twins.cursors[at]
            if twins.grow([-1], [cursor]):
                incoming = twins.rows.pop()
                twins.cursors.pop()
                values = []
                for side, kept, tokens in zip(twins.sides, rows[at], incoming, strict=True):
                    assert isinstance(side, SWAComposite)
                    values.append(recover_locked_full(side, kept[:cursor], tokens, start_pos=0))
                same(*values)
                twins.cursors[at] = 0
        elif use == 11:
            for queue in queues:
                for event in queue.events if queue else ():
                    event.fired = True
            if not twins.sides[0].group_is_open:
                states = [side.backup() for side in twins.sides]
                taken = len(rows)
                twins.grow([-1], [chance.randrange(1, 9)])
                try:
                    for side, state in zip(twins.sides, states, strict=True):
                        side.restore(state)  # type: ignore[arg-type]
                    del rows[taken:], twins.cursors[taken:]
                except StateError:  # of the first: relief has moved pages
                    pass
        for row in rows:
            physical = [side.translate(tokens) for side, tokens in zip(twins.sides, row, strict=True)]
            same(*physical)
        twins.compare()
    for side in twins.sides:
        assert verify(side) == []


@pytest.mark.parametrize("seed", range(8))
def test_three_pools_of_one_budget_stay_the_same(seed: int) -> None:
    """One of them floats: it grows both ways, packs, and is moved aside."""
    chance = random.Random(seed)
    rings: list[list[PageAllocator]] = []
    for profile in PROFILES:
        pool = pool_of(2, "up", "float", "down")
        made = [
            PageAllocator(pool, name, checked=seed % 2 == 0, virtual_pages=60, profile=profile)
            for name in ("full", "swa", "third")
        ]
        join(*(allocator.band for allocator in made))
        rings.append(made)
    twins = [Twins(*sides) for sides in zip(*rings, strict=True)]
    shifted = 0
    for _ in range(STEPS):
        twin = chance.choice(twins)
        use = chance.randrange(6)
        if use < 3:
            found = twin.call("alloc", 2 * chance.randrange(1, 7))
            if isinstance(found[0], Tensor) and isinstance(found[1], Tensor):
                twin.rows.append((found[0], found[1]))
        elif use < 5 and twin.rows:
            twin.call("free_segment", row=chance.randrange(len(twin.rows)), start_pos=0)
            twin.rows = [row for row in twin.rows if listed(twin.sides[0].translate(row[0]))[0] > 0]
        elif use == 5:
            side, needed = chance.choice(("low", "high")), chance.randrange(3000)
            opened = []
            for allocator in twins[1].sides:
                assert isinstance(allocator, PageAllocator)
                assert isinstance(allocator.band, FloatBand)
                moves = allocator.band.moves
                opened.append(allocator.band.make_room(side, needed))
                shifted += allocator.band.moves - moves
            same(*opened)
        for other in twins:
            other.compare()
    assert shifted > 0
    for twin in twins:
        for allocator in twin.sides:
            assert verify(allocator) == []


def test_misuse_leaves_the_same_error_words() -> None:
    """As on a device, where nothing raises: freed twice, and what is still in the window freed on full alone."""
    twins = Twins(*(SWAComposite(pool_of(4, "up", "down"), checked=True, profile=profile) for profile in PROFILES))
    for side in twins.sides:
        assert isinstance(side, SWAComposite)
        side.raises = side.full.raises = False
        for band in side.bands:
            band.raises = False
    twins.grow([-1], [16])
    twins.call("free_segment", row=0, start_pos=0)
    twins.call("free_swa_segment", row=0, start_pos=0)
    twins.call("free_full_segment", row=0, start_pos=0)
    twins.call("alloc", 8)
    twins.call("alloc", 8)
    assert listed(twins.sides[0].bands[0].error.cells).count(1) < 8  # type: ignore[union-attr]
    twins.call("clear")
    twins.call("alloc", 8)


def test_transfers_from_elsewhere_stay_the_same() -> None:
    bands = [end_band(profile) for profile in PROFILES]
    kept = [band.reserve(3) for band in bands]
    for band, held in zip(bands, kept, strict=True):
        assert held is not None
        band.bind_reserved(held, ids(4, 7, 5))
    given = [band.reserve(2) for band in bands]
    for band, held in zip(bands, given, strict=True):
        assert held is not None
        band.give_up(held)
        band.prewarm()
    assert seen(bands[0]) == seen(bands[1])


def end_band(profile: Profile) -> EndBand:
    owner = PageAllocator(pool_of(1, "up", "down"), "full", virtual_pages=20, profile=profile)
    assert isinstance(owner.band, EndBand)
    return owner.band


@pytest.mark.host("reads the text of the package")
def test_the_linter_follows_a_free_into_both_profiles(lint: Lint) -> None:
    """A wait that one of them had would be on a hot path."""
    planted = {
        "page_tables.py": "        held = tables.unbind(self.v2p, self.p2v, freed)\n",
        "fused.py": "        count = pages.count\n",
    }
    files = {f"reference_allocator/{path.name}": path.read_text(encoding="utf-8") for path in PACKAGE.glob("*.py")}
    del files["reference_allocator/naive.py"]
    for name, before in planted.items():
        path = f"reference_allocator/{name}"
        assert files[path].count(before) == 1
        files[path] = files[path].replace(before, f"{before}        print(self.v2p.sum().item())\n")
    report = lint(files)
    assert sorted((finding.code, Path(finding.filename).name) for finding in report.findings) == [
        ("NSL201", "fused.py"),
        ("NSL201", "page_tables.py"),
    ]
