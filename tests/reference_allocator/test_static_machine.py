"""Any sequence of calls keeps the invariants of a fixed split, the contents of live tokens, and the host from waiting."""

from __future__ import annotations

import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from reference_allocator import KVSpec, StaticSWAComposite
from reference_allocator.kv_pools import KVSide, SWAKVPool
from tests.reference_allocator.pools import Place, ids, listed
from tests.reference_allocator.test_machine import Machine, Row

FULL, WINDOW = 24, 14
"""Pages, few enough that both sides run out."""


class StaticMachine(Machine):
    """The same requests; there is nothing to pack, and no queue for it."""

    pack = None
    let_the_side_queue_pass = None

    @initialize(page_size=st.sampled_from([1, 4]), guarded=st.booleans())
    def start(self, page_size: int, guarded: bool) -> None:
        self.both = StaticSWAComposite(  # type: ignore[assignment]
            FULL * page_size, WINDOW * page_size, page_size=page_size, checked=not guarded, device=Place.device
        )
        shape = {"page_size": page_size, "heads": 1, "key_dim": 2, "value_dim": 2, "dtype": torch.int64}
        full, swa = (
            KVSide.allocate(KVSpec(side, side, "up", layers=[layer], **shape), pages * page_size, device=Place.device)  # type: ignore[arg-type]
            for layer, (side, pages) in enumerate((("full", FULL), ("swa", WINDOW)))
        )
        pool = SWAKVPool(full, swa)
        self.views = [pool.get_key_buffer(0), pool.get_key_buffer(1)]
        self.guarded = guarded
        self.rows: list[Row] = []
        self.written = 0

    @precondition(lambda self: not self.both.group_is_open)
    @rule(lengths=st.lists(st.integers(1, 6), max_size=3))
    def try_and_take_back(self, lengths: list[int]) -> None:
        state = self.call(self.both.backup)
        free = [listed(side.free) for side in self.both.sides]
        for length in lengths:
            self.grow([Row(ids(), ids())], [length])
        self.call(self.both.restore, state)
        assert [listed(side.free) for side in self.both.sides] == free

    @invariant()
    def what_is_live_are_the_pages_of_the_rows(self) -> None:
        """Outside a group, where deferred frees would count as live."""
        if hasattr(self, "both") and not self.both.group_is_open:
            size = self.both.page_size
            assert self.both.full.live == sum(-(-row.tokens.numel() // size) for row in self.rows)
            assert self.both.swa.live == sum(-(-(row.tokens.numel() - row.cursor) // size) for row in self.rows)


StaticMachine.TestCase.settings = settings(
    max_examples=24, stateful_step_count=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
TestStaticMachine = StaticMachine.TestCase
