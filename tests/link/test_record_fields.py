"""Named tuples and dataclasses taken apart: by position, by name, and through the calls that make them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import pytest

Link = Callable[..., Any]

TYPED = """
from typing import NamedTuple
class Moves(NamedTuple):
    step: int
    source: torch.Tensor
    target: torch.Tensor
"""
MADE = "def make():\n    return Moves(1, torch.zeros(3).cuda(), torch.zeros(3, 3))\n"
TAKEN = {
    "unpacked": "step, source, target = moves\nreveal(source)\nreveal(target)",
    "unpacked in part": "_, *rest, _ = moves\nreveal(rest[0])\nreveal(moves.target)",
    "unpacked behind a star": "*_, source, target = moves\nreveal(source)\nreveal(target)",
    "unpacked into a list": "[step, source, target] = moves\nreveal(source)\nreveal(target)",
    "unpacked by a loop": "for step, source, target in [moves]:\n    reveal(source)\n    reveal(target)",
    "nested": "(step, source, target), other = moves, 1\nreveal(source)\nreveal(target)",
    "by position": "reveal(moves[1])\nreveal(moves[-1])",
    "by slice": "pair = moves[1:]\nreveal(pair[0])\nreveal(pair[1])",
    "replaced": "more = moves._replace(step=2)\nreveal(more.source)\nreveal(more[2])",
    "as a dictionary": "named = moves._asdict()\nreveal(named['source'])\nreveal(named['target'])",
    "as a tuple": "row = tuple(moves)\nmore = (0, *moves)\nreveal(row[1])\nreveal(more[3])",
    "through a name": "other = moves\nthird = other[2]\nreveal(other[1])\nreveal(third)",
}
DEVICE, HOST = ("tensor", "device", 1), ("tensor", "host", 2)


def said(values: list[Any]) -> list[tuple[Any, ...]]:
    return [(value.kind, value.where, value.rank) for value in values]


@pytest.mark.parametrize("taken", TAKEN.values(), ids=TAKEN.keys())
@pytest.mark.parametrize("source", ["moves = make()\n", "pass\n"], ids=["made here", "as a parameter"])
def test_a_named_tuple_keeps_the_types_of_its_fields(link: Link, taken: str, source: str) -> None:
    caller = "use(make())\n"
    text = f"{TYPED}{MADE}def use(moves: Moves):\n{textwrap.indent(source + taken, '    ')}\n{caller}"
    assert said(link(text).values) == [DEVICE, HOST]


FORMS = {
    "NamedTuple called": "from typing import NamedTuple\n"
    "Moves = NamedTuple('Moves', [('step', int), ('source', torch.Tensor), ('target', torch.Tensor)])\n",
    "namedtuple of a text": "from collections import namedtuple\nMoves = namedtuple('Moves', 'step source target')\n",
    "namedtuple with commas": "import collections\nMoves = collections.namedtuple('Moves', 'step, source, target')\n",
    "namedtuple of a list": "from collections import namedtuple\n"
    "Moves = namedtuple('Moves', ['step', 'source', 'target'])\n",
    "namedtuple as a base": "from collections import namedtuple\n"
    "class Moves(namedtuple('Moves', 'step source target')):\n    __slots__ = ()\n",
    "a subclass": f"{TYPED.replace('Moves', 'Lanes')}class Moves(Lanes):\n    extra: torch.Tensor\n",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_every_form_of_named_tuple_has_its_fields(link: Link, form: str) -> None:
    use = "def use(moves: Moves):\n    step, source, target = moves\n    reveal(source)\n    reveal(moves[2])\nuse(make())\n"
    assert said(link(form + MADE + use).values) == [DEVICE, HOST]


GIVEN = {
    "by keyword": "Moves(step=1, target=torch.zeros(3, 3), source=torch.zeros(3).cuda())",
    "behind a star": "Moves(1, *(torch.zeros(3).cuda(), torch.zeros(3, 3)))",
    "by replacing": "Moves(1, None, torch.zeros(3, 3))._replace(source=torch.zeros(3).cuda())",
    "by making": "Moves._make((1, torch.zeros(3).cuda(), torch.zeros(3, 3)))",
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN.keys())
def test_a_field_holds_what_it_is_given(link: Link, given: str) -> None:
    text = f"{TYPED}def use():\n    moves = {given}\n    reveal(moves[1])\n    reveal(moves[2])\n"
    assert said(link(text).values) == [DEVICE, HOST]


DATACLASS = """
import dataclasses
@dataclasses.dataclass(frozen=True)
class Moves:
    step: int
    source: torch.Tensor
    target: torch.Tensor
"""
OF_DATACLASS = {
    "replaced": "more = dataclasses.replace(moves, step=2)\nreveal(more.source)\nreveal(more.target)",
    "copied": "import copy\nmore = copy.copy(moves)\nreveal(more.source)\nreveal(more.target)",
    "as a tuple": "step, source, target = dataclasses.astuple(moves)\nreveal(source)\nreveal(target)",
    "as a dictionary": "named = dataclasses.asdict(moves)\nreveal(named['source'])\nreveal(named['target'])",
}


@pytest.mark.parametrize("taken", OF_DATACLASS.values(), ids=OF_DATACLASS.keys())
@pytest.mark.parametrize(
    "form", [DATACLASS, "import dataclasses\nMoves = dataclasses.make_dataclass('Moves', ['step', 'source', 'target'])\n"],
    ids=["declared", "made"],
)  # fmt: skip
def test_a_dataclass_keeps_the_types_of_its_fields(link: Link, form: str, taken: str) -> None:
    text = f"{form}{MADE}def use(moves: Moves):\n{textwrap.indent(taken, '    ')}\nuse(make())\n"
    assert said(link(text).values) == [DEVICE, HOST]


def test_an_index_that_is_a_named_tuple_is_as_many_indices(link: Link) -> None:
    text = TYPED.replace("source: torch.Tensor\n    target: torch.Tensor", "row: int")
    text += "def use(at: Moves):\n    reveal(torch.zeros(3, 3).cuda()[at])\n"
    assert said([link(text).value]) == [("tensor", "device", 0)]


def test_a_dataclass_is_no_tuple(link: Link) -> None:
    text = f"{DATACLASS}{MADE}def use():\n    step, source, target = make()\n    reveal(source)\n"
    assert link(text).value.kind == "unknown"


def test_what_follows_a_star_of_a_tuple_keeps_its_place(link: Link) -> None:
    text = "def use():\n    first, *rest, last = 1, torch.zeros(3).cuda(), 'a'\n"
    text += "    reveal(first)\n    reveal(rest[0])\n    reveal(last)\n"
    assert [value.kind for value in link(text).values] == ["int", "tensor", "str"]
