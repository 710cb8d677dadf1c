"""A line that waits for the device runs while a CUDA graph is captured.

Why it matters
    While a stream is captured its work is recorded and not run, so there is nothing to wait for: the runtime refuses
    the call, the capture is invalidated, and the process fails at run time. It shows only where graphs are on.

Instead
    Move the wait in front of the region, or keep the value on the device. What must run outside of graphs goes under
    `if not torch.cuda.is_current_stream_capturing():`.

Missed alarms
    Calls whose target is not known for sure, above all methods that several classes override; callables that reach
    the region through containers; capture functions of other libraries: name them with `capture = [...]`.

False alarms
    Branches that a capture never takes for a reason that no test for capturing shows.
"""

from __future__ import annotations

from collections.abc import Iterator

from nosync_lint.finding import Confidence, Severity
from nosync_lint.link.program import CaptureSync, Program
from nosync_lint.link.syncs import Sync
from nosync_lint.link.wording import wording
from nosync_lint.rule import Judgement, Rule

CONFIDENCES = (Confidence.POSSIBLE, Confidence.LIKELY, Confidence.CERTAIN)
CURE = "move it before the capture, or put it under `if not torch.cuda.is_current_stream_capturing():`"


class SyncUnderGraphCapture(Rule):
    code = "NSL701"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("capture-sync",)
    heated = False

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, CaptureSync)
        wait = site.wait
        if isinstance(wait, Sync):
            verdict = wait.verdict
            said, cure = f"`{wording(wait.expr)}`", program.cure(wait)
            when, evidence = f" {program.when(verdict)}", program.evidence(wait.operand)
        else:
            said, cure = f"`{wording(wait.site.call)}`, by `{wait.waits[0].text}` in C++,", ""
            when, evidence = "", ()
        yield Judgement(
            message=f"{said} waits for the device while a CUDA graph is captured{when}: the capture fails at run time",
            cure=cure or CURE,
            confidence=CONFIDENCES[site.trust],
            flow=site.hops,
            evidence=evidence,
        )
