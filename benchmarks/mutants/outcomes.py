"""How tests ended: a pytest plugin that writes it down, `-p benchmarks.mutants.outcomes`, and what it means.

The JSON file that `$MUTANT_OUTCOMES` names gets the folder of the package under test, and for every test and every
file that was not collected the phase, the outcome and the exception.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.mutants.mutant import TESTS

NONSENSE = (
    "ImportError",
    "NameError",
    "AttributeError",
    "SyntaxError",
    "TimeoutError",
    "BuildError",
    "SubprocessError",
)
"""A test that fails so has not noticed the defect: the mutant does not run, or does not compile."""

TOLD: list[dict[str, str]] = []


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, None]:
    """Keeps what a test came to, and which exception it was."""
    report = (yield).get_result()
    if report.when != "call" and report.passed:
        return
    kinds = [kind.__name__ for kind in call.excinfo.type.__mro__] if call.excinfo else []
    text = str(call.excinfo.value) if call.excinfo else ""
    TOLD.append(
        {
            "test": item.nodeid,
            "when": report.when,
            "outcome": report.outcome,
            "kinds": " ".join(kinds),
            "text": next(iter(text.strip().splitlines()), "")[:200],
        }
    )


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Keeps what could not be collected."""
    if report.failed:
        text = str(report.longrepr).strip().splitlines()
        TOLD.append(
            {
                "test": report.nodeid,
                "when": "collect",
                "outcome": "failed",
                "kinds": "",
                "text": text[-1] if text else "",
            }
        )


def pytest_sessionfinish() -> None:
    """Writes it all down."""
    import reference_allocator

    told = {"package": str(Path(reference_allocator.__file__).parent), "tests": TOLD}
    Path(os.environ["MUTANT_OUTCOMES"]).write_text(json.dumps(told), encoding="utf-8")


def read_outcomes(
    tests: list[dict[str, str]], witnesses: Sequence[str]
) -> tuple[set[str], tuple[str, ...], dict[str, str]]:
    """The witnesses that failed by themselves, what proves nothing, and what each failure said."""
    failed: set[str] = set()
    broken: list[str] = []
    said: dict[str, str] = {}
    seen: set[str] = set()
    for told in tests:
        name = told["test"].removeprefix(f"{TESTS}/")
        seen.update(witness for witness in witnesses if name == witness or name.startswith(f"{witness}["))
        kinds = told["kinds"].split()
        if told["outcome"] == "skipped":
            broken.append(f"{name} is skipped")
        if told["outcome"] != "failed":
            continue
        if told["when"] != "call" or set(kinds) & set(NONSENSE):
            broken.append(f"{name}, {told['when']}: {kinds[:1]} {told['text']}")
            continue
        for witness in witnesses:
            if name == witness or name.startswith(f"{witness}["):
                failed.add(witness)
                said.setdefault(witness, f"{kinds[0]}: {told['text']}")
    broken += [f"{witness} did not run" for witness in witnesses if witness not in seen]
    return failed, tuple(broken), said
