"""Tensors that belong together position by position are paired after one of them was sorted or de-duplicated.

Why it matters
    The ids of pages and slots carry no order. After `sort` or `unique` the n-th element of one side belongs to another
    element than the n-th of the other side: rows are read and written under the wrong id, and nothing raises. The
    de-duplication waits for the device besides.

Instead
    Take representatives of both sides by the same slice or mask, or index both by the same result.

Missed alarms
    Pairs that are made in a function which the call does not tell, and two whole arguments of which one is sorted: they
    may be exchanged, as holes and what fills them.

False alarms
    Pairs whose partners may be exchanged, such as free slots of one kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Confidence, Hop, Severity
from nosync_lint.link.pairings import LostPairing
from nosync_lint.link.program import Program
from nosync_lint.link.wording import wording
from nosync_lint.rule import Judgement, Rule

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class OrderLosingPairing(Rule):
    code = "NSL504"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("lost-pairing",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, LostPairing)
        reordered, other = wording(site.reordered), wording(site.other)
        partner = "that belongs to it by position" if site.apart else "that still has the order before"
        yield Judgement(
            message=f"`{wording(site.site.call)}` puts the elements in another order, and `{reordered}` is paired with "
            f"`{other}`, {partner}",
            cure="take both sides by the same slice or index, and sort neither",
            confidence=Confidence.LIKELY,
            related=(Hop(site.function.module.file.name, site.row, f"pairs `{reordered}` with `{other}`"),),
        )
