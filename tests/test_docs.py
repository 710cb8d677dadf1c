"""The documents say what is true: rule pages are current, named paths exist, and shown output is real."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "demo/README.md",
    "docs/explain.md",
    "docs/fixes.md",
    "docs/accuracy.md",
    "docs/measurements.md",
    "docs/oracle.md",
    "docs/guard.md",
    "docs/guard_sweep.md",
    "docs/crossval.md",
    "docs/library_use.md",
    "docs/stub_runtime.md",
    "docs/allocator.md",
    "docs/allocator_guide.md",
    "docs/gpu.md",
    "docs/mutants.md",
)
FOLDERS = "nosync_lint|rules|fixtures|tests|docs|demo|benchmarks|tinyserve"
SEED_KINDS = ("NSL101", "NSL301", "NSL501", "NSL502", "NSL601")


def run(*command: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def demo() -> str:
    done = run("-m", "nosync_lint", "check", "--no-cache", "--color", "never", "demo")
    assert done.returncode == 1, done.stderr
    return done.stdout


def test_rule_pages_are_current() -> None:
    done = run("docs/generate.py", "--check")
    assert done.returncode == 0, f"run `python docs/generate.py`\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_path_that_a_document_names_exists(document: str) -> None:
    path = ROOT / document
    named = re.findall(rf"`((?:{FOLDERS})/[\w./-]*)`", path.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists() and not (path.parent / name).exists()] == []


def test_the_demo_shows_every_kind_of_seed_defect_with_its_story_and_cure(demo: str) -> None:
    blocks = re.split(r"\n(?=\S)", demo)
    for code in SEED_KINDS:
        (block,) = [one for one in blocks if f": {code} " in one]
        assert re.search(r"^    (chain from `.*`|shown by):$", block, re.M)
        assert "\n    instead: " in block


def test_the_readme_shows_what_the_demo_prints(demo: str) -> None:
    (shown,) = re.findall(r"```text\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    assert shown in demo


def test_the_page_about_explanations_shows_what_is_printed(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "explain.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", text, re.S)
    (tmp_path / "step.py").write_text(program, encoding="utf-8")
    shown = re.findall(r"```sh\nnosync-lint (.*?)\n```\n\n```text\n(.*?)```", text, re.S)
    assert len(shown) == 3
    for arguments, output in shown:
        folder = ROOT if "demo" in arguments else tmp_path
        done = run("-m", "nosync_lint", *arguments.split(), "--no-cache", folder=folder)
        assert done.stdout == output, f"docs/explain.md shows other output for `nosync-lint {arguments}`"


def test_the_readme_begins_with_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first, second = re.findall(r"```sh\n(.*?)\n```", text.partition("\n## ")[0], re.S)
    assert first.endswith("nosync-lint check demo")
    assert second.endswith("-m pytest")


@pytest.fixture
def generate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The page generator, with an empty tree of its own."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "PAGES", tmp_path / "docs" / "rules")
    monkeypatch.setattr(module, "FIXTURES", tmp_path / "fixtures")
    return module


def test_a_rule_without_a_sample_is_named(generate: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main(["--check"]) == 2
    assert "NSL601 over-strict-matcher: no flagged sample" in capsys.readouterr().err


def test_pages_are_written_checked_and_removed(
    generate: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for rule in generate.own_rules():
        folder = tmp_path / "fixtures" / rule.slug()
        folder.mkdir(parents=True)
        (folder / "flagged.py").write_text("def a():\n    x()  # error: [y]\n\n\ndef b(): ...\n")
        (folder / "clean").mkdir()
        (folder / "clean" / "a.cuh").write_text("namespace n {\nvoid f() {\n}\n" + "// more\n" * 50 + "}\n")
    assert generate.main(["--check"]) == 1
    assert generate.main([]) == 0
    page = (tmp_path / "docs" / "rules" / "over-strict-matcher.md").read_text()
    assert "```python\ndef a():\n    x()  # error: [y]\n```" in page
    assert "`a.cuh`\n\n```cpp\nnamespace n {\nvoid f() {\n}\n```" in page
    (tmp_path / "docs" / "rules" / "gone.md").write_text("a rule that is no more")
    capsys.readouterr()
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().out == "not current: docs/rules/gone.md\n"
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
