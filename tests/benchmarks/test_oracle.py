"""The comparison of findings with what torch did, on records written by hand; and samples that run in spite of errors."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.oracle.judging import Outcome, Verdict, judge
from benchmarks.oracle.programs import FAILED, MISSING, Missing, Program, Unavailable
from benchmarks.oracle.statements import statements

HEAD = "import torch\n\n\ndef step(n: int) -> None:\n    t = torch.zeros(n, device='cuda')\n"


class Record:
    """What a recorder would write of one file; places are given by their text."""

    def __init__(self, tmp_path: Path, body: str) -> None:
        self.text = HEAD + body
        self.path = tmp_path / "sample.py"
        self.path.write_text(self.text, encoding="utf-8")
        self.rows: dict[str, list[Any]] = {"executed": [], "syncs": [], "pageable": [], "failures": []}
        self.assumed: list[Any] = []
        self.backward: list[Any] = []
        for line in self.text.splitlines():
            if line.startswith("    "):
                self.ran(line.strip())

    def place(self, text: str) -> list[Any]:
        before = self.text.encode().partition(text.encode())[0]
        row, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n") - 1
        return ["sample.py", row, column, row, column + len(text.encode())]

    def ran(self, text: str) -> None:
        self.rows["executed"].append(self.place(text))

    def waited(self, text: str, count: int = 1, kind: str = "syncs") -> None:
        self.ran(text)
        self.rows[kind].append([*self.place(text), count])

    def failed(self, text: str, reason: str) -> None:
        self.ran(text)
        self.rows["failures"].append([*self.place(text), reason])

    def outcomes(self, release: str = "2.14", **more: Any) -> list[Outcome]:
        row = {**self.rows, "assumed": self.assumed, "backward": self.backward}
        return judge(self.path, "item-read", {"rows": [row], "reasons": [], **more}, release)

    def of(self, text: str, **more: Any) -> list[tuple[bool, Verdict]]:
        """What came out in the row of a text: whether it is about a finding, and the verdict."""
        wanted = self.place(text)[1]
        return [(one.reported, one.verdict) for one in self.outcomes(**more) if one.row == wanted]


def test_a_reported_place_that_waits_agrees_and_one_that_does_not_disagrees(tmp_path: Path) -> None:
    record = Record(tmp_path, "    t[0].item()\n    t[1].item()\n")
    record.waited("t[0].item()")
    record.ran("t[1].item()")
    assert record.of("t[0].item()") == [(True, Verdict.AGREE)]
    assert record.of("t[1].item()") == [(True, Verdict.DISAGREE)]


def test_a_silent_statement_that_waits_disagrees(tmp_path: Path) -> None:
    record = Record(tmp_path, "    t.sum()\n    t.mean()\n")
    record.waited("t.sum()")
    assert record.of("t.sum()") == [(False, Verdict.DISAGREE)]
    assert record.of("t.mean()") == [(False, Verdict.AGREE)]


def test_a_wait_beside_a_reported_place_disagrees(tmp_path: Path) -> None:
    record = Record(tmp_path, "    len(t.max(0)), len(t.tolist())\n")
    record.waited("t.tolist()")
    record.waited("t.max(0)")
    assert (False, Verdict.DISAGREE) in record.of("t.max(0)")
    assert (True, Verdict.AGREE) in record.of("t.max(0)")


def test_columns_are_characters_for_the_linter_and_bytes_for_the_compiler(tmp_path: Path) -> None:
    record = Record(tmp_path, "    x = 'äöü', t[0].item()\n")
    record.waited("t[0].item()")
    assert record.of("t[0].item()") == [(True, Verdict.AGREE)]


def test_fewer_waits_than_findings_at_a_place_disagree(tmp_path: Path) -> None:
    record = Record(tmp_path, "    t[[0, 1]] = 5\n")
    record.waited("t[[0, 1]]", 1)
    assert sorted(record.of("t[[0, 1]]")) == [(True, Verdict.AGREE), (True, Verdict.DISAGREE)]
    record.waited("t[[0, 1]]", 2)
    assert record.of("t[[0, 1]]") == [(True, Verdict.AGREE)] * 2


def test_the_release_decides_what_must_wait(tmp_path: Path) -> None:
    record = Record(tmp_path, "    t[n - 1] = 5\n")
    record.waited("t[n - 1]")
    assert record.of("t[n - 1]", release="2.14") == [(True, Verdict.AGREE)]
    assert record.of("t[n - 1]", release="2.15") == [(False, Verdict.DISAGREE)]


def test_statements_that_failed_or_were_not_reached_are_not_run(tmp_path: Path) -> None:
    record = Record(tmp_path, "    t[0].item()\n    t.sum()\n    return t.mean()\n")
    record.failed("t[0].item()", "IndexError: too far")
    record.rows["executed"] = [place for place in record.rows["executed"] if place[1] != record.place("t.mean()")[1]]
    assert record.of("t[0].item()") == [(True, Verdict.NOT_RUN)]
    assert record.of("t.mean()") == [(False, Verdict.NOT_RUN)]
    assert record.of("t.sum()") == [(False, Verdict.AGREE)]


def test_a_sample_whose_process_died_is_not_run(tmp_path: Path) -> None:
    record = Record(tmp_path, "    t.sum()\n")
    record.rows = {kind: [] for kind in record.rows}
    assert record.of("t.sum()", died="not done") == [(False, Verdict.NOT_RUN)]


def test_a_marked_miss_is_known(tmp_path: Path) -> None:
    record = Record(tmp_path, "    t.sum()  # missed: [item-read]\n")
    record.waited("t.sum()")
    assert record.of("t.sum()") == [(False, Verdict.KNOWN)]


def test_rows_that_callers_did_not_reach_are_not_held_against_silence(tmp_path: Path) -> None:
    record = Record(tmp_path, "    t.sum()\n")
    record.waited("t.sum()")
    record.assumed = record.place("t.sum()")[:2]
    assert record.of("t.sum()") == [(False, Verdict.NOT_JUDGED)]


COPY = "    h = torch.zeros(n)\n    h.to('cuda', non_blocking=True)\n"


def test_an_asynchronous_copy_of_pageable_memory_must_be_recorded_as_one(tmp_path: Path) -> None:
    record = Record(tmp_path, COPY)
    assert (True, Verdict.DISAGREE) in record.of("h.to(")
    record.waited("h.to('cuda', non_blocking=True)", kind="pageable")
    assert record.of("h.to(") == [(True, Verdict.AGREE)]


def test_a_conversion_must_raise(tmp_path: Path) -> None:
    record = Record(tmp_path, "    t.numpy()\n")
    assert record.of("t.numpy()") == [(True, Verdict.DISAGREE)]
    record.failed("t.numpy()", "TypeError: can't convert cuda:0 device type tensor to numpy")
    assert record.of("t.numpy()") == [(True, Verdict.AGREE)]


@pytest.mark.parametrize(("waits", "verdict"), [([], Verdict.NOT_RUN), ([0], Verdict.DISAGREE), ([1], Verdict.AGREE)])
def test_what_waits_in_the_backward_must_wait_there(tmp_path: Path, waits: list[int], verdict: Verdict) -> None:
    body = "    return None\n\n\nclass Net(torch.nn.Module):\n    def __init__(self) -> None:\n"
    body += "        self.w = torch.nn.Parameter(torch.ones(8, device='cuda'))\n\n"
    body += "    def forward(self, x: torch.Tensor) -> torch.Tensor:\n        return self.w.prod()\n\n\n"
    body += "def train(steps: int) -> None:\n    Net()(torch.zeros(8, device='cuda')).backward()\n"
    record = Record(tmp_path, body)
    record.backward = [*record.place("self.w.prod()")[:2], *waits] if waits else []
    assert record.of("self.w.prod()") == [(True, verdict)]


def test_statements_end_before_their_blocks_and_know_their_function() -> None:
    found = statements("def f(x):\n    if x.any():\n        x = 1\n        g(x)\n    with h(x):\n        pass\n")
    assert [(one.extent.row, one.extent.end_row, one.definition) for one in found] == [(2, 3, 1), (4, 4, 1), (5, 6, 1)]
    assert [one.context.end_row if one.context else None for one in found] == [None, None, 6]


@pytest.fixture
def importing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Samples leave names in builtins, finders, and modules behind."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(builtins, FAILED, None, raising=False)
    monkeypatch.setattr(builtins, MISSING, None, raising=False)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.usefixtures("importing")
def test_a_statement_behind_one_that_fails_still_runs(tmp_path: Path) -> None:
    sample = tmp_path / "broken_sample.py"
    sample.write_text(
        "import no_such_module\nvalue = no_such_module.make()\n\n\n"
        "def f(seen):\n    a, b = 1 / 0\n    seen.append(1)\n    seen.append(a + 1)\n    return seen\n"
    )
    errors: list[BaseException] = []
    program = Program(sample, errors.append)
    module = program.load()["broken_sample"]
    assert [str(error) for error in errors] == ["no_such_module is not installed"]
    assert isinstance(module.value, Missing)
    assert module.f([]) == [1]
    assert [type(error) for error in errors[1:]] == [ZeroDivisionError, Unavailable]


@pytest.mark.usefixtures("importing")
def test_functions_that_the_sample_names_are_told_from_those_it_does_not(tmp_path: Path) -> None:
    folder = tmp_path / "sample"
    (folder / "inner").mkdir(parents=True)
    (folder / "main_of_sample.py").write_text(
        "from inner.table import f\n\n\nclass A:\n    def step(self):\n        return f()\n"
    )
    (folder / "inner" / "table.py").write_text("def f():\n    return 3\n")
    program = Program(folder, lambda error: None)
    assert {(one.file, one.classes, one.name): one.named for one in program.entries} == {
        ("inner/table.py", (), "f"): True,
        ("main_of_sample.py", ("A",), "step"): False,
    }
    assert program.load()["main_of_sample"].A().step() == 3
