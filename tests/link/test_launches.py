"""Views with gaps that are handed to code which takes them for dense."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nosync_lint.report import Report

Lint = Callable[..., Report]
CHECKED = """
#include <torch/extension.h>
at::Tensor f(at::Tensor x, at::Tensor y) { TORCH_CHECK(x.is_contiguous()); return x + y; }
PYBIND11_MODULE(fast, m) { m.def("f", &f); }
"""


def refused(lint: Lint, body: str) -> int:
    """How many calls are told to be refused by the check."""
    python = "import torch, fast\ndef run(t: torch.Tensor, n: int, other: torch.Tensor):\n"
    python += "".join(f"    {line}\n" for line in body.splitlines())
    report = lint({"a.cpp": CHECKED, "main.py": python}, select=("NSL601",))
    calls = sum(one.filename == "main.py" for one in report.findings)
    assert sum(one.filename == "a.cpp" for one in report.findings) == bool(calls)
    return calls


GAPS = {
    "split": "fast.f(t.split(4, dim=-1)[0], other)",
    "split by position": "fast.f(t.split(4, 1)[1], other)",
    "a function of torch": "fast.f(torch.split(t, 4, dim=1)[0], other)",
    "unpacked": "a, b = t.chunk(2, dim=-1)\nfast.f(b, other)",
    "through a name": "a = t.unbind(1)\nb = a[0].detach()\nfast.f(b, other)",
    "in a loop": "for part in t.tensor_split(3, dim=2):\n    fast.f(part, other)",
    "one column": "fast.f(t.select(1, n), other)",
    "narrowed": "fast.f(t.narrow(-1, 0, n), other)",
}


@pytest.mark.parametrize("body", GAPS.values(), ids=GAPS.keys())
def test_a_part_along_an_inner_dimension_is_refused(lint: Lint, body: str) -> None:
    assert refused(lint, body) == 1


DENSE = {
    "the whole": "fast.f(t, other)",
    "rows": "fast.f(t.split(4)[0], other)",
    "rows by name": "fast.f(t.split(4, dim=0)[0], other)",
    "rows of a vector": "v = torch.zeros(8)\nfast.f(v.split(4, dim=-1)[0], other)",
    "made dense": "fast.f(t.split(4, dim=-1)[0].contiguous(), other)",
    "computed": "fast.f(t.split(4, dim=-1)[0] + 1, other)",
    "one of two": "a = t\nif n:\n    a = t.split(4, dim=-1)[0]\nfast.f(a, other)",
    "a dimension that is not told": "fast.f(t.split(4, dim=n)[0], other)",
    "an argument that is not checked": "fast.f(t, t.split(4, dim=-1)[0])",
    "a string": "fast.f('a b'.split(' ', 1)[0], other)",
}


@pytest.mark.parametrize("body", DENSE.values(), ids=DENSE.keys())
def test_what_may_be_dense_is_not_refused(lint: Lint, body: str) -> None:
    assert refused(lint, body) == 0
