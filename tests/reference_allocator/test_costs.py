"""Every row of the table of costs is measured: what is dispatched, and what of it would stop the host on a device."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

import reference_allocator
from benchmarks.allocator.calls import CALLS, Allocator, Bench, Call, naive_free, recovery, with_holes
from benchmarks.allocator.pools import got
from reference_allocator.composites import SWAComposite
from reference_allocator.costs import COSTS, FUSED, README, Cost, with_table
from reference_allocator.page_tables import Profile
from reference_allocator.recovery import transfer_swa_tokens
from reference_allocator.verify import check, verify
from tests.reference_allocator.dispatches import Dispatches

pytestmark = pytest.mark.host("counts what torch dispatches in CPU memory; tests/guard counts the waits on the device")

PACKAGE = Path(reference_allocator.__file__).parent


def by_value(use: str, allocator: Allocator) -> Call:
    """A free without positions."""
    tokens = got(allocator.alloc(16))[:8].flip(0)
    if isinstance(allocator, SWAComposite) and use == "free_full":
        allocator.free_swa(tokens)
    return Call(lambda: getattr(allocator, use)(tokens))


def of_both(use: Callable[[SWAComposite], object], bench: Bench) -> Call:
    """Of pools with live pages and holes."""
    both = with_holes(bench.both())
    return Call(lambda: use(both))


def resize(bench: Bench) -> Call:
    both = bench.both()
    return Call(lambda: both.resize(both.pool.total_bytes // 2))


COLD: dict[str, Callable[[Bench], Call]] = {
    "transfer_swa_tokens": lambda bench: recovery(
        bench.both(), lambda both, kept, incoming, start_pos: transfer_swa_tokens(both, kept, incoming)
    ),
    "SWAComposite.clear": lambda bench: of_both(lambda both: both.clear(), bench),
    "SWAComposite.resize": resize,
    "PageAllocator.free": lambda bench: by_value("free", bench.one()),
    "SWAComposite.free": lambda bench: by_value("free", bench.both()),
    "SWAComposite.free_swa": lambda bench: by_value("free_swa", bench.both()),
    "SWAComposite.free_full": lambda bench: by_value("free_full", bench.both()),
    "StaticSWAComposite.clear": lambda bench: Call(with_holes(bench.fixed()).clear),
    "StaticSWAComposite.free": lambda bench: by_value("free", bench.fixed()),
    "check": lambda bench: of_both(check, bench),
    "verify": lambda bench: of_both(verify, bench),
}
"""The rows that no benchmark records."""
PREPARED = {**CALLS, **COLD}


def measured(call: str, profile: Profile = "portable") -> tuple[Dispatches, Dispatches]:
    """Without checks, and with them."""
    return seen_in(PREPARED[call](Bench("cpu", False, profile))), seen_in(PREPARED[call](Bench("cpu", True, profile)))


def seen_in(call: Call) -> Dispatches:
    with Dispatches(*call.host) as seen:
        call()
    return seen


def test_every_row_is_measured() -> None:
    assert [row.call for row in COSTS] == list(PREPARED)


@pytest.mark.parametrize("call", FUSED)
def test_a_call_of_the_fused_profile_launches_what_its_row_says(call: str) -> None:
    """And reads as often from the device."""
    (row,) = [row for row in COSTS if row.call == call]
    plain, checked = measured(call, "fused")
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
def test_a_call_costs_what_its_row_says(row: Cost) -> None:
    plain, checked = measured(row.call)
    assert (plain.count, checked.count) == (row.launches, row.checked), (plain.names, checked.names)
    assert (len(plain.syncs), len(checked.syncs)) == (row.syncs, row.syncs), (plain.syncs, checked.syncs)


def test_nothing_hot_or_warm_stops_the_host() -> None:
    assert [row.call for row in COSTS if row.syncs and row.heat in ("hot", "warm")] == []


def test_a_free_is_within_its_budget_and_the_naive_one_is_not() -> None:
    frees = [row.launches for row in COSTS if row.call == "PageAllocator.free_segment"]
    assert frees <= [6]
    naive = seen_in(naive_free(Bench("cpu", False)))
    assert (naive.count, len(naive.syncs)) == (9, 3)


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
