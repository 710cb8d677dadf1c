"""What the documents show of the guard happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {
    **os.environ,
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTHONWARNINGS": "ignore:Failed to initialize NumPy",  # torch says so where numpy is missing, and works
    "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
}


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert not done.stderr, done.stderr
    return done.stdout


def test_the_test_of_the_readme_fails_for_the_store_and_passes_for_the_fill(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (program,) = [one for one in re.findall(r"```python\n(.*?)```", text, re.S) if "pytest.mark.nosync" in one]
    assert len([line for line in program.splitlines() if line]) == 10
    (tmp_path / "test_free.py").write_text(program, encoding="utf-8")
    output = run(tmp_path, "-m", "pytest", "-p", "nosync_lint.guard.pytest_plugin", "-rA")
    assert "FAILED test_free.py::test_free[index]" in output
    assert "test_free.py:10:9: NSL101 scalar-index-write: this makes the host wait for the device [h2d]" in output
    assert "PASSED test_free.py::test_free[fill]" in output


def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "guard.md").read_text(encoding="utf-8")
    program, shown = re.search(r"```python\n(.*?)```.*?```\n(.*?)```", text, re.S).groups()  # type: ignore[union-attr]
    (tmp_path / "step.py").write_text(program, encoding="utf-8")
    assert run(tmp_path, "step.py") == shown


def test_the_page_lists_every_level() -> None:
    from nosync_lint.guard import Level

    text = (ROOT / "docs" / "guard.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)`", text, re.M)[: len(Level)] == [*Level]
