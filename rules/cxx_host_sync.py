"""Host code of a C++ extension waits for the device.

Why it matters
    A wait in C++ stops the host as one in Python does, and nothing in the Python line that runs it says so: the call
    looks like any other op. Torch's sync debug mode does not see waits of the CUDA runtime.

Instead
    Take what the host must know (a size, a maximum, an index array) as an argument from Python, where it is known on
    the host; order streams by events; copy through pinned memory with `non_blocking`.

Missed alarms
    Functions that are reached through `getattr`, through the dispatcher of C++, or from sources that are strings in
    Python; waits inside closed libraries; indexing with masks; headers that are not among the linked files.

False alarms
    Arguments that live on the host for a reason that neither the Python call nor a check in the function shows.
"""

from __future__ import annotations

from collections.abc import Iterator

from nosync_lint.finding import Confidence, Severity
from nosync_lint.link.cxx import CxxCall, CxxLine
from nosync_lint.link.program import Program
from nosync_lint.link.wording import wording
from nosync_lint.rule import Judgement, Rule

CONFIDENCES = (Confidence.POSSIBLE, Confidence.LIKELY, Confidence.CERTAIN)


class CxxHostSync(Rule):
    code = "NSL611"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("cxx-line", "cxx-call")

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, CxxLine | CxxCall)
        wait = site.wait if isinstance(site, CxxLine) else site.waits[0]
        said = wait.said
        if isinstance(site, CxxCall):
            said = f"`{wording(site.site.call)}` runs C++ that stops the host: {said}"
        yield Judgement(
            message=said,
            cure=wait.model.cure,
            confidence=CONFIDENCES[site.trust],
            related=() if isinstance(site, CxxLine) else (*wait.hops, *(one.hop(one.said) for one in site.waits)),
        )
