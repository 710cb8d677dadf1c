"""The drawn call tree: an XML file whose texts are only texts, and whose words lead to everything that is cut."""

from __future__ import annotations

import io
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from nosync_lint.answers import Call, CallTree, Leaf, Node
from nosync_lint.finding import Confidence
from nosync_lint.report.svg import LONGEST
from nosync_lint.report.text import printable
from nosync_lint.report.tree import write_tree

SVG = "{http://www.w3.org/2000/svg}"
ANY = st.text(st.characters(exclude_characters="\ufffe\uffff"), min_size=1, max_size=80)
HARD = st.sampled_from(["</title><script>alert(1)</script>", "]]>", "&lt;", "a'b\"c", "<!--", "\u202e\x00", "x" * 300])


def tree(name: str = "Loop.step", text: str = "x.item()", root: str = "marked hot", file: str = "a.py") -> CallTree:
    leaf = Leaf("NSL201", "item-read", 4, 9, Confidence.CERTAIN, text)
    unsure = Leaf("NSL204", "truth-test-on-device-tensor", 5, 9, Confidence.POSSIBLE, text)
    nodes = (
        Node(name, file, 2, root, (), (Call((3, 4), 1), Call((7,), 2))),
        Node(f"{name}.a", file, 12, "", (leaf, unsure), (Call((13,), 1), Call((14,), 0))),
        Node("read", "serve/work.py", 30, "", (leaf,), ()),
    )
    return CallTree((0,), nodes, ("a note",))


def drawn(told: CallTree, depth: int | None = None) -> ElementTree.Element:
    out = io.StringIO()
    write_tree(told, out, "svg", depth)
    assert out.getvalue().isascii()
    return ElementTree.fromstring(out.getvalue())


def blocks(root: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [one for one in root.iter(f"{SVG}g") if one.get("class") == kind]


def told(root: ElementTree.Element) -> list[str]:
    """The tooltips of the picture."""
    return [one.text or "" for one in root.iter(f"{SVG}title")]


def test_functions_roots_and_syncs_are_drawn_in_their_colours() -> None:
    picture = drawn(tree())
    counts = {kind: len(blocks(picture, kind)) for kind in ("root", "function", "sync", "unsure", "cut")}
    assert counts == {"root": 1, "function": 2, "sync": 2, "unsure": 1, "cut": 0}
    texts = [one.text for one in picture.iter(f"{SVG}text")]
    assert {"Loop.step", "a.py:2", "hot root: marked hot", "NSL201 item-read", "4: x.item()"} <= set(texts)
    assert texts[-2:] == ["a note", "3 syncs in 3 functions below 1 hot root"]


def test_calls_that_lead_back_are_marked_and_every_call_has_its_rows() -> None:
    picture = drawn(tree())
    arrows = [one for one in picture.iter(f"{SVG}path") if one.get("class") in ("arrow", "arrow back")]
    heads = [one for one in arrows if one.get("marker-end") or one.get("marker-start")]
    assert len(heads) == 4 + 2
    assert sum(one.get("class") == "arrow back" for one in heads) == 2
    assert "Loop.step calls Loop.step.a in rows 3, 4" in told(picture)
    assert "Loop.step.a calls Loop.step.a in row 13" in told(picture)


def test_what_a_depth_cuts_off_is_counted() -> None:
    picture = drawn(tree(), depth=0)
    (cut,) = blocks(picture, "cut")
    assert [text.strip() for text in cut.itertext() if text.strip()] == ["3 syncs below"] * 2
    assert not blocks(picture, "sync")


def test_long_texts_are_cut_and_whole_in_the_tooltip() -> None:
    picture = drawn(tree(name="a." * 60 + "step", text="b" * 200, file="deep/" * 40 + "a.py"))
    shown = [one.text or "" for one in picture.iter(f"{SVG}text")]
    assert max(map(len, shown)) <= LONGEST
    assert any(one.startswith("…") and one.endswith(".step") for one in shown)
    assert any(one.endswith("bbb…") for one in shown)
    assert any("a." * 60 + "step" in one and "deep/" * 40 in one for one in told(picture))


@settings(deadline=None)
@given(*[st.one_of(ANY, HARD)] * 4)
def test_no_text_leaves_its_place(name: str, text: str, root: str, file: str) -> None:
    """Whatever the names are, the picture has the same elements, and the tooltips hold them."""
    plain, picture = drawn(tree()), drawn(tree(name, text, root, file))
    assert [one.tag for one in picture.iter()] == [one.tag for one in plain.iter()]
    assert f"{_line(name)}, {_line(file)}:2, hot root: {_line(root)}" in told(picture)
    assert f"{_line(file)}:4:9 NSL201 item-read (certain) {_line(text)}" in told(picture)


def _line(text: str) -> str:
    return printable(text, "utf-8")


def test_what_xml_cannot_hold_is_spelled_out() -> None:
    assert "x\\ufffe\\uffff\\x00\\udc80, a.py:2, hot root: marked hot" in told(
        drawn(tree(name="x\ufffe\uffff\0\udc80"))
    )


def test_an_empty_tree_says_so() -> None:
    assert "0 syncs in 0 functions below 0 hot roots" in list(drawn(CallTree((), ())).itertext())
