"""Which instances cannot answer what they are asked, and which calls ask for a layer that is not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nosync_lint.link.layers import Layers
from nosync_lint.link.pools import Pools
from nosync_lint.link.solver import with_room

Link = Callable[..., Any]

PROGRAM = """
import logging
class Pool:
    def get(self, i): return i
class Plain(Pool):
    def width(self): return 1
class Deep(Pool):
    def width(self): return 2
class Lean(Pool): ...
def make(deep, lean):
    if lean: return Lean()
    if deep: return Deep()
    return Plain()
class Reader:
    def __init__(self, deep, lean):
        self.pool = make(deep, lean)
    def read(self, deep, other):
        self.pool.get(0)
        self.pool.width()
"""


def missing(linked: Any) -> list[tuple[str, list[str]]]:
    """The methods that are missing, with the classes that lack them."""
    program = linked.program
    found = with_room(lambda: list(Pools(program.project, program.inference, program.roots).missing_methods()))
    return [(one.site.call[1][-1], [made.cls.record.name for made in one.missing]) for one in found]


def changed(*changes: tuple[str, str]) -> str:
    text = PROGRAM
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


CALL = "        self.pool.width()"

FOUND = {
    "as it is": (),
    "behind a test that the makers ask": ((CALL, "        if deep: self.pool.width()"),),
    "behind what is not all true": ((CALL, "        if other and self.x: return\n        self.pool.width()"),),
    "through a local name": ((CALL, "        pool = self.pool\n        pool.width()"),),
    "with a grandchild that lacks it too": (("def make", "class Leaner(Lean): ...\ndef make"),),
    "with a generic base": (("class Pool:", "from typing import Generic, T\nclass Pool(Generic[T]):"),),
}
SILENT = {
    "all of them have it": (("class Lean(Pool): ...", "class Lean(Pool):\n    def width(self): return 0"),),
    "the base has it": (("class Pool:", "class Pool:\n    def width(self): return 0"),),
    "an attribute of that name": (
        ("class Lean(Pool): ...", "class Lean(Pool):\n    def __init__(self): self.width = int"),
    ),
    "a class attribute of that name": (("class Lean(Pool): ...", "class Lean(Pool):\n    width = int"),),
    "set from outside": (("def make", "def patch(p): p.width = int\ndef make"),),
    "answers to everything": (
        ("class Lean(Pool): ...", "class Lean(Pool):\n    def __getattr__(self, name): return int"),
    ),
    "a base outside the project": (("class Lean(Pool)", "class Lean(Pool, logging.Handler)"),),
    "a base that is not known": (("class Lean(Pool)", "class Lean(Pool, unheard_of())"),),
    "never made": (("    if lean: return Lean()\n", ""),),
    "made as a part of another": (
        ("return Lean()", "return Deep().part"),
        ("class Deep(Pool):", "class Deep(Pool):\n    def __init__(self): self.part = Lean()"),
    ),
    "only one sibling has it": (("class Deep(Pool):\n    def width(self): return 2", "class Deep(Plain): ..."),),
    "two kinds lack it": (
        ("class Lean(Pool): ...", "class Lean(Pool): ...\nclass Dry(Pool): ..."),
        ("    if deep", "    if deep is lean: return Dry()\n    if deep"),
    ),
    "refuted by the test": ((CALL, "        if not lean: self.pool.width()"), ("(self, deep, other)", "(self, lean)")),
    "its base is refuted by the test": (
        ("class Lean(Pool): ...", "class Lean(Pool): ...\nclass Leaner(Lean): ..."),
        ("    if lean: return Lean()", "    if lean: return Lean()\n    if deep: return Leaner()"),
        (CALL, "        if not lean: self.pool.width()"),
        ("(self, deep, other)", "(self, lean)"),
    ),
    "behind a test that is not known": ((CALL, "        if other: self.pool.width()"),),
    "in the other branch of one": ((CALL, "        if other: return\n        self.pool.width()"),),
    "behind a comparison": ((CALL, "        if other == 3: self.pool.width()"),),
    "asked for first": ((CALL, '        if hasattr(self.pool, "width"): self.pool.width()'),),
    "narrowed": ((CALL, "        if isinstance(self.pool, Plain): self.pool.width()"),),
    "tried": ((CALL, "        try: self.pool.width()\n        except AttributeError: pass"),),
    "refuses what is asked besides": (
        ("class Lean(Pool): ...", "class Lean(Pool):\n    def get(self, i): raise NotImplementedError"),
    ),
    "lacks what is asked besides": (
        ("def width(self): return 1", "def width(self): return 1\n    rows = 3"),
        ("self.pool.get(0)", "print(self.pool.rows)"),
    ),
    "on another platform": (("    if lean:", "    if is_npu() and lean:"),),
}


@pytest.mark.parametrize("changes", FOUND.values(), ids=FOUND.keys())
def test_a_class_that_lacks_what_its_siblings_have_is_found(link: Link, changes: tuple[tuple[str, str], ...]) -> None:
    assert missing(link({"main.py": changed(*changes)})) == [("width", ["Lean"])]


@pytest.mark.parametrize("changes", SILENT.values(), ids=SILENT.keys())
def test_a_class_that_has_it_or_never_gets_there_is_not_found(link: Link, changes: tuple[tuple[str, str], ...]) -> None:
    assert missing(link({"main.py": changed(*changes)})) == []


@pytest.mark.parametrize(("name", "found"), [("use.py", [("width", ["Lean"])]), ("test_use.py", [])])
def test_what_tests_make_does_not_count(link: Link, name: str, found: list[tuple[str, list[str]]]) -> None:
    made = "    if lean: return Lean()\n"
    main = changed((made, ""), ("make(deep, lean)\n    def", "deep\n    def"))
    main += "def run(): Reader(make(1, 2), 0)\n"
    use = "from main import Lean, Reader\ndef use(): Reader(Lean(), 0)\n"
    assert missing(link({"main.py": main, name: use})) == found


FACADE = """
class Pool: ...
class Inner(Pool):
    def get(self, i): return i
    def put(self, i): return i
    def width(self): return 1
class Outer(Pool):
    def __init__(self): self.inner = Inner()
    def get(self, i): return self.inner.get(i)
    def put(self, i): return self.inner.put(i)
class Reader:
    def __init__(self, plain): self.pool = Inner() if plain else Outer()
    def read(self): return self.pool.width()
"""


def test_a_class_that_stands_for_a_pool_needs_one_sibling_only(link: Link) -> None:
    assert missing(link({"main.py": FACADE})) == [("width", ["Outer"])]


@pytest.mark.parametrize(
    "line", ["    def put(self, i): return self.inner.put(i)\n", "    def width(self): return 1\n"]
)
def test_a_class_that_hands_on_one_method_or_a_member_without_it_is_no_stand_in(link: Link, line: str) -> None:
    assert missing(link({"main.py": FACADE.replace(line, "")})) == []


LAYERS = """
FIRST = 0
SECOND = 1
class Base:
    def __init__(self, start_layer=0):
        self.start_layer = start_layer
        self.rows = []
class Store(Base):
    def row(self, layer): return self.rows[layer - self.start_layer]
    def pair(self, layer, side): return self.row(layer), side
    def half(self, side, layer=0): return self.row(layer)
    def plain(self, layer): return self.rows[layer]
    def renamed(self, layer):
        layer = 3
        return self.row(layer)
class Reader:
    def __init__(self, store: Store): self.store = store
    def read(self):
        {}
"""
ASKED = {
    "the first layer": ("self.store.row(0)", 1),
    "by keyword": ("self.store.row(layer=0)", 1),
    "through another method": ("self.store.pair(0, 1)", 1),
    "through a default": ("self.store.half(1)", 0),
    "another argument": ("self.store.pair(1, 0)", 0),
    "another layer": ("self.store.row(1)", 0),
    "False": ("self.store.row(False)", 0),
    "a constant": ("self.store.row(FIRST)", 1),
    "another constant": ("self.store.row(SECOND)", 0),
    "the layer where it starts": ("self.store.row(self.store.start_layer)", 0),
    "a method that counts from 0": ("self.store.plain(0)", 0),
    "a parameter that is assigned": ("self.store.renamed(0)", 0),
    "where it starts at 0": ("if self.store.start_layer == 0: self.store.row(0)", 0),
    "where it has been asked": ("if hasattr(self.store, 'x'): self.store.row(0)", 0),
}


@pytest.mark.parametrize(("call", "count"), ASKED.values(), ids=ASKED.keys())
def test_layer_0_is_asked_for_where_layers_start_later(link: Link, call: str, count: int) -> None:
    program = link({"main.py": LAYERS.format(call)}).program
    found = with_room(lambda: list(Layers(program.project, program.inference, program.roots).literal()))
    assert [one.method.cls.record.name for one in found if one.method.cls] == ["Store"] * count


@pytest.mark.parametrize("line", ["self.start_layer = 0", "self.start_layer: int = 4", "self.offset = start_layer"])
def test_only_a_first_layer_that_the_constructor_is_given_counts(link: Link, line: str) -> None:
    text = LAYERS.format("self.store.row(0)").replace("self.start_layer = start_layer", line)
    if "offset" in line:
        text = text.replace("layer - self.start_layer", "layer - self.offset")
    program = link({"main.py": text}).program
    assert with_room(lambda: list(Layers(program.project, program.inference, program.roots).literal())) == []


BY_NUMBER = """
class Store:
    def __init__(self, rows):
        self.start_layer = min(rows)
        self.rows = rows
    def row(self, layer): return self.rows[layer]
class Window(Store):
    def row(self, layer): return self.rows.get(layer)
class Other:
    def __init__(self, rows): self.rows = rows
    def row(self, layer): return self.rows[layer]
def first(store: Store): return {0}
def read(store: {1}): return store.row(0)
"""


@pytest.mark.parametrize(
    ("asked", "of", "count"),
    [
        ("store.row(store.start_layer)", "Store", 1),
        ("store.row(store.start_layer)", "Window", 1),
        ("store.row(store.start_layer)", "Other", 0),
        ("store.row(1)", "Store", 0),
        ("store.row(3 - store.start_layer)", "Store", 0),
    ],
)
def test_a_call_with_the_first_layer_tells_what_the_others_count_from(
    link: Link, asked: str, of: str, count: int
) -> None:
    program = link({"main.py": BY_NUMBER.format(asked, of)}).program
    found = with_room(lambda: list(Layers(program.project, program.inference, program.roots).literal()))
    assert len(found) == count


ABSTRACT = """
from abc import ABC, abstractmethod
class Pool(ABC):
    @abstractmethod
    def row(self): ...
    @abstractmethod
    def width(self): ...
class One(Pool):
    def row(self): return 1
    def width(self): return 1
class Two(Pool):
    def row(self): return 2
    {}
{}
"""
LACKING = {
    "not written": ("size = 2", "", ["Two"]),
    "nor by its heir": ("size = 2", "class Three(Two): ...", ["Two"]),
    "written": ("def width(self): return 2", "", []),
    "written by its heir": ("size = 2", "class Three(Two):\n    def width(self): return 3", []),
    "a member of the class": ("width = 2", "", []),
    "a member of instances": ("def __init__(self): self.width = 2", "", []),
    "declared again": ("@abstractmethod\n    def other(self): ...", "", []),
    "with members that are not known": ("def __getattr__(self, name): return 2", "", []),
    "nothing written": ("size = 2", "class Three(Pool):\n    def other(self): return 3", ["Two"]),
}


@pytest.mark.parametrize(("body", "more", "lacking"), LACKING.values(), ids=LACKING.keys())
def test_a_declaration_is_no_method(link: Link, body: str, more: str, lacking: list[str]) -> None:
    program = link({"main.py": ABSTRACT.format(body, more)}).program
    pools = Pools(program.project, program.inference, program.roots)
    assert [one.cls.record.name for one in with_room(lambda: list(pools.unwritten_methods()))] == lacking
