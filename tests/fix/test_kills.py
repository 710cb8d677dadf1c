"""A run of `--fix` that is killed leaves every file as it was or fixed. `benchmarks/fix_kills.py` does it more often."""

from __future__ import annotations

import sys

import pytest

from benchmarks.fix_kills import FILES, measure


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_killed_run_leaves_every_file_old_or_new() -> None:
    found, _ = measure(25)
    assert [left.torn for left in found if left.torn] == []
    assert all(left.old + left.new == FILES for left in found)
    assert any(0 < left.new < FILES for left in found), "no run was killed while it wrote"
