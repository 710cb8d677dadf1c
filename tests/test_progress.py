"""What a terminal shows while a run lasts, and that nothing else does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="terminals are opened so on Unix only")


def told(folder: Path, *options: str) -> str:
    """What a run writes to the terminal that its standard error is."""
    (folder / "a.py").write_text("x = 1\n")
    reading, writing = pty.openpty()
    subprocess.run(
        [sys.executable, "-m", "nosync_lint", "check", "--no-cache", *options],
        cwd=folder, stdout=subprocess.DEVNULL, stderr=writing, timeout=120, check=True,
    )  # fmt: skip
    os.close(writing)
    os.set_blocking(reading, False)
    try:
        return os.read(reading, 1 << 16).decode()
    except OSError:  # nothing was written, and the other end is closed
        return ""
    finally:
        os.close(reading)


def test_a_terminal_shows_the_stages_and_is_left_clean(tmp_path: Path) -> None:
    text = told(tmp_path)
    assert [text.index(stage) for stage in ("reading", "linking", "judging")] == sorted(
        text.index(stage) for stage in ("reading", "linking", "judging")
    )
    assert text.endswith("\r\x1b[K")


def test_a_quiet_run_shows_nothing(tmp_path: Path) -> None:
    assert told(tmp_path, "--quiet") == ""
