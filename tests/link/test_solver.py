"""Summaries that depend on each other: the same values whoever asks first, and from whatever is asked."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from nosync_lint.link.solver import MAX_CHANGES, Solver, with_room
from nosync_lint.link.values import BOTTOM, UNKNOWN, Value, vote

Link = Callable[..., Any]
DEVICE = Value("tensor", where="device", rank=1, dtype="int")
HOST = Value("tensor", where="host", rank=1, dtype="int")


def solver_of(graph: Mapping[str, list[str]], given: Mapping[str, Value], computed: list[str]) -> Solver:
    """Every node votes among what it is given and its dependencies; `computed` notes each computation."""

    def compute(node: tuple[Any, ...]) -> Value:
        computed.append(node[0])
        own = [given[node[0]]] if node[0] in given else []
        return vote([*own, *(solver.read((name,)) for name in graph[node[0]])])

    solver = Solver(compute)
    return solver


def solve(
    graph: Mapping[str, list[str]], given: Mapping[str, Value], asked: list[str]
) -> tuple[dict[str, Value], list[str]]:
    """The values of what is asked, in that order, and what was computed for it."""
    computed: list[str] = []
    solver = solver_of(graph, given, computed)
    return {name: solver.read((name,)) for name in asked}, computed


def test_a_chain_is_computed_once_from_below() -> None:
    values, computed = solve({"a": ["b"], "b": ["c"], "c": []}, {"c": DEVICE}, ["a", "b", "c"])
    assert values == dict.fromkeys("abc", DEVICE)
    assert sorted(computed) == ["a", "b", "c"]


def test_what_is_not_asked_is_not_computed() -> None:
    _, computed = solve({"a": ["b"], "b": [], "c": []}, {"b": DEVICE, "c": HOST}, ["a"])
    assert "c" not in computed


def test_a_cycle_takes_what_enters_it() -> None:
    graph = {"a": ["b"], "b": ["c"], "c": ["a"]}
    values, _ = solve(graph, {"b": DEVICE}, ["a", "b", "c"])
    assert {value.where for value in values.values()} == {"device"}


def test_a_cycle_that_nothing_enters_stays_at_the_bottom() -> None:
    values, _ = solve({"a": ["b"], "b": ["a"]}, {}, ["a", "b"])
    assert values == {"a": BOTTOM, "b": BOTTOM}


def test_what_is_unknown_enters_a_cycle_once_and_does_not_stay_in_it() -> None:
    graph = {"a": ["b"], "b": ["a", "c"], "c": []}
    values, _ = solve(graph, {"a": DEVICE, "c": UNKNOWN}, ["b"])
    assert values["b"].where == "device"


def random_graph(seed: int) -> tuple[dict[str, list[str]], dict[str, Value]]:
    chance = random.Random(seed)
    names = [f"n{i}" for i in range(24)]
    graph = {name: chance.sample(names, chance.choice([0, 1, 1, 2, 3])) for name in names}
    options = [DEVICE, HOST, UNKNOWN, Value("int"), Value("none"), DEVICE._replace(where="parametrised", trust=1)]
    given = {name: chance.choice(options) for name in names if chance.random() < 0.4}
    return graph, given


@pytest.mark.parametrize("seed", range(40))
def test_values_do_not_depend_on_who_asked_first(seed: int) -> None:
    graph, given = random_graph(seed)
    names = sorted(graph)
    expected, _ = solve(graph, given, names)
    chance = random.Random(seed)
    for _ in range(6):
        shuffled = chance.sample(names, len(names))
        values, _ = solve(graph, given, shuffled)
        assert values == expected


@pytest.mark.parametrize("seed", range(40))
def test_values_are_the_same_asked_together_or_one_by_one(seed: int) -> None:
    graph, given = random_graph(seed)
    together, _ = solve(graph, given, sorted(graph))
    alone = {name: solve(graph, given, [name])[0][name] for name in graph}
    assert alone == together


@pytest.mark.parametrize("seed", range(60))
def test_a_cycle_that_grows_while_it_is_solved_has_the_same_values_wherever_it_is_entered(seed: int) -> None:
    """What a value is decides what is read next: an attribute of an object is a node that only its class tells."""
    graph, given = random_graph(seed)
    chance = random.Random(seed)
    names = sorted(graph)
    further = {name: chance.sample(names, 2) for name in names}

    def solved(asked: list[str]) -> dict[str, Value]:
        def compute(node: tuple[Any, ...]) -> Value:
            read = [solver.read((name,)) for name in graph[node[0]]]
            if any(value.kind == "tensor" for value in read):
                read += [solver.read((name,)) for name in further[node[0]]]
            return vote([*([given[node[0]]] if node[0] in given else []), *read])

        solver = Solver(compute)
        return {name: solver.read((name,)) for name in asked}

    expected = solved(names)
    assert all(solved(chance.sample(names, len(names))) == expected for _ in range(6))
    assert {name: solved([name])[name] for name in names} == expected


def test_settled_values_are_what_a_full_recomputation_gives() -> None:
    """Where nothing was frozen, each value is a fixed point: computing it again from the others changes nothing."""
    checked = 0
    for seed in range(60):
        graph, given = random_graph(seed)
        solver = solver_of(graph, given, [])
        values = {name: solver.read((name,)) for name in sorted(graph)}
        if solver.frozen:
            continue
        checked += 1
        for name, dependencies in graph.items():
            own = [given[name]] if name in given else []
            assert vote([*own, *(values[one] for one in dependencies)]) == values[name], (seed, name)
    assert checked > 50


def test_a_value_that_never_settles_is_frozen() -> None:
    turns = 0

    def compute(node: tuple[Any, ...]) -> Value:
        nonlocal turns
        turns += 1
        solver.read(("other" if node[0] == "self" else "self",))
        return Value("int", ref=turns)

    solver = Solver(compute)
    assert solver.read(("self",)).kind == "int"
    assert turns < 20 * MAX_CHANGES
    assert solver.frozen


def test_a_chain_of_thousands_has_room() -> None:
    length = 5000
    graph = {str(i): [str(i + 1)] for i in range(length)} | {str(length): []}
    values, _ = with_room(lambda: solve(graph, {str(length): DEVICE}, ["0"]))
    assert values["0"] == DEVICE


def test_room_hands_errors_on_and_leaves_the_limits_alone() -> None:
    limit = sys.getrecursionlimit()
    with pytest.raises(KeyError, match="inside"):
        with_room(lambda: {}["inside"])
    assert sys.getrecursionlimit() == limit


PROGRAM = """
class Ring:
    def __init__(self, size, device):
        self.slots = torch.zeros(size, dtype=torch.int64, device=device)
        self.head = None

    def push(self, value):
        self.head = self.join(value, self.head)
        return self.head

    def join(self, a, b):
        if b is None:
            return a
        reveal(a)
        reveal(b)
        return torch.cat([a, b])

    def rotate(self, depth):
        reveal(self.head)
        if depth:
            return self.rotate(depth - 1)
        return self.push(self.slots)

def drive():
    ring = Ring(8, "cuda")
    reveal(ring.rotate(3))
    reveal(ring.push(torch.arange(3, device="cuda")))
"""


@pytest.mark.parametrize("seed", range(8))
def test_a_recursive_program_gives_the_same_values_in_any_order_of_questions(link: Link, seed: int) -> None:
    from nosync_lint.link.inference import At

    def ask(order: random.Random | None) -> dict[Any, Value]:
        linked = link(PROGRAM)
        asked = [
            (site.call[2][0], At(function, site.seq, site.block))
            for function in linked.program.project.functions
            for site in function.record.calls
            if site.call[1] == ("name", "reveal")
        ]
        if order is not None:
            order.shuffle(asked)
        value = linked.program.inference.value
        return {(at.function.name, expr): value(expr, at) for expr, at in asked}

    first = ask(None)
    assert {value.where for value in first.values() if value.kind == "tensor"} == {"device"}
    assert ask(random.Random(seed)) == first


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_files_does_not_matter(link: Link, seed: int) -> None:
    files = {
        f"m{i}.py": f"import torch\nfrom m{(i + 1) % 6} import f{(i + 1) % 6}\n"
        f"def f{i}(x, n):\n    reveal(x)\n    return f{(i + 1) % 6}(x, n - 1)\n"
        for i in range(6)
    }
    files["start.py"] = "import torch\nfrom m3 import f3\nf3(torch.zeros(3, device='cuda'), 9)\n"
    names = list(files)
    random.Random(seed).shuffle(names)

    def short(order: list[str]) -> set[tuple[str | None, int | None]]:
        return {(value.where, value.rank) for value in link({name: files[name] for name in order}).values}

    assert short(sorted(files)) == short(names) == {("device", 1)}
