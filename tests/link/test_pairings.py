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
