"""A tensor reaches the kernel unmatched, in a function that matches its other tensors.

Why it matters
    The kernel takes its address on trust. A wrong type, shape, layout or a host tensor is not refused at the
    launch but read as garbage, or ends the process with an illegal address.

Instead
    Match it like its neighbours; where it is optional, inside the branch that passes it on.

Missed alarms
    Tensors inside containers, functions that match nothing at all, and tensors handed to a kernel that is
    not found among the linked files.

False alarms
    Scratch buffers whose size alone matters, and tensors that a caller has matched already.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nosync_lint.finding import Confidence, Hop, Severity
from nosync_lint.link.kernels import UnmatchedArguments
from nosync_lint.rule import Judgement, Rule

if TYPE_CHECKING:
    from nosync_lint.link.program import Program


class UnmatchedKernelArgument(Rule):
    code = "NSL603"
    since = "0.1.0"
    severity = Severity.WARNING
    sites = ("unmatched",)
    heated = False

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, UnmatchedArguments)
        names = [f"`{name}`" for name, _ in site.arguments]
        listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        verb = "reaches" if len(names) == 1 else "reach"
        yield Judgement(
            message=f"{listed} {verb} the kernel unmatched, while `{site.function}` matches {site.matched} other "
            f"argument{'s' if site.matched != 1 else ''}",
            cure=f"{site.matcher}({{...}}).with_dtype<...>().with_device(...).verify({site.arguments[0][0]});",
            confidence=Confidence.LIKELY if site.optional else Confidence.CERTAIN,
            flow=tuple(
                Hop(hop.filename, hop.row, f"`{name}`: {hop.note}" if i == 0 else hop.note)
                for name, hops in site.arguments
                for i, hop in enumerate(hops)
            ),
        )
