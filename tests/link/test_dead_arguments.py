"""Which waits are made for an argument that nobody reads."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from nosync_lint.link.dead_arguments import DeadArguments
from nosync_lint.link.solver import with_room
from nosync_lint.link.wording import wording

Link = Callable[..., Any]

PROGRAM = """
import functools
from abc import ABC, abstractmethod
def dead(x, n=0): return x
def live(x, n=0): return x + n
def halves(n, m): return m
def starred(x, *n): return x
def worded(x, **n): return x
def whole(x, n): return locals()
def nested(x, n):
    def inner(): return n
    return inner
def rebound(x, n):
    n = 3
    return x
@staticmethod
@torch.no_grad()
def plain(x, n): return x
@functools.cache
def kept(x, n): return x
def stub(x, n): ...
class Base(ABC):
    @abstractmethod
    def run(self, x, n): ...
    def stop(self, x, n): raise NotImplementedError
    def both(self, x, n): return x
    def same(self, x, n): return x
class First(Base):
    def run(self, x, n): return x
    def stop(self, x, n): return x
class Second(Base):
    def run(self, x, n): return 2 * x
    def both(self, x, n): return x + n
class Made:
    def __init__(self, n): self.x = 3
def f(base: Base, unknown):
    t = torch.zeros(8, device="cuda")
"""


def dead(link: Link, body: str) -> list[tuple[str, str, list[str]]]:
    """The waits for nothing, the parameter they are for, and the functions that ignore it."""
    program = link(PROGRAM + textwrap.indent(body, "    ")).program
    found = with_room(lambda: list(DeadArguments(program.project, program.inference, program.syncs)))
    return [(wording(one.sync.expr), one.parameter, [c.record.qualname for c in one.callees]) for one in found]


FOUND = {
    "by position": ("dead(t, t.sum().item())", "t.sum().item()", ["dead"]),
    "by keyword": ("dead(t, n=int(t.max()))", "int(t.max())", ["dead"]),
    "inside an expression": ("dead(t, max(1, t.sum().item() + 1))", "t.sum().item()", ["dead"]),
    "a branch": ("dead(t, 1 if t[0] else 2)", "t[0]", ["dead"]),
    "through a variable": ("n = t.sum().item()\ndead(t, n)", "t.sum().item()", ["dead"]),
    "through one of two variables": ("n, m = t.sum().item(), 3\ndead(m, n)", "t.sum().item()", ["dead"]),
    "through a variable in a branch": ("n = t.sum().item()\nif unknown: dead(t, n)", "t.sum().item()", ["dead"]),
    "assigned before it is read": ("rebound(t, t.sum().item())", "t.sum().item()", ["rebound"]),
    "behind plain decorators": ("plain(t, t.sum().item())", "t.sum().item()", ["plain"]),
    "of every override": ("base.run(t, t.sum().item())", "t.sum().item()", ["First.run", "Second.run"]),
    "of those that are no stub": ("base.stop(t, t.sum().item())", "t.sum().item()", ["First.stop"]),
    "of an inherited method": ("base.same(t, t.sum().item())", "t.sum().item()", ["Base.same"]),
    "of a constructor": ("Made(t.sum().item())", "t.sum().item()", ["Made.__init__"]),
    "one of two arguments": ("halves(t.sum().item(), t.max().item())", "t.sum().item()", ["halves"]),
}
SILENT = {
    "read": "live(t, t.sum().item())",
    "read by an override": "base.both(t, t.sum().item())",
    "read through locals": "whole(t, t.sum().item())",
    "read by a function inside": "nested(t, t.sum().item())",
    "behind a star": "starred(t, t.sum().item())",
    "behind two stars": "worded(t, n=t.sum().item())",
    "unpacked": "dead(t, *[t.sum().item()])",
    "behind a decorator that may read it": "kept(t, t.sum().item())",
    "of a stub": "stub(t, t.sum().item())",
    "of nothing known": "unknown(t, t.sum().item())",
    "known on the host": "dead(t, t.shape[0])",
    "a tensor": "dead(t, t.sum())",
    "read elsewhere": "n = t.sum().item()\ndead(t, n)\nprint(n)",
    "read by a condition": "n = t.sum().item()\nif n is None: pass\ndead(t, n)",
    "read by a lambda": "n = t.sum().item()\ndead(t, n)\nreturn lambda: n",
    "read by a function that is defined here": "n = t.sum().item()\ndead(t, n)\ndef g(): return n",
    "given twice": "n = t.sum().item()\ndead(t, n)\nlive(t, n)",
    "given twice in one call": "n = t.sum().item()\ndead(n, n)",
    "assigned twice": "n = t.sum().item()\nn = 3\ndead(t, n)",
    "given to a live one inside": "dead(t, live(t, 3)); live(t, t.sum().item())",
}


@pytest.mark.parametrize(("body", "sync", "callees"), FOUND.values(), ids=FOUND.keys())
def test_a_wait_for_an_argument_that_nobody_reads_is_found(
    link: Link, body: str, sync: str, callees: list[str]
) -> None:
    assert dead(link, body) == [(sync, "n", callees)]


@pytest.mark.parametrize("body", SILENT.values(), ids=SILENT.keys())
def test_a_wait_that_somebody_may_need_is_not_found(link: Link, body: str) -> None:
    assert dead(link, body) == []
