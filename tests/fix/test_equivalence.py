"""Every recipe, on random inputs: the code before and after a fix gives the same values, dtypes, effects on its inputs,
aliases, gradients and failures, and waits less often on the simulated device."""

from __future__ import annotations

import re
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from nosync_lint.config import Settings
from nosync_lint.finding import Finding
from nosync_lint.fix.apply import applied
from nosync_lint.guard import GuardReport, guard, to_device, to_host
from nosync_lint.pipeline import run
from nosync_lint.registry import rules
from tests.fix.cases import CASES, HEAD, Case, Draw

TRIES = 200
"""Random inputs for every recipe, and at least `LEAST` for each of its cases."""
LEAST = 80


def fix_of(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """The source before and after the fix that the linter offers."""
    before = HEAD + textwrap.dedent(case.source).lstrip()
    (folder / "nosync-lint.toml").touch()
    (folder / "case.py").write_text(before)
    monkeypatch.chdir(folder)
    report = run(["case.py"], Settings(heat="any", target_torch=">=2.9"), jobs=1, cache=False)
    offered = [finding for finding in report.findings if finding.fix and finding.fix.recipe == case.recipe]
    assert report.failures == ()
    assert offered, [finding.message for finding in report.findings]
    finding: Finding = offered[0]
    assert finding.fix is not None
    assert finding.fix.applicability == case.tier
    after = applied(before, [finding])
    assert case.dots or "..." not in after
    return before, after.replace("=...", f"={case.dots}")


@dataclass
class Outcome:
    """What a call did, in tensors of the host: result, arguments afterwards, gradients, and once more the arguments
    after the result was changed. `waits`: how often it waited, or None where it failed."""

    tensors: list[torch.Tensor]
    waits: int | None


def outcome(source: str, arguments: dict[str, Any], report: GuardReport) -> Outcome:
    """Call the function of a source with copies of the arguments, those with gradients as leaves."""
    scope: dict[str, Any] = {}
    exec(compile(source, "case.py", "exec"), scope)
    given = {name: _placed(name, value) for name, value in arguments.items()}
    leaves = [value for value in given.values() if isinstance(value, torch.Tensor) and value.requires_grad]
    before = len(report.events)
    try:
        made = scope["f"](**given)
    except (RuntimeError, IndexError, TypeError, ValueError, OverflowError):
        return Outcome([], None)
    waits = len(report.events) - before
    results = list(_flat(made))
    kept = [to_host(one.detach()).clone() for one in (*results, *_flat(given))]
    if leaves:
        sum(one.float().sum() for one in results if one.requires_grad).backward()  # type: ignore[union-attr]
        kept += [to_host(one.grad).clone() for one in leaves if one.grad is not None]
    with torch.no_grad():
        for one in results:
            one.fill_(1)
        kept += [to_host(one.detach()).clone() for one in _flat(given)]
    return Outcome(kept, waits)


def _placed(name: str, value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return list(value) if isinstance(value, list) else value
    copied = value.detach().clone(memory_format=torch.preserve_format)
    placed = copied if name.startswith("host") else to_device(copied)
    return placed.requires_grad_(value.requires_grad)


def _flat(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _flat(tuple(value.values()))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _flat(one)


def difference(one: Outcome, other: Outcome) -> str:
    """How two outcomes differ; empty where they do not."""
    if (one.waits is None) != (other.waits is None):
        return f"one failed: {one.waits} and {other.waits} waits"
    for number, (a, b) in enumerate(zip(one.tensors, other.tensors, strict=True)):
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"tensor {number}: {a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
        if not torch.equal(a.nan_to_num(7.5), b.nan_to_num(7.5)) or not torch.equal(a.isnan(), b.isnan()):
            return f"tensor {number}: {a} and {b}"
    return ""


@pytest.mark.parametrize("name", CASES)
def test_a_fix_changes_nothing_but_the_waits(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    before, after = fix_of(case, tmp_path, monkeypatch)
    tries = max(LEAST, TRIES // sum(one.recipe == case.recipe for one in CASES.values()) + 1)
    wrong, ran, waited, waits = list[str](), 0, 0, 0
    warnings.simplefilter("ignore")
    with guard(level="allow", backend="simulated") as report:
        for seed in range(tries):
            arguments = case.arguments(Draw(seed))
            old, new = outcome(before, arguments, report), outcome(after, arguments, report)
            if told := difference(old, new):
                wrong.append(f"{told} for {arguments}")
            if old.waits is not None and new.waits is not None:
                ran, waited, waits = ran + 1, waited + old.waits, waits + new.waits
                assert new.waits <= old.waits, f"{old.waits} waits before and {new.waits} after:\n{after}"
    assert wrong == [], f"{len(wrong)} of {tries} differ:\n{after}"
    assert ran > tries // 2, "most of them failed"
    assert waits <= waited - ran / 2, f"{waited} waits before and {waits} after in {ran} runs:\n{after}"


def test_every_recipe_has_a_case_and_a_section_in_the_page() -> None:
    root = Path(__file__).resolve().parents[2]
    named = {recipe for rule in rules() for recipe in rule.recipes}
    page = (root / "docs" / "fixes.md").read_text(encoding="utf-8")
    assert named == {case.recipe for case in CASES.values()}
    assert named == set(re.findall(r"^### (\S+)$", page, re.M))


def test_a_rule_names_the_recipes_that_stand_in_its_file() -> None:
    root = Path(__file__).resolve().parents[2]
    known = {recipe for rule in rules() for recipe in rule.recipes}
    for rule in rules():
        path = root / "rules" / f"{rule.slug().replace('-', '_')}.py"
        text = re.sub(r"recipes = .*", "", path.read_text(encoding="utf-8"))
        assert {word for word in re.findall(r"\"([a-z-]+)\"", text) if word in known} == set(rule.recipes), path
