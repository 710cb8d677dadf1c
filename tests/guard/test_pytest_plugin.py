"""The pytest plugin, in runs of pytest of their own."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., tuple[int, str]]

TESTS = """
import pytest, torch

@pytest.fixture
def table():
    table = torch.zeros(8, device="cuda")
    table[0] = 1.0  # a fixture may wait
    yield table
    table.cpu()

@pytest.mark.nosync
def test_store(table):
    pages = torch.arange(3, device="cuda")
    table[pages] = -1

@pytest.mark.nosync
def test_fill(table):
    table.index_fill_(0, torch.arange(3, device="cuda"), -1)

@pytest.mark.nosync(level="allow", max_syncs=3)
def test_allowed(table):
    assert table[0].item() == 1.0

def test_report(table, nosync):
    table[0].item()
    assert [event.code for event in nosync.events] == ["NSL201"]

def test_plain():
    assert torch.zeros(3).device.type == "cpu"
    assert not torch.cuda.is_available()
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs pytest over one file with the plugin and no other, unless it is named. Gives the exit code and the output."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=":")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def start(text: str, *options: str, ini: str = "") -> tuple[int, str]:
        (tmp_path / "test_it.py").write_text(text)
        (tmp_path / "pytest.ini").write_text("[pytest]\n" + ini)
        quiet = ("-W", "ignore:Failed to initialize NumPy")  # torch says so where numpy is missing, and works
        command = [sys.executable, "-m", "pytest", *quiet, "-p", "nosync_lint.guard.pytest_plugin", *options]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout + done.stderr

    return start


def test_marked_tests_fail_where_they_wait_and_say_so_shortly(run: Run) -> None:
    code, output = run(TESTS, "-q")
    assert code == 1
    assert "1 failed, 4 passed" in output
    failure = output.partition("= FAILURES =")[2].partition("waits of the host for a device")[0]
    assert "test_it.py:14:5: NSL101 scalar-index-write: this makes the host wait for the device [h2d]" in failure
    assert "instead: t.index_fill_(dim, idx, s)" in failure
    assert len(failure.strip().splitlines()) < 12
    assert "from:    test_it.py:14 in `test_store`\n" in failure
    summary = output.partition("waits of the host for a device")[2]
    assert "test_it.py:14:5 NSL101 scalar-index-write [h2d] 1x in 1 test\n" in summary
    assert "test_it.py:22:12 NSL201 item-read [d2h] 1x in 1 test\n" in summary
    assert "3 waits in 4 guarded tests" in summary


def test_off_leaves_every_test_alone(run: Run) -> None:
    code, output = run(
        "import pytest\n@pytest.mark.nosync\ndef test_it(nosync):\n    assert not nosync.events\n", "--nosync=off"
    )
    assert code == 0
    assert "waits of the host" not in output


def test_all_tests_can_be_guarded_to_report_only(run: Run) -> None:
    text = "import torch\n\ndef test_it():\n    for _ in range(3):\n        torch.cuda.synchronize()\n"
    code, output = run(text, "--nosync-all")
    assert code == 0
    assert "test_it.py:5:9 NSL401 explicit-synchronize [wait] 3x in 1 test" in output
    assert run(text)[0] == 1  # nothing is guarded, and there is no device


@pytest.mark.parametrize(
    ("option", "ini", "code"), [("", "", 0), ("--nosync=disallow_explicit", "", 1), ("", "disallow_explicit", 1)]
)
def test_the_level_comes_from_the_option_or_the_configuration(option: str, ini: str, code: int, run: Run) -> None:
    text = "import pytest, torch\n@pytest.mark.nosync\ndef test_it():\n    torch.zeros(3, device='cuda').cpu()\n"
    options = [option] if option else []
    assert run(text, *options, ini=f"nosync_level = {ini}\n" if ini else "")[0] == code


@pytest.mark.parametrize(
    ("text", "options", "ini", "said"),
    [
        ("", ["--nosync=strict"], "", "invalid choice"),
        ("", [], "nosync_level = strict\n", "nosync_level must be one of off, allow"),
        ("import pytest\n@pytest.mark.nosync('log')\ndef test_it(): ...\n", [], "", "nosync takes keywords only"),
        ("import pytest\n@pytest.mark.nosync(level='no')\ndef test_it(): ...\n", [], "", "unknown level `no`"),
        ("def test_it(nosync): ...\n", [], "nosync_backend = gpu\n", "unknown backend `gpu`"),
    ],
)
def test_wrong_settings_are_named(text: str, options: list[str], ini: str, said: str, run: Run) -> None:
    code, output = run(text or "def test_it(): ...\n", *options, ini=ini)
    assert code != 0
    assert said in output


def test_a_guard_that_cannot_be_made_harms_no_other_test(run: Run) -> None:
    code, output = run("""
import pytest, torch

@pytest.mark.nosync(levl="log")
def test_wrong(): ...

@pytest.mark.nosync
def test_right(): torch.zeros(3, device="cuda")
""")
    assert code == 1
    assert "1 passed, 1 error" in output
    assert (
        "test_it.py::test_wrong: guard() got an unexpected keyword argument 'levl': nosync(level=..., max_syncs=0"
        in output
    )


@pytest.mark.skipif(importlib.util.find_spec("anyio") is None, reason="anyio is not installed")
def test_coroutines_are_guarded(run: Run) -> None:
    code, output = run(
        """
import asyncio, pytest, torch

@pytest.mark.nosync
@pytest.mark.anyio
async def test_it(anyio_backend_name):
    await asyncio.sleep(0)
    torch.zeros(3, device="cuda")[0] = 1
""",
        "-p",
        "anyio.pytest_plugin",
    )
    assert code == 1
    assert "test_it.py:8:5: NSL101 scalar-index-write" in output


def test_classes_of_unittest_are_guarded(run: Run) -> None:
    code, output = run("""
import pytest, torch, unittest

@pytest.mark.nosync
class TestIt(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.table = torch.zeros(3, device="cuda")
        cls.table[0] = 1  # what is set up once may wait

    def test_free(self):
        self.table.add_(1)

    def test_waits(self):
        self.table[0] = 1
""")
    assert code == 1
    assert "1 failed, 1 passed" in output
    assert "test_it.py:15:9: NSL101 scalar-index-write" in output


def test_reasons_are_shown(run: Run) -> None:
    code, output = run("""
import pytest, torch
from nosync_lint.guard import allow_sync

@pytest.mark.nosync
def test_it():
    t = torch.zeros(3, device="cuda")
    with allow_sync(reason="once per epoch"):
        t[0] = 1
    t[1] = 1  # nosync-lint: ignore[NSL101] set up
    torch.zeros(3).to("cuda", non_blocking=True)
""")
    assert code == 0
    assert "[h2d, allowed: once per epoch] 1x" in output
    assert "[h2d, allowed: set up] 1x" in output
    assert "NSL105 pageable-async-copy [h2d, may wait] 1x" in output


def test_a_report_has_what_guarded_tests_did(run: Run, tmp_path: Path) -> None:
    code, _ = run(TESTS, "--nosync-json=before.json")
    assert code == 1
    before = json.loads((tmp_path / "before.json").read_text())
    assert [finding["code"] for finding in before["findings"]] == ["NSL101", "NSL201", "NSL201"]
    assert before["summary"]["target_torch"] == [".".join(torch.__version__.split(".")[:2])]


def test_only_waits_that_a_baseline_lacks_fail(run: Run, tmp_path: Path) -> None:
    code, output = run(TESTS, "--nosync-baseline=known.jsonl", "--nosync-write-baseline")
    assert (code, "3 entries added to known.jsonl" in output) == (0, True)
    moved = TESTS.replace("@pytest.mark.nosync\ndef test_fill", "# a line more\n@pytest.mark.nosync\ndef test_fill")
    moved = moved.replace("table[pages]", "table[\n        pages  # laid out in another way\n    ]")
    code, output = run("\n" + moved, "--nosync-baseline=known.jsonl")
    assert code == 0
    assert "NSL101 scalar-index-write [h2d, allowed: known before]" in output
    code, output = run(TESTS.replace("table[pages] = -1", "table[pages + 1] = -1"), "--nosync-baseline=known.jsonl")
    assert code == 1


def test_a_baseline_is_added_to_and_keeps_its_reasons(run: Run, tmp_path: Path) -> None:
    options = ("--nosync-baseline=known.jsonl", "--nosync-write-baseline")
    file = tmp_path / "known.jsonl"
    entry = {"file": "test_it.py", "scope": "test_store", "code": "NSL101", "snippet": "table[pages]", "reason": "old"}
    other = {"file": "elsewhere.py", "scope": "f", "code": "NSL201", "snippet": "t.item()"}
    file.write_text("\n".join(map(json.dumps, [{"nosync-lint-baseline": 1}, entry, other])) + "\n")
    code, output = run(TESTS, *options)
    assert (code, "2 entries added" in output) == (0, True)
    written = file.read_text()
    assert json.dumps(entry) in written
    assert json.dumps(other) in written
    assert run(TESTS, *options)[0] == 0
    assert file.read_text() == written


def test_linter_and_guard_share_a_baseline(run: Run, tmp_path: Path) -> None:
    text = "import pytest, torch\n\n@pytest.mark.nosync\ndef test_it():\n"
    text += (
        "    t = torch.zeros(3, device='cuda')\n    t[torch.arange(2, device='cuda')] = 1\n    if t.sum() > 1: ...\n"
    )
    text += "    print([x.item() for x in (t[0],)])\n"
    (tmp_path / "test_it.py").write_text(text)
    (tmp_path / "nosync-lint.toml").touch()
    command = [sys.executable, "-m", "nosync_lint", "check", "--no-cache", "--heat", "any", "--select", "NSL1,NSL2"]
    done = subprocess.run(
        [*command, "--baseline", "known.jsonl", "--write-baseline"], cwd=tmp_path, capture_output=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert run(text)[0] == 1
    code, output = run(text, "--nosync-baseline=known.jsonl")
    assert (code, output.count("allowed: known before")) == (0, 3), output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--nosync-baseline=pytest.ini"], "pytest.ini:1: is no baseline"),
        (["--nosync-baseline=gone.jsonl"], "gone.jsonl: there is no such baseline"),
        (["--nosync-write-baseline"], "needs a file"),
    ],
)
def test_an_unusable_baseline_is_named(options: list[str], said: str, run: Run) -> None:
    code, output = run(TESTS, *options)
    assert (code, said in output) == (4, True), output


def test_without_torch_the_reason_is_given(run: Run) -> None:
    text = "import sys\nsys.modules['torch'] = None\ndef test_it(nosync): ...\n"
    code, output = run(text)
    assert code == 1
    assert "pip install nosync-lint[guard]" in output


@pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="pytest-xdist is not installed")
def test_events_arrive_from_other_processes(run: Run) -> None:
    code, output = run(TESTS, "-q", "-p", "xdist", "-n", "2")
    assert code == 1
    assert "1 failed, 4 passed" in output
    assert "3 waits in 4 guarded tests" in output


def test_a_run_that_uses_none_of_it_imports_neither_torch_nor_the_guard(run: Run) -> None:
    text = "import sys\ndef test_it():\n    assert not {'torch', 'nosync_lint.guard.sessions', 'libcst'} & sys.modules.keys()\n"
    code, output = run(text)
    assert code == 0, output


def test_the_plugin_is_found_by_pytest() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"nosync": "nosync_lint.guard.pytest_plugin"}
    assert "nosync_lint.guard" in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]


RACE = """
import pytest, torch

@pytest.mark.nosync
def test_race():
    torch.ones(3, device="cuda").to("cpu", non_blocking=True).tolist()
"""


def test_a_read_before_the_wait_fails_the_test_and_is_listed(run: Run) -> None:
    code, output = run(RACE, "-q")
    assert code == 1
    failure, _, summary = output.partition("waits of the host for a device")
    assert "test_it.py:6:5: read before the wait: the copy to the host may not have arrived" in failure
    assert "Traceback" not in failure
    assert "test_it.py:6:5 read before the wait for the copy at test_it.py:6:5" in summary
