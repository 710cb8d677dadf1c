"""A matcher and the checks beside it admit a stride or an element type that the kernel body cannot handle.

Why it matters
    The launch is accepted and the kernel reads other elements, or other bytes, than the caller meant: wrong
    results or an illegal address, found far from the call.

Instead
    Pin the stride that the body assumes (`1` for the innermost), or pass it on and use it; name the element
    type, `.with_dtype<bool>()`. A kernel in Python is given each stride that its addresses need, and the span of a
    tensor comes from its shape and strides.

Missed alarms
    Element types that are template parameters, data read only as bytes or vectors, kernels that are not found
    among the linked files, and strides given to unknown code. In Python, views whose gaps the launching function
    does not show.

False alarms
    A dimension whose extent is always 1 at run time, so that its stride does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nosync_lint.finding import Confidence, Hop, Severity
from nosync_lint.link.kernels import MatchContract
from nosync_lint.link.launches import AssumedStride, ShortSpan
from nosync_lint.rule import Judgement, Rule

if TYPE_CHECKING:
    from nosync_lint.link.program import Program


class OverPermissiveMatcher(Rule):
    code = "NSL602"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("matcher", "launch")
    heated = False

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        if isinstance(site, MatchContract):
            judgement = _admitted(site)
        else:
            assert isinstance(site, AssumedStride | ShortSpan)
            judgement = _launched(site)
        if judgement is not None:
            yield judgement


def _launched(site: AssumedStride | ShortSpan) -> Judgement:
    """A kernel in Python, and a launch of it with a tensor whose strides say more than its sizes."""
    if isinstance(site, AssumedStride):
        message = f"the address takes `{site.tensor}` for dense in dimension {site.dimension}, but it is {site.view}"
        cure = f"pass `{site.tensor}.stride({site.dimension})` and use it"
    else:
        message = f"`{site.span}` says how far a dense `{site.tensor}` reaches, but its strides are passed on: a view "
        message += "reaches further, and narrow offsets wrap around"
        cure = f"sum((n - 1) * s for n, s in zip({site.tensor}.shape, {site.tensor}.stride()))"
    return Judgement(message=message, cure=cure, confidence=Confidence.LIKELY, flow=site.hops)


def _admitted(site: MatchContract) -> Judgement | None:
    """A matcher that admits what the kernel cannot handle."""
    reasons, cures, hops = [], [], [Hop(site.path, site.row, f"`{site.argument}` is matched here")]
    strides = site.assumed_dense()
    if strides:
        listed = ", ".join(str(dimension) for dimension in strides)
        reasons.append(f"any stride in dimension {listed}, which no check pins and the kernel never uses")
        cures.append(_stride_cure(site, strides))
        hops += site.used
    if site.matcher.dtypes is None and not site.dtype_checked and site.reads:
        names = " and ".join(f"`{read.type}`" for read in site.reads)
        reasons.append(f"any element type, while the kernel reads {names}")
        cures.append(f".with_dtype<{site.reads[0].type}>()")
        hops += site.reads[0].hops
    if not reasons:
        return None
    return Judgement(
        message=f"the matcher admits for `{site.argument}` " + ", and ".join(reasons),
        cure="  ".join(cures),
        confidence=Confidence.CERTAIN if site.traced or not strides else Confidence.LIKELY,
        flow=tuple(hops),
    )


def _stride_cure(site: MatchContract, strides: tuple[int, ...]) -> str:
    """The same stride list with the assumed dimensions pinned."""
    shape, listed = site.matcher.shape, list(site.matcher.strides or ())
    for dimension in strides:
        inner = shape[dimension + 1 :]
        listed[dimension] = " * ".join(inner) if inner and "-1" not in inner else "1"
    return f".with_strides({{{', '.join(listed)}}})"
