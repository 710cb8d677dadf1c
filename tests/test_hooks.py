"""What pre-commit reads: `.pre-commit-hooks.yaml` is sound, and the commands in it do what a hook needs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
REQUIRED = {"id", "name", "entry", "language"}
KNOWN = REQUIRED | {
    "description",
    "types_or",
    "require_serial",
    "pass_filenames",
    "stages",
    "minimum_pre_commit_version",
}
STAGES = {"pre-commit", "pre-merge-commit", "pre-push", "manual"}  # their names since pre-commit 3.2
LOOP = "import store\nimport torch\n\n\ndef step(ids: torch.Tensor):  # nosync-lint: hot\n    store.note(ids)\n"
FLAGGED = "import torch\n\n\ndef step(ids: torch.Tensor):  # nosync-lint: hot\n    return ids.unique()\n"


def read_hooks() -> dict[str, dict[str, str]]:
    """The hooks by id. The file is a list of flat mappings, one key a line, which needs no parser of YAML."""
    hooks: list[dict[str, str]] = []
    for line in (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        match = re.fullmatch(r"(- |  )(\w+): (\S.*)", line)
        assert match is not None, f"no `key: value` line: {line!r}"
        lead, key, value = match.groups()
        assert (": " in value, " #" in value) == (False, False), f"needs quotes: {line!r}"
        if lead == "- ":
            hooks.append({})
        assert key not in hooks[-1], f"twice in one hook: {line!r}"
        hooks[-1][key] = value
    found = {hook["id"]: hook for hook in hooks}
    assert len(found) == len(hooks), "two hooks have one id"
    return found


HOOKS = read_hooks()


def items(text: str) -> list[str]:
    """The words of a list in brackets."""
    match = re.fullmatch(r"\[(.*)\]", text)
    assert match is not None, text
    return [part.strip() for part in match[1].split(",")]


def run(hook: str, folder: Path, *files: str) -> subprocess.CompletedProcess[str]:
    """A hook as pre-commit starts it, in a folder and with the names of changed files."""
    script, *arguments = shlex.split(HOOKS[hook]["entry"])
    assert SCRIPTS[script] == "nosync_lint.cli:run_and_exit"
    return subprocess.run(
        [sys.executable, "-m", "nosync_lint", *arguments, *files],
        cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False,
    )  # fmt: skip


def test_there_is_a_hook_for_changes_one_for_fixes_and_one_for_the_project() -> None:
    assert sorted(HOOKS) == ["nosync-lint", "nosync-lint-fix", "nosync-lint-project"]


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_has_the_keys_that_pre_commit_knows(hook: str) -> None:
    assert REQUIRED <= set(HOOKS[hook]) <= KNOWN
    assert HOOKS[hook]["language"] == "python"
    assert HOOKS[hook]["minimum_pre_commit_version"] == "3.2.0"
    assert set(items(HOOKS[hook].get("stages", "[manual]"))) <= STAGES


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_starts_a_script_that_is_installed(hook: str) -> None:
    script, command, *_ = shlex.split(HOOKS[hook]["entry"])
    assert script in SCRIPTS
    assert command == "check"


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_sees_python_and_cuda_files_in_one_run(hook: str) -> None:
    assert items(HOOKS[hook]["types_or"]) == ["python", "jupyter", "c++", "cuda"]
    assert HOOKS[hook]["require_serial"] == "true"


def test_only_the_project_hook_gets_no_file_names() -> None:
    assert [hook for hook in HOOKS if HOOKS[hook].get("pass_filenames") == "false"] == ["nosync-lint-project"]


def test_only_the_project_hook_waits_for_a_push() -> None:
    assert [hook for hook in HOOKS if "stages" in HOOKS[hook]] == ["nosync-lint-project"]
    assert items(HOOKS["nosync-lint-project"]["stages"]) == ["pre-push", "manual"]


@pytest.mark.parametrize("document", ["README.md", "docs/guides/ci.md"])
def test_the_documents_name_the_hooks_that_exist(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    assert set(re.findall(r"^ +- id: (nosync-lint[\w-]*)", text, re.M)) == set(HOOKS)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "nosync-lint.toml").write_text('exclude = ["vendored"]\n')
    (tmp_path / "clean.py").write_text("x = 1\n")
    (tmp_path / "loop.py").write_text(LOOP)
    (tmp_path / "store.py").write_text("def note(ids):\n    return ids.tolist()\n")
    (tmp_path / "flagged.py").write_text(FLAGGED)
    (tmp_path / "vendored").mkdir()
    (tmp_path / "vendored" / "copied.py").write_text(FLAGGED)
    return tmp_path


def test_the_files_hook_reports_on_the_given_files(project: Path) -> None:
    assert run("nosync-lint", project, "clean.py").returncode == 0
    done = run("nosync-lint", project, "clean.py", "flagged.py")
    assert done.returncode == 1
    assert "flagged.py:5:12: NSL301" in done.stdout
    assert "vendored" not in done.stdout
    assert "store.py" not in done.stdout


def test_the_files_hook_reports_elsewhere_what_leads_through_a_given_file(project: Path) -> None:
    done = run("nosync-lint", project, "loop.py")
    assert done.returncode == 1
    assert "store.py:2:12: NSL202" in done.stdout
    assert "flagged.py" not in done.stdout


def test_a_hook_leaves_out_given_files_that_are_excluded(project: Path) -> None:
    done = run("nosync-lint", project, "vendored/copied.py")
    assert done.returncode == 0
    assert "0 files reported" in done.stdout


def test_the_project_hook_reports_on_all_files(project: Path) -> None:
    done = run("nosync-lint-project", project)
    assert done.returncode == 1
    assert "4 files reported" in done.stdout


def test_without_file_names_the_files_hook_has_nothing_to_report(project: Path) -> None:
    """pre-commit does not start a hook that has no files, other callers may: no change is no finding."""
    done = run("nosync-lint", project)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no changed file was given" in done.stdout


def test_the_fix_hook_fixes_and_leaves_the_report_to_the_others(project: Path) -> None:
    table = 'table = torch.zeros(8, device="cuda")\n    table[torch.arange(4, device="cuda")] = -1'
    (project / "flagged.py").write_text(FLAGGED.replace("return", f"{table}\n    return"))
    done = run("nosync-lint-fix", project, "clean.py", "flagged.py")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "fixed 1 finding in 1 file\n")
    assert "index_fill_" in (project / "flagged.py").read_text()
    again = run("nosync-lint-fix", project, "clean.py", "flagged.py")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "nothing to fix\n")


@pytest.mark.parametrize("hook", ["nosync-lint", "nosync-lint-project"])
def test_nothing_to_lint_is_no_failure(hook: str, tmp_path: Path) -> None:
    done = run(hook, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
