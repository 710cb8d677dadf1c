"""Applies a mutant to a copy of the tree and asks the linter and the witnesses about it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.mutants.mutant import ROOT, STATIC, Mutant
from nosync_lint.config import load_config
from nosync_lint.pipeline import run

PACKAGE = "reference_allocator"
TESTS = "tests/reference_allocator"
COPIED = (PACKAGE, TESTS, "tests/conftest.py", "pyproject.toml")
LINKED = ("benchmarks", "nosync_lint", "rules")
SECONDS = 240
"""For the witnesses of one mutant. They take a few, and up to a minute where kernels are compiled."""

INVARIANT = re.compile(r"\bI\d+ |error word")
"""The verifier has caught what a failure quotes it for."""

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


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant.

    codes: rules with a finding that the tree as it is does not have. failed: witnesses that failed, by layer.
    survived: layers that should have caught it and did not, with what was silent. broken: why it proves nothing.
    """

    mutant: Mutant
    codes: tuple[str, ...]
    failed: dict[str, tuple[str, ...]]
    survived: dict[str, tuple[str, ...]]
    broken: tuple[str, ...]
    said: dict[str, str] = field(default_factory=dict)

    @property
    def killed(self) -> bool:
        """Whether everything that must catch it does, and none of that by accident."""
        return not self.survived and not self.broken


class Workspace:
    """A copy of the parts of the tree that are changed, linted and tested, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        self.folder = folder
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, self.root / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.root / name)
        for name in LINKED:
            (self.root / name).symlink_to(ROOT / name)
        self.clean = self.lint()

    def judge(self, mutant: Mutant) -> Verdict:
        """Applies the mutant, asks, and takes it back. Raises `MutantError` where it does not apply."""
        changed = mutant.applied(self.root)
        before = {name: (self.root / name).read_text(encoding="utf-8") for name in changed}
        self._write(changed)
        try:
            codes = tuple(sorted(self.lint() - self.clean))
            failed, broken, said = self.test([test for tests in mutant.witnesses.values() for test in tests])
            failed -= {test for test in mutant.witnesses.get("verifier", ()) if not INVARIANT.search(said.get(test, ""))}
        finally:
            self._write(before)
        caught = {layer: tuple(test for test in tests if test in failed) for layer, tests in mutant.witnesses.items()}
        survived = {
            layer: missed
            for layer, tests in mutant.witnesses.items()
            if (missed := tuple(test for test in tests if test not in failed))
        }
        if silent := tuple(code for code in mutant.rules if code not in codes):
            survived[STATIC] = silent
        return Verdict(mutant, codes, caught, survived, broken, said)

    def _write(self, texts: dict[str, str]) -> None:
        for name, text in texts.items():
            (self.root / name).write_text(text, encoding="utf-8")

    def lint(self) -> Counter[str]:
        """How often each rule speaks about the package, its bad example left out."""
        settings = load_config(self.root / "pyproject.toml")
        settings = replace(
            settings,
            heat="any",
            exclude=(*settings.exclude, f"{PACKAGE}/naive.py"),
            cache_dir=str(self.folder / "index"),
        )
        report = run([str(self.root / PACKAGE)], settings, jobs=1)
        if report.failures:
            raise RuntimeError(f"the linter failed: {report.failures}")
        return Counter(finding.code for finding in report.findings)

    def test(self, witnesses: Sequence[str]) -> tuple[set[str], tuple[str, ...], dict[str, str]]:
        """The witnesses that fail, what went wrong in a way that proves nothing, and what each failure said."""
        if not witnesses:
            return set(), (), {}
        outcomes = self.folder / "outcomes.json"
        outcomes.unlink(missing_ok=True)
        chosen = [f"{TESTS}/{witness}" for witness in dict.fromkeys(witnesses)]
        command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider"]
        command += ["-p", "benchmarks.mutants.outcomes", *chosen]
        variables = {"PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1", "MUTANT_OUTCOMES": str(outcomes)}
        try:
            done = subprocess.run(
                command, cwd=self.root, env={**os.environ, **variables}, capture_output=True, text=True,
                timeout=SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return set(), (f"not done after {SECONDS} s",), {}
        if not outcomes.exists():
            return set(), (f"pytest ended with {done.returncode}: {(done.stderr or done.stdout)[-200:]}",), {}
        told = json.loads(outcomes.read_text(encoding="utf-8"))
        if not Path(told["package"]).samefile(self.root / PACKAGE):
            raise RuntimeError(f"the tests imported {told['package']}, not the copy")
        return _read(told["tests"], witnesses)


def _read(tests: list[dict[str, str]], witnesses: Sequence[str]) -> tuple[set[str], tuple[str, ...], dict[str, str]]:
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
