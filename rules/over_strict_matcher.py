"""A matcher demands a layout that the kernel does not need: it computes addresses from the tensor's own strides.

Why it matters
    The launch is refused for a strided view that the body would handle, or the caller copies it first, which
    costs a kernel, memory and often a synchronisation. It shows when the tensor becomes a view of a larger pool.

Instead
    Give the matcher a stride list: `-1` for each dimension whose stride is passed on, `1` for the innermost
    that the body walks without one. A function of an extension that checks `is_contiguous()` and is handed parts
    of a tensor takes the stride as an argument, and checks the innermost one only.

Missed alarms
    Strides read in a loop (`t.stride(i)`), strides passed through containers or unknown code, and matchers whose
    options stand in a helper that is not found among the linked files. A demanded stride of literally 1 is never
    reported.

False alarms
    A stride list that pins a stride on purpose although the kernel is given it, and a stride by which the kernel
    walks a second tensor too, which is dense only because both are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nosync_lint.finding import Confidence, Hop, Severity
from nosync_lint.link.kernels import MatchContract, StrideUse
from nosync_lint.link.launches import StridedArgument
from nosync_lint.rule import Judgement, Rule

if TYPE_CHECKING:
    from nosync_lint.link.program import Program


class OverStrictMatcher(Rule):
    code = "NSL601"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("matcher", "strided-argument")
    heated = False

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        judgement = _refused(site) if isinstance(site, StridedArgument) else _unused(site)
        if judgement is not None:
            yield judgement


def _refused(site: StridedArgument) -> Judgement:
    """A check in C++ and a caller that hands over what it refuses, told at each of the two places."""
    said = f"`{site.argument}` is {site.view}, which `{site.check}` refuses"
    told = f"`{site.check}` refuses a strided view, and `{site.argument}` is handed {site.view}"
    return Judgement(
        message=f"{said if site.called else told}: the call fails, or a copy is made for it",
        cure="pass the stride on and check the innermost dimension only, `t.stride(-1) == 1`",
        confidence=Confidence.LIKELY,
        flow=site.hops,
    )


def _unused(site: object) -> Judgement | None:
    """A matcher that demands what the kernel does not need."""
    assert isinstance(site, MatchContract)
    used = [use for use in site.strides if site.demands(use.dimension) not in (None, "1")]
    if not used:
        return None
    dense = site.matcher.strides is None
    dimensions = ", ".join(str(use.dimension) for use in used)
    demanded = "to be contiguous" if dense else f"to have strides {{{', '.join(site.matcher.strides or ())}}}"
    return Judgement(
        message=f"`{site.argument}` is required {demanded}, but the kernel computes addresses from its strides "
        f"({dimensions}) and would take a strided view",
        cure=_cure(site, used),
        confidence=_confidence(site, used),
        flow=(Hop(site.path, site.row, f"`{site.argument}` is required {demanded}"), *_steps(site, used)),
    )


def _confidence(site: MatchContract, used: list[StrideUse]) -> Confidence:
    """A stride list is written by somebody: one that spells out packed rows may well be meant."""
    if site.matcher.strides is None:
        return Confidence.CERTAIN
    packed = all(site.demands(use.dimension) == _packed(site, use.dimension) for use in used)
    return Confidence.POSSIBLE if packed else Confidence.LIKELY


def _packed(site: MatchContract, dimension: int) -> str:
    """The dense stride of a dimension as text; "1" where the sizes behind it are not told."""
    inner = site.matcher.shape[dimension + 1 :]
    return " * ".join(inner) if inner and "-1" not in inner else "1"


def _steps(site: MatchContract, used: list[StrideUse]) -> Iterator[Hop]:
    for use in used:
        first, *rest = use.hops
        yield Hop(first.filename, first.row, f"`{site.argument}.stride({use.dimension})` is {first.note}")
        yield from rest


def _cure(site: MatchContract, used: list[StrideUse]) -> str:
    """The stride list that admits what the body handles; a size stands for the dense stride it leads to."""
    free = {use.dimension for use in used}
    listed = site.matcher.strides
    entries = [
        "-1" if dimension in free else listed[dimension] if listed else _packed(site, dimension)
        for dimension in range(len(site.demanded))
    ]
    return f".with_strides({{{', '.join(entries)}}})"
