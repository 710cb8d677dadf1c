"""Every row of the table of costs is measured: what is dispatched, and what of it would stop the host on a device."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import reference_allocator
from reference_allocator import chain
from reference_allocator.allocator import PageAllocator
from reference_allocator.composites import SWAComposite
from reference_allocator.costs import COSTS, FUSED, README, with_table
from reference_allocator.float_band import FloatBand
from reference_allocator.naive import NaiveAllocator
from reference_allocator.page_tables import Profile
from reference_allocator.recovery import recover_locked_full, transfer_swa_pages, transfer_swa_tokens
from reference_allocator.state import SWAMambaComposite
from reference_allocator.static import StaticSWAComposite
from reference_allocator.verify import check, verify
from tests.reference_allocator.dispatches import Dispatches
from tests.reference_allocator.pools import byte_pool, ids, two_owners
from tests.reference_allocator.test_allocator import got
from tests.reference_allocator.test_allocator import on_a_device as owner_on_a_device
from tests.reference_allocator.test_composites import on_a_device
from tests.reference_allocator.test_recovery import evicted
from tests.reference_allocator.test_state import three_pools
from tests.reference_allocator.test_static import evicted as evicted_static
from tests.reference_allocator.test_static import on_a_device as static_on_a_device
from tests.reference_allocator.test_static import static

PACKAGE = Path(reference_allocator.__file__).parent
PROFILE: Profile = "portable"


def one(checked: bool, name: str = "full") -> PageAllocator:
    allocators = {allocator.name: allocator for allocator in two_owners(checked=checked, profile=PROFILE)}
    return owner_on_a_device(allocators[name])


def both(checked: bool) -> SWAComposite:
    return on_a_device(SWAComposite(byte_pool(), checked=checked, profile=PROFILE))


def fixed(checked: bool) -> StaticSWAComposite:
    return static_on_a_device(static(full=32, window=32, checked=checked))


Two = SWAComposite | StaticSWAComposite
Allocator = PageAllocator | Two


def alloc(checked: bool) -> Dispatches:
    allocator = one(checked)
    with Dispatches() as seen:
        allocator.alloc(12)
    return seen


def alloc_no_zeroing(checked: bool) -> Dispatches:
    allocator = one(checked, "swa")
    with Dispatches() as seen:
        allocator.alloc(12)
    return seen


def alloc_holes(checked: bool) -> Dispatches:
    allocator = one(checked, "swa")
    allocator.free_segment(got(allocator.alloc(12)), start_pos=0)
    with Dispatches() as seen:
        allocator.alloc(16)
    return seen


def alloc_extend(allocator: Allocator) -> Dispatches:
    row = got(allocator.alloc_extend(ids(0), ids(0), ids(5), ids(5), ids(-1), 5))
    before, after = ids(5, 0, 0), ids(12, 3, 9)
    before_cpu, after_cpu, last = before.clone(), after.clone(), torch.stack((row[4], *ids(-1, -1)))
    with Dispatches(before_cpu, after_cpu) as seen:
        allocator.alloc_extend(before, before_cpu, after, after_cpu, last, 19)
    return seen


def alloc_extend_swa_tail(composite: Two) -> Dispatches:
    before, after = ids(0, 0), ids(12, 9)
    before_cpu, after_cpu, last = before.clone(), after.clone(), ids(-1, -1)
    with Dispatches(before_cpu, after_cpu) as seen:
        composite.alloc_extend_swa_tail(before, before_cpu, after, after_cpu, last, 21, tail_len=5)
    return seen


def mapping(bound: bool, composite: Two) -> Dispatches:
    """Of clearing, or of setting what has been cleared."""
    row = got(composite.alloc(16))
    physical = composite.translate_loc_from_full_to_swa(row)
    if bound:
        composite.clear_full_to_swa_mapping(row)
    with Dispatches() as seen:
        if bound:
            composite.set_full_to_swa_mapping(row, physical)
        else:
            composite.clear_full_to_swa_mapping(row)
    return seen


def alloc_decode(allocator: Allocator, first: int = 4) -> Dispatches:
    row = got(allocator.alloc_extend(ids(0), ids(0), ids(first), ids(first), ids(-1), first))
    seq, last = ids(first + 1), row[-1:]
    seq_cpu = seq.clone()
    with Dispatches(seq_cpu) as seen:
        allocator.alloc_decode(seq, seq_cpu, last)
    return seen


def free_segment(allocator: Allocator) -> Dispatches:
    row = got(allocator.alloc(16))
    with Dispatches() as seen:
        allocator.free_segment(row[4:12], start_pos=4)
    return seen


def free_segments(checked: bool) -> Dispatches:
    allocator = one(checked)
    row = got(allocator.alloc(16))
    with Dispatches() as seen:
        allocator.free_segments([(row[:4], 0), (row[8:16], 8)])
    return seen


def free_segments_of_both(checked: bool) -> Dispatches:
    composite = both(checked)
    row = got(composite.alloc(16))
    with Dispatches() as seen:
        composite.free_segments([(row[:4], 0), (row[8:16], 8)])
    return seen


def three(checked: bool) -> SWAMambaComposite:
    composite = SWAMambaComposite(three_pools(), checked=checked, profile=PROFILE)
    for allocator in (composite, composite.full, composite.state):
        allocator.raises = False
    for band in composite.bands:
        band.raises = False
    return composite


def alloc_state(set_aside: bool, checked: bool) -> Dispatches:
    composite = three(checked)
    if set_aside:
        composite.state.alloc_group_begin(2)
    with Dispatches() as seen:
        got(composite.alloc_state(1))
    return seen


def slots(use: Callable[[SWAMambaComposite, torch.Tensor], object], checked: bool) -> Dispatches:
    composite = three(checked)
    taken = got(composite.alloc_state(4))
    with Dispatches() as seen:
        use(composite, taken)
    return seen


def make_room(checked: bool) -> Dispatches:
    composite = three(checked)
    row = got(composite.alloc(32))
    composite.free_segment(row[8:12], start_pos=8)
    floating = composite.swa
    assert isinstance(floating, FloatBand)
    with Dispatches() as seen:
        floating.make_room("low", floating.gap("low") + 3 * floating.page_bytes)
    assert floating.moves == 2
    return seen


def alloc_after_relief(checked: bool) -> Dispatches:
    """Slots stand below the window pool and want its bytes: it packs its holes and moves up."""
    composite = three(checked)
    row = got(composite.alloc(composite.available_size() - 16))
    composite.free_swa_segment(row[8:12], start_pos=8)
    count = chain.most(lambda count: chain.fits({composite.state.band: count}), 1000) + 16
    with Dispatches() as seen:
        got(composite.alloc_state(count))
    assert composite.swa.moves == 2
    return seen


def group(allocator: PageAllocator | StaticSWAComposite) -> Dispatches:
    row = got(allocator.alloc(16))
    with Dispatches() as seen:
        allocator.free_group_begin()
        allocator.free_segment(row[:4], start_pos=0)
        allocator.free_segment(row[8:16], start_pos=8)
        allocator.free_group_end()
    return seen


def one_side(name: str, composite: Two) -> Dispatches:
    row = got(composite.alloc(16))
    if name == "free_full_segment":
        composite.free_swa_segment(row, start_pos=0)
    with Dispatches() as seen:
        getattr(composite, name)(row[:8], start_pos=0)
    return seen


def free_row(composite: Two) -> Dispatches:
    row = got(composite.alloc(16))
    composite.free_swa_segment(row[:8], start_pos=0)
    with Dispatches() as seen:
        composite.free_row([(row, 0)], swa_frontier=8)
    return seen


def advance_window(composite: Two) -> Dispatches:
    row = got(composite.alloc(16))
    with Dispatches() as seen:
        assert composite.advance_window(row, 0, 16, window=6) == 8
    return seen


def read(use: Callable[[Allocator], object], allocator: Allocator) -> Dispatches:
    """Of an allocator with live pages and holes."""
    row = got(allocator.alloc(16))
    allocator.free_segment(row[:8], start_pos=0)
    with Dispatches() as seen:
        use(allocator)
    return seen


def translate(use: Callable[[torch.Tensor], object]) -> Dispatches:
    tokens = ids(4, 5, 6, 99)
    with Dispatches() as seen:
        use(tokens)
    return seen


def recovery(use: Callable[..., object], checked: bool) -> Dispatches:
    composite = both(checked)
    kept, incoming = evicted(composite, 3)
    with Dispatches() as seen:
        use(composite, kept, incoming, start_pos=0)
    return seen


def recovery_static(checked: bool) -> Dispatches:
    composite = fixed(checked)
    kept, incoming = evicted_static(composite, 3)
    with Dispatches() as seen:
        recover_locked_full(composite, kept, incoming, start_pos=0)
    return seen


def restore(composite: Two) -> Dispatches:
    state = composite.backup()
    composite.alloc(8)
    with Dispatches() as seen:
        composite.restore(state)  # type: ignore[arg-type]
    return seen


def resize(checked: bool) -> Dispatches:
    composite = both(checked)
    with Dispatches() as seen:
        composite.resize(32768)
    return seen


def by_value(use: str, allocator: Allocator) -> Dispatches:
    tokens = got(allocator.alloc(16))[:8].flip(0)
    if isinstance(allocator, SWAComposite) and use == "free_full":
        allocator.free_swa(tokens)
    with Dispatches() as seen:
        getattr(allocator, use)(tokens)
    return seen


MEASURED: dict[str, Callable[[bool], Dispatches]] = {
    "PageAllocator.alloc": alloc,
    "PageAllocator.alloc, no zeroing": alloc_no_zeroing,
    "PageAllocator.alloc, from holes": alloc_holes,
    "PageAllocator.alloc_extend": lambda checked: alloc_extend(one(checked)),
    "PageAllocator.alloc_decode": lambda checked: alloc_decode(one(checked)),
    "PageAllocator.alloc_decode, inside pages": lambda checked: alloc_decode(one(checked), first=5),
    "PageAllocator.free_segment": lambda checked: free_segment(one(checked)),
    "PageAllocator.free_segments": free_segments,
    "PageAllocator group": lambda checked: group(one(checked)),
    "PageAllocator.translate": lambda checked: translate(one(checked).translate),
    "PageAllocator.available_size": lambda checked: read(lambda allocator: allocator.available_size(), one(checked)),
    "SWAComposite.alloc": lambda checked: alloc_of(both(checked)),
    "SWAComposite.alloc_extend": lambda checked: alloc_extend(both(checked)),
    "SWAComposite.alloc_extend_swa_tail": lambda checked: alloc_extend_swa_tail(both(checked)),
    "SWAComposite.alloc_decode": lambda checked: alloc_decode(both(checked)),
    "SWAComposite.free_segment": lambda checked: free_segment(both(checked)),
    "SWAComposite.free_segments": free_segments_of_both,
    "SWAComposite.free_full_segment": lambda checked: one_side("free_full_segment", both(checked)),
    "SWAComposite.free_swa_segment": lambda checked: one_side("free_swa_segment", both(checked)),
    "SWAComposite.free_row": lambda checked: free_row(both(checked)),
    "SWAComposite.advance_window": lambda checked: advance_window(both(checked)),
    "SWAComposite.translate_loc_from_full_to_swa": lambda checked: translate(
        both(checked).translate_loc_from_full_to_swa
    ),
    "SWAComposite.set_full_to_swa_mapping": lambda checked: mapping(True, both(checked)),
    "SWAComposite.clear_full_to_swa_mapping": lambda checked: mapping(False, both(checked)),
    "SWAComposite.available_size": lambda checked: read(lambda composite: composite.available_size(), both(checked)),
    "SWAComposite.schedulable_size": lambda checked: read(
        lambda composite: composite.schedulable_size(), both(checked)
    ),
    "SWAMambaComposite.alloc_state": lambda checked: alloc_state(False, checked),
    "SWAMambaComposite.alloc_state, set aside": lambda checked: alloc_state(True, checked),
    "SWAMambaComposite.free_state": lambda checked: slots(lambda cache, taken: cache.free_state(taken), checked),
    "StateSlots.reset": lambda checked: slots(lambda cache, taken: cache.state.reset(taken), checked),
    "StateSlots.copy": lambda checked: slots(
        lambda cache, taken: cache.state.copy(src=taken[:2], dst=taken[2:]), checked
    ),
    "StaticSWAComposite.alloc": lambda checked: alloc_of(fixed(checked)),
    "StaticSWAComposite.alloc_extend": lambda checked: alloc_extend(fixed(checked)),
    "StaticSWAComposite.alloc_extend_swa_tail": lambda checked: alloc_extend_swa_tail(fixed(checked)),
    "StaticSWAComposite.alloc_decode": lambda checked: alloc_decode(fixed(checked)),
    "StaticSWAComposite.free_segment": lambda checked: free_segment(fixed(checked)),
    "StaticSWAComposite.free_full_segment": lambda checked: one_side("free_full_segment", fixed(checked)),
    "StaticSWAComposite.free_swa_segment": lambda checked: one_side("free_swa_segment", fixed(checked)),
    "StaticSWAComposite.free_row": lambda checked: free_row(fixed(checked)),
    "StaticSWAComposite.advance_window": lambda checked: advance_window(fixed(checked)),
    "StaticSWAComposite group": lambda checked: group(fixed(checked)),
    "StaticSWAComposite.translate_loc_from_full_to_swa": lambda checked: translate(
        fixed(checked).translate_loc_from_full_to_swa
    ),
    "StaticSWAComposite.set_full_to_swa_mapping": lambda checked: mapping(True, fixed(checked)),
    "StaticSWAComposite.clear_full_to_swa_mapping": lambda checked: mapping(False, fixed(checked)),
    "StaticSWAComposite.available_size": lambda checked: read(lambda both: both.available_size(), fixed(checked)),
    "EndBand.pack": lambda checked: read(lambda allocator: allocator.band.pack(2), one(checked)),  # type: ignore[union-attr]
    "FloatBand.make_room": make_room,
    "SWAMambaComposite.alloc_state, after relief": alloc_after_relief,
    "transfer_swa_pages": lambda checked: recovery(transfer_swa_pages, checked),
    "recover_locked_full": lambda checked: recovery(recover_locked_full, checked),
    "SWAComposite.backup": lambda checked: read(lambda composite: composite.backup(), both(checked)),
    "SWAComposite.restore": lambda checked: restore(both(checked)),
    "recover_locked_full, static": recovery_static,
    "StaticSWAComposite.backup": lambda checked: read(lambda composite: composite.backup(), fixed(checked)),
    "StaticSWAComposite.restore": lambda checked: restore(fixed(checked)),
    "transfer_swa_tokens": lambda checked: recovery(
        lambda composite, kept, incoming, start_pos: transfer_swa_tokens(composite, kept, incoming), checked
    ),
    "SWAComposite.clear": lambda checked: read(lambda composite: composite.clear(), both(checked)),
    "SWAComposite.resize": resize,
    "PageAllocator.free": lambda checked: by_value("free", one(checked)),
    "SWAComposite.free": lambda checked: by_value("free", both(checked)),
    "SWAComposite.free_swa": lambda checked: by_value("free_swa", both(checked)),
    "SWAComposite.free_full": lambda checked: by_value("free_full", both(checked)),
    "StaticSWAComposite.clear": lambda checked: read(lambda composite: composite.clear(), fixed(checked)),
    "StaticSWAComposite.free": lambda checked: by_value("free", fixed(checked)),
    "check": lambda checked: read(check, both(checked)),
    "verify": lambda checked: read(verify, both(checked)),
}


def alloc_of(composite: Two) -> Dispatches:
    with Dispatches() as seen:
        composite.alloc(12)
    return seen


def test_every_row_is_measured() -> None:
    assert [row.call for row in COSTS] == list(MEASURED)


@pytest.mark.parametrize("call", FUSED)
def test_a_call_of_the_fused_profile_launches_what_its_row_says(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And reads as often from the device."""
    monkeypatch.setattr(sys.modules[__name__], "PROFILE", "fused")
    (row,) = [row for row in COSTS if row.call == call]
    plain, checked = MEASURED[call](False), MEASURED[call](True)
    assert (plain.launches, checked.launches) == FUSED[call], (plain.names, plain.kernels, checked.names)
    assert (len(plain.syncs), len(checked.syncs)) == (row.syncs, row.syncs), (plain.syncs, checked.syncs)


def test_fused_calls_are_within_their_budgets() -> None:
    """Those of the free and of compaction do not depend on checks."""
    budget = {
        "PageAllocator.alloc": 2,
        "PageAllocator.alloc, no zeroing": 1,
        "PageAllocator.alloc_extend": 2,
        "PageAllocator.alloc_decode": 2,
        "PageAllocator.alloc_decode, inside pages": 1,
        "PageAllocator.free_segment": 1,
        "PageAllocator.translate": 1,
        "SWAComposite.free_segment": 2,
        "transfer_swa_pages": 2,
        "SWAComposite.restore": 2,
    }
    over = {call: FUSED[call] for call, most in budget.items() if max(FUSED[call]) > most}
    assert over == {}
    assert [launches - 3 for launches in FUSED["EndBand.pack"]] == [1, 1]  # the list of holes is sorted first


@pytest.mark.parametrize("row", COSTS, ids=lambda row: row.call)
def test_a_call_costs_what_its_row_says(row) -> None:  # type: ignore[no-untyped-def]
    plain, checked = MEASURED[row.call](False), MEASURED[row.call](True)
    assert (plain.count, checked.count) == (row.launches, row.checked), (plain.names, checked.names)
    assert (len(plain.syncs), len(checked.syncs)) == (row.syncs, row.syncs), (plain.syncs, checked.syncs)


def test_nothing_hot_or_warm_stops_the_host() -> None:
    assert [row.call for row in COSTS if row.syncs and row.heat in ("hot", "warm")] == []


def test_a_free_is_within_its_budget_and_the_naive_one_is_not() -> None:
    frees = [row.launches for row in COSTS if row.call == "PageAllocator.free_segment"]
    assert frees <= [6]
    naive = NaiveAllocator(byte_pool(), "full", checked=False)
    row = got(naive.alloc(16))
    with Dispatches() as seen:
        naive.free_segment(row[4:12], start_pos=4)
    assert (seen.count, len(seen.syncs)) == (9, 3)
    assert verify(naive) == []


def test_waits_are_suppressed_where_a_row_says_so_and_nowhere_else() -> None:
    suppressed = set()
    for path in PACKAGE.glob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        marked = [number for number, line in enumerate(lines, 1) if "# nosync-lint: ignore[" in line]
        for node in ast.walk(ast.parse("\n".join(lines))):
            for inner in node.body if isinstance(node, ast.ClassDef | ast.Module) else ():
                if isinstance(inner, ast.FunctionDef) and any(
                    inner.lineno <= number <= (inner.end_lineno or 0) for number in marked
                ):
                    owner = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
                    suppressed.add(f"{path.stem}.{owner}{inner.name}")
    assert suppressed == {place for row in COSTS for place in row.waits_in}
    assert [row.call for row in COSTS if bool(row.waits_in) != bool(row.syncs)] == []


def test_the_readme_has_the_table() -> None:
    text = README.read_text(encoding="utf-8")
    assert text == with_table(text)
