"""What it means that a test failed: it has noticed the defect, or the mutant proves nothing."""

from __future__ import annotations

from collections.abc import Sequence

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
