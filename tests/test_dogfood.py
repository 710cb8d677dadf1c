"""The linter on itself, and what it costs to start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

REPORT_MODULES = """
import json, sys
sys.argv = ["nosync-lint"]
from nosync_lint.cli import main
code = main(json.loads({arguments!r}))
print(json.dumps([code, sorted({{name.partition(".")[0] for name in sys.modules}})]), file=sys.stderr)
"""


def modules_after(code: str, cwd: Path = ROOT) -> set[str]:
    """The top-level modules that are loaded once a program has run."""
    tail = "\nimport sys, json; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    done = subprocess.run(
        [sys.executable, "-c", code + tail], cwd=cwd, capture_output=True, text=True, timeout=120, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def check(cwd: Path, *arguments: str) -> tuple[int, set[str], str]:
    """A run of `check` in a fresh process: exit code, the modules it loaded, and its report."""
    code = REPORT_MODULES.format(arguments=json.dumps(["check", "--no-cache", "-j", "1", *arguments]))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    exit_code, modules = json.loads(done.stderr.splitlines()[-1])
    return exit_code, set(modules), done.stdout


def test_the_linter_is_silent_on_itself() -> None:
    code, _, report = check(ROOT, "--heat", "any", "nosync_lint", "rules")
    assert code == 0, report


def test_importing_the_package_imports_neither_torch_nor_libcst() -> None:
    assert modules_after("import nosync_lint") & {"torch", "libcst", "tree_sitter", "rich"} == set()


def test_importing_every_rule_imports_neither_torch_nor_libcst() -> None:
    loaded = modules_after("from nosync_lint.registry import rules; assert len(rules()) > 10")
    assert loaded & {"torch", "libcst", "tree_sitter"} == set()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "nosync-lint.toml").touch()
    (tmp_path / "host.py").write_text("import torch\nx = torch.zeros(3)\nx[0] = 1\n")
    return tmp_path


FLAGGED = "import torch\n\ndef step(ids: torch.Tensor):  # nosync-lint: hot\n    return ids.unique()\n"


def test_a_clean_run_imports_neither_libcst_nor_torch(project: Path) -> None:
    code, modules, _ = check(project, ".")
    assert code == 0
    assert modules & {"libcst", "torch"} == set()


def test_libcst_confirms_what_is_reported(project: Path) -> None:
    (project / "hot.py").write_text(FLAGGED)
    code, modules, _ = check(project, ".")
    assert code == 1
    assert "libcst" in modules


def test_a_run_without_cuda_files_never_imports_tree_sitter(project: Path) -> None:
    _, modules, _ = check(project, ".")
    assert "tree_sitter" not in modules
    (project / "kernel.cuh").write_text("__global__ void k(float* x) { x[0] = 1; }\n")
    _, modules, _ = check(project, ".")
    assert "tree_sitter" in modules


def test_the_linted_project_is_neither_imported_nor_run(project: Path) -> None:
    (project / "loud.py").write_text("open('was_run', 'w').close()\nraise SystemExit(9)\n")
    (project / "torch.py").write_text("open('was_imported', 'w').close()\n")
    before = {path.name for path in project.iterdir()}
    code, _, _ = check(project, ".")
    assert code == 0
    assert {path.name for path in project.iterdir()} == before
