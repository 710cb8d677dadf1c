"""Boxes and arrows as one SVG picture that needs nothing beside it. What comes from the project is escaped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple
from unicodedata import east_asian_width

from nosync_lint.report.layout import Place, Route, plan
from nosync_lint.report.text import printable

LONGEST = 44
"""Columns of text in a box: more is cut, and shown as a tooltip."""
MARGIN = 24.0
PADDING = 10.0
BETWEEN_BLOCKS = 4.0
SIZES = {"name": 12.5, "place": 11.0, "why": 11.0}
"""The styles of lines, with the size of their letters."""
WIDE = 0.61
"""How wide a letter of a monospaced font is, in sizes; the widest of the usual fonts."""
HIGH = 1.42


class Line(NamedTuple):
    """A line of text in one of the `SIZES`. `keep` says which end of it matters most where it is cut."""

    text: str
    style: str
    keep: str = "start"


@dataclass(frozen=True, slots=True)
class Block:
    """A frame with lines in it. `kind` is its colour: root, function, sync, unsure or cut; `title` its tooltip."""

    kind: str
    lines: tuple[Line, ...]
    title: str


Card = tuple[Block, ...]
"""What arrows lead to and from: one block, or several below each other."""


class Arrow(NamedTuple):
    """An arrow between two cards, by their numbers, with a tooltip. Its label is drawn where there is room for it."""

    source: int
    target: int
    label: str = ""
    title: str = ""
    faint: bool = False


def draw(cards: Sequence[Card], arrows: Sequence[Arrow], title: str, notes: Sequence[str]) -> Iterator[str]:
    """The lines of an SVG file, pure ASCII: cards in columns, each right of those that lead to it, and notes below."""
    laid = plan([_size(card) for card in cards], [(arrow.source, arrow.target) for arrow in arrows])
    below = laid.height + 2 * MARGIN
    width = max(laid.width, *(_wide(Line(note, "place")) for note in (title, *notes))) + 2 * MARGIN
    height = below + 18 * len(notes) + (MARGIN if notes else 0)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}" role="img">'
    )
    yield f"<title>{escaped(title)}</title>"
    yield f"<style>{_STYLE}</style>"
    yield f"<defs>{_HEAD}</defs>"
    yield '<rect class="page" width="100%" height="100%"/>'
    yield f'<g transform="translate({MARGIN:.0f} {MARGIN:.0f})">'
    met = Counter(arrow.target for arrow in arrows)
    for arrow, route in zip(arrows, laid.routes, strict=True):
        yield from _arrow(arrow, route, labelled=met[arrow.target] == 1)
    for card, place in zip(cards, laid.places, strict=True):
        yield from _card(card, place)
    yield "</g>"
    for number, note in enumerate(notes):
        yield _text(MARGIN, below + 18 * number, "place", note)
    yield "</svg>"


def escaped(text: str) -> str:
    """One line of text that is nothing but text in XML, in ASCII."""
    plain = _NO_XML.sub(lambda met: f"\\u{ord(met.group()):04x}", printable(text, "utf-8"))
    return "".join(_MARKUP.get(one, one) for one in plain).encode("ascii", "xmlcharrefreplace").decode("ascii")


_NO_XML = re.compile("[\ufffe\uffff]")
_MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}


def _columns(text: str) -> int:
    """How many columns a text takes in a monospaced font."""
    return sum(2 if east_asian_width(one) in "WF" else 1 for one in text)


def _cut(line: Line) -> str:
    """A line as it is drawn: printable, and no longer than a box is wide."""
    text = printable(line.text, "utf-8")
    if _columns(text) <= LONGEST:
        return text
    if line.keep == "start":
        return _fitting(text) + "…"
    return "…" + _fitting(text[::-1])[::-1]


def _fitting(text: str) -> str:
    """As much of a text as leaves room for the mark that something is cut."""
    taken = accumulate(_columns(one) for one in text)
    return text[: sum(columns < LONGEST for columns in taken)]


def _wide(line: Line) -> float:
    return _columns(line.text) * SIZES[line.style] * WIDE


def _block_size(block: Block) -> tuple[float, float]:
    width = max(_wide(line._replace(text=_cut(line))) for line in block.lines)
    return width + 2 * PADDING, sum(SIZES[line.style] * HIGH for line in block.lines) + PADDING


def _size(card: Card) -> tuple[float, float]:
    sizes = [_block_size(block) for block in card]
    return max(width for width, _ in sizes), sum(height for _, height in sizes) + BETWEEN_BLOCKS * (len(card) - 1)


def _card(card: Card, place: Place) -> Iterator[str]:
    if len(card) > 1:
        yield f'<path class="arrow" d="M{place.x:.1f} {place.y:.1f}V{place.y + place.height:.1f}"/>'
    y = place.y
    for block in card:
        height = _block_size(block)[1]
        yield f'<g class="{block.kind}"><title>{escaped(block.title)}</title>'
        yield f'<rect x="{place.x:.1f}" y="{y:.1f}" width="{place.width:.1f}" height="{height:.1f}" rx="6"/>'
        baseline = y + PADDING / 2
        for line in block.lines:
            baseline += SIZES[line.style] * HIGH
            yield _text(place.x + PADDING, baseline - SIZES[line.style] * 0.38, line.style, _cut(line))
        yield "</g>"
        y += height + BETWEEN_BLOCKS


def _text(x: float, y: float, style: str, text: str) -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{escaped(text)}</text>'


def _arrow(arrow: Arrow, route: Route, *, labelled: bool) -> Iterator[str]:
    marker = "marker-start" if route.backwards else "marker-end"
    kind = "arrow back" if route.backwards else "arrow faint" if arrow.faint else "arrow"
    yield f"<g><title>{escaped(arrow.title)}</title>" if arrow.title else "<g>"
    yield f'<path class="{kind}" {marker}="url(#head)" d="{_curve(route)}"/>'
    if arrow.label and labelled and not route.backwards:
        x, y = route.points[-1]
        yield f'<text class="label" x="{x - 12:.1f}" y="{y - 5:.1f}">{escaped(arrow.label[:8])}</text>'
    yield "</g>"


def _curve(route: Route) -> str:
    """The path of an arrow: straight, then a curve, and so on in turn; a loop over the upper side of its own box."""
    (x, y), *rest = route.points
    path = f"M{x:.1f} {y:.1f}"
    if len(rest) == 1:
        ((right, _),) = rest
        return f"{path}C{x:.1f} {y - 12:.1f} {right:.1f} {y - 12:.1f} {right:.1f} {y:.1f}"
    for number, (to_x, to_y) in enumerate(rest):
        if number % 2 == 0:
            path += f"H{to_x:.1f}"
        else:
            half = (x + to_x) / 2
            path += f"C{half:.1f} {y:.1f} {half:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
        x, y = to_x, to_y
    return path


_HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7"'
    ' orient="auto-start-reverse"><path class="head" d="M0 0.8L8 4L0 7.2z"/></marker>'
)

_STYLE = (
    "text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1f2328}"
    + "".join(f".{style}{{font-size:{size}px}}" for style, size in SIZES.items())
    + ".name{font-weight:600}.place{fill:#59636e}.why{fill:#bc4c00}"
    ".label{font-size:10px;fill:#59636e;text-anchor:end;stroke:#fff;stroke-width:3;paint-order:stroke}"
    ".page{fill:#fff}.arrow{fill:none;stroke:#818b98;stroke-width:1.2}.head{fill:#818b98}"
    ".faint,.back{stroke-dasharray:4 3}g:hover>.arrow{stroke:#0969da;stroke-width:2.4}"
    ".function rect{fill:#f6f8fa;stroke:#d1d9e0}.root rect{fill:#fff1e5;stroke:#fb8f44;stroke-width:1.5}"
    ".sync rect,.unsure rect{fill:#ffebe9;stroke:#ff8182}.unsure rect{stroke-dasharray:4 3}"
    ".sync .name,.unsure .name{fill:#a40e26}.cut rect{fill:none;stroke:#d1d9e0;stroke-dasharray:4 3}"
    "@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.page{fill:#0d1117}.place,.label{fill:#9198a1}"
    ".label{stroke:#0d1117}.why{fill:#f0883e}"
    ".arrow{stroke:#656c76}.head{fill:#656c76}g:hover>.arrow{stroke:#4493f8}"
    ".function rect{fill:#151b23;stroke:#3d444d}.root rect{fill:#3d2409;stroke:#bd561d}"
    ".sync rect,.unsure rect{fill:#3c1618;stroke:#b62324}.sync .name,.unsure .name{fill:#ffa198}"
    ".cut rect{stroke:#3d444d}}"
)
