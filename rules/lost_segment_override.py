"""A class inherits a method that drops an argument, and pays a synchronisation which a sibling's override avoids.

Why it matters
    The base keeps the interface working by forwarding to a general method, which has to find out on the device what
    the caller already knew. A subclass that forgets the override is correct and silently slow, on every call.

Instead
    Override the method and use the argument, as the sibling does; or delegate to a member that does.

Missed alarms
    Overrides that exist and still forward to the general method, and contracts that no class of the project keeps:
    configure those (`[[tool.nosync-lint.contract]]` with `base`, `method` and `argument`).

False alarms
    Classes that are never used where the method is called; the chain rests on the receiver's declared type.
"""

from __future__ import annotations

from collections.abc import Iterator

from nosync_lint.finding import Confidence, Severity
from nosync_lint.link.program import ClassSite, Program
from nosync_lint.rule import Judgement, Rule


class LostSegmentOverride(Rule):
    code = "NSL501"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("class",)
    heated = False

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, ClassSite)
        lost = site.lost
        name, base = site.cls.record.name, lost.method.record.qualname
        own = lost.method.cls is site.cls
        message = (
            f"`{base}` drops `{lost.parameter}`"
            if own
            else f"`{name}` inherits `{base}`, which drops `{lost.parameter}`"
        )
        if lost.leak is not None:
            message += f" and reaches a synchronisation in `{lost.leak.function.record.qualname}`"
        if lost.sibling is not None:
            message += f"; `{lost.sibling.record.qualname}` uses it and does not synchronise"
        else:
            message += "; the configured contract wants every subclass to use it"
        flow = list(program.path(lost.leak)) if lost.leak is not None else []
        flow.insert(0, program.hop(lost.method, f"`{base}` never reads `{lost.parameter}`"))
        if lost.caller is not None:
            caller, call = lost.caller
            flow.insert(0, program.call_hop(caller, call, f"`{caller.record.qualname}` passes `{lost.parameter}`"))
        related = (
            (program.hop(lost.sibling, f"sibling that uses `{lost.parameter}`"),) if lost.sibling is not None else ()
        )
        yield Judgement(
            message=message,
            cure=f"override `{lost.method.record.name}` in `{name}` and use `{lost.parameter}`",
            confidence=Confidence.LIKELY if lost.leak is not None else Confidence.CERTAIN,
            flow=tuple(flow),
            related=related,
            sink=program.sink(lost.leak.function, lost.leak.sink.call[4]) if lost.leak is not None else None,
        )
