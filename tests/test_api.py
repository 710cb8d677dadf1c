"""What `import nosync_lint` offers: cheap to import, typed, and the same as the command line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import nosync_lint
from nosync_lint import Confidence, Finding, Heat, Settings, Severity

ROOT = Path(__file__).resolve().parent.parent
FLAGGED = "import torch\n\ndef step(ids: torch.Tensor):  # nosync-lint: hot\n    return ids.unique()\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "nosync-lint.toml").touch()
    (tmp_path / "hot.py").write_text(FLAGGED)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_importing_the_package_imports_none_of_it() -> None:
    code = "import sys, nosync_lint; print(sorted(one for one in sys.modules if one.startswith('nosync_lint')), *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    listed, _, rest = done.stdout.partition("] ")
    assert listed == "['nosync_lint'"
    assert {"torch", "libcst", "rich", "tree_sitter", "dataclasses"} & set(rest.split()) == set()


def test_a_check_needs_neither_torch_nor_libcst_nor_a_terminal() -> None:
    code = "import sys, nosync_lint; nosync_lint.check; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert {"torch", "libcst", "rich", "pygls"} & set(done.stdout.split()) == set()


def test_every_public_name_is_there_and_no_other() -> None:
    assert [name for name in nosync_lint.__all__ if getattr(nosync_lint, name, None) is None] == []
    assert set(nosync_lint.__all__) <= set(dir(nosync_lint))
    with pytest.raises(AttributeError, match="module 'nosync_lint' has no attribute 'chekc'"):
        _ = nosync_lint.chekc  # type: ignore[attr-defined]


def test_a_report_holds_what_was_found(project: Path) -> None:
    report = nosync_lint.check("hot.py", cache=False)
    (finding,) = report.findings
    assert isinstance(finding, Finding)
    assert (finding.code, finding.name, finding.filename, finding.span.row) == (
        "NSL301",
        "dedup-on-device",
        "hot.py",
        4,
    )
    assert (finding.severity, finding.confidence, finding.heat) == (Severity.ERROR, Confidence.LIKELY, Heat.HOT)
    assert report.exit_code == 1
    assert not (project / ".nosync_lint_cache").exists()


def test_paths_are_one_or_several_strings_or_paths(project: Path) -> None:
    for paths in ("hot.py", Path("hot.py"), ["hot.py"], (Path("hot.py"),), iter(["hot.py"])):
        assert len(nosync_lint.check(paths, cache=False).findings) == 1
    assert len(nosync_lint.check(cache=False).findings) == 1


def test_settings_come_from_the_project_and_can_be_changed(project: Path) -> None:
    (project / "nosync-lint.toml").write_text('ignore = ["dedup-on-device"]\n')
    assert nosync_lint.check(cache=False).findings == ()
    settings = nosync_lint.settings_for("hot.py")
    assert settings.ignore == ("dedup-on-device",)
    assert len(nosync_lint.check(settings=replace(settings, ignore=()), cache=False).findings) == 1
    assert len(nosync_lint.check(settings=Settings(), cache=False).findings) == 1


def test_an_overlay_stands_for_files(project: Path) -> None:
    assert nosync_lint.check("hot.py", overlay={"hot.py": "x = 1\n"}, cache=False).findings == ()
    overlay: dict[str | Path, str | bytes] = {Path("new.py"): FLAGGED.encode()}
    assert [one.filename for one in nosync_lint.check(overlay=overlay, cache=False).findings] == ["hot.py", "new.py"]  # type: ignore[arg-type]


def test_what_cannot_be_used_raises(project: Path) -> None:
    with pytest.raises(nosync_lint.MissingPath, match="nowhere: no such file or folder"):
        nosync_lint.check("nowhere")
    (project / "nosync-lint.toml").write_text("heart = 'any'\n")
    with pytest.raises(nosync_lint.ConfigError, match="did you mean `heat`"):
        nosync_lint.check()


def test_the_example_of_the_page_runs_and_prints_what_it_shows(project: Path) -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(# audit\.py\n.*?)```", page, re.S)
    (printed,) = re.findall(r"```text\n(.*?)```", page, re.S)
    (project / "pool.py").write_text(
        "import torch\n\nclass Pool:\n    def free(self, pages: torch.Tensor):  # nosync-lint: hot\n        return torch.unique(pages)\n"
    )
    (project / "hot.py").unlink()
    (project / "audit.py").write_text(example)
    done = subprocess.run(
        [sys.executable, "audit.py", "pool.py"], cwd=project, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stderr == ""
    assert done.stdout == printed


def test_type_checkers_see_the_public_names(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "use.py").write_text(
        "import nosync_lint\n"
        "report: nosync_lint.Report = nosync_lint.check(['src'], jobs=1)\n"
        "names: list[str] = [one.name for one in report.findings]\n"
        "wrong: int = report.findings[0].name\n"
        "nosync_lint.chekc()\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "use.py"],
        cwd=tmp_path, env={**os.environ, "MYPYPATH": str(ROOT)}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    told = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert [line.partition(": error: ")[0] for line in told] == ["use.py:4", "use.py:5"], done.stdout
