"""Which tensors are paired after one of them lost its order."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from nosync_lint.link.pairings import Pairings
from nosync_lint.link.solver import with_room
from nosync_lint.link.wording import wording

Link = Callable[..., Any]

HEADER = """
def f(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, ids: torch.Tensor, old: torch.Tensor, new: torch.Tensor, n: int):
"""


def lost(link: Link, body: str) -> list[tuple[str, str, str]]:
    """What gives an order of its own, and the two sides that are paired all the same."""
    program = link(HEADER + textwrap.indent(body, "    ")).program
    found = with_room(lambda: list(Pairings(program.project, program.inference).lost()))
    return [(one.site.call[1][-1], wording(one.reordered), wording(one.other)) for one in found]


def lost_in(link: Link, text: str) -> list[tuple[str, str, str]]:
    """The same of a whole module."""
    program = link(text).program
    found = with_room(lambda: list(Pairings(program.project, program.inference).lost()))
    return [(one.function.record.name, wording(one.reordered), wording(one.other)) for one in found]


FOUND = {
    "stored": ("out[x[torch.unique(ids)]] = y[ids]", "x[torch.unique(ids)]", "y[ids]"),
    "stored the other way round": ("out[x[ids]] = y[torch.unique(ids)]", "y[torch.unique(ids)]", "x[ids]"),
    "stored by the index itself": ("u = torch.unique(ids)\nout[u] = y[ids]", "u", "y[ids]"),
    "stored by the index as it was": ("u = torch.unique(ids)\nout[ids] = y[u]", "y[u]", "ids"),
    "added in place": ("u = torch.unique(ids)\nout[u] += y[ids]", "u", "y[ids]"),
    "through local names": (
        "u = torch.unique(ids)\na = x[u]\nb = y[ids]\nout[a] = b",
        "a",
        "b",
    ),
    "by an operator": ("u = ids.unique()\nz = x[u] + y[ids]", "x[u]", "y[ids]"),
    "returned": ("u = ids.unique()\nreturn x[u] + y[ids]", "x[u]", "y[ids]"),
    "sorted": ("u, p = torch.sort(ids)\nz = x[u] * y[ids]", "x[u]", "y[ids]"),
    "sorted values by place": ("u = torch.sort(ids)[0]\nz = x[u] * y[ids]", "x[u]", "y[ids]"),
    "sorted values by name": ("u = ids.sort().values\nz = x[u] * y[ids]", "x[u]", "y[ids]"),
    "with the inverse": ("u, v = torch.unique(ids, return_inverse=True)\nz = x[u] * y[ids]", "x[u]", "y[ids]"),
    "of pages": ("u = torch.unique(ids // n)\nz = x[u] * y[ids // n]", "x[u]", "y[ids // n]"),
    "of other elements": ("u = torch.unique(ids.long() - 1)\nz = x[u] * y[ids]", "x[u]", "y[ids]"),
    "of a slice": ("h = ids[::n]\nu = torch.unique(h)\nz = x[u] * y[h]", "x[u]", "y[h]"),
    "of a lookup": ("h = out[ids]\nu = torch.unique(h)\nz = x[u] * y[h]", "x[u]", "y[h]"),
    "in a column": ("u = torch.unique(ids)\nz = x[:, u] * y[:, ids]", "x[:, u]", "y[:, ids]"),
    "in a copy": ("u = torch.unique(ids)\nout.index_copy_(0, u, y[ids])", "u", "y[ids]"),
    "in a stack": ("u = torch.unique(ids)\nz = torch.stack((x[u], y[ids]))", "x[u]", "y[ids]"),
    "in a loop of pairs": ("u = torch.unique(ids)\nfor a, b in zip(x[u], y[ids]): print(a, b)", "x[u]", "y[ids]"),
    "by a sorted function": ("u = torch.msort(ids)\nz = x[u] * y[ids]", "x[u]", "y[ids]"),
    "sorted by method, without a name": ("z = x[ids.msort()] * y[ids]", "x[ids.msort()]", "y[ids]"),
    "without its neighbours": ("u = torch.unique_consecutive(ids)\nz = x[u] * y[ids]", "x[u]", "y[ids]"),
    "with the inverse, by place": (
        "u = torch.unique(ids, return_inverse=True)[0]\nz = x[u] * y[ids]",
        "x[u]",
        "y[ids]",
    ),
    "with counts": ("u, c = ids.unique(return_counts=True)\nz = x[u] * y[ids]", "x[u]", "y[ids]"),
    "by a permutation": ("u = ids[ids.argsort()]\nz = x[u] * y[ids]", "x[u]", "y[ids]"),
    "by a permutation with a name": ("p = torch.argsort(ids)\nu = ids[p]\nz = x[u] * y[ids]", "x[u]", "y[ids]"),
    "by the permutation of a sort": ("_, p = torch.sort(ids)\nu = ids[p]\nz = x[u] * y[ids]", "x[u]", "y[ids]"),
    "by the indices of a sort": ("u = ids[ids.sort().indices]\nz = x[u] * y[ids]", "x[u]", "y[ids]"),
    "the permuted row itself": ("p = ids.argsort()\nout[ids] = y[p]", "y[p]", "ids"),
    "the largest of all": ("u = ids.topk(n).values\nz = x[u] * y[ids]", "x[u]", "y[ids]"),
    "selected": (
        "u = ids.sort()[0]\nz = x.index_select(0, u) * torch.index_select(y, 0, ids)",
        "x.index_select(0, u)",
        "torch.index_select(y, 0, ids)",
    ),
    "two arguments, each in its own order": (
        "a = torch.unique(old // n)\nb = torch.unique(new // n)\nout[a] = out[b]",
        "a",
        "out[b]",
    ),
    "two arguments, one of them as it was sliced": (
        "a = torch.unique(old[::n])\nb = new[::n]\nout[a] = out[b]",
        "a",
        "out[b]",
    ),
}
SILENT = {
    "one order": "u = torch.unique(ids)\nz = x[u] + y[u]",
    "one order by two names": "u = torch.unique(ids)\nv = u\nz = x[u] + y[v]",
    "no order lost": "z = x[ids] + y[ids]",
    "the permutation": "u, p = torch.sort(ids)\nout[u] = y[p]",
    "the permutation by another call": "out[ids.sort().values] = y[ids.argsort()]",
    "both by one permutation": "p = ids.argsort()\nz = x[ids[p]] * y[old[p]]",
    "the permutation and what was sorted": "u, p = ids.sort()\nout[u] = y[old[p]]",
    "largest and their places": "w, p = x.topk(n)\nz = w * y[p]",
    "ranks": "r = ids.argsort().argsort()\nz = x[r] * y[ids]",
    "the inverse of a permutation": "p = ids.argsort()\nq = p.argsort()\nz = x[p][q] + y[ids]",
    "counts beside what they count": "u, c = ids.unique(return_counts=True)\nout[u] = y[u] * c",
    "rows by a permutation": "p = ids.argsort()\nx.copy_(x[p])\ny.copy_(y[p])",
    "holes in order": "holes = torch.sort(old).values\nout[holes] = out[new]\nx[new] = holes",
    "back by the inverse": "u, v = torch.unique(ids, return_inverse=True)\nz = x[u][v] + y[ids]",
    "two indices": "u = torch.unique(ids)\nz = x[u] + y[old]",
    "one tensor": "u = torch.unique(ids)\nx[ids] = x[u]",
    "nothing gathered": "u = torch.sort(ids)[0]\nz = u - ids",
    "one side gathered": "u = torch.sort(ids)[0]\nz = x[u] - ids",
    "a number stored": "u = torch.unique(ids)\nout[u] = 0",
    "searched": "u = torch.unique(ids)\nz = torch.searchsorted(x[u], y[ids])",
    "looked for": "u = torch.unique(ids)\nz = torch.isin(x[u], y[ids])",
    "replaced before": "u = torch.unique(ids)\nids = u\nz = x[u] + y[ids]",
    "one of several": "u = torch.unique(ids)\nif n: u = ids\nz = x[u] + y[ids]",
    "a list": "names = [3, 1]\nnames.sort()\nz = x[names] + y[ids]",
    "two arguments cut differently": "a = torch.unique(old[::n])\nb = new[n:]\nout[a] = out[b]",
    "two arguments, one of them whole": "a = torch.unique(old)\nout[a] = out[new]",
    "an argument and something else": "a = torch.unique(old)\nh = torch.arange(n)\nb = torch.unique(h)\nx[a] = y[b]",
    "slices of one order": "u = torch.unique(ids)\nz = x[u[:n]] + y[u[:n]]",
}


@pytest.mark.parametrize(("body", "reordered", "other"), FOUND.values(), ids=FOUND.keys())
def test_pairs_of_two_orders_are_found(link: Link, body: str, reordered: str, other: str) -> None:
    (found,) = lost(link, body)
    assert found[1:] == (reordered, other)


@pytest.mark.parametrize("body", SILENT.values(), ids=SILENT.keys())
def test_pairs_of_one_order_are_not_found(link: Link, body: str) -> None:
    assert lost(link, body) == []


def test_a_call_that_breaks_several_pairs_is_found_once(link: Link) -> None:
    body = "u = torch.unique(ids)\na = x[u] + y[ids]\nb = x[u] - y[ids]\nc = torch.sort(ids)[0]\nout[c] = y[ids]"
    assert [name for name, *_ in lost(link, body)] == ["unique", "sort"]


APART = """
from typing import NamedTuple

class Moves(NamedTuple):
    source: torch.Tensor
    target: torch.Tensor

class Pool:
    def __init__(self, n: int, device: torch.device) -> None:
        self.bound = torch.zeros(n, dtype=torch.int64, device=device)
        self.owner = torch.zeros(n, dtype=torch.int64, device=device)

    def pages_of(self, tokens: torch.Tensor, size: int) -> torch.Tensor:
        heads = torch.cat((tokens[:1], tokens[1::size])) if size > 2 else tokens[::size]
        return heads // size

    def rebind(self, kept: torch.Tensor, incoming: torch.Tensor) -> None:
        held = self.bound[incoming]
        self._bind(kept, held)

    def _bind(self, pages: torch.Tensor, held: torch.Tensor) -> None:
        self.bound.index_copy_(0, pages, held)
        self.owner.index_copy_(0, held, pages)

    def exchange(self, old: torch.Tensor, new: torch.Tensor, size: int) -> None:
        self.rebind(self.pages_of(old, size), self.pages_of(new, size))

def ascending(rows: torch.Tensor) -> torch.Tensor:
    rows = torch.sort(rows).values
    return rows

def same(rows: torch.Tensor) -> torch.Tensor:
    return rows.clone()

"""
USES = "def use(pool: Pool, old: torch.Tensor, new: torch.Tensor, n: int, moves: Moves) -> None:\n"
THROUGH = {
    "each in its own order": ("pool.rebind(torch.unique(old), torch.unique(new))", "torch.unique(old)"),
    "each in its own order, before": ("a, b = old.sort()[0], new.sort()[0]\npool.rebind(a, b)", "a"),
    "one of what a function makes of both": (
        "a = pool.pages_of(old, n).sort().values\nb = pool.pages_of(new, n)\npool.rebind(a, b)", "a",
    ),
    "the other one of them": (
        "a = pool.pages_of(old, n)\nb = pool.pages_of(new, n)\npool.rebind(a, b[torch.argsort(b)])",
        "b[torch.argsort(b)]",
    ),
    "what a function takes apart by place": ("pool.exchange(old.sort().values, new, n)", "old.sort().values"),
    "put in order by a function": ("pool.rebind(ascending(old), ascending(new))", "ascending(old)"),
    "one of them by a function": ("pool.exchange(same(old), ascending(new), n)", "ascending(new)"),
    "by keyword": ("pool.rebind(incoming=torch.unique(new), kept=torch.unique(old))", "torch.unique(new)"),
    "a field of a record": ("pool.rebind(moves.target.sort().values, moves.source)", "moves.target.sort().values"),
    "an unpacked field": ("source, target = moves\npool.rebind(target, torch.sort(source)[0])", "torch.sort(source)[0]"),
}  # fmt: skip
NOT_THROUGH = {
    "neither": "pool.rebind(pool.pages_of(old, n), pool.pages_of(new, n))",
    "both by one order": "p = old.argsort()\npool.rebind(old[p], new[p])",
    "both by one order of pages": "a = pool.pages_of(old, n)\np = a.argsort()\n"
    "pool.rebind(a[p], pool.pages_of(new, n)[p])",
    "one of two whole arguments": "pool.rebind(torch.sort(old).values, new)",
    "both fields by one order": "p = moves.source.argsort()\npool.rebind(moves.target[p], moves.source[p])",
    "copies": "pool.rebind(same(old), same(new))",
    "one argument in order": "pool.pages_of(torch.sort(old).values, n)",
    "what looks nothing up": "pool._bind(torch.sort(old).values, torch.sort(new).values)",
}


@pytest.mark.parametrize(("body", "reordered"), THROUGH.values(), ids=THROUGH.keys())
def test_arguments_that_a_function_pairs_are_found(link: Link, body: str, reordered: str) -> None:
    (found,) = lost_in(link, APART + USES + textwrap.indent(body, "    "))[:1]
    assert found[:2] == ("use", reordered)


@pytest.mark.parametrize("body", NOT_THROUGH.values(), ids=NOT_THROUGH.keys())
def test_arguments_that_keep_their_places_are_not_found(link: Link, body: str) -> None:
    assert lost_in(link, APART + USES + textwrap.indent(body, "    ")) == []
