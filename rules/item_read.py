"""`.item()` on a device tensor reads one element back and waits for it.

Why it matters
    The element is there when everything queued before it has run: the host stands still until the stream has
    drained.

Instead
    Keep the 0-dim tensor on the device. Where the host needs the number, copy it into a pinned buffer with
    `non_blocking=True`, record an event, and read it a step later.

Missed alarms
    Operands that nothing in the project shows to be a tensor on the device.

False alarms
    Tensors kept on the CPU for a reason that the program text does not show.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Applicability, Severity
from nosync_lint.link.parts import within
from nosync_lint.link.program import Program
from nosync_lint.link.rewriting import bound_name, follows
from nosync_lint.link.syncs import Sync
from nosync_lint.link.wording import describe, outline, spelled
from nosync_lint.rule import Judgement, Rewrite, Rule, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class ItemRead(Rule):
    code = "NSL201"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("item-read",)
    recipes = ("batched-reads",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        read = spelled(site.spelled)
        kept = f"keep {read or 'the 0-dim tensor'} on the device"
        cure = f"{kept}; where the host needs the number, copy it with non_blocking=True and read that a step later"
        yield waits(site, program, f"`{outline(site.expr)}` reads {describe(site.operand)} back", cure=cure)

    def fix(self, site: object, program: Program) -> Rewrite | None:
        """Reads in lines that follow each other, as one. It is for display: nothing tells that they may change places
        with what is called on the way."""
        assert isinstance(site, Sync)
        run = _together(site, program)
        names = [bound_name(one.function.record, one.expr) for one in run]
        others = [spelled(one.expr[1][1]) for one in run[1:]]
        module = program.local_name(site, "torch")
        if module is None or len(run) < 2 or None in others:
            return None
        targets = ", ".join(["{name}", *(str(name) for name in names[1:])])
        read = f"{module}.stack([{', '.join(['{value.receiver}', *(str(one) for one in others)])}]).tolist()"
        gone = tuple(one.statement for one in run[1:])
        message = f"Read {len(run)} numbers at once"
        return Rewrite("batched-reads", Applicability.DISPLAY, message, f"{targets} = {read}", True, gone)


def _together(site: Sync, program: Program) -> list[Sync]:
    """The reads that start here and stand in lines of their own that follow each other, of tensors that are alike."""
    record, found, seen = site.function.record, list[Sync](), set[str]()
    for one in program.sites(site.verdict.rule):
        if not isinstance(one, Sync) or one.function is not site.function or one.block != site.block:
            continue
        name = bound_name(record, one.expr) if one.expr[0] == "call" else None
        alike = one.operand[:4] == site.operand[:4] and one.operand.rank == 0 and one.operand.dtype is not None
        read = {part[1] for part in within(one.expr) if part[0] == "name"}
        next_line = not found or follows(one.statement, found[-1].statement)
        if name is not None and alike and next_line and not read & seen and (found or one.pos == site.pos):
            found.append(one)
            seen.add(name)
        elif found:
            break
    return found
