"""What each operation costs: the table of the README, and the budget that the tests hold it to.

Run as a program, it writes the table into the README.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- costs: written by reference_allocator/costs.py -->", "<!-- end of costs -->"


@dataclass(frozen=True)
class Cost:
    """One row. Counts are dispatched operations that launch or copy, with a page of several tokens.

    syncs: how often the host waits for the device. launches, checked: operations without and with checks on a device.
    waits_in: the functions that hold the suppressions of such waits, as `module.Class.function`.
    """

    call: str
    heat: Literal["hot", "warm", "cold", "idle"]
    syncs: int
    launches: int
    checked: int
    note: str = ""
    waits_in: tuple[str, ...] = ()


DISTINCT = "token_allocator.TokenAllocator.distinct_pages"
ALIVE = "composites.SWAComposite._release_alive"
MAPPED = "static.StaticSWAComposite.free_by_value"
READ = "verify.read"

COSTS = (
    Cost("PageAllocator.alloc", "hot", 0, 4, 5, "full attention: one of them zeroes the pages"),
    Cost("PageAllocator.alloc, no zeroing", "hot", 0, 3, 4),
    Cost("PageAllocator.alloc, from holes", "hot", 0, 4, 5, "and a sort where part of a changed list is taken"),
    Cost("PageAllocator.alloc_extend", "hot", 0, 34, 35, "any number of requests"),
    Cost("PageAllocator.alloc_decode", "hot", 0, 13, 14, "some request starts a page"),
    Cost("PageAllocator.alloc_decode, inside pages", "hot", 0, 1, 1, "writes no table"),
    Cost("PageAllocator.free_segment", "hot", 0, 6, 11),
    Cost("PageAllocator.free_segments", "hot", 0, 8, 13, "two segments"),
    Cost("PageAllocator group", "hot", 0, 8, 13, "two segments"),
    Cost("PageAllocator.translate", "hot", 0, 6, 6),
    Cost("PageAllocator.available_size", "hot", 0, 0, 0),
    Cost("SWAComposite.alloc", "hot", 0, 6, 8),
    Cost("SWAComposite.alloc_extend", "hot", 0, 36, 38),
    Cost("SWAComposite.alloc_extend_swa_tail", "hot", 0, 37, 39),
    Cost("SWAComposite.alloc_decode", "hot", 0, 15, 17),
    Cost("SWAComposite.free_segment", "hot", 0, 10, 20, "two pools"),
    Cost("SWAComposite.free_segments", "hot", 0, 12, 22, "two segments"),
    Cost("SWAComposite.free_full_segment", "hot", 0, 6, 15),
    Cost("SWAComposite.free_swa_segment", "hot", 0, 5, 10),
    Cost("SWAComposite.free_row", "hot", 0, 16, 35, "split at one cursor"),
    Cost("SWAComposite.advance_window", "hot", 0, 5, 10),
    Cost("SWAComposite.translate_loc_from_full_to_swa", "hot", 0, 6, 6),
    Cost("SWAComposite.set_full_to_swa_mapping", "hot", 0, 4, 4),
    Cost("SWAComposite.clear_full_to_swa_mapping", "hot", 0, 4, 4),
    Cost("SWAComposite.available_size", "hot", 0, 0, 0, "memoised"),
    Cost("SWAComposite.schedulable_size", "hot", 0, 0, 0),
    Cost("SWAMambaComposite.alloc_state", "hot", 0, 3, 4),
    Cost("SWAMambaComposite.alloc_state, set aside", "hot", 0, 0, 0),
    Cost("SWAMambaComposite.free_state", "hot", 0, 5, 10),
    Cost("StateSlots.reset", "hot", 0, 4, 4, "when a request takes slots up"),
    Cost("StateSlots.copy", "hot", 0, 8, 8, "two per megabyte copied more"),
    Cost("StaticSWAComposite.alloc", "hot", 0, 3, 6, "a fixed split"),
    Cost("StaticSWAComposite.alloc_extend", "hot", 0, 33, 36),
    Cost("StaticSWAComposite.alloc_extend_swa_tail", "hot", 0, 34, 37),
    Cost("StaticSWAComposite.alloc_decode", "hot", 0, 12, 15),
    Cost("StaticSWAComposite.free_segment", "hot", 0, 6, 16),
    Cost("StaticSWAComposite.free_full_segment", "hot", 0, 2, 11),
    Cost("StaticSWAComposite.free_swa_segment", "hot", 0, 5, 10),
    Cost("StaticSWAComposite.free_row", "hot", 0, 8, 27, "split at one cursor"),
    Cost("StaticSWAComposite.advance_window", "hot", 0, 5, 10),
    Cost("StaticSWAComposite group", "hot", 0, 12, 32, "two segments"),
    Cost("StaticSWAComposite.translate_loc_from_full_to_swa", "hot", 0, 2, 2),
    Cost("StaticSWAComposite.set_full_to_swa_mapping", "hot", 0, 4, 4),
    Cost("StaticSWAComposite.clear_full_to_swa_mapping", "hot", 0, 2, 2),
    Cost("StaticSWAComposite.available_size", "hot", 0, 0, 0),
    Cost("EndBand.pack", "warm", 0, 30, 34, "two per megabyte moved more"),
    Cost("FloatBand.make_room", "warm", 0, 34, 38, "holes packed, and what is left moved"),
    Cost("SWAMambaComposite.alloc_state, after relief", "warm", 0, 37, 42, "the window pool moves aside"),
    Cost("transfer_swa_pages", "warm", 0, 6, 31),
    Cost("recover_locked_full", "warm", 0, 18, 52),
    Cost("SWAComposite.backup", "warm", 0, 0, 0),
    Cost("SWAComposite.restore", "warm", 0, 6, 6),
    Cost("recover_locked_full, static", "warm", 0, 15, 42),
    Cost("StaticSWAComposite.backup", "warm", 0, 0, 0),
    Cost("StaticSWAComposite.restore", "warm", 0, 1, 2),
    Cost("transfer_swa_tokens", "cold", 0, 6, 35, "no position"),
    Cost("SWAComposite.clear", "cold", 0, 10, 10),
    Cost("SWAComposite.resize", "cold", 0, 10, 10),
    Cost("PageAllocator.free", "cold", 1, 7, 12, "no position: the device counts the pages", (DISTINCT,)),
    Cost("SWAComposite.free", "cold", 2, 14, 24, "and which are in the window", (DISTINCT, ALIVE)),
    Cost("SWAComposite.free_swa", "cold", 2, 9, 14, "", (DISTINCT, ALIVE)),
    Cost("SWAComposite.free_full", "cold", 1, 7, 16, "", (DISTINCT,)),
    Cost("StaticSWAComposite.clear", "cold", 0, 5, 5),
    Cost("StaticSWAComposite.free", "cold", 2, 10, 20, "", (DISTINCT, MAPPED)),
    Cost("check", "idle", 2, 0, 0, "one per pool", (READ,)),
    Cost("verify", "idle", 14, 0, 0, "", (READ,)),
)


FUSED: dict[str, tuple[int, int]] = {
    "PageAllocator.alloc": (2, 2),
    "PageAllocator.alloc, no zeroing": (1, 1),
    "PageAllocator.alloc, from holes": (1, 1),
    "PageAllocator.alloc_extend": (2, 2),
    "PageAllocator.alloc_decode": (2, 2),
    "PageAllocator.alloc_decode, inside pages": (1, 1),
    "PageAllocator.free_segment": (1, 1),
    "PageAllocator.free_segments": (4, 4),
    "PageAllocator group": (4, 4),
    "PageAllocator.translate": (1, 1),
    "PageAllocator.available_size": (0, 0),
    "SWAComposite.alloc": (3, 3),
    "SWAComposite.alloc_extend": (3, 3),
    "SWAComposite.alloc_extend_swa_tail": (5, 5),
    "SWAComposite.alloc_decode": (3, 3),
    "SWAComposite.free_segment": (2, 2),
    "SWAComposite.free_segments": (5, 5),
    "SWAComposite.free_full_segment": (1, 2),
    "SWAComposite.free_swa_segment": (1, 1),
    "SWAComposite.free_row": (3, 4),
    "SWAComposite.advance_window": (1, 1),
    "SWAComposite.translate_loc_from_full_to_swa": (1, 1),
    "SWAComposite.set_full_to_swa_mapping": (4, 4),
    "SWAComposite.clear_full_to_swa_mapping": (4, 4),
    "SWAComposite.available_size": (0, 0),
    "SWAComposite.schedulable_size": (0, 0),
    "SWAMambaComposite.alloc_state": (1, 1),
    "SWAMambaComposite.alloc_state, set aside": (0, 0),
    "SWAMambaComposite.free_state": (1, 1),
    "StateSlots.reset": (2, 2),
    "StateSlots.copy": (3, 3),
    "EndBand.pack": (4, 4),
    "FloatBand.make_room": (5, 5),
    "SWAMambaComposite.alloc_state, after relief": (6, 6),
    "transfer_swa_pages": (2, 2),
    "recover_locked_full": (4, 5),
    "SWAComposite.backup": (0, 0),
    "SWAComposite.restore": (2, 2),
    "recover_locked_full, static": (15, 42),
    "transfer_swa_tokens": (4, 8),
    "SWAComposite.clear": (11, 11),
    "SWAComposite.resize": (12, 12),
    "PageAllocator.free": (3, 3),
    "SWAComposite.free": (7, 7),
    "SWAComposite.free_swa": (6, 6),
    "SWAComposite.free_full": (3, 4),
    "check": (0, 0),
    "verify": (3, 3),
}
"""Launches of the fused profile by row, without and with checks: operations dispatched, and kernels of our own."""


def table() -> str:
    """The rows as Markdown."""
    head = (
        "| call | heat | syncs | dispatches | checked | fused | fused, checked | |\n|---|---|---|---|---|---|---|---|\n"
    )
    rows = (
        f"| `{row.call.partition(',')[0]}`{''.join(row.call.partition(',')[1:])} | {row.heat} | {row.syncs} "
        f"| {row.launches} | {row.checked} | {' | '.join(map(str, FUSED.get(row.call, ('', ''))))} | {row.note} |\n"
        for row in COSTS
    )
    return head + "".join(rows)


def with_table(readme: str) -> str:
    """The README with its table as it should be."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}{END}{after}"


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
