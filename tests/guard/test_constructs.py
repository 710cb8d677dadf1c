"""The 151 constructs of the specification and three more, on the device of this process: simulated, stub, or a GPU."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import io
import itertools
import linecache
import math
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from packaging.version import Version
from torch import nn

from nosync_lint.guard import Event, guard, stub


class Case(NamedTuple):
    """One row of `constructs.toml`."""

    construct: str
    expect: str
    rule: str
    code: str


TABLE = tomllib.loads(Path(__file__).with_name("constructs.toml").read_text())
CASES = [Case(*row) for row in TABLE["table"]]


NUMPY = importlib.import_module("numpy") if importlib.util.find_spec("numpy") else None
MODULES = {"torch": torch, "F": F, "nn": nn, "np": NUMPY, "math": math, "copy": copy, "io": io, "s": 2.0}
NUMBERS = itertools.count()


def ran(code: str) -> tuple[str, list[Event]]:
    """The verdict on a piece of code, and what happened in it."""
    filename = f"/constructs/{next(NUMBERS)}.py"
    linecache.cache[filename] = (len(code), None, [code + "\n"], filename)
    failed = False
    with guard(level="allow") as report:
        torch.manual_seed(0)
        vc, mc, idx_c, mask_c, s0_c = (
            torch.rand(6),
            torch.rand(6, 4),
            torch.tensor([0, 2, 1]),
            torch.arange(6) > 3,
            torch.tensor(2.0),
        )
        v, m, idx, mask, s0, i0 = (one.cuda() for one in (vc, mc, idx_c, mask_c, s0_c, torch.tensor(1)))
        names = {name: value for name, value in locals().items() if not name.startswith("_")} | MODULES
        report.events.clear()
        try:
            exec(compile(code, filename, "exec"), names)
        except (RuntimeError, TypeError, ValueError, AssertionError):
            failed = True
    events = list(report.events)
    verdict = "S" if report.syncs else "E" if failed else "H" if report.hidden else "F"
    return verdict, events


def expected(case: Case) -> tuple[str, str]:
    """The verdict in the torch that runs, and the rule of the first wait."""
    found = (case.expect, case.rule)
    for release, changes in TABLE["since"].items():
        if Version(torch.__version__) >= Version(release):
            found = tuple(changes.get(case.construct, found))
    return found


@pytest.mark.parametrize("case", CASES, ids=[case.construct for case in CASES])
def test_the_verdict_is_that_of_the_device(case: Case) -> None:
    if NUMPY is None and ("np." in case.code or "numpy" in case.code):
        pytest.skip("numpy is not installed")
    if stub.is_loaded() and case.construct in TABLE["computed"]:
        pytest.skip("needs values that kernels compute")
    verdict, events = ran(case.code)
    assert (verdict, events[0].code if events and verdict != "E" else "") == expected(case), [str(e) for e in events]
    assert all(event.span.row == 1 and event.filename.startswith("/constructs/") for event in events)


def test_there_are_154_constructs() -> None:
    assert len({case.construct for case in CASES}) == len(CASES) == 154
