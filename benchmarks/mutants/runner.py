"""Applies a mutant to a copy of the tree and asks the linter and the witnesses about it."""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import cache_from_source
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch
import torch._dynamo  # with the first dispatch mode; the processes that run tests have it from here

from benchmarks.mutants.evidence import read_outcomes
from benchmarks.mutants.mutant import ROOT, STATIC, TESTS, Mutant, MutantError
from nosync_lint.config import load_config
from nosync_lint.pipeline import run

PACKAGE = "reference_allocator"
COPIED = (PACKAGE, TESTS, "tests/conftest.py", "benchmarks/mutants", "pyproject.toml")
LINKED = ("nosync_lint", "rules")
SECONDS = 240
"""For the witnesses of one mutant. They take a few, and up to a minute where kernels are compiled."""

INVARIANT = re.compile(r"\bI\d+ |error word")
"""The verifier has caught what a failure quotes it for."""


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
            verifier = mutant.witnesses.get("verifier", ())
            failed -= {test for test in verifier if not INVARIANT.search(said.get(test, ""))}
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

    def expect_sound(self, mutants: Sequence[Mutant]) -> None:
        """Raises `MutantError` for witnesses that fail, or prove nothing, without any mutant."""
        witnesses = [test for mutant in mutants for tests in mutant.witnesses.values() for test in tests]
        failed, broken, _ = self.test(witnesses, seconds=10 * SECONDS)
        if failed or broken:
            raise MutantError(f"without a mutant: {sorted(failed)} failed; {list(broken)}")

    def _write(self, texts: dict[str, str]) -> None:
        for name, text in texts.items():
            (self.root / name).write_text(text, encoding="utf-8")
            # It is as old as the text to the second, which two mutants may share.
            Path(cache_from_source(self.root / name)).unlink(missing_ok=True)

    def lint(self) -> Counter[str]:
        """How often each rule speaks about the package, its bad example left out."""
        settings = load_config(self.root / "pyproject.toml")
        settings = replace(
            settings,
            heat="any",
            exclude=(*settings.exclude, f"{PACKAGE}/naive.py"),
            cache_dir=str(self.folder.parent / "index"),
        )
        report = run([str(self.root / PACKAGE)], settings, jobs=1)
        if report.failures:
            raise RuntimeError(f"the linter failed: {report.failures}")
        return Counter(finding.code for finding in report.findings)

    def test(
        self, witnesses: Sequence[str], seconds: float = SECONDS
    ) -> tuple[set[str], tuple[str, ...], dict[str, str]]:
        """The witnesses that fail, what went wrong in a way that proves nothing, and what each failure said."""
        if not witnesses:
            return set(), (), {}
        outcomes, output = self.folder / "outcomes.json", self.folder / "output"
        outcomes.unlink(missing_ok=True)
        chosen = [f"{TESTS}/{witness}" for witness in dict.fromkeys(witnesses)]
        files = {"MUTANT_OUTCOMES": outcomes, "MUTANT_LIBRARIES": self.folder.parent / "libraries"}
        child = get_context("fork").Process(target=_pytest, args=(self.root, chosen, files, output))
        child.start()
        child.join(seconds)
        if child.is_alive():
            child.kill()
            child.join()
            return set(), (f"not done after {seconds:.0f} s",), {}
        if not outcomes.exists():
            return set(), (f"pytest ended with {child.exitcode}: {output.read_text(encoding='utf-8')[-200:]}",), {}
        told = json.loads(outcomes.read_text(encoding="utf-8"))
        if not Path(told["package"]).samefile(self.root / PACKAGE):
            raise RuntimeError(f"the tests imported {told['package']}, not the copy")
        return read_outcomes(told["tests"], witnesses)


def _pytest(root: Path, chosen: Sequence[str], files: Mapping[str, Path], output: Path) -> None:
    """Runs tests of the copy in a process of their own, which has torch and pytest from the one it was forked from."""
    gc.freeze()  # what the linter left is not worth looking through
    os.chdir(root)
    os.environ.update({"PYTHONPATH": str(root), **{name: str(path) for name, path in files.items()}})
    # Our own plugin is one that an installation brings along; it was imported with the linter, before pytest could.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.path.insert(0, str(root))
    torch.set_num_threads(1)
    with output.open("wb") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    options = ["-vv", "--tb=no", "-p", "no:cacheprovider", "-p", "benchmarks.mutants.outcomes"]
    os._exit(pytest.main([*options, *chosen]))
