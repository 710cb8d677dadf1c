"""A pytest plugin that writes down how each test ended: `-p benchmarks.mutants.outcomes`.

Libraries go to the folder `$MUTANT_LIBRARIES`. The JSON file that `$MUTANT_OUTCOMES` names gets the folder of the
package under test, and for every test and every file that was not collected the phase, the outcome and the exception.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

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


def pytest_collection_finish() -> None:
    """Lets mutants share libraries. They are named by what they are made of, so that changed kernels get their own."""
    build = importlib.import_module("reference_allocator.build")
    build.cache_folder = lambda: Path(os.environ["MUTANT_LIBRARIES"])  # type: ignore[attr-defined]


def pytest_sessionfinish() -> None:
    """Writes it all down."""
    import reference_allocator

    told = {"package": str(Path(reference_allocator.__file__).parent), "tests": TOLD}
    Path(os.environ["MUTANT_OUTCOMES"]).write_text(json.dumps(told), encoding="utf-8")
