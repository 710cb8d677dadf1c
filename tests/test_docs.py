"""The documents say what is true: rule pages are current, named paths exist, and shown output is real."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from nosync_lint.report.formats import FORMATS

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for folder, pattern in ((ROOT, "*.md"), (ROOT / "demo", "*.md"), (ROOT / "docs", "**/*.md"))
    for path in folder.glob(pattern)
    if path.parent != ROOT / "docs" / "rules"
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


def test_the_page_about_configuration_shows_what_can_be_read(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    (tmp_path / "inner").mkdir()
    for number, shown in enumerate(re.findall(r"```toml\n(.*?)```", text, re.S)):
        path = tmp_path / "inner" / f"{number}.toml"
        path.write_text(shown)
        (tmp_path / "shared").mkdir(exist_ok=True)
        (tmp_path / "shared" / "nosync-lint.toml").touch()
        done = run("-m", "nosync_lint", "check", "--config", str(path), "--show-settings", folder=tmp_path)
        assert done.returncode == 0, done.stderr
    ((command),) = re.findall(r"```sh\nnosync-lint (check .*)\n```", text)
    done = run("-m", "nosync_lint", *shlex.split(command), folder=tmp_path)
    assert 'heat = "any"  # command line\n' in done.stdout
    assert 'rules = { item-read = { severity = "info" } }  # command line\n' in done.stdout


def test_the_page_about_formats_names_all_of_them_and_shows_what_is_printed(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| `([\w-]+)` \|", text, re.M)) == sorted(FORMATS)
    (program,) = re.findall(r"```python\n(.*?)```", text, re.S)
    (tmp_path / "step.py").write_text(program, encoding="utf-8")
    (tmp_path / "nosync-lint.toml").touch()
    shown = re.findall(r"```sh\nnosync-lint ([^\n]*)\n```\n\n```text\n(.*?)```", text, re.S)
    assert len(shown) == 4
    for arguments, output in shown:
        done = run("-m", "nosync_lint", *arguments.split(), "--no-cache", folder=tmp_path)
        assert done.stdout == output, f"docs/formats.md shows other output for `nosync-lint {arguments}`"


def test_the_page_about_reports_shows_the_graph_that_is_drawn() -> None:
    done = run("-m", "nosync_lint", "graph", "--no-cache", "demo", "--output-format", "svg")
    shown = (ROOT / "docs" / "images" / "graph.svg").read_text(encoding="utf-8")
    assert shown == done.stdout, "run `python docs/pictures.py`"


def test_every_picture_that_a_document_shows_exists_and_is_small() -> None:
    for path in (ROOT / "docs").glob("*.md"):
        for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / name).stat().st_size < 200_000, f"{path.name}: {name}"


def test_the_readme_begins_with_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first, second = re.findall(r"```sh\n(.*?)\n```", text.partition("\n## ")[0], re.S)
    assert first.endswith("nosync-lint check demo")
    assert second.endswith("-m pytest -n auto")


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
    monkeypatch.setattr(module, "CONFIGURATION", tmp_path / "docs" / "configuration.md")
    monkeypatch.setattr(module, "SCHEMA", tmp_path / "docs" / "nosync-lint.schema.json")
    (tmp_path / "docs").mkdir()
    module.CONFIGURATION.write_text(f"# Head\n{module.KEYS_BEGIN}nothing new\n{module.KEYS_END}tail\n")
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
    keys = generate.CONFIGURATION.read_text()
    assert keys.startswith("# Head\n")
    assert "### `heat`" in keys
    assert keys.endswith("tail\n")
    assert "nothing new" not in keys
    assert generate.SCHEMA.read_text().startswith("{")
    (tmp_path / "docs" / "rules" / "gone.md").write_text("a rule that is no more")
    capsys.readouterr()
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().out == "not current: docs/rules/gone.md\n"
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
