"""Reports for the tests of the formats: a plain one, real ones, and hostile ones."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from hypothesis import strategies as st

from nosync_lint.finding import (
    Applicability,
    Confidence,
    Edit,
    Finding,
    Fix,
    Heat,
    Hop,
    RuleFacts,
    Severity,
    Suppressed,
)
from nosync_lint.report import Report
from nosync_lint.report.formats import FORMATS, Style, write
from nosync_lint.source import Span

FINDING = Finding(
    code="NSL101",
    name="scalar-index-write",
    message="storing -1 through `größe` stops the host",
    filename="serve/pool.py",
    span=Span(4, 9, 4, 26),
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    heat=Heat.HOT,
    cure="x.index_fill_(0, i, -1)",
    flow=(Hop("serve/loop.py", 12, "`Loop.step` calls `free`"), Hop("serve/pool.py", 4, "synchronises here")),
    evidence=(Hop("serve/pool.py", 9, "made on the device"),),
    related=(Hop("serve/base.py", 2, "declared here"),),
    root="Loop.step",
    fingerprint="0123abcd",
    scope="Pool.free",
)
RULE = RuleFacts(
    "NSL101",
    "scalar-index-write",
    Severity.ERROR,
    "A scalar stops the host.",
    "A scalar stops the host.\n\nWhy it matters\n    It is copied from pageable memory,\n    and that waits.\n\nInstead\n"
    "    `index_fill_`:\n\n        x.index_fill_(0, i, -1)",
)


def written(report: Report, form: str, encoding: str = "utf-8", **style: bool) -> str:
    """A report in a format, as an output of this encoding holds it."""
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding=encoding, newline="")
    write(report, form, out, Style(**style))
    out.flush()
    return raw.getvalue().decode(encoding)


FORMS = sorted(FORMATS)
FRAGMENTS = (
    "::error file=a::b", "::stop-commands::x", " ::set-output name=a::b", "##vso[task.complete result=Succeeded;]", "##[group]x", "###[",
    "]]>", "</failure>", "<script>alert(1)</script>", "<!--", "&amp;", "[x](1)", "![x](http://e.org)", "](", "[", "`", "```", "\\",
    "**", "_a_", "|", "~~~", "http://e.org", "www.e.org", "@user", "$x$", "#1", "\x00", "\x1b[2J", "\x85", "\r\n", "\n", "\t", "\u2028", "\u202e",
    "\ufffe", "\uffff", "\ud800", "\udcff", "%0A", "%", ":", ",", ";", "]", "größe", "表", "𝕏", '"', "'", " ",
)  # fmt: skip


TEXTS = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=2), min_size=1, max_size=3).map("".join).filter(bool)
"""Text that tries to be more than text."""
SOURCE = ("x = größe[表]", "\ty = 1", "z = '𝕏'", "")


@st.composite
def reports(draw: Callable[[Any], Any]) -> Report:
    """A report of which every text comes from somebody who wishes us ill."""
    texts, choose = draw(st.lists(TEXTS, min_size=4, max_size=4)), draw(st.randoms(use_true_random=True))
    maker = _Maker(texts, choose)
    found = sorted((maker.finding() for _ in range(choose.randrange(3))), key=lambda finding: finding.order)
    return Report(
        findings=tuple(found),
        failures=maker.few(maker.text),
        notes=maker.few(maker.text),
        suppressed=maker.few(maker.suppressed),
        sources={finding.filename: SOURCE for finding in found if choose.random() < 0.5},
        rules=(RULE,),
    )


class _Maker:
    """Makes the parts of a report of a few texts, by chance."""

    def __init__(self, texts: Sequence[str], choose: Random) -> None:
        self._texts, self._choose = texts, choose

    def text(self) -> str:
        return self._choose.choice(self._texts)

    def few(self, make: Callable[[], Any]) -> tuple[Any, ...]:
        return tuple(make() for _ in range(self._choose.randrange(3)))

    def name(self) -> str:
        """A name that a file can have: any bytes but one, decoded as Python does."""
        text = self.text().replace("\0", "").replace("\ud800", "") or "c"
        return self._choose.choice(("a{}.py", "{}/b.cu", "{}")).format(text)

    def hop(self) -> Hop:
        return Hop(self.name(), self._choose.randrange(1, 9), self.text(), self._choose.choice((None, None, 1)))

    def finding(self) -> Finding:
        pick, number = self._choose.choice, self._choose.randrange
        row, column = number(1, 5), number(1, 4)
        return Finding(
            code=pick(("NSL101", "NSL000", "XYZ9")),
            name="a-rule",
            message=self.text(),
            filename=self.name(),
            span=Span(row, column, number(row, 6), number(column, 9)),
            severity=pick(list(Severity)),
            confidence=pick(list(Confidence)),
            cure=pick(("", self.text())),
            heat=pick((None, *Heat)),
            flow=self.few(self.hop),
            evidence=self.few(self.hop),
            related=self.few(self.hop),
            root=pick((None, self.text())),
            fingerprint=pick(("", "00ff", "01ff")),
            scope=pick(("", self.text())),
            fix=pick((None, self.fix())),
            cell=pick((None, None, 2)),
        )

    def fix(self) -> Fix:
        """Edits of `SOURCE` that do not overlap, in their order."""
        places = [(row, column) for row, line in enumerate(SOURCE, 1) for column in range(1, len(line) + 2)]
        chosen = sorted(self._choose.sample(places, self._choose.choice((2, 4, 6))))
        edits = tuple(
            Edit(Span(*start, *end), self._choose.choice(("", "a", "a\nb", "größe", "##[x]")))
            for start, end in zip(chosen[::2], chosen[1::2], strict=True)
        )
        return Fix("recipe", self._choose.choice(list(Applicability)), self.text(), edits)

    def suppressed(self) -> Suppressed:
        form = self._choose.choice(("ignore", "baseline"))
        return Suppressed(self.finding(), form, self.text(), self._choose.randrange(4), self.text())
