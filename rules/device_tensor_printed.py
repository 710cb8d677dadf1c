"""Printing, formatting or logging a device tensor copies it back.

Why it matters
    The text of a tensor is made of its elements. An f-string in a call to a logger is built even when the level is
    off.

Instead
    Log the shape, or a number that was copied back without waiting a step before. Guard debug output with a switch.

Missed alarms
    Tensors inside objects that are printed.

False alarms
    Tensors kept on the CPU for a reason that the program text does not show.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from nosync_lint.finding import Severity
from nosync_lint.link.program import Program
from nosync_lint.link.syncs import Sync
from nosync_lint.link.wording import describe, outline, receiver, spelled, wording
from nosync_lint.rule import Judgement, Option, Rule, waits


class DeviceTensorPrinted(Rule):
    code = "NSL208"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("device-tensor-printed",)
    options = (Option("ignore-calls", (), 'calls whose text is worth the wait, such as `["*.warning"]`'),)

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        called = spelled(site.expr[1]) if site.expr[0] == "call" else None
        if called and any(fnmatchcase(called, pattern) for pattern in self.option("ignore-calls")):
            return
        text = spelled(site.spelled)
        subject = f"`{outline(site.expr)}`" if site.expr[0] == "call" else "a formatted string"
        known = f", or of {receiver(text)}.shape" if text and site.operand.rank != 0 else ""
        cure = f"text of a copy that was started with non_blocking=True a step before{known}"
        printed = f"`{wording(site.spelled)}`, {describe(site.operand)},"
        yield waits(site, program, f"{subject} copies {printed} back to make text of it", cure=cure)
