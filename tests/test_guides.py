"""The guides show what happens: their files are written, their commands run, and what they print is compared."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
CI = (ROOT / "docs" / "guides" / "ci.md").read_text(encoding="utf-8")


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


guides = load("run_guides")


def file_of(name: str) -> str:
    """What a file holds that the page about CI shows."""
    (content,) = [block.content for block in guides.blocks(CI) if block.name == name]
    return str(content)


def not_there(commands: str) -> set[str]:
    """The options in some commands that the command line does not have."""
    helped = ""
    for command in ("check", "graph", "rule", "config"):
        done = subprocess.run(
            [sys.executable, "-m", "nosync_lint", command, "--help"], capture_output=True, text=True, check=True
        )
        helped += done.stdout
    used = {
        option
        for line in re.findall(r"nosync-lint (?:check|graph|rule|config)\b.*", commands)
        for option in re.findall(r"--[a-z][\w-]+|(?<=--output-format )\w+", line)
    }
    return {option for option in used if option not in helped}


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_a_guide_shows_what_its_commands_print(guide: Path, tmp_path: Path) -> None:
    text = guide.read_text(encoding="utf-8")
    lacking = not_there("\n".join(block.content for block in guides.blocks(text) if block.language == "sh"))
    if lacking:
        pytest.skip(f"not there yet: {', '.join(sorted(lacking))}")
    assert guides.current(text, tmp_path) == text, f"run `python docs/run_guides.py {guide.stem} --write`"


def test_a_command_that_fails_is_told(tmp_path: Path) -> None:
    with pytest.raises(guides.Wrong, match="`nosync-lint check --no-such-option` ends with 2"):
        guides.current("```sh\nnosync-lint check --no-such-option\n```\n\n```text\n```\n", tmp_path)


def test_a_command_with_findings_that_are_not_shown_is_told(tmp_path: Path) -> None:
    text = "`a.py`:\n\n```python\nimport torch\ndef f(x: torch.Tensor):  # nosync-lint: hot\n    x.item()\n```\n\n```sh\nnosync-lint check\n```\n"
    with pytest.raises(guides.Wrong, match="ends with 1"):
        guides.current(text, tmp_path)


def test_other_output_is_put_in_the_place_of_the_old_one(tmp_path: Path) -> None:
    text = "before\n\n```sh\necho one\n```\n\n```text\ntwo\n```\n\nafter\n"
    assert guides.current(text, tmp_path) == text.replace("two", "one")


# -- what other services read --


@pytest.mark.parametrize("block", guides.blocks(CI), ids=lambda block: block.name or block.language)
def test_what_the_page_about_ci_shows_can_be_parsed(block: Any) -> None:
    if block.language == "yaml":
        assert isinstance(yaml.safe_load(block.content), dict)
    elif block.language == "groovy":
        assert block.content.count("{") == block.content.count("}")


def test_the_workflow_gives_inputs_and_reads_outputs_that_the_action_has() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    steps = yaml.safe_load(file_of(".github/workflows/nosync.yml"))["jobs"]["lint"]["steps"]
    (step,) = [one for one in steps if one.get("id") == "nosync"]
    assert set(step["with"]) <= set(action["inputs"])
    assert set(re.findall(r"steps\.nosync\.outputs\.([\w-]+)", str(steps))) <= set(action["outputs"])


def test_the_page_tells_all_inputs_with_their_defaults_and_all_outputs() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    rows = dict(re.findall(r"^\| `([\w-]+)` \| .* \| (.*?) ?\|$", CI.partition("## GitHub")[2], re.M))
    inputs = {name: one["default"] for name, one in action["inputs"].items()}
    assert set(rows) == set(inputs)
    assert {name: f"`{text}`" for name, text in inputs.items() if text} == {
        name: rows[name] for name, text in inputs.items() if text
    }
    assert re.findall(r"^\| `([\w-]+)` \| [^|]* \|$", CI, re.M) == list(action["outputs"])


def scripts() -> Iterator[str]:
    """The commands that other services are told to run."""
    (job,) = yaml.safe_load(file_of(".gitlab-ci.yml")).values()
    yield from job["script"]
    yield from (line for line in re.findall(r"sh '(.*)'", file_of("Jenkinsfile")) if not line.startswith("pip "))


@pytest.mark.parametrize("command", list(scripts()), ids=("gitlab", "jenkins"))
def test_the_commands_for_other_services_write_the_reports_they_are_read_from(command: str, tmp_path: Path) -> None:
    lacking = not_there(command)
    if lacking:
        pytest.skip(f"not there yet: {', '.join(sorted(lacking))}")
    (tmp_path / "a.py").write_text("import torch\n\n\ndef f(x: torch.Tensor):  # nosync-lint: hot\n    x.item()\n")
    guides._git(tmp_path, "init", "-q")
    guides._run(command, tmp_path, fails=True)
    reports = re.findall(r"-o (\S+)", command)
    assert [name for name in reports if "NSL201" not in (tmp_path / name).read_text(encoding="utf-8")] == []
    for name in reports:
        assert name in (file_of(".gitlab-ci.yml") + file_of("Jenkinsfile")).replace(command, "")
