"""What is put into the buffers of a free group, and what was known when it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nosync_lint.link.free_groups import FreeGroups
from nosync_lint.link.solver import with_room

Link = Callable[..., Any]

PROGRAM = """
import torch
class Pool:
    def __init__(self, page):
        self.page = page
        self.held = []
    def free(self, tokens): ...
    def free_run(self, tokens, begin):
        self.held.append(tokens.clone())
    def close(self):
        self.free(torch.cat(self.held))
class Sliced(Pool):
    def free_run(self, tokens, begin):
        self.free(tokens[-begin % self.page :: self.page])
"""
PUT, CLOSE, SLICE = (
    "self.held.append(tokens.clone())",
    "self.free(torch.cat(self.held))",
    "-begin % self.page :: self.page",
)


def raw(linked: Any) -> list[tuple[str, str, str, str]]:
    """What is put whole into which buffer, and by which method it could have been sliced by what."""
    program = linked.program
    found = with_room(lambda: list(FreeGroups(program.project, program.inference).raw_tokens()))
    return [(one.tokens, one.buffer, one.cuts.record.qualname, one.position) for one in found]


def changed(*changes: tuple[str, str]) -> str:
    text = PROGRAM
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


FOUND = {
    "a copy": (),
    "as it is": ((PUT, "self.held.append(tokens)"),),
    "several": (
        (PUT, "self.held.extend([tokens for _ in self.held] or tokens)"),
        ("[tokens for _ in self.held] or ", ""),
    ),
    "through a local name": ((PUT, "own = tokens.clone()\n        self.held.append(own)"),),
    "through a method": ((PUT, "self.held.append(self.copy(tokens))"),),
    "in a branch": ((PUT, f"if self.held: {PUT}"),),
    "where a page is more than one token": ((PUT, f"if self.page != 1: {PUT}"),),
    "sliced from the position on": ((SLICE, "begin :: self.page"),),
    "up to the position": ((SLICE, ": begin : self.page"),),
    "sliced by what comes of the position": (
        ("self.free(tokens[-begin", "first = -begin\n        self.free(tokens[first"),
    ),
    "with the position checked": (
        ("self.free(tokens[-begin % self.page ::", "assert begin % self.page == 0\n        self.free(tokens[::"),
    ),
    "sliced by a function": (
        (f"tokens[{SLICE}]", "heads(tokens, begin, self.page)"),
        ("class Pool:", "def heads(rows, first, n): return rows[-first % n :: n]\nclass Pool:"),
    ),
    "sliced by a method of its own": (
        (SLICE, "self.first(begin) :: self.page"),
        ("class Sliced(Pool):", "class Sliced(Pool):\n    def first(self, begin): return -begin % self.page"),
    ),
    "closed through a local name": ((CLOSE, "held, self.held = self.held, []\n        self.free(torch.cat(held))"),),
    "closed by a member": ((CLOSE, "self.inner.free(torch.cat(self.held))"),),
    "closed as a list": ((CLOSE, "self.free(self.held)"),),
    "put by a helper": ((PUT, "self.put(tokens)\n    def put(self, tokens):\n        self.held.append(tokens)"),),
}
SILENT = {
    "sliced": ((PUT, "self.held.append(tokens[begin :: self.page].clone())"),),
    "sliced before": ((PUT, "heads = tokens[begin :: self.page]\n        self.held.append(heads)"),),
    "cut by a method that is told": ((PUT, "self.held.append(self.heads(tokens, begin))"),),
    "with its position": ((PUT, "self.held.append((tokens, begin))"),),
    "where a page is one token": ((PUT, f"if self.page == 1: {PUT}"),),
    "after larger pages left": ((PUT, f"if self.page > 1: return\n        {PUT}"),),
    "something else": ((PUT, "self.held.append(self.page)"),),
    "the position itself": ((PUT, "self.held.append(begin)"),),
    "another list": ((PUT, "self.notes.append(tokens)"),),
    "a local list": ((PUT, "held = []\n        held.append(tokens)"),),
    "never closed": ((CLOSE, "self.held.clear()"),),
    "closed by nobody's method": ((CLOSE, "print(torch.cat(self.held))"),),
    "no position": (
        ("def free_run(self, tokens, begin):\n        self.held", "def free_all(self, tokens):\n        self.held"),
    ),
    "no method that slices by it": ((SLICE, ":: self.page"),),
    "slices by a constant": ((SLICE, "begin :: 4"),),
    "slices something else": ((f"tokens[{SLICE}]", f"self.rows[{SLICE}]"),),
    "another family": (("class Sliced(Pool):", "class Sliced:"),),
    "put by a helper that others call": (
        (PUT, "self.put(tokens)\n    def put(self, tokens):\n        self.held.append(tokens)"),
        ("def free(self, tokens): ...", "def free(self, tokens): self.put(tokens)"),
    ),
}


@pytest.mark.parametrize("changes", FOUND.values(), ids=FOUND.keys())
def test_whole_tokens_in_a_group_buffer_are_found(link: Link, changes: tuple[tuple[str, str], ...]) -> None:
    assert raw(link({"main.py": changed(*changes)})) == [("tokens", "held", "Sliced.free_run", "begin")]


@pytest.mark.parametrize("changes", SILENT.values(), ids=SILENT.keys())
def test_what_keeps_the_position_or_never_had_one_is_not_found(
    link: Link, changes: tuple[tuple[str, str], ...]
) -> None:
    assert raw(link({"main.py": changed(*changes)})) == []
