"""The hooks as pre-commit itself runs them: in an environment that it makes, on a project with a history of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parent.parent
IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.com")
FIXABLE = """import torch


def step(size: int):  # nosync-lint: hot
    table = torch.zeros(size, device="cuda")
    table[torch.arange(4, device="cuda")] = -1
"""


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *IDENTITY, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit_all(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "all", "--no-verify")


class Hooked:
    """A project whose pre-commit takes the hooks from this working tree."""

    def __init__(self, folder: Path, hooks: Path, home: Path) -> None:
        self.folder, self._home = folder, home
        ids = [
            line.split()[-1] for line in (hooks / ".pre-commit-hooks.yaml").read_text().splitlines() if "- id:" in line
        ]
        config = ["repos:", f"  - repo: {hooks.as_uri()}", f"    rev: {git(hooks, 'rev-parse', 'HEAD')}", "    hooks:"]
        config += [f"      - id: {name}" for name in ids]
        git(folder, "init", "-q")
        (folder / ".pre-commit-config.yaml").write_text("\n".join(config) + "\n")
        commit_all(folder)

    def pre_commit(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pre_commit", *arguments, "--color", "never"],
            cwd=self.folder,
            env={**os.environ, "PRE_COMMIT_HOME": str(self._home), "PIP_RETRIES": "2", "NO_COLOR": "1"},
            capture_output=True, text=True, encoding="utf-8", timeout=300, check=False,
        )  # fmt: skip

    def stage(self, name: str, addition: str = "\n# changed\n") -> None:
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(addition)
        git(self.folder, "add", name)


@pytest.fixture(scope="module")
def hooks(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This working tree as a repository that pre-commit can clone."""
    folder = tmp_path_factory.mktemp("hooks") / "repository"
    shutil.copytree(tree, folder)
    git(folder, "init", "-q")
    commit_all(folder)
    return folder


@pytest.fixture(scope="module")
def home(hooks: Path, tmp_path_factory: pytest.TempPathFactory, missing: Callable[[str], NoReturn]) -> Path:
    """Where pre-commit keeps the environment of the hooks, made once."""
    home = tmp_path_factory.mktemp("home")
    empty = tmp_path_factory.mktemp("empty")
    done = Hooked(empty, hooks, home).pre_commit("install-hooks")
    told = done.stdout + done.stderr
    if "(from versions: none)" in told:
        missing("no package index can be reached: pre-commit cannot make the environment of the hooks")
    assert done.returncode == 0, told
    return home


@pytest.fixture
def project(hooks: Path, home: Path, tmp_path: Path) -> Hooked:
    """The bundled sample, freshly cloned."""
    folder = tmp_path / "demo"
    shutil.copytree(ROOT / "demo", folder, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    return Hooked(folder, hooks, home)


@pytest.mark.parametrize("command", ["validate-manifest", "validate-config"])
def test_pre_commit_accepts_our_files(command: str) -> None:
    name = ".pre-commit-hooks.yaml" if command == "validate-manifest" else ".pre-commit-config.yaml"
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", command, name], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_environment_of_the_hooks_has_no_torch(home: Path) -> None:
    (python,) = [*home.glob("*/py_env*/bin/python"), *home.glob("*/py_env*/Scripts/python.exe")]
    listed = subprocess.run(
        [python, "-c", "import importlib.metadata as m; print(*(d.name.lower() for d in m.distributions()))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    names = set(listed.stdout.split())
    assert {"nosync-lint", "libcst"} <= names
    assert not {"torch", "numpy", "mkdocs", "pytest"} & names
    assert subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 1


def test_the_first_run_over_all_files_tells_all_defects_of_the_sample(project: Hooked) -> None:
    done = project.pre_commit("run", "nosync-lint", "--all-files")
    assert done.returncode == 1
    assert "5 shown" in done.stdout
    for code in ("NSL101", "NSL301", "NSL501", "NSL502", "NSL601"):
        assert f": {code} " in done.stdout
    assert git(project.folder, "status", "--porcelain") == ""  # the cache is nothing that git sees


def test_a_staged_file_tells_what_stands_elsewhere_and_leads_through_it(project: Hooked) -> None:
    project.stage("tinyserve/allocator.py")
    done = project.pre_commit("run", "nosync-lint")
    assert done.returncode == 1
    assert "tinyserve/allocator.py:38:9: NSL502" in done.stdout
    assert "tinyserve/shared_pool.py:12:1: NSL501" in done.stdout  # its flow leads through the staged file
    assert "NSL101" not in done.stdout  # the flow of this one does not
    assert "1 file reported, 6 linked" in done.stdout


def test_a_staged_file_that_nothing_leads_through_passes(project: Hooked) -> None:
    project.stage("tinyserve/__init__.py")
    done = project.pre_commit("run", "nosync-lint")
    assert (done.returncode, "Passed" in done.stdout) == (0, True)


def test_only_what_is_staged_is_judged(project: Hooked) -> None:
    """pre-commit takes away what is not staged for the time of the run."""
    project.stage("tinyserve/__init__.py")
    (project.folder / "tinyserve" / "__init__.py").write_text(FIXABLE)
    assert project.pre_commit("run", "nosync-lint").returncode == 0
    assert (project.folder / "tinyserve" / "__init__.py").read_text() == FIXABLE


def test_no_file_is_no_failure(project: Hooked) -> None:
    nothing = project.pre_commit("run")
    assert (nothing.returncode, "no files to check" in nothing.stdout) == (0, True)
    project.stage("README.md")
    other = project.pre_commit("run")
    assert (other.returncode, "Failed" in other.stdout) == (0, False)


def test_the_project_hook_runs_on_push_and_by_hand_only(project: Hooked) -> None:
    assert "nosync-lint (whole project)" not in project.pre_commit("run", "--all-files").stdout
    git(project.folder, "checkout", ".")  # the fix hook ran, too
    done = project.pre_commit("run", "--hook-stage", "manual", "nosync-lint-project", "--all-files")
    assert (done.returncode, "5 shown" in done.stdout) == (1, True)


def test_the_fix_hook_fixes_what_is_staged_and_passes_then(project: Hooked) -> None:
    (project.folder / "tinyserve" / "step.py").write_text(FIXABLE)
    project.stage("tinyserve/step.py", "")
    first = project.pre_commit("run", "nosync-lint-fix")
    assert (first.returncode, "files were modified by this hook" in first.stdout) == (1, True)
    assert "index_fill_" in (project.folder / "tinyserve" / "step.py").read_text()
    project.stage("tinyserve/step.py", "")
    assert project.pre_commit("run", "nosync-lint-fix").returncode == 0
