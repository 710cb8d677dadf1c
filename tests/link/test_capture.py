"""Capture regions, what runs inside them, and what is outside by a test for capturing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nosync_lint.link.solver import with_room
from nosync_lint.report import Report

Link = Callable[..., Any]
Lint = Callable[..., Report]


def captured(linked: Any) -> list[tuple[int, int]]:
    """Row and trust of the waits that are met under capture."""
    found = with_room(lambda: linked.program.capture_syncs)
    return sorted({(one.wait.pos >> 72, one.trust) for one in found})


def rows(link: Link, text: str, **options: Any) -> list[int]:
    return [row for row, _ in captured(link(text, **options))]


REGIONS = {
    "with": "with torch.cuda.graph(g):\n    x.item()",
    "with a stream": "with torch.cuda.stream(s), torch.cuda.graph(g, pool=p):\n    x.item()",
    "inside another with": "with torch.no_grad():\n    with torch.cuda.graph(g):\n        x.item()",
    "an alias": "from torch.cuda import graph\nwith graph(g):\n    x.item()",
    "a name": "scope = torch.cuda.graph(g)\nwith scope:\n    x.item()",
    "one that may be kept from before": "scope = torch.cuda.graph(g)\nfor _ in y:\n    scope = make() if g else scope\n    with scope:\n        x.item()",
    "one of two": "scope = torch.cuda.graph(g) if g else nullcontext()\nwith scope:\n    x.item()",
    "an unknown manager that takes a graph": "with make_scope()(cuda_graph=g):\n    x.item()",
    "a loop inside": "with torch.cuda.graph(g):\n    for _ in range(3):\n        x.item()",
    "between begin and end": "g.capture_begin()\nx.item()\ng.capture_end()",
    "in a try between": "g.capture_begin()\ntry:\n    x.item()\nfinally:\n    g.capture_end()",
}


@pytest.mark.parametrize("body", REGIONS.values(), ids=REGIONS.keys())
def test_a_wait_in_a_region_is_found(link: Link, body: str) -> None:
    lines = [*HEAD.splitlines(), *(f"    {line}" for line in body.splitlines())]
    text = "\n".join(lines) + "\n"
    (row,) = [number for number, line in enumerate(text.splitlines(), 1) if "x.item()" in line]
    assert rows(link, text) == [row + 2]  # the header


HEAD = "def f(g, s, p):\n    x = torch.ones(1, device='cuda')\n"

NO_REGIONS = {
    "before": "x.item()\nwith torch.cuda.graph(g):\n    x + 1",
    "after": "with torch.cuda.graph(g):\n    x + 1\nx.item()",
    "another manager": "with torch.cuda.stream(s):\n    x.item()",
    "a graph of something else": "with networkx.graph(g):\n    x.item()",
    "before begin": "x.item()\ng.capture_begin()\ng.capture_end()",
    "after end": "g.capture_begin()\ng.capture_end()\nx.item()",
    "never ended here": "g.capture_begin()\nx.item()",
}


@pytest.mark.parametrize("body", NO_REGIONS.values(), ids=NO_REGIONS.keys())
def test_a_wait_around_a_region_is_not_found(link: Link, body: str) -> None:
    assert rows(link, HEAD + "".join(f"    {line}\n" for line in body.splitlines())) == []


CALLED = """
def f(g):
    x = torch.ones(1, device="cuda")
    with torch.cuda.graph(g):
        step(x)
def step(x):
    {body}
"""

OUTSIDE = {
    "a test": "if not torch.cuda.is_current_stream_capturing(): x.item()",
    "an else": "if torch.cuda.is_current_stream_capturing(): y = 1\n    else: x.item()",
    "after leaving": "if torch.cuda.is_current_stream_capturing(): return\n    x.item()",
    "with something else": "if ready and not torch.cuda.is_current_stream_capturing(): x.item()",
    "an assertion": "assert not torch.cuda.is_current_stream_capturing()\n    x.item()",
    "a variable": "capturing = torch.cuda.is_current_stream_capturing()\n    if not capturing: x.item()",
    "a flag by its name": "if not get_is_capture_mode(): x.item()",
    "a debug switch": "if debug_mode: x.item()",
    "another platform": "if is_npu(): x.item()",
}


@pytest.mark.parametrize("body", OUTSIDE.values(), ids=OUTSIDE.keys())
def test_a_test_for_capturing_takes_a_line_out(link: Link, body: str) -> None:
    assert rows(link, CALLED.format(body=body)) == []


TRUST = {
    "always": ("x.item()", 2),
    "only when capturing": ("if torch.cuda.is_current_stream_capturing(): x.item()", 2),
    "after a check": ("if x is None: raise ValueError\n    x.item()", 2),
    "in a test": ("if x.any(): y = 1", 2),
    "under a condition": ("if ready: x.item()", 0),
    "after a way out": ("if ready: return\n    x.item()", 0),
    "in a handler": ("try: y = 1\n    except OSError: x.item()", 0),
    "in a branch of an expression": ("y = x.item() if ready else 1", 0),
    "behind `and`": ("y = ready and x.item()", 0),
    "before `and`": ("y = x.item() and ready", 2),
}


@pytest.mark.parametrize(("body", "trust"), TRUST.values(), ids=TRUST.keys())
def test_a_condition_on_the_way_costs_trust(link: Link, body: str, trust: int) -> None:
    (found,) = captured(link(CALLED.format(body=body)))
    assert found[1] == trust


def test_a_condition_on_a_call_costs_trust(link: Link) -> None:
    text = CALLED.format(body="if ready: last(x)") + "def last(x): x.item()\n"
    assert captured(link(text)) == [(10, 0)]


def test_the_way_without_a_condition_is_told(link: Link) -> None:
    linked = link(
        CALLED.format(body="if ready: last(x)\n    other(x)") + "def other(x): last(x)\ndef last(x): x.item()\n"
    )
    (found,) = with_room(lambda: linked.program.capture_syncs)
    assert (found.trust, [(hop.row, hop.note) for hop in found.hops]) == (
        2,
        [
            (6, "a graph is captured here"), (7, "calls `step`"), (10, "calls `other`"), (11, "calls `last`"),
            (12, "waits here"),
        ],
    )  # fmt: skip


METHODS = """
class Base:
    def __init__(self):
        self.x = torch.ones(1, device="cuda")
    def record(self, g):
        with torch.cuda.graph(g):
            self.step()
    def step(self): ...
{classes}
"""


def test_a_method_that_several_classes_override_ends_a_path(link: Link) -> None:
    classes = "class A(Base):\n    def step(self): self.x.item()\nclass B(Base):\n    def step(self): return 1\n"
    assert rows(link, METHODS.format(classes=classes)) == []


def test_an_exact_receiver_tells_which_method_runs(link: Link) -> None:
    classes = "class A(Base):\n    def step(self): self.x.item()\nclass B(Base):\n    def step(self): return 1\n"
    make = "def f(g):\n    made = {name}()\n    with torch.cuda.graph(g):\n        made.step()\n"
    assert rows(link, METHODS.format(classes=classes + make.format(name="A"))) == [12]
    assert rows(link, METHODS.format(classes=classes + make.format(name="B"))) == []


def test_an_instance_passes_its_class_on(link: Link) -> None:
    classes = (
        "class A(Base):\n    def run(self): self.step()\n    def step(self): self.x.item()\n"
        "class B(Base):\n    def step(self): return 1\n"
        "def f(g):\n    made = A()\n    with torch.cuda.graph(g):\n        made.run()\n"
    )
    assert rows(link, METHODS.format(classes=classes)) == [13]


def test_callables_that_are_handed_to_a_function_that_captures_are_followed(link: Link) -> None:
    text = """
    def record(g, body):
        with torch.cuda.graph(g):
            body()
    def first(g):
        x = torch.ones(1, device="cuda")
        record(g, lambda: x.item())
    def second(g):
        x = torch.ones(1, device="cuda")
        def run(): x.tolist()
        record(g, run)
    """
    assert rows(link, text) == [9, 12]


GRAPHED = {
    "a function": ("one", [3]),
    "several": ("(one, two)", [3, 4]),
    "a list": ("[two]", [4]),
    "a module": ("Block()", [6]),
}


@pytest.mark.parametrize(("given", "expected"), GRAPHED.values(), ids=GRAPHED.keys())
def test_graphed_callables_are_captured(link: Link, given: str, expected: list[int]) -> None:
    text = (
        "def one(x): torch.ones(1, device='cuda').item()\n"
        "def two(x): torch.ones(1, device='cuda').item()\n"
        "class Block(torch.nn.Module):\n    def forward(self, x): torch.ones(1, device='cuda').item()\n"
        f"made = torch.cuda.make_graphed_callables({given}, ())\n"
    )
    assert rows(link, text) == expected


def test_functions_are_captured_whole_by_configuration_and_by_decorator(link: Link) -> None:
    text = """
    class Engine:
        def step(self): torch.ones(1, device="cuda").item()
        def other(self): torch.ones(1, device="cuda").item()
    @register_cuda_graph
    def decorated(): torch.ones(1, device="cuda").item()
    """
    assert rows(link, text) == [8]
    assert rows(link, text, capture=("Engine.step",)) == [5, 8]


def test_a_configured_function_that_does_not_exist_is_told(lint: Lint) -> None:
    files = {"main.py": "def step(): ...\n", "nosync-lint.toml": 'capture = ["step", "Engine.stop"]\n'}
    assert [(one.message, one.span.row) for one in lint(files, select=("NSL003",)).findings] == [
        ("capture function `Engine.stop` names nothing in this project", 1)
    ]


def test_recursion_under_capture_ends(link: Link) -> None:
    assert rows(link, CALLED.format(body="step(x)\n    x.item()")) == [10]


def test_only_rows_that_wait_count(link: Link) -> None:
    text = CALLED.format(body="torch.zeros(4).to('cuda', non_blocking=True)\n    x.cpu().numpy()\n    x[0] + 1")
    assert rows(link, text) == [10]
