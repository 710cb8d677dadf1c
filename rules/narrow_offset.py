"""An offset into a tensor is computed, or its stride is kept, in 32 bits.

Why it matters
    Pools of a serving engine have more than 2**31 elements: a slot or page times its stride wraps around there, and the
    kernel reads and writes the rows of somebody else. Small tests never get so far.

Instead
    Widen an operand and not the product, `static_cast<int64_t>(slot) * stride`, and keep strides as `int64_t` from
    `.stride(i)` to the address.

Missed alarms
    Types that are template parameters, offsets that are handed to another function, ids that are multiplied by
    constants, and places in the grid that are multiplied by sizes. A stride that a cast makes narrow, and that is kept
    so, is only possible unless it is multiplied in 32 bits: a stride alone seldom is that large.

False alarms
    Tensors that are small by what the kernel is for, such as a table of one row per request.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nosync_lint.finding import Confidence, Severity
from nosync_lint.link.kernel_widths import NarrowedOffset
from nosync_lint.rule import Judgement, Rule

if TYPE_CHECKING:
    from nosync_lint.link.program import Program


class NarrowOffset(Rule):
    code = "NSL605"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("offset",)
    heated = False

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, NarrowedOffset)
        if site.product:
            message = f"`{site.text}` is computed in 32 bits (`{site.type}`), and an address from it"
            cure = f"widen an operand first: `static_cast<int64_t>({site.text.partition(' * ')[0]}) * ...`"
        else:
            message = (
                f"`{site.text}` is 64 bits wide and kept in 32 (`{site.type}`) before an address is computed from it"
            )
            cure = "keep it as `int64_t` up to the address"
        confidence = Confidence.POSSIBLE if site.meant else Confidence.LIKELY
        yield Judgement(message=message, cure=cure, confidence=confidence, flow=(site.hop,))
