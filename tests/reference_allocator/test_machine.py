"""Any sequence of calls keeps the invariants, the contents of live tokens, and the host from waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from torch import Tensor

from reference_allocator import KVSpec, SWAComposite
from reference_allocator.composites import CompositeState
from reference_allocator.page_tables import Profile
from reference_allocator.recovery import recover_locked_full
from reference_allocator.verify import check, verify
from tests.reference_allocator.dispatches import Dispatches
from tests.reference_allocator.pools import every, ids, listed, pool_of, put, twice
from tests.reference_allocator.test_band import Queue

Result = TypeVar("Result")
WINDOW = 6


@dataclass
class Row:
    """A request: its token ids, what was written for each, and below which position the window is gone."""

    tokens: Tensor
    text: Tensor
    cursor: int = 0


@dataclass
class Saved:
    """A backup, and how many rows there were."""

    state: CompositeState
    rows: list[Row] = field(default_factory=list)


class Machine(RuleBasedStateMachine):
    """Rows that come, grow, lose their window, are recovered and go; the pools pack whenever they like."""

    profile: Profile = "portable"

    @initialize(
        page_size=st.sampled_from([1, 4]),
        full_grows=st.sampled_from(["up", "down"]),
        swa_layers=st.sampled_from([1, 3]),
        eager=st.booleans(),
        guarded=st.booleans(),
        side=st.booleans(),
    )
    def start(self, page_size: int, full_grows: str, swa_layers: int, eager: bool, guarded: bool, side: bool) -> None:
        other = "down" if full_grows == "up" else "up"
        shape = {"page_size": page_size, "heads": 1, "key_dim": 2, "value_dim": 2, "dtype": torch.int64}
        specs = [
            KVSpec("full", "full", full_grows, layers=range(2), **shape),  # type: ignore[arg-type]
            KVSpec("swa", "swa", other, layers=range(swa_layers), **shape),  # type: ignore[arg-type]
        ]
        pool = pool_of(64 * page_size * 30 + 32, specs)
        pool.poison()
        self.queue = Queue() if side else None
        self.both = SWAComposite(pool, eager=eager, checked=not guarded, side=self.queue, profile=self.profile)
        self.guarded = guarded
        self.views = [pool.kv_layer("full", 1)[0], pool.kv_layer("swa", swa_layers - 1)[0]]
        self.rows: list[Row] = []
        self.written = 0

    @contextmanager
    def no_sync(self, *host: Tensor) -> Iterator[None]:
        """Checks on a CPU read CPU memory, so only an allocator without them can be watched."""
        if not self.guarded:
            yield
            return
        with Dispatches(*host) as seen:
            yield
        assert seen.syncs == []

    def call(self, use: Callable[..., Result], *args: object, **named: object) -> Result:
        with self.no_sync(*(arg for arg in args if isinstance(arg, Tensor))):
            return use(*args, **named)

    def write(self, tokens: Tensor, text: Tensor, *, dead: int = 0) -> None:
        """Writes what a forward would: on full for all tokens, on the window pool for all but the first `dead`."""
        for view, first, translate in (
            (self.views[0], 0, self.both.translate),
            (self.views[1], dead, self.both.translate_loc_from_full_to_swa),
        ):
            physical = translate(tokens[first:])
            assert every(physical.gt(0))
            view[physical] = text[first:].view(-1, 1, 1)

    def new_text(self, count: int) -> Tensor:
        self.written += count
        return put(torch.arange(self.written - count, self.written)) + 1

    def grow(self, rows: list[Row], by: list[int]) -> bool:
        """Extends rows, and writes what belongs to the new tokens."""
        before = [row.tokens.numel() for row in rows]
        after = [length + more for length, more in zip(before, by, strict=True)]
        last = torch.stack([row.tokens[-1] if row.tokens.numel() else put(torch.tensor(-1)) for row in rows])
        new = self.call(self.both.alloc_extend, *twice(*before), *twice(*after), last, sum(by))
        if new is None:
            return False
        for row, tokens in zip(rows, new.split(by), strict=True):
            text = self.new_text(tokens.numel())
            self.write(tokens, text)
            row.tokens, row.text = torch.cat((row.tokens, tokens)), torch.cat((row.text, text))
        return True

    @rule(length=st.integers(1, 14))
    def admit(self, length: int) -> None:
        row = Row(ids(), ids())
        promised = self.call(self.both.available_size) >= -(-length // self.both.page_size) * self.both.page_size
        done = self.grow([row], [length])
        assert done or not promised
        self.rows += [row] if done else []

    @rule(length=st.integers(1, 30), tail=st.integers(1, 9))
    def admit_tail(self, length: int, tail: int) -> None:
        asked = *twice(0), *twice(length), ids(-1), length
        tokens = self.call(self.both.alloc_extend_swa_tail, *asked, tail_len=tail)
        if tokens is not None:
            dead = max(0, length - tail) // self.both.page_size * self.both.page_size
            row = Row(tokens, self.new_text(length), dead)
            self.write(row.tokens, row.text, dead=dead)
            self.rows.append(row)

    @precondition(lambda self: self.rows)
    @rule(by=st.lists(st.integers(0, 6), min_size=1, max_size=4))
    def extend(self, by: list[int]) -> None:
        if sum(by[: len(self.rows)]):
            self.grow(self.rows[: len(by)], by[: len(self.rows)])

    @precondition(lambda self: self.rows)
    @rule()
    def decode(self) -> None:
        lens = twice(*(row.tokens.numel() + 1 for row in self.rows))
        new = self.call(self.both.alloc_decode, *lens, torch.stack([row.tokens[-1] for row in self.rows]))
        if new is None:
            return
        text = self.new_text(len(self.rows))
        self.write(new, text)
        for at, row in enumerate(self.rows):
            row.tokens = torch.cat((row.tokens, new[at : at + 1]))
            row.text = torch.cat((row.text, text[at : at + 1]))

    @precondition(lambda self: self.rows)
    @rule()
    def ratchet(self) -> None:
        for row in self.rows:
            row.cursor = self.call(
                self.both.advance_window, row.tokens, row.cursor, length=row.tokens.numel(), window=WINDOW
            )

    @precondition(lambda self: self.rows)
    @rule(at=st.integers(0, 9), split=st.integers(0, 3))
    def finish(self, at: int, split: int) -> None:
        row = self.rows.pop(at % len(self.rows))
        cut = min(split * self.both.page_size, row.tokens.numel())
        segments = [(row.tokens[:cut], 0), (row.tokens[cut:], cut)]
        self.call(self.both.free_row, segments, swa_frontier=row.cursor)
        row.tokens.fill_(0)

    @precondition(lambda self: self.rows and not self.guarded)
    @rule(at=st.integers(0, 9))
    def finish_without_positions(self, at: int) -> None:
        self.both.free(self.rows.pop(at % len(self.rows)).tokens.flip(0))

    @rule()
    def toggle_group(self) -> None:
        if self.both.group_is_open:
            self.call(self.both.free_group_end)
        else:
            self.call(self.both.free_group_begin)

    @rule(which=st.integers(0, 2), pages=st.integers(0, 5))
    def pack(self, which: int, pages: int) -> None:
        band = self.both.bands[which % len(self.both.bands)]
        self.call(band.pack, min(pages, band.hole_count))

    @precondition(lambda self: self.queue is not None)
    @rule()
    def let_the_side_queue_pass(self) -> None:
        for event in self.queue.events if self.queue else ():
            event.fired = True

    @precondition(lambda self: any(row.cursor for row in self.rows))
    @rule()
    def recover(self) -> None:
        node = next(row for row in self.rows if row.cursor)
        incoming = Row(ids(), ids())
        if not self.grow([incoming], [node.cursor]):
            return
        self.write(incoming.tokens, node.text[: node.cursor])
        kept = node.tokens[: node.cursor]
        value = self.call(recover_locked_full, self.both, kept, incoming.tokens, start_pos=0)
        assert every(value.gt(0))
        node.cursor = 0

    @precondition(lambda self: not self.both.group_is_open)
    @rule(lengths=st.lists(st.integers(1, 6), max_size=3))
    def try_and_take_back(self, lengths: list[int]) -> None:
        state = self.call(self.both.backup)
        moves = [band.moves for band in self.both.bands]
        rows = [Row(ids(), ids()) for _ in lengths]
        for row, length in zip(rows, lengths, strict=True):
            if not self.grow([row], [length]):
                row.tokens = ids()
        if [band.moves for band in self.both.bands] == moves:
            self.call(self.both.restore, state)
        else:
            self.rows += [row for row in rows if row.tokens.numel()]

    @rule()
    def start_over(self) -> None:
        if self.written % 7 == 0:
            self.call(self.both.clear)
            self.rows = []

    @invariant()
    def the_tables_are_sound(self) -> None:
        if hasattr(self, "both"):
            assert verify(self.both) == []
            check(self.both)

    @invariant()
    def live_tokens_hold_what_was_written(self) -> None:
        """I16."""
        for row in getattr(self, "rows", ()):
            assert listed(self.views[0][self.both.translate(row.tokens)][:, 0, 0]) == listed(row.text)
            alive = row.tokens[row.cursor :]
            found = self.views[1][self.both.translate_loc_from_full_to_swa(alive)][:, 0, 0]
            assert listed(found) == listed(row.text[row.cursor :])

    @invariant()
    def what_is_live_are_the_pages_of_the_rows(self) -> None:
        """Outside a group, where deferred frees would count as live."""
        if hasattr(self, "both") and not self.both.group_is_open:
            size = self.both.page_size
            assert self.both.full.band.live == sum(-(-row.tokens.numel() // size) for row in self.rows)
            assert self.both.swa.live == sum(-(-(row.tokens.numel() - row.cursor) // size) for row in self.rows)


class FusedMachine(Machine):
    """The same in the other profile."""

    profile = "fused"


def plan_of(examples: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=30,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )


Machine.TestCase.settings = plan_of(60)
FusedMachine.TestCase.settings = plan_of(60)
TestMachine = Machine.TestCase
TestFusedMachine = FusedMachine.TestCase
