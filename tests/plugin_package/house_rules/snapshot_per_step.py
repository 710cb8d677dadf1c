"""A snapshot of a device tensor is written by the host, which waits for the stream.

Why it matters
    `debug.snapshot` reads the tensor back before it writes a byte.

Instead
    Take snapshots outside of the step, or hand a copy in pinned memory to a thread that writes it.
"""

from __future__ import annotations

from collections.abc import Iterator

from nosync_lint.finding import Severity
from nosync_lint.link.named_calls import NamedCall
from nosync_lint.link.program import Program
from nosync_lint.link.wording import describe
from nosync_lint.rule import Judgement, Rule


class SnapshotPerStep(Rule):
    code = "HSE101"
    since = "1.0.0"
    severity = Severity.WARNING
    sites = ("call",)

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, NamedCall)
        if "debug.snapshot" not in program.called(site):
            return
        tensor = program.argument(site, 0, "tensor")
        if tensor.accelerated:
            yield Judgement(
                message=f"`{site.spelled}` reads {describe(tensor)} back and waits for the stream",
                cure="take the snapshot outside of the step",
                confidence=tensor.confidence,
                evidence=program.evidence(tensor),
            )
