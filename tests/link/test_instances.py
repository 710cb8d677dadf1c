"""Which instances reach an expression, and by which tests."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from nosync_lint.link.instances import Instances, fact
from nosync_lint.link.names import At
from nosync_lint.link.solver import with_room

Link = Callable[..., Any]

CLASSES = """
from dataclasses import dataclass
from typing import cast
class Base: ...
class One(Base): ...
class Two(Base): ...
@dataclass
class Box:
    held: Base
    count: int = 0
class Owner:
    def __init__(self, held: Base): self.held = held
def pick(flag): return One() if flag else Two()
"""


def reaching(linked: Any) -> dict[str, set[tuple[str, bool]]]:
    """The classes that reach `reveal(x)`, with the tests that all of their instances pass."""
    program = linked.program
    (asked,) = [
        (site.call[2][0], At(function, site.seq, site.block))
        for function in program.project.functions
        for site in function.record.calls
        if site.call[1] == ("name", "reveal")
    ]
    made = with_room(lambda: Instances(program.project, program.inference, program.roots).of(*asked))
    found: dict[str, set[tuple[str, bool]]] = {}
    for one in made:
        name = one.cls.record.name
        found[name] = found[name] & one.facts if name in found else set(one.facts)
    return found


FLOWS = {
    "a local": ("def f():\n    x = One()\n    reveal(x)", {"One"}),
    "the last of two": ("def f():\n    x = One()\n    x = Two()\n    reveal(x)", {"Two"}),
    "branches": ("def f(a):\n    if a: x = One()\n    else: x = Two()\n    reveal(x)", {"One", "Two"}),
    "a call": ("def f(a):\n    reveal(pick(a))", {"One", "Two"}),
    "an argument": ("def f(x): reveal(x)\ndef g(): f(Two())", {"Two"}),
    "a default": ("def f(x=None): reveal(x or One())", {"One"}),
    "an attribute": ("class C:\n    def __init__(self): self.x = Two()\n    def f(self): reveal(self.x)", {"Two"}),
    "an inherited attribute": (
        "class C:\n    def __init__(self): self.x = Two()\nclass D(C):\n    def f(self): reveal(self.x)",
        {"Two"},
    ),
    "an attribute of an argument": ("def f(o: Owner): reveal(o.held)\ndef g(): f(Owner(One()))", {"One"}),
    "an attribute set from outside": ("def f(o: Owner):\n    o.held = Two()\n    reveal(o.held)", {"Two"}),
    "a field by keyword": ("def f(b: Box): reveal(b.held)\ndef g(): f(Box(held=One()))", {"One"}),
    "a field by position": ("def f(b: Box): reveal(b.held)\ndef g(): f(Box(Two(), 3))", {"Two"}),
    "a property": (
        "class C:\n    @property\n    def x(self): return One()\n    def f(self): reveal(self.x)",
        {"One"},
    ),
    "a class that was chosen": ("def f(a):\n    chosen = One if a else Two\n    reveal(chosen())", {"One", "Two"}),
    "a cast": ("def f(): reveal(cast(Base, One()))", {"One"}),
    "an unpacked pair": ("def f():\n    x, y = One(), Two()\n    reveal(y)", {"Two"}),
    "an unpacked result": ("def g(): return One(), Two()\ndef f():\n    x, y = g()\n    reveal(y)", {"Two"}),
    "a global": ("it = One()\ndef f(): reveal(it)", {"One"}),
    "a closure": ("def g():\n    x = Two()\n    def f(): reveal(x)", {"Two"}),
    "a cycle": ("def f(x):\n    if x: return f(x)\n    return Two()\ndef g(): reveal(f(1))", {"Two"}),
    "an awaited call": ("async def g(): return One()\nasync def f(): reveal(await g())", {"One"}),
    "nothing of the project": ("def f(): reveal(open('x'))", set()),
    "another platform": ("def f():\n    if is_npu(): x = One()\n    else: x = Two()\n    reveal(x)", {"Two"}),
}


@pytest.mark.parametrize(("text", "classes"), FLOWS.values(), ids=FLOWS.keys())
def test_instances_are_followed_back_to_where_they_are_made(link: Link, text: str, classes: set[str]) -> None:
    assert set(reaching(link(CLASSES + text))) == classes


def test_instances_carry_the_tests_that_led_to_them(link: Link) -> None:
    text = """
    def make(config, mixed):
        if config.windowed:
            return One()
        if mixed is not None and not config.frozen:
            return Two()
    def f(config):
        x = make(config, config.mixed) if config.deep else None
        reveal(x)
    """
    found = reaching(link(CLASSES + textwrap.dedent(text)))
    assert found == {"One": {("windowed", True)}, "Two": {("windowed", False), ("mixed", True), ("frozen", False)}}


def test_a_path_that_contradicts_itself_is_not_followed(link: Link) -> None:
    text = """
    def make(wide):
        if wide:
            return One()
        return Two()
    def f(wide):
        if not wide:
            x = make(wide)
            reveal(x)
    """
    assert reaching(link(CLASSES + textwrap.dedent(text))) == {"Two": {("wide", False)}}


FACTS = {
    "a": ("a", True),
    "not a": ("a", False),
    "not not a": ("a", True),
    "self.a": ("a", True),
    "config.a()": ("a", True),
    "a(b)": ("a", True),
    "a is None": ("a", False),
    "a is not None": ("a", True),
    "not a(b) is None": ("a", True),
    "a == 1": None,
    "a and b": None,
    "isinstance(a, B)": None,
}


@pytest.mark.parametrize(("test", "expected"), FACTS.items(), ids=FACTS.keys())
def test_a_test_is_known_by_the_last_name_of_what_it_asks(
    link: Link, test: str, expected: tuple[str, bool] | None
) -> None:
    function = link(f"def f(a, b, config, self):\n    if {test}: g()\n").function("f")
    asked = function.record.blocks[1].test
    assert fact(asked, True) == expected
