"""Rules of other distributions: a package of them is found, judged, tested with our kit, and told about when broken."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nosync_lint.finding import Severity
from nosync_lint.link.program import Program
from nosync_lint.rule import Judgement, Rule
from nosync_lint.testing import MalformedMarker, check_rule, check_sample

PACKAGE = Path(__file__).resolve().parent / "plugin_package"
STEP = "import torch\nfrom debug import snapshot\n\n\ndef step(t: torch.Tensor):  # nosync-lint: hot\n    snapshot(t)\n"


def run(*command: str | Path, cwd: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ) | ({"PYTHONPATH": str(path)} if path is not None else {})
    return subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the package is installed, from a copy: building leaves files behind."""
    home = tmp_path_factory.mktemp("house")
    source = home / "source"
    for path in PACKAGE.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            (source / path.relative_to(PACKAGE)).parent.mkdir(parents=True, exist_ok=True)
            (source / path.relative_to(PACKAGE)).write_bytes(path.read_bytes())
    options = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", home / "site")
    done = run("-m", "pip", "install", *options, source, cwd=home)
    assert done.returncode == 0, done.stderr
    return home / "site"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "nosync-lint.toml").touch()
    (folder / "step.py").write_text(STEP)
    (folder / "debug.py").write_text("def snapshot(tensor): ...\n")
    return folder


def test_an_installed_rule_is_judged_like_ours(installed: Path, project: Path) -> None:
    done = run("-m", "nosync_lint", "check", "--no-cache", "--color", "never", cwd=project, path=installed)
    assert done.returncode == 1, done.stderr
    assert (
        "step.py:6:5: HSE101 snapshot-per-step `snapshot` reads a tensor on a device that is given as parameter back"
        in done.stdout
    )
    assert "    warning, likely, hot\n    chain from `step.step`:" in done.stdout
    assert "    instead: take the snapshot outside of the step" in done.stdout


def test_an_installed_rule_is_selected_ignored_suppressed_and_explained(installed: Path, project: Path) -> None:
    check = ("-m", "nosync_lint", "check", "--no-cache")
    assert run(*check, "--select", "HSE", cwd=project, path=installed).returncode == 1
    assert run(*check, "--ignore", "snapshot-per-step", cwd=project, path=installed).returncode == 0
    (project / "step.py").write_text(STEP.rstrip() + "  # nosync-lint: ignore[HSE101] once an hour\n")
    assert run(*check, cwd=project, path=installed).returncode == 0
    told = run("-m", "nosync_lint", "rule", "HSE101", cwd=project, path=installed).stdout
    assert told.startswith("HSE101 snapshot-per-step (warning, since 1.0.0)\n\nA snapshot of a device tensor")


def test_the_tests_of_the_package_pass(installed: Path, tmp_path: Path) -> None:
    options = ("-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-c", os.devnull)
    done = run("-m", "pytest", *options, PACKAGE / "tests", cwd=tmp_path, path=installed)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


RULE = '''
"""A rule."""

from nosync_lint.finding import Severity
from nosync_lint.rule import Rule


class {name}(Rule):
    code, since, severity, sites = "{code}", "1.0.0", Severity.INFO, {sites}

    def judge(self, site, program):
        yield from ()
'''
BROKEN = {
    "it raises": ("raise RuntimeError('no license')", "cannot be loaded: RuntimeError: no license"),
    "it leaves": ("raise SystemExit(0)", "cannot be loaded: SystemExit: 0"),
    "there is no such name": ("", "cannot be loaded: AttributeError: "),
    "no rule": ("def Plugged(): ...", "`Plugged` is no class that derives from `nosync_lint.rule.Rule`"),
    "no judge": (
        "from nosync_lint.rule import Rule\nclass Plugged(Rule): code = 'HSE101'",
        "`Plugged` has no `judge`",
    ),
    "a code of ours": (
        RULE.format(name="Plugged", code="NSL999", sites=("call",)),
        "`Plugged` has the code 'NSL999': it takes three capital letters, not NSL, and three digits",
    ),
    "sites that are no tuple": (
        RULE.format(name="Plugged", code="HSE101", sites="'call'"),
        "`Plugged` has the sites 'call': it takes a tuple of kinds of sites",
    ),
    "a name of ours": (
        RULE.format(name="ItemRead", code="HSE101", sites=("call",)) + "\nPlugged = ItemRead",
        "HSE101 item-read has the code or name of NSL201 item-read in nosync_lint.rules.item_read",
    ),
    "no documentation": (
        RULE.format(name="Plugged", code="HSE101", sites=("call",)).replace('"""A rule."""', ""),
        "`Plugged` has no documentation: the docstring of its module tells what it is about",
    ),
}


@pytest.mark.parametrize(("source", "told"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_plugin_gives_one_line_and_exit_2(source: str, told: str, project: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "plug-1.0.dist-info").mkdir(parents=True)
    (site / "plug-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: plug\nVersion: 1.0\n")
    (site / "plug-1.0.dist-info" / "entry_points.txt").write_text("[nosync_lint.rules]\none = plug:Plugged\n")
    (site / "plug.py").write_text(source.lstrip())
    done = run("-m", "nosync_lint", "check", "--no-cache", cwd=project, path=site)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"nosync-lint: error: entry point `one` of nosync_lint.rules in plug: {told}")
    assert "uninstall its package" in line


class LongLine(Rule):
    """Reports files that cannot be read, so that the kit can be tried without a plugin."""

    code, since, severity, sites = "HSE102", "1.0.0", Severity.WARNING, ("call",)

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        if "print" in getattr(site, "spelled", ""):
            raise ValueError("no opinion")
        yield from ()


def test_the_kit_wants_markers_where_they_belong() -> None:
    with pytest.raises(AssertionError, match=r"the flagged sample has no `# error: \[long-line\]`"):
        check_rule(LongLine, flagged="x = 1", clean="")
    with pytest.raises(AssertionError, match=r"the clean sample marks findings at main.py:1"):
        check_rule(LongLine, flagged="x = 1  # error: [long-line]", clean="x = 1  # error: [long-line]")
    with pytest.raises(MalformedMarker, match=r"main\.py:1: malformed marker"):
        check_rule(LongLine, flagged="x = 1  # eroor: [long-line]", clean="")


def test_the_kit_says_what_is_not_as_it_is_marked() -> None:
    with pytest.raises(AssertionError) as caught:
        check_rule(LongLine, flagged="x()  # error: [long-line]", clean="")
    assert str(caught.value).splitlines() == [
        "long-line does not report the flagged sample as it is marked:",
        "  main.py:1: long-line is marked 1 time and not reported so often",
    ]


def test_a_failing_test_of_a_rule_shows_its_own_lines() -> None:
    with pytest.raises(AssertionError) as caught:
        check_rule(LongLine, flagged="x()  # error: [long-line]", clean="")
    shown = [entry.name for entry in caught.traceback.filter(caught)]
    assert shown == ["test_a_failing_test_of_a_rule_shows_its_own_lines"]


def test_the_kit_fails_on_a_sample_that_cannot_be_read_and_on_a_rule_that_crashes() -> None:
    (told,) = check_sample("def (:", [LongLine()])
    assert told.startswith("main.py:1: this file cannot be parsed as Python")
    (told,) = check_sample("print(1)", [LongLine()])
    assert told == "rule HSE102 long-line crashed at main.py:1: ValueError: no opinion"


def test_the_kit_refuses_what_the_registry_refuses() -> None:
    class Coded(LongLine):
        code = "X1"

    with pytest.raises(AssertionError, match="Coded has the code 'X1'"):
        check_rule(Coded, flagged="", clean="")


def test_without_chosen_rules_a_sample_meets_all_of_them() -> None:
    text = """
        import torch
        def step(t: torch.Tensor):  # nosync-lint: hot
            return t.unique()  # error: [dedup-on-device]
        """
    assert check_sample(text) == []


def test_the_page_shows_the_files_of_the_package() -> None:
    page = (PACKAGE.parent.parent / "docs" / "plugins.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^```\w+\n# ([\w/.]+)\n(.*?)^```$", page, re.M | re.S))
    files = {
        path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".toml")
    }
    assert {name: files[name].read_text(encoding="utf-8") for name in shown} == shown
    assert set(shown) == set(files)
